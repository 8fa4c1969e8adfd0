package fabric_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// third opens one more station beside a and b, which know it from then on.
func third(t *testing.T, a, b *station) *station {
	t.Helper()
	f, d := partsOf(t, a.info)
	c := openStation(t, f, d, a.info)
	require.EqualValues(t, 1, a.insert(t, c))
	require.EqualValues(t, 1, b.insert(t, c))
	return c
}

// The first peer of a table has the address 0, and is one like any other.
func TestPeerZero(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.RemoteMemory|fabric.Atomics)
		require.Zero(t, a.peer)
		c := third(t, a, b)
		memory, remote := shared(t, b, 64)

		// c would take everything.
		for _, kind := range []fabric.OpKind{fabric.OpReceive, fabric.OpTaggedReceive} {
			c.must(t, a, fabric.Op{Kind: kind, Peer: fabric.AddressAny, Ignore: ^uint64(0), Buf: make([]byte, 64)})
		}
		for _, op := range []fabric.Op{
			{Kind: fabric.OpSend},
			{Kind: fabric.OpInject},
			{Kind: fabric.OpTaggedSend, Tag: 9},
			{Kind: fabric.OpTaggedInject, Tag: 9},
			{Kind: fabric.OpSend, Flags: fabric.Immediate, Immediate: 3},
			{Kind: fabric.OpTaggedSend, Tag: 9, Flags: fabric.DeliveryComplete},
		} {
			op.Peer, op.Buf = 0, []byte("to zero")
			receive := fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 16)}
			if op.Kind == fabric.OpTaggedSend || op.Kind == fabric.OpTaggedInject {
				receive.Kind, receive.Tag = fabric.OpTaggedReceive, 9
			}
			b.must(t, a, receive)
			a.must(t, b, op)
			done := b.await(t, a)
			require.NoError(t, done.Err)
			require.Equal(t, "to zero", string(receive.Buf[:done.Len]))
			if op.Kind == fabric.OpSend || op.Kind == fabric.OpTaggedSend {
				require.NoError(t, a.await(t, b).Err)
			}
			c.turn(t, nil)
			require.Empty(t, c.got, op.Kind)
		}

		was := make([]byte, 8)
		sum := &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: was}
		a.must(t, b, fabric.Op{Kind: fabric.OpWrite, Peer: 0, Buf: []byte("written!"), Remote: remote, Flags: fabric.DeliveryComplete})
		require.NoError(t, a.await(t, b).Err)
		require.Equal(t, "written!", string(memory[:8]))
		a.must(t, b, fabric.Op{Kind: fabric.OpFetch, Peer: 0, Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Remote: remote, Atomic: sum})
		require.NoError(t, a.await(t, b).Err)
		require.Equal(t, "written!", string(was))
		got := make([]byte, 8)
		a.must(t, b, fabric.Op{Kind: fabric.OpRead, Peer: 0, Buf: got, Remote: remote})
		require.NoError(t, a.await(t, b).Err)
		require.Equal(t, "xritten!", string(got))
		c.turn(t, nil)
		require.Empty(t, c.got)
	})
}

// A receive from the peer 0 takes its messages, and not those of any.
func TestReceiveFromPeerZero(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, kinds := range [][2]fabric.OpKind{{fabric.OpSend, fabric.OpReceive}, {fabric.OpTaggedSend, fabric.OpTaggedReceive}} {
			t.Run(kinds[1].String(), func(t *testing.T) {
				a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.DirectedReceive|fabric.SourceAddress)
				require.Zero(t, b.peer)
				c := third(t, a, b)
				toB := c.insert(t, b)
				got := make([]byte, 16)
				if kinds[1] == fabric.OpReceive && a.info.Provider() == "tcp" {
					// It would take messages of others.
					for _, op := range []fabric.Op{{Buf: got}, {Vector: [][]byte{got}}} {
						op.Kind = kinds[1]
						require.ErrorIs(t, b.post(t, a, op).Err, fabric.ErrNotSupported)
					}
					return
				}
				b.must(t, a, fabric.Op{Kind: kinds[1], Peer: 0, Buf: got, Context: 1})
				sent := c.must(t, b, fabric.Op{Kind: kinds[0], Peer: toB, Buf: []byte("not from zero")})
				require.Equal(t, fabric.Posted, sent.Result)
				a.must(t, b, fabric.Op{Kind: kinds[0], Peer: a.peer, Buf: []byte("from zero")})
				done := b.await(t, a)
				require.NoError(t, done.Err)
				require.Equal(t, "from zero", string(got[:done.Len]))
				require.Equal(t, b.peer, done.Source)

				b.must(t, a, fabric.Op{Kind: kinds[1], Peer: 1, Buf: got, Context: 2})
				done = b.await(t, c)
				require.NoError(t, done.Err)
				require.EqualValues(t, 2, done.Context)
				require.Equal(t, "not from zero", string(got[:done.Len]))
			})
		}
	})
}

