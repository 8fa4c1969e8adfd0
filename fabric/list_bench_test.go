package fabric_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// BenchmarkPostedReceives measures what a message of a port to itself costs whose receive
// is behind depth-1 others: what libfabric's providers take to look through their lists,
// beside BenchmarkMatcher of package tagged.
func BenchmarkPostedReceives(b *testing.B) {
	for _, provider := range []string{"sockets", "tcp", "shm"} {
		for _, depth := range []int{1, 10, 100, 1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/depth=%d", provider, depth), func(b *testing.B) {
				choice, err := fabric.Choose(fabric.Preference{
					Providers: []string{provider}, Require: true, Source: "127.0.0.1", Logger: slog.New(slog.DiscardHandler),
				})
				testenv.Need(b, provider, err)
				port, err := fabric.OpenPort(choice.Info, fabric.PortConfig{Operations: 2 * depth})
				require.NoError(b, err)
				defer func() { require.NoError(b, port.Close()) }()
				benchmarkPosted(b, port, depth)
			})
		}
	}
}

func benchmarkPosted(b *testing.B, port *fabric.Port, depth int) {
	self, err := port.Insert(port.LocalAddress())
	require.NoError(b, err)
	memory, err := fabric.NewArena(64)
	require.NoError(b, err)
	defer func() { require.NoError(b, memory.Close()) }()
	buf := memory.Bytes()
	receive := func(tag int) fabric.Op {
		return fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(tag), Buf: buf[:8], Fixed: true}
	}
	posts := make([]fabric.Op, 1)
	var done [8]fabric.Completion
	post := func(op fabric.Op) (n int) {
		posts[0] = op
		n, err := port.Turn(posts, done[:], 0)
		require.NoError(b, err)
		return n
	}
	for tag := range depth {
		post(receive(tag))
		if posts[0].Result != fabric.Posted {
			testenv.Need(b, fmt.Sprintf("room for %d receives", depth), fmt.Errorf("there is for %d", tag))
		}
	}
	last := uint64(depth - 1)
	for b.Loop() {
		send := fabric.Op{Kind: fabric.OpTaggedInject, Peer: self, Tag: last, Buf: buf[8:16], Fixed: true}
		n := post(send)
		for n == 0 && posts[0].Result == fabric.Refused {
			// The first has to be connected.
			n = post(send)
		}
		for n == 0 {
			if n, err = port.Turn(nil, done[:], 100); err != nil {
				b.Fatal(err)
			}
		}
		if done[0].Err != nil || done[0].Tag != last {
			b.Fatal(done[0].Tag, done[0].Err)
		}
		post(receive(depth - 1))
	}
}
