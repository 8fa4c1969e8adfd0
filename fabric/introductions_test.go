package fabric_test

import (
	"bytes"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

const rxd = "udp;ofi_rxd"

// introducer says to a child which provider, and which way of the test, is its.
const introducer = "WEFT_TEST_INTRODUCTIONS"

// Whoever calls the port of an endpoint, or answers where it calls, and is no peer, ends nothing and
// holds up nobody, whatever it says.
func TestIntroductions(t *testing.T) {
	if way := os.Getenv(introducer); way != "" {
		provider, what, _ := strings.Cut(way, " ")
		switch {
		case provider == rxd:
			strangersSend(t)
		case what == "many":
			manyCall(t, provider)
		default:
			strangersSpeak(t, provider)
		}
		return
	}
	providers := []string{rxd}
	for _, provider := range testenv.Providers() {
		switch {
		case provider == "tcp" && fabric.LibraryVersion().Major < 2:
			providers = append(providers, "tcp", "net")
		case provider == "tcp":
			// It has endpoints of its own beside those of ofi_rxm.
			providers = append(providers, "tcp", "tcp;")
		case provider == "sockets":
			providers = append(providers, "sockets")
		}
	}
	for _, provider := range providers {
		for _, what := range []string{"strangers", "many"} {
			if provider == rxd && what == "many" {
				continue
			}
			t.Run(provider+"/"+what, func(t *testing.T) {
				child := testprocess.Command(t, os.Args[0], "-test.run=^TestIntroductions$", "-test.count=1", "-test.timeout=2m")
				child.Env = append(os.Environ(), introducer+"="+provider+" "+what, "MALLOC_PERTURB_=165")
				said, err := child.CombinedOutput()
				require.NoError(t, err, "%s", said)
			})
		}
	}
}

// portOf is where a station is called.
func (s *station) portOf(t *testing.T) *net.TCPAddr {
	t.Helper()
	name, err := s.e.Name()
	require.NoError(t, err)
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(name[2])<<8 | int(name[3])}
}

func strangersSpeak(t *testing.T, provider string) {
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 1))
		info := strewInfo(t, provider)
		f, d := partsOf(t, info)
		a, b := openStation(t, f, d, info), openStation(t, f, d, info)
		if provider == "sockets" && seed == 1 {
			a = stationWithName(t, f, d, info)
		}
		toB, toA := a.insert(t, b), b.insert(t, a)
		says := strangersWords(random)
		var open []net.Conn
		for i, words := range says {
			c, err := net.DialTCP("tcp4", nil, a.portOf(t))
			require.NoError(t, err)
			_, _ = c.Write(words)
			if i%3 == 0 {
				_ = c.CloseWrite()
			}
			open = append(open, c)
			for range random.IntN(50) {
				a.turn(t, nil)
			}
		}
		a.got, b.got = nil, nil
		orderly(t, a, b, toB, toA)
		// Whoever answers as a peer does, is one.
		answers := slices.DeleteFunc(slices.Clone(says), func(words []byte) bool {
			return len(words) >= 24 && words[0] == 2 && words[6] == 0
		})
		calls := answering(t, answers)
		for _, words := range answers {
			call := <-calls
			peer, err := a.v.Insert(call.address())
			require.NoError(t, err)
			a.turn(t, []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: peer, Buf: make([]byte, 8)}})
			for deadline := time.Now().Add(time.Minute); ; {
				a.turn(t, nil)
				if call.answered() {
					break
				}
				require.True(t, time.Now().Before(deadline), "no connection for %x", words[:min(len(words), 8)])
			}
		}
		for range 100 {
			a.turn(t, nil)
		}
		a.got, b.got = nil, nil
		orderly(t, a, b, toB, toA)
		for _, c := range open {
			_ = c.Close()
		}
		orderly(t, a, b, toB, toA)
		require.NoError(t, a.e.Close())
		require.NoError(t, b.e.Close())
	}
}

// stationWithName is one that listens before it is enabled.
func stationWithName(t *testing.T, f *fabric.Fabric, d *fabric.Domain, info *fabric.Info) *station {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	s := &station{info: info, fabric: f, domain: d, events: eventsOf(t, f)}
	s.q, s.v, s.e = queueOf(t, d, 512), vectorOf(t, d), endpointOf(t, d)
	require.NoError(t, s.e.SetName([]byte{2, 0, byte(port >> 8), byte(port), 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}))
	require.NoError(t, s.e.Enable(s.v, s.q, s.events))
	return s
}

