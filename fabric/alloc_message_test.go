//go:build !asan

package fabric_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

func TestMessagesDoNotAllocate(t *testing.T) {
	const long = 1 << 16
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		memories(t, func(t *testing.T, fixed bool, memory func(int) []byte) {
			several := func(n uint64) (list [][]byte) {
				for range min(n, 8) {
					list = append(list, memory(8))
				}
				return list
			}
			size := b.info.Receive().Vectors
			forms := []struct {
				name          string
				send, receive fabric.Op
				inject        bool
			}{
				{name: "plain", send: fabric.Op{Buf: memory(64)}},
				{name: "empty"},
				{name: "long", send: fabric.Op{Buf: memory(long)}},
				{name: "immediate", send: fabric.Op{Buf: memory(64), Flags: fabric.Immediate, Immediate: 5}},
				{name: "vector", send: fabric.Op{Vector: several(a.info.Send().Vectors)}},
				{name: "into a vector", send: fabric.Op{Buf: memory(8 * int(min(size, 8)))}, receive: fabric.Op{Vector: several(size)}},
				{name: "with completion", send: fabric.Op{Buf: memory(64), Flags: fabric.WithCompletion}},
				{name: "inject complete", send: fabric.Op{Buf: memory(64), Flags: fabric.InjectComplete}},
				{name: "transmit complete", send: fabric.Op{Buf: memory(64), Flags: fabric.TransmitComplete}},
				{name: "delivery complete", send: fabric.Op{Buf: memory(64), Flags: fabric.DeliveryComplete}},
				{name: "inject", send: fabric.Op{Buf: memory(64)}, inject: true},
				{name: "inject with immediate", send: fabric.Op{Buf: memory(64), Flags: fabric.Immediate, Immediate: 5}, inject: true},
			}
			into := memory(long)
			for _, f := range forms {
				for _, tagged := range []bool{false, true} {
					kinds := [3]fabric.OpKind{fabric.OpSend, fabric.OpReceive, fabric.OpInject}
					if tagged {
						kinds = [3]fabric.OpKind{fabric.OpTaggedSend, fabric.OpTaggedReceive, fabric.OpTaggedInject}
					}
					send, receive := f.send, f.receive
					send.Kind, send.Peer, send.Tag, send.Fixed = kinds[0], a.peer, 9, fixed
					if f.inject {
						send.Kind = kinds[2]
					}
					receive.Kind, receive.Peer, receive.Tag, receive.Fixed = kinds[1], fabric.AddressAny, 9, fixed
					if receive.Vector == nil {
						receive.Buf = into
					}
					between(a, b, send, receive).requireFree(t, fmt.Sprint(send.Kind, " ", f.name))
				}
			}
		})
	})
}

// One receive takes message after message, and is posted again when it is full.
func TestMultiReceiveDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.MultiReceiveBuffers)
		const size = 100
		require.NoError(t, b.e.SetSizeOption(fabric.OptionMinMultiReceive, size))
		more := between(b, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 4*size+size/2), Flags: fabric.MultiReceive})
		send := between(a, b, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: make([]byte, size)})
		// A send is over when it is complete on both sides.
		send.want, more.want = [2]int{1, 1}, [2]int{}
		another := between(a, b, fabric.Op{})
		another.posts, another.want = [2][]fabric.Op{}, [2]int{0, 1}
		posted, released := 0, true
		one := func() {
			if released {
				more.run()
				posted++
			}
			send.run()
			released = send.last[1].Released
			if released && send.last[1].Len == 0 && send.got[1] == 1 {
				// The end of the buffer has a completion of its own, and the
				// message is still to come.
				more.run()
				posted++
				another.run()
				released = another.last[1].Released
			}
		}
		one()
		requireFree(t, one, "multi-receive")
		require.NoError(t, errors.Join(send.err, more.err, another.err))
		require.Greater(t, posted, 3)
	})
}

// Neither to look for a message that is not there, nor for one that is, nor to
// claim it, nor to discard it.
func TestPeekDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		if provider == "shm" && fabric.LibraryVersion().Major < 2 {
			testenv.Need(t, "peek on shm", errors.New("a peek would be a receive on shm (libfabric 1.17)"))
		}
		a, b := stations(t, provider, fabric.TaggedMessages)
		peek := func(flags fabric.OpFlags) *errand {
			return between(b, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Flags: fabric.Peek | flags})
		}
		peek(0).requireFree(t, "peek at nothing")
		buf := make([]byte, 64)
		for _, flags := range []fabric.OpFlags{0, fabric.Claim, fabric.Discard} {
			send := between(a, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 3, Buf: make([]byte, 64)})
			look := peek(flags)
			receive := between(b, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Buf: buf, Flags: flags})
			one := func() {
				send.run()
				for look.last[0].Err = fabric.ErrNoMessage; look.last[0].Err != nil && look.err == nil; {
					look.run()
				}
				if flags != fabric.Discard {
					receive.posts[0][0].Claimed = look.last[0].Token
					receive.run()
				}
			}
			one()
			requireFree(t, one, "peek "+flags.String())
			require.NoError(t, errors.Join(send.err, look.err, receive.err))
		}
	})
}
