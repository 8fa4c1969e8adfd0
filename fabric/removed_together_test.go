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

// Of several peers that are removed in one go, what libfabric reads as it ends the connection of one may be
// segments of another.
func TestRemoveAllAmidSegments(t *testing.T) {
	const child = "WEFT_TEST_REMOVE_ALL"
	if !slices.Contains(testenv.Providers(), "tcp") || fabric.LibraryVersion().Major < 2 {
		return // no such provider, or no segments
	}
	if os.Getenv(child) == "" {
		command := testprocess.Command(t, os.Args[0], "-test.run=^TestRemoveAllAmidSegments$", "-test.count=1", "-test.v")
		command.Env = append(os.Environ(), child+"=yes", "FI_OFI_RXM_SAR_LIMIT=131072", "FI_AV_REMOVE_CLEANUP=1")
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.Contains(t, string(said), "--- PASS: TestRemoveAllAmidSegments/7 (")
		return
	}
	text := bytes.Repeat([]byte{1, 2, 3, 4, 5}, 13_000)
	for round := range 8 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Cleanup(func() { nothingOpen(t) })
			info := strewInfo(t, "tcp")
			f, d := partsOf(t, info)
			to := openStation(t, f, d, info)
			var from []*station
			var peers []fabric.Address
			for range 4 {
				f, d := partsOf(t, info)
				s := openStation(t, f, d, info)
				s.peer = s.insert(t, to)
				peers = append(peers, to.insert(t, s))
				from = append(from, s)
				arrive(t, s, to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: 1 << 20})
			}
			to.got = nil
			for tag := range uint64(20 * (round % 2)) {
				to.must(t, from[0], fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: make([]byte, len(text))})
			}
			for _, s := range from {
				for tag := range uint64(100) {
					op := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: tag, Buf: text}}
					s.turn(t, op)
					if op[0].Result == fabric.Refused {
						break
					}
				}
			}
			require.NoError(t, to.v.RemoveAll(peers))
			for range 20 {
				to.turn(t, nil)
			}
			for _, s := range from {
				require.NoError(t, s.e.Close())
			}
			for range 20 {
				to.turn(t, nil)
			}
			require.NoError(t, to.e.Close())
		})
	}
}