// strangersWords are what a peer never says, or not at first.
func strangersWords(random *rand.Rand) [][]byte {
	head := func(kind byte, length int) []byte {
		return append([]byte{2, kind}, append(make([]byte, 20), byte(length>>8), byte(length))...)
	}
	long := make([]byte, 10_000)
	for i := range long {
		long[i] = byte(random.Uint32())
	}
	says := [][]byte{
		nil,
		{0},
		{2},
		{2, 12},
		[]byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n"), []byte("SSH-2.0-OpenSSH_9.2p1\r\n"),
		make([]byte, 4096), bytes.Repeat([]byte{0xff}, 4096), bytes.Repeat([]byte{1}, 4096), bytes.Repeat([]byte{2}, 4096),
		long, long[:100], append(make([]byte, 24), head(0, 80)...),
		append(head(12, 72), make([]byte, 48)...), append(append(head(12, 100), 2, 0), make([]byte, 74)...), head(12, 72),
		append(head(2, 80), make([]byte, 56)...), append(head(0, 23), make([]byte, 56)...), append(head(10, 0xffff), make([]byte, 56)...),
	}
	for range 12 {
		words := make([]byte, 200+random.IntN(300))
		for i := range words {
			if random.IntN(8) == 0 {
				words[i] = byte(random.IntN(20))
			}
		}
		says = append(says, words)
	}
	random.Shuffle(len(says), func(i, k int) { says[i], says[k] = says[k], says[i] })
	return says
}

// stranger is a port whose owner says something to the first one that calls.
type stranger struct {
	l    net.Listener
	said chan struct{}
}

func (s *stranger) address() []byte {
	port := s.l.Addr().(*net.TCPAddr).Port
	return []byte{2, 0, byte(port >> 8), byte(port), 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
}

func (s *stranger) answered() bool {
	select {
	case <-s.said:
		return true
	default:
		return false
	}
}

func answering(t *testing.T, says [][]byte) <-chan *stranger {
	t.Helper()
	all := make(chan *stranger, len(says))
	for _, words := range says {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		s := &stranger{l: l, said: make(chan struct{})}
		go func() {
			defer close(s.said)
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			_, _ = c.Write(words)
		}()
		all <- s
	}
	return all
}

// manyCall has more connections than a provider has made room for.
func manyCall(t *testing.T, provider string) {
	const many = 1500
	info := strewInfo(t, provider)
	f, d := partsOf(t, info)
	a, b := openStation(t, f, d, info), openStation(t, f, d, info)
	toB, toA := a.insert(t, b), b.insert(t, a)
	orderly(t, a, b, toB, toA)
	for i := range many {
		c, err := net.DialTCP("tcp4", nil, a.portOf(t))
		require.NoError(t, err)
		defer c.Close()
		for range 10 {
			a.turn(t, nil)
		}
		if i%100 == 0 {
			orderly(t, a, b, toB, toA)
		}
	}
	other := openStation(t, f, d, info)
	toOther, fromOther := a.insert(t, other), other.insert(t, a)
	orderly(t, a, other, toOther, fromOther)
	orderly(t, a, b, toB, toA)
	require.NoError(t, a.e.Close())
}

// strangersSend is for a provider without connections.
func strangersSend(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: rxd, Endpoint: fabric.ReliableDatagram, MemoryMode: everyMemoryMode, Source: "127.0.0.1",
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.RemoteMemory,
	})
	require.NoError(t, err)
	f, d := partsOf(t, infos[0])
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 2))
		a, b := openStation(t, f, d, infos[0]), openStation(t, f, d, infos[0])
		toB, toA := a.insert(t, b), b.insert(t, a)
		if seed&1 == 0 {
			orderly(t, a, b, toB, toA)
		}
		at := a.portOf(t)
		c, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: at.IP, Port: at.Port})
		require.NoError(t, err)
		mine := c.LocalAddr().(*net.UDPAddr)
		// An introduction says where its sender is, and is so long.
		introduction := append([]byte{2, 9}, make([]byte, 86)...)
		copy(introduction[24:], []byte{2, 0, byte(mine.Port >> 8), byte(mine.Port + 1), 127, 0, 0, 1})
		says := append(strangersWords(random), introduction, introduction[:87], append(introduction, 0))
		for kind := range byte(15) {
			words := make([]byte, 16+random.IntN(200))
			for i := range words {
				words[i] = byte(random.Uint32())
			}
			words[0], words[1] = 2, kind
			says = append(says, words)
		}
		for _, words := range says {
			_, err := c.Write(words[:min(len(words), 1400)])
			require.NoError(t, err)
			for range 20 {
				a.turn(t, nil)
			}
		}
		a.got, b.got = nil, nil
		orderly(t, a, b, toB, toA)
		require.NoError(t, a.e.Close())
		require.NoError(t, b.e.Close())
		require.NoError(t, c.Close())
	}
}
