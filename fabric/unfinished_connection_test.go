package fabric_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// When a connection ends amid a long operation, each operation ends once at most, and other connections of
// the domain, and of the queue, go on.
func TestConnectionEndsAmidLongOperations(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "net"} {
		infos, err := fabric.Discover(fabric.Hints{
			Provider: provider, Endpoint: fabric.Connected, Capabilities: fabric.Messages | fabric.RemoteMemory,
			MemoryMode: everyMemoryMode, Source: "127.0.0.1",
		})
		for name, op := range map[string]fabric.Op{
			"send":            {Kind: fabric.OpSend},
			"write":           {Kind: fabric.OpWrite},
			"told write":      {Kind: fabric.OpWrite, Flags: fabric.Immediate, Immediate: 7},
			"delivered write": {Kind: fabric.OpWrite, Flags: fabric.DeliveryComplete},
			"read":            {Kind: fabric.OpRead},
		} {
			for _, how := range []string{"Close", "Shutdown"} {
				for _, side := range []string{"initiator", "target"} {
					t.Run(provider+"/"+name+"/"+how+" at "+side, func(t *testing.T) {
						testenv.Need(t, provider, err)
						l := openLines(t, infos[0])
						rounds := 3
						if testing.Short() {
							rounds = 1
						}
						for range rounds {
							l.endAmid(t, op, how, side)
							l.converse(t)
						}
					})
				}
			}
		}
	}
}

// lines are connections within a domain whose ends have one queue.
type lines struct {
	*exchangeOffice
	one, other *party
	// ended are operations, by their contexts.
	ended map[uint64]int
	// failure is the error of the last one that was cut off.
	failure error
}

// Contexts of operations: of those of one and other, and of those that are cut off.
const (
	sends = 1 + iota
	receives
	cutOff
	landing
)

func openLines(t *testing.T, info *fabric.Info) *lines {
	t.Helper()
	l := &lines{exchangeOffice: openOffice(t, info), ended: make(map[uint64]int)}
	l.queue = queueOf(t, l.domain, 64)
	l.one, l.other = l.couple(t)
	return l
}

// turn has an endpoint go on, post operations, and note what has ended, of any.
func (l *lines) turn(t *testing.T, p *party, posts ...fabric.Op) {
	t.Helper()
	var completions [8]fabric.Completion
	for deadline := time.Now().Add(30 * time.Second); ; {
		n, err := p.TurnWait(posts, completions[:], 1)
		require.NoError(t, err)
		for _, c := range completions[:n] {
			if c.Context == sends || c.Context == receives {
				require.NoError(t, c.Err)
			}
			if c.Context == cutOff {
				l.failure = c.Err
			}
			l.ended[c.Context]++
		}
		for len(posts) > 0 && posts[0].Result != fabric.Refused {
			require.NoError(t, posts[0].Err)
			posts = posts[1:]
		}
		if len(posts) == 0 {
			return
		}
		require.True(t, time.Now().Before(deadline), "refused for ever")
	}
}

// endAmid has a connection end when some of an operation is there.
func (l *lines) endAmid(t *testing.T, op fabric.Op, how, side string) {
	t.Helper()
	const size = 32 << 20
	a, b := l.couple(t)
	arena, err := fabric.NewArena(size)
	require.NoError(t, err)
	region, err := l.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessRemoteRead | fabric.AccessRemoteWrite}, arena.Bytes())
	require.NoError(t, err)
	from, to := make([]byte, size), arena.Bytes()
	op.Buf, op.Context = from, cutOff
	op.Remote, err = region.RemoteOf(to)
	require.NoError(t, err)
	switch op.Kind {
	case fabric.OpRead:
		from, to = to, from
	case fabric.OpSend:
		l.turn(t, b, fabric.Op{Kind: fabric.OpReceive, Buf: to, Context: landing})
	}
	from[0], from[size-1] = 1, 1
	clear(l.ended)
	l.failure = nil
	l.turn(t, a, op)
	for deadline := time.Now().Add(30 * time.Second); to[0] == 0 && to[size-1] == 0; {
		require.True(t, time.Now().Before(deadline), "nothing comes")
		l.turn(t, a)
		l.turn(t, b)
	}
	first := a
	if side == "target" {
		first = b
	}
	if how == "Close" {
		require.NoError(t, first.e.Close())
	} else {
		require.NoError(t, first.e.Shutdown())
	}
	l.converse(t)
	if how == "Shutdown" && first == a {
		for deadline := time.Now().Add(30 * time.Second); l.ended[cutOff] == 0; l.turn(t, l.one) {
			require.True(t, time.Now().Before(deadline), "it does not end")
		}
		if l.failure != nil {
			require.ErrorIs(t, l.failure, fabric.ErrCanceled)
		}
	}
	require.NoError(t, a.e.Close())
	require.NoError(t, b.e.Close())
	require.NoError(t, region.Close())
	require.NoError(t, arena.Close())
	require.LessOrEqual(t, l.ended[cutOff], 1)
	require.LessOrEqual(t, l.ended[landing], 1)
}

// converse has one send to the other, which has several receives at once.
func (l *lines) converse(t *testing.T) {
	t.Helper()
	l.ended[sends], l.ended[receives] = 0, 0
	var buffers [8][1]byte
	for i := range buffers {
		l.turn(t, l.other, fabric.Op{Kind: fabric.OpReceive, Buf: buffers[i][:], Context: receives})
	}
	for i := range buffers {
		l.turn(t, l.one, fabric.Op{Kind: fabric.OpSend, Buf: []byte{byte(1 + i)}, Context: sends})
		for deadline := time.Now().Add(30 * time.Second); l.ended[sends] <= i || l.ended[receives] <= i; {
			require.True(t, time.Now().Before(deadline), "no message")
			l.turn(t, l.other)
			l.turn(t, l.one)
		}
		require.Equal(t, byte(1+i), buffers[i][0])
	}
}
