package fabric_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// ofi_rxm of 2.x sends messages of up to FI_OFI_RXM_SAR_LIMIT in segments.
func TestSegments(t *testing.T) {
	const child = "WEFT_TEST_SEGMENTS"
	if !slices.Contains(testenv.Providers(), "tcp") || fabric.LibraryVersion().Major < 2 {
		return // no such provider, or no segments
	}
	if os.Getenv(child) == "" {
		command := testprocess.Command(t, os.Args[0], "-test.run=^TestSegments$", "-test.count=1", "-test.v", fmt.Sprintf("-test.short=%t", testing.Short()))
		command.Env = append(os.Environ(), child+"=yes", "FI_OFI_RXM_SAR_LIMIT=131072", "FI_AV_REMOVE_CLEANUP=1")
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.Contains(t, string(said), "--- PASS: TestSegments/cut_off (")
		return
	}
	text := bytes.Repeat([]byte{1, 2, 3, 4, 5}, 13_000)
	t.Run("whole", func(t *testing.T) {
		from, to := sides(t, strewInfo(t, "tcp"))
		for tag := range uint64(3) {
			sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: tag, Buf: text})
		}
		end(t, from, to)
		for tag := range uint64(3) {
			buf := make([]byte, len(text))
			to.must(t, to, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: buf})
			require.NoError(t, to.await(t, to).Err)
			require.True(t, bytes.Equal(text, buf))
		}
	})
	// The kernel takes some of many messages, and a part of one. What the receiver has got of that
	// when it hears of the end, or is closed itself, is not for a receive.
	const many = 200
	rounds := 20
	if testing.Short() {
		rounds = 8
	}
	cut := map[bool]int{}
	for round := range rounds {
		before, receiverEnds := round&1 == 0, round&2 == 0
		name := fmt.Sprintf("cut off %d", round)
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { nothingOpen(t) })
			from, to := sides(t, strewInfo(t, "tcp"))
			sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: many, Buf: text})
			from.got, to.got = nil, nil
			bufs := make([][]byte, many)
			receive := func() {
				for tag := range bufs {
					bufs[tag] = make([]byte, len(text))
					to.must(t, to, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(tag), Context: uint64(tag), Buf: bufs[tag]})
				}
			}
			if before {
				receive()
			}
			for tag := range many {
				op := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: from.peer, Tag: uint64(tag), Buf: text[:len(text)-round]}}
				from.turn(t, op)
				if op[0].Result == fabric.Refused {
					break
				}
			}
			require.NoError(t, from.e.Close())
			for range 20 * round {
				to.turn(t, nil)
			}
			if receiverEnds {
				require.NoError(t, to.e.Close())
				return
			}
			awaitConnectionsEnd(t, to)
			if !before {
				receive()
			}
			for range 4 * many {
				to.turn(t, nil)
			}
			for _, c := range to.got {
				if c.Err != nil {
					require.ErrorIs(t, c.Err, fabric.ErrUnreachable)
					cut[before]++
					continue
				}
				require.True(t, bytes.Equal(text[:c.Len], bufs[c.Context][:c.Len]))
				require.Equal(t, len(text)-round, c.Len)
			}
		})
	}
	// The receiver is closed while its peer goes on.
	for round := range rounds / 2 {
		t.Run(fmt.Sprintf("goes on %d", round), func(t *testing.T) {
			t.Cleanup(func() { nothingOpen(t) })
			from, to := sides(t, strewInfo(t, "tcp"))
			sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: many, Buf: text})
			for tag := range uint64(10) {
				to.must(t, to, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: make([]byte, len(text))})
			}
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				var none [32]fabric.Completion
				for tag := uint64(0); ; tag++ {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := from.e.Turn([]fabric.Op{{Kind: fabric.OpTaggedSend, Peer: from.peer, Tag: tag, Buf: text}}, none[:], 0); err != nil {
						return
					}
				}
			}()
			for range 100 * (round + 1) {
				to.turn(t, nil)
			}
			require.NoError(t, to.e.Close())
			close(stop)
			<-stopped
		})
	}
	// A peer is removed amid segments, where the environment has libfabric end its connection then.
	for round := range rounds {
		t.Run(fmt.Sprintf("removed %d", round), func(t *testing.T) {
			t.Cleanup(func() { nothingOpen(t) })
			from, to := sides(t, strewInfo(t, "tcp"))
			sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: many, Buf: text})
			for tag := range uint64(10) {
				to.must(t, to, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: make([]byte, len(text))})
			}
			for tag := range uint64(many) {
				from.turn(t, []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: from.peer, Tag: tag, Buf: text}})
			}
			for range 3 * round {
				to.turn(t, nil)
			}
			require.NoError(t, to.v.Remove(to.peer))
			to.peer = to.insert(t, from)
			for range 20 {
				from.turn(t, nil)
				to.turn(t, nil)
			}
			require.NoError(t, from.e.Close())
			require.NoError(t, to.e.Close())
		})
	}
	// libfabric says that a peer is not there while another's message has not come as a whole.
	for round := range 4 {
		t.Run(fmt.Sprintf("nobody is there %d", round), func(t *testing.T) {
			t.Cleanup(func() { nothingOpen(t) })
			from, to := sides(t, strewInfo(t, "tcp"))
			sendUnexpected(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Tag: many, Buf: text})
			f, d := partsOf(t, to.info)
			gone := openStation(t, f, d, to.info)
			nobody := to.insert(t, gone)
			require.NoError(t, gone.e.Close())
			for tag := range uint64(many) {
				op := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: from.peer, Tag: tag, Buf: text[:len(text)-round]}}
				from.turn(t, op)
				if op[0].Result == fabric.Refused {
					break
				}
			}
			for range 200 {
				to.turn(t, []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: nobody, Tag: 1, Buf: text[:1]}})
			}
			arrive(t, from, to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: from.peer, Tag: many + 1})
		})
	}
	t.Log(cut)
	require.Positive(t, cut[false])
	require.Positive(t, cut[true])
	t.Run("cut off", func(t *testing.T) {})
}
