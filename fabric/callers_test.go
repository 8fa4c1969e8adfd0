package fabric_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// What calls a passive endpoint, or answers who connects, need not be a peer. What it says must not
// end the process, which is one of its own here, nor keep others waiting.
func TestCallersThatAreNoPeers(t *testing.T) {
	const child = "WEFT_TEST_CALLERS"
	if !slices.Contains(testenv.Providers(), "sockets") {
		return
	}
	if os.Getenv(child) == "" {
		command := testprocess.Command(t, os.Args[0], "-test.run=^TestCallersThatAreNoPeers$", "-test.count=1", "-test.timeout=2m")
		command.Env = append(os.Environ(), child+"=yes", "MALLOC_PERTURB_=165")
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
		return
	}
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.Connected, Capabilities: fabric.Messages, MemoryMode: everyMemoryMode, Source: "127.0.0.1",
	})
	require.NoError(t, err)
	x := openOffice(t, infos[0])
	p, address := x.listen(t)
	at := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(address[2])<<8 | int(address[3])}
	head := func(kind byte, data int) []byte { return []byte{kind, 0, 0, 0, 0, 0, byte(data >> 8), byte(data)} }
	request := append(append(head(0, 0), 2, 0), make([]byte, 54)...)
	says := [][]byte{
		nil,
		{0},
		{1},
		bytes.Repeat([]byte{0xff}, 4096), make([]byte, 63), append(append(head(0, 9), 2, 0), make([]byte, 60)...),
		bytes.Repeat([]byte{1}, 4096), bytes.Repeat([]byte{2}, 4096), bytes.Repeat([]byte{3}, 4096), make([]byte, 4096),
		head(1, 0), head(2, 0xffff), head(3, 0), append(append(head(0, 257), 2, 0), make([]byte, 4096)...), append(append(head(0, 0xffff), 2, 0), make([]byte, 70_000)...),
		append(request, head(1, 0)...), append(request, head(2, 0xffff)...), append(request, request...),
		[]byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n"),
	}
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range 12 { // more than are waited for
		for i, text := range says {
			c, err := net.DialTCP("tcp4", nil, &at)
			require.NoError(t, err)
			_, _ = c.Write(text)
			if i%3 == 0 {
				_ = c.CloseWrite()
			}
			open = append(open, c)
		}
	}
	// A peer gets through, and what it says later is looked at, too.
	deadline := time.Now().Add(time.Minute)
	var a, b *party
	for b == nil {
		require.True(t, time.Now().Before(deadline))
		if a == nil {
			a = x.caller(t)
			require.NoError(t, a.e.Connect(address, []byte("peer")))
		}
		r := x.request(t)
		if string(r.Data) == "peer" {
			b = x.answer(t, r)
			require.NoError(t, b.e.Accept(nil))
			x.connected(t, a)
			x.connected(t, b)
			continue
		}
		// Some have said what a peer says.
		require.NoError(t, r.Reject(nil))
	}
	require.NoError(t, p.Close())

	for _, answer := range append(says, append(head(1, 4), 1, 2), append(head(1, 0), bytes.Repeat([]byte{1}, 100)...)) {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		require.NoError(t, err)
		name := slices.Clone(address)
		port := l.Addr().(*net.TCPAddr).Port
		name[2], name[3] = byte(port>>8), byte(port)
		e := x.caller(t)
		require.NoError(t, e.e.Connect(name, nil))
		c, err := l.AcceptTCP()
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 64))
		require.NoError(t, err)
		_, _ = c.Write(answer)
		_ = c.CloseWrite() // the other side may have ended it
		x.await(t, "end", func(h happening) bool {
			end, ok := h.event.(fabric.ShutdownEvent)
			return h.err != nil || ok && end.Endpoint == e.e
		})
		require.NoError(t, e.e.Close())
		require.NoError(t, c.Close())
		require.NoError(t, l.Close())
	}
}