// Tag 0 is a tag like any other, and not "any".
func TestTagZero(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		for _, kind := range []fabric.OpKind{fabric.OpTaggedSend, fabric.OpTaggedInject} {
			for _, posted := range []bool{false, true} {
				zero, other := make([]byte, 8), make([]byte, 8)
				receives := []fabric.Op{
					{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 0, Buf: zero, Context: 100},
					{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 5, Buf: other, Context: 105},
				}
				post := func() {
					for _, op := range receives {
						b.must(t, a, op)
					}
				}
				if posted {
					post()
				}
				a.must(t, b, fabric.Op{Kind: kind, Peer: a.peer, Tag: 5, Buf: []byte("five")})
				a.must(t, b, fabric.Op{Kind: kind, Peer: a.peer, Tag: 0, Buf: []byte("zero")})
				if !posted {
					post()
				}
				for range receives {
					done := b.await(t, a)
					require.NoError(t, done.Err)
					require.EqualValues(t, done.Context-100, done.Tag)
				}
				require.Equal(t, "zero", string(zero[:4]))
				require.Equal(t, "five", string(other[:4]))
				if kind == fabric.OpTaggedSend {
					require.NoError(t, a.await(t, b).Err)
					require.NoError(t, a.await(t, b).Err)
				}
			}
		}
	})
}

// refusesEmpty says that an empty operation is refused because shm would not
// complete it, and efa not survive it.
func refusesEmpty(provider string, op fabric.Op) bool {
	if provider == "efa" {
		return op.Kind == fabric.OpRead
	}
	return provider == "shm" && op.Flags&fabric.DeliveryComplete != 0 && fabric.LibraryVersion().Major == 1
}

// A message that does not fit fails its receive alone: the ones around it, and
// the next ones, are as if nothing had happened.
func TestTruncationOfOne(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, kinds := range [][2]fabric.OpKind{{fabric.OpSend, fabric.OpReceive}, {fabric.OpTaggedSend, fabric.OpTaggedReceive}} {
			for _, size := range []int{50, 5000, 20_000, 3_000_000} {
				for _, early := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s/%d/posted %v", kinds[1], size, early), func(t *testing.T) {
						a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
						bufs := [][]byte{make([]byte, size), bytes.Repeat([]byte{0xee}, size), make([]byte, size)}
						receive := func() {
							for i, buf := range bufs {
								if i == 1 {
									buf = buf[:size/2]
								}
								b.must(t, a, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Buf: buf, Context: uint64(i)})
							}
						}
						if early {
							receive()
						}
						for i := range bufs {
							a.must(t, b, fabric.Op{Kind: kinds[0], Peer: a.peer, Buf: bytes.Repeat([]byte{byte(i + 1)}, size)})
						}
						if !early {
							receive()
						}
						for range bufs {
							done := b.await(t, a)
							if done.Context == 1 {
								require.ErrorIs(t, done.Err, fabric.ErrTruncated)
								continue
							}
							require.NoError(t, done.Err)
							require.Equal(t, size, done.Len)
							require.Equal(t, bytes.Repeat([]byte{byte(done.Context + 1)}, size), bufs[done.Context])
						}
						require.Equal(t, bytes.Repeat([]byte{0xee}, size-size/2), bufs[1][size/2:], "beyond the buffer")
						for range bufs {
							// Whether the sender is told is the provider's business.
							if done := a.await(t, b); done.Err != nil {
								require.ErrorIs(t, done.Err, fabric.ErrTruncated)
							}
						}
						// And the next.
						b.must(t, a, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Buf: bufs[0]})
						a.must(t, b, fabric.Op{Kind: kinds[0], Peer: a.peer, Buf: []byte("next")})
						done := b.await(t, a)
						require.NoError(t, done.Err)
						require.Equal(t, "next", string(bufs[0][:done.Len]))
					})
				}
			}
		}
	})
}

