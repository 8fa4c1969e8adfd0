package fabric_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// A peer is killed amid segments and starts again at its address, so that ofi_rxm hears of the new
// one before it has heard of the end.
func TestPeerRestartsAmidSegments(t *testing.T) {
	const role = "WEFT_TEST_RESTARTS"
	if !slices.Contains(testenv.Providers(), "tcp") || fabric.LibraryVersion().Major < 2 {
		return // no such provider, or no segments
	}
	switch words := strings.Fields(os.Getenv(role)); {
	case len(words) == 0:
		for _, more := range []string{"", "FI_OFI_RXM_USE_SRX=0"} {
			receiver := testprocess.Command(t, os.Args[0], "-test.run=^TestPeerRestartsAmidSegments$", "-test.count=1", "-test.v", fmt.Sprintf("-test.short=%t", testing.Short()))
			receiver.Env = append(os.Environ(), role+"=receiver", "FI_OFI_RXM_SAR_LIMIT=131072", "FI_OFI_RXM_MSG_RX_SIZE=64", "FI_OFI_RXM_MSG_TX_SIZE=64")
			if more != "" {
				receiver.Env = append(receiver.Env, more)
			}
			said, err := receiver.CombinedOutput()
			require.NoError(t, err, "%s", said)
			require.Contains(t, string(said), "--- PASS: TestPeerRestartsAmidSegments/cut_off (")
		}
	case words[0] == "receiver":
		restartPeers(t, role)
	default:
		sendUntilKilled(t, words)
	}
}

// Messages are of four segments. ofi_rxm reads nothing more, by any connection, once it has as many
// segments that nobody has asked for as it may have buffers: so it does not hear of the end before it
// hears of the new one.
const (
	restartedText  = 60_000
	restartedCount = 60
	restartedLast  = 1 << 20
)

// restartPeers is who receives.
func restartPeers(t *testing.T, role string) {
	rounds := 16
	if testing.Short() {
		rounds = 6
	}
	cut := 0
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Cleanup(func() { nothingOpen(t) })
			info := strewInfo(t, "tcp")
			f, d := partsOf(t, info)
			s, other := openStation(t, f, d, info), openStation(t, f, d, info)
			s.peer, other.peer = s.insert(t, other), other.insert(t, s)
			arrive(t, other, s, fabric.Op{Kind: fabric.OpTaggedSend, Peer: other.peer, Tag: restartedLast + 2})
			name, err := s.e.Name()
			require.NoError(t, err)
			bufs := make([][]byte, restartedCount)
			receive := func(from, to int) {
				for tag := from; tag < to; tag++ {
					bufs[tag] = make([]byte, restartedText)
					s.must(t, other, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(tag), Context: uint64(tag), Buf: bufs[tag]})
				}
			}
			before := round % 4 * 7
			receive(0, before)
			first := startRestarted(t, role, name, nil)
			peer, err := s.v.Insert(first.name)
			require.NoError(t, err)
			first.hear(t, "under way", func() { s.turn(t, nil) })
			for range 500 {
				s.turn(t, nil)
			}
			// Another's message is not cut off for it.
			other.must(t, s, fabric.Op{Kind: fabric.OpTaggedSend, Peer: other.peer, Tag: restartedLast + 1, Buf: bytes.Repeat([]byte{7}, restartedText)})
			first.kill(t)
			second := startRestarted(t, role, name, first.name)
			second.hear(t, "under way", func() {})
			second.hear(t, "done", func() { s.turn(t, nil) })
			receive(before, restartedCount)
			text := make([]byte, restartedText)
			s.must(t, other, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: restartedLast, Context: restartedLast, Buf: text[:1]})
			s.must(t, other, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: restartedLast + 1, Context: restartedLast + 1, Buf: text})
			for lasts, deadline := 0, time.Now().Add(time.Minute); lasts < 2; {
				require.True(t, time.Now().Before(deadline), "no message")
				s.turn(t, nil)
				other.turn(t, nil)
				for _, c := range s.got {
					switch {
					case c.Context >= restartedLast:
						require.NoError(t, c.Err)
						lasts++
					case c.Err != nil:
						require.ErrorIs(t, c.Err, fabric.ErrUnreachable)
						cut++
					case c.Kind == fabric.OpTaggedReceive:
						require.Equal(t, restartedText, c.Len)
						require.Equal(t, bytes.Repeat([]byte{byte(c.Context)}, restartedText), bufs[c.Context])
					}
				}
				s.got = s.got[:0]
			}
			require.Equal(t, bytes.Repeat([]byte{7}, restartedText), text)
			// The one that has started again is a peer as any.
			s.must(t, other, fabric.Op{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 1, Buf: []byte("end")})
			require.NoError(t, second.command.Wait(), "%s", second.said)
		})
	}
	require.Positive(t, cut)
	t.Run("cut off", func(*testing.T) {})
}

