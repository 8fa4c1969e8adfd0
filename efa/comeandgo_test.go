package efa

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Connections between reactors that come and go, in any order, carry what they should,
// beside others that stay.
func TestPeersComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		const steps = 100
		seed := uint64(time.Now().UnixNano())
		rng := rand.New(rand.NewPCG(seed, 1))
		type pair struct{ a, b *Conn }
		var reactors []*Reactor
		var pairs []pair
		n := 0
		check := func(p pair, what string) {
			ctx := deadline(t)
			for i, d := range [][2]*Conn{{p.a, p.b}, {p.b, p.a}} {
				n++
				want := message(i, n, 1+rng.IntN(9000))
				sent := make(chan error, 1)
				go func() { sent <- d[0].WriteMessage(ctx, want) }()
				buf := make([]byte, 16<<10)
				got, err := d[1].ReadMessage(ctx, buf)
				require.NoError(t, err, "%s, seed %d", what, seed)
				require.NoError(t, <-sent)
				require.Equal(t, want, buf[:got])
			}
		}
		for step := range steps {
			switch k := rng.IntN(10); {
			case len(reactors) < 3 || k < 1 && len(reactors) < 6:
				reactors = append(reactors, b.open(t, Config{}))
			case k < 4 && len(pairs) < 12:
				i, j := rng.IntN(len(reactors)), rng.IntN(len(reactors))
				if i == j {
					continue
				}
				from, to := join(t, reactors[i], reactors[j])
				pairs = append(pairs, pair{from, to})
				check(pairs[len(pairs)-1], fmt.Sprintf("step %d: new", step))
			case k < 6 && len(pairs) > 0:
				i := rng.IntN(len(pairs))
				closeBoth(t, pairs[i].a, pairs[i].b)
				pairs = append(pairs[:i], pairs[i+1:]...)
			case k < 7 && len(reactors) > 3:
				i := rng.IntN(len(reactors))
				kept := pairs[:0]
				for _, p := range pairs {
					if p.a.reactor == reactors[i] || p.b.reactor == reactors[i] {
						closeBoth(t, p.a, p.b)
					} else {
						kept = append(kept, p)
					}
				}
				pairs = kept
				require.NoError(t, reactors[i].Close())
				reactors = append(reactors[:i], reactors[i+1:]...)
			default:
				for i, p := range pairs {
					check(p, fmt.Sprintf("step %d: pair %d", step, i))
				}
			}
		}
		for _, p := range pairs {
			closeBoth(t, p.a, p.b)
		}
	})
}
