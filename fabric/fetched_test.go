package fabric_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testprocess"
)

// long is a message that is fetched wherever there is such a thing.
const long = 1 << 20

// withCollectives is tcp with endpoints of whose messages libfabric registers the memory.
const withCollectives = "tcp with collectives"

func infoOf(t *testing.T, provider string) *fabric.Info {
	t.Helper()
	if provider != withCollectives {
		return strewInfo(t, provider)
	}
	strewInfo(t, "tcp")
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "tcp;ofi_rxm", Endpoint: fabric.ReliableDatagram, Source: "127.0.0.1",
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.Collectives, MemoryMode: everyMemoryMode,
	})
	require.NoError(t, err)
	return infos[0]
}

// Whoever closes first while a long message is on its way, received or not, both sides can
// be closed, and nothing is left.
func TestLongMessagesInFlightAtTheEnd(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm", withCollectives} {
		t.Run(provider, func(t *testing.T) {
			info := infoOf(t, provider)
			for seed := range uint64(24) {
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
					t.Cleanup(func() { nothingOpen(t) })
					random := rand.New(rand.NewPCG(seed, 31))
					f, d := partsOf(t, info)
					from := openStation(t, f, d, info)
					if random.IntN(4) > 0 {
						f, d = partsOf(t, info)
					}
					to := openStation(t, f, d, info)
					from.peer, to.peer = from.insert(t, to), to.insert(t, from)
					text, into := bytes.Repeat([]byte{1}, long), make([]byte, long)
					receive := func() {
						op := []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: into}}
						to.turn(t, op)
						require.Equal(t, fabric.Posted, op[0].Result)
					}
					turnsOf := func(s *station, n int) {
						for range n {
							s.turn(t, nil)
						}
					}
					turns := func(most int) {
						for range random.IntN(most) {
							from.turn(t, nil)
							to.turn(t, nil)
						}
					}
					received := random.IntN(4)
					if received == 0 {
						receive()
					}
					from.post(t, to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: from.peer, Buf: text})
					turns(100)
					if received == 1 {
						receive()
						turns(5)
					}
					first, second := from, to
					if random.IntN(2) == 0 {
						first, second = to, from
					}
					require.NoError(t, first.e.Close())
					turnsOf(second, random.IntN(200))
					if received == 2 && second == to {
						receive()
						turnsOf(second, random.IntN(200))
					}
					require.NoError(t, second.e.Close())
					for _, c := range to.got {
						require.True(t, c.Err != nil || bytes.Equal(text, into), "what is received is whole")
					}
				})
			}
		})
	}
}

// Messages of several buffers, some of them empty, and those that do not fit, are as those
// of one.
func TestLongMessagesOfManyBuffers(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm"} {
		t.Run(provider, func(t *testing.T) {
			info := strewInfo(t, provider)
			f, d := partsOf(t, info)
			a, b := openStation(t, f, d, info), openStation(t, f, d, info)
			a.peer, b.peer = a.insert(t, b), b.insert(t, a)
			text := make([]byte, 200_001)
			for i := range text {
				text[i] = byte(i * i >> 3)
			}
			send := fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Vector: [][]byte{text[:50_000], {}, text[50_000:50_001], text[50_001:]}}
			for _, room := range []int{len(text) + 5, 100_000, 10, len(text)} {
				buf := make([]byte, room)
				b.got = nil
				b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Vector: [][]byte{buf[:room/3], buf[room/3:]}})
				a.must(t, b, send)
				c := b.await(t, a)
				if room < len(text) {
					require.ErrorIs(t, c.Err, fabric.ErrTruncated)
					continue
				}
				require.NoError(t, c.Err)
				require.Equal(t, len(text), c.Len)
				require.True(t, bytes.Equal(text, buf[:c.Len]))
			}
		})
	}
}

const longSender = "WEFT_TEST_LONG_SENDER"

// A peer that is killed in the middle of long messages, one that is fetched from it and one
// that it fetches, leaves nothing that would keep this side from being closed.
func TestPeerIsKilledAmidLongMessages(t *testing.T) {
	if parent := os.Getenv(longSender); parent != "" {
		sendLongToParent(t, parent)
		return
	}
	info := strewInfo(t, "tcp")
	for seed := range uint64(6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Cleanup(func() { nothingOpen(t) })
			random := rand.New(rand.NewPCG(seed, 32))
			f, d := partsOf(t, info)
			s := openStation(t, f, d, info)
			name, err := s.e.Name()
			require.NoError(t, err)
			child := testprocess.Command(t, os.Args[0], "-test.run=^TestPeerIsKilledAmidLongMessages$", "-test.count=1")
			child.Env = append(os.Environ(), longSender+"="+hex.EncodeToString(name))
			var said bytes.Buffer
			child.Stderr = &said
			answers, err := child.StdoutPipe()
			require.NoError(t, err)
			s.must(t, s, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, long), Context: 1})
			require.NoError(t, child.Start())
			lines := bufio.NewScanner(answers)
			require.True(t, lines.Scan(), "%s", &said)
			peer, err := hex.DecodeString(lines.Text())
			require.NoError(t, err)
			s.peer, err = s.v.Insert(peer)
			require.NoError(t, err)
			s.must(t, s, fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: 2, Buf: make([]byte, long), Context: 2})
			// Until something has come, and then for a while.
			for deadline := time.Now().Add(30 * time.Second); len(s.got) == 0; {
				require.True(t, time.Now().Before(deadline), "nothing comes")
				s.turn(t, nil)
				if random.IntN(3000) == 0 {
					break
				}
			}
			require.NoError(t, child.Process.Kill())
			require.Error(t, child.Wait())
			for range random.IntN(2000) {
				s.turn(t, nil)
			}
			require.NoError(t, s.e.Close())
		})
	}
}

// sendLongToParent is the peer, until it is killed.
func sendLongToParent(t *testing.T, parent string) {
	name, err := hex.DecodeString(parent)
	require.NoError(t, err)
	info := strewInfo(t, "tcp")
	f, d := partsOf(t, info)
	s := openStation(t, f, d, info)
	s.peer, err = s.v.Insert(name)
	require.NoError(t, err)
	own, err := s.e.Name()
	require.NoError(t, err)
	s.must(t, s, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: make([]byte, long)})
	fmt.Println(hex.EncodeToString(own))
	for {
		s.turn(t, []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: 1, Buf: make([]byte, long)}})
		s.got = nil
	}
}