// Access with a wrong key fails alone, among others that succeed.
func TestWrongKeyOfOne(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.RemoteMemory|fabric.Atomics)
		memory, remote := shared(t, b, 64)
		wrong := fabric.Remote{Address: remote.Address, Key: remote.Key + 1000}
		for _, kind := range []fabric.OpKind{fabric.OpWrite, fabric.OpRead, fabric.OpAtomic} {
			t.Run(kind.String(), func(t *testing.T) {
				switch provider {
				case "shm":
					testenv.Need(t, "errors of remote access on shm", errors.New("shm says nothing, or success"))
				case "tcp":
					testenv.Need(t, "errors of one remote access on tcp", errors.New("the connection ends with it, and all that is under way"))
				case "efa":
					if kind != fabric.OpRead {
						testenv.Need(t, "errors of a remote "+kind.String()+" on efa", errors.New("without FI_DELIVERY_COMPLETE it has succeeded when it is on its way"))
					}
				}
				clear(memory)
				bad := fabric.Op{Kind: kind, Peer: a.peer, Buf: bytes.Repeat([]byte{0xff}, 8), Remote: wrong, Context: 13}
				if kind == fabric.OpAtomic {
					bad.Atomic = &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum}
				}
				good := fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: []byte("good"), Remote: remote, Flags: fabric.DeliveryComplete}
				for i, op := range []fabric.Op{good, bad, good} {
					if op.Context == 0 {
						op.Context = uint64(i) + 1
						op.Remote.Address += uint64(8 * i)
					}
					a.must(t, b, op)
				}
				for range 3 {
					done := a.await(t, b)
					if done.Context == 13 {
						require.Error(t, done.Err)
						require.Equal(t, kind, done.Kind)
						continue
					}
					require.NoError(t, done.Err)
				}
				require.Equal(t, "good\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00good\x00", string(memory[:21]))
				a.must(t, b, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: make([]byte, 8), Remote: remote})
				require.NoError(t, a.await(t, b).Err, "the next")
			})
		}
		require.Zero(t, a.q.InFlight())
	})
}

// nobody is the address of an endpoint that is not there.
func nobody(t *testing.T, s *station) []byte {
	t.Helper()
	name, err := s.e.Name()
	require.NoError(t, err)
	if s.info.Provider() == "shm" {
		return append(bytes.TrimRight(name, "\x00"), []byte("-nobody\x00")...)
	}
	if s.info.Provider() == "efa" {
		name[16], name[17] = 1, 0 // a queue pair that nobody has
		return name
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	name[2], name[3] = byte(port>>8), byte(port)
	return name
}

// What cannot reach its peer never succeeds, and keeps nothing from another.
func TestUnreachablePeer(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		lost, err := a.v.Insert(nobody(t, a))
		if provider == "shm" && fabric.LibraryVersion().Major < 2 {
			require.ErrorIs(t, err, fabric.ErrNotFound) // already
			return
		}
		require.NoError(t, err)
		const count = 20
		ended := false
		unreachable := fabric.Op{Kind: fabric.OpTaggedSend, Peer: lost, Tag: 1, Buf: make([]byte, 8), Context: 666}
		// looked at completions of a that belong to what is sent to b.
		sent, received := 0, 0
		look := func() {
			for _, c := range a.got {
				if c.Context == 666 {
					require.Error(t, c.Err)
					require.ErrorIs(t, c.Err, fabric.ErrUnreachable)
					ended = true
					continue
				}
				require.NoError(t, c.Err)
				sent++
			}
			for _, c := range b.got {
				require.NoError(t, c.Err)
				received++
			}
			a.got, b.got = nil, nil
		}
		posted := false
		for i := range count {
			if !posted && !ended {
				posts := []fabric.Op{unreachable}
				a.turn(t, posts)
				posted, ended = posts[0].Result == fabric.Posted, posts[0].Result == fabric.Failed
				if ended {
					require.ErrorIs(t, posts[0].Err, fabric.ErrUnreachable)
				}
			}
			b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(i) << 8, Buf: make([]byte, 8)})
			op := fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: uint64(i) << 8, Buf: make([]byte, 8), Context: uint64(i)}
			a.must(t, b, op)
			look()
		}
		for deadline := time.Now().Add(30 * time.Second); sent < count || received < count; {
			require.True(t, time.Now().Before(deadline), "%d sent and %d received of %d", sent, received, count)
			a.turn(t, nil)
			b.turn(t, nil)
			look()
		}
	})
}

// A peer is removed while a message of it waits, for which there is no receive yet:
// whatever becomes of the message, the endpoint and the peer go on.
func TestRemoveWhileMessageWaits(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		exchange := func(tag uint64) {
			b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: make([]byte, 8)})
			a.must(t, b, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: tag, Buf: make([]byte, 8)})
			require.Equal(t, tag, b.await(t, a).Tag)
		}
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: 1, Buf: make([]byte, 8)})
		// So that the first has come.
		if own := a.info.Provider() == "tcp" && fabric.LibraryVersion().Major >= 2; own {
			// Nothing comes after it there.
			for seen := false; !seen; {
				b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Flags: fabric.Peek})
				seen = b.await(t, a).Err == nil
			}
		} else {
			exchange(2)
		}
		require.NoError(t, b.v.Remove(b.peer))
		_, err := b.v.Lookup(b.peer)
		require.ErrorIs(t, err, fabric.ErrNotFound)
		waits := b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 8)})
		b.turn(t, nil)
		if len(b.got) == 0 {
			require.NoError(t, b.e.Cancel(waits.Token))
			b.await(t, a)
		}
		b.got = nil
		b.peer = b.insert(t, a)
		exchange(3)
	})
}