// restarted is a peer in another process.
type restarted struct {
	command *exec.Cmd
	said    *bytes.Buffer
	lines   chan string
	name    []byte
}

// startRestarted starts a peer at an address, or anywhere.
func startRestarted(t *testing.T, role string, receiver, address []byte) *restarted {
	t.Helper()
	p := &restarted{command: testprocess.Command(t, os.Args[0], "-test.run=^TestPeerRestartsAmidSegments$", "-test.count=1"), said: new(bytes.Buffer), lines: make(chan string, 16)}
	p.command.Env = append(os.Environ(), fmt.Sprintf("%s=%x %x", role, receiver, address))
	p.command.Stderr = p.said
	answers, err := p.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.command.Start())
	go func() {
		defer close(p.lines)
		lines := bufio.NewScanner(answers)
		for lines.Scan() {
			p.lines <- lines.Text()
		}
	}()
	p.name, err = hex.DecodeString(<-p.lines)
	require.NoError(t, err, "%s", p.said)
	return p
}

// hear does something until the peer has said that.
func (p *restarted) hear(t *testing.T, that string, meanwhile func()) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; meanwhile() {
		select {
		case line, ok := <-p.lines:
			require.True(t, ok, "the peer has ended: %s", p.said)
			require.Equal(t, that, line, "%s", p.said)
			return
		default:
			require.True(t, time.Now().Before(deadline), "the peer does not say %q", that)
		}
	}
}

func (p *restarted) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.command.Process.Kill())
	require.Error(t, p.command.Wait())
}

// sendUntilKilled is the peer. The first has no address yet, and sends what the receiver has not taken
// as a whole when it is killed; one that has started again sends a last message.
func sendUntilKilled(t *testing.T, words []string) {
	receiver, err := hex.DecodeString(words[0])
	require.NoError(t, err)
	info := strewInfo(t, "tcp")
	f, d := partsOf(t, info)
	s := &station{info: info, fabric: f, domain: d, events: eventsOf(t, f)}
	s.q, s.v, s.e = queueOf(t, d, 512), vectorOf(t, d), endpointOf(t, d)
	if again := len(words) > 1; again {
		address, err := hex.DecodeString(words[1])
		require.NoError(t, err)
		require.NoError(t, s.e.SetName(address))
	}
	require.NoError(t, s.e.Enable(s.v, s.q, s.events))
	name, err := s.e.Name()
	require.NoError(t, err)
	fmt.Printf("%x\n", name)
	s.peer, err = s.v.Insert(receiver)
	require.NoError(t, err)
	if len(words) > 1 {
		last := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: restartedLast, Buf: []byte{1}}}
		for range 200 {
			// Its connection is asked for, while nobody answers.
			s.turn(t, last[:1])
			require.Equal(t, fabric.Refused, last[0].Result)
		}
		fmt.Println("under way")
		s.must(t, s, last[0])
		s.must(t, s, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Context: 1, Buf: make([]byte, 8)})
		fmt.Println("done")
		for c := (fabric.Completion{}); c.Kind != fabric.OpTaggedReceive; {
			c = s.await(t, s)
			require.NoError(t, c.Err)
		}
		return
	}
	for tag := range uint64(restartedCount) {
		s.must(t, s, fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: tag, Buf: bytes.Repeat([]byte{byte(tag)}, restartedText)})
	}
	fmt.Println("under way")
	for {
		s.turn(t, nil)
	}
}
