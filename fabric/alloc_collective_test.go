//go:build !asan

package fabric_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestCollectivesDoNotAllocate(t *testing.T) {
	members := groupsOf(t, 2)
	e := &errand{sides: [2]turner{members[0].e, members[1].e}, want: [2]int{1, 1}}
	var works [2]fabric.Collective
	for i := range works {
		works[i] = fabric.Collective{
			Buf: make([]byte, 64), Result: make([]byte, 64), Type: fabric.Uint64, Operation: fabric.Sum,
		}
	}
	var failed error
	for _, c := range []struct {
		name string
		post func(i int, g *fabric.Group) (fabric.Token, error)
	}{
		{"barrier", func(_ int, g *fabric.Group) (fabric.Token, error) { return g.Barrier(0, 0) }},
		{"broadcast", func(i int, g *fabric.Group) (fabric.Token, error) {
			return g.Broadcast(fabric.Collective{Buf: works[i].Buf, Type: fabric.Uint64})
		}},
		{"all-gather", func(i int, g *fabric.Group) (fabric.Token, error) {
			return g.AllGather(fabric.Collective{Buf: works[i].Buf[:32], Result: works[i].Result, Type: fabric.Uint64})
		}},
		{"scatter", func(i int, g *fabric.Group) (fabric.Token, error) {
			c := fabric.Collective{Result: works[i].Result[:32], Type: fabric.Uint64}
			if g.Rank() == c.Root {
				c.Buf = works[i].Buf
			}
			return g.Scatter(c)
		}},
		{"all-reduce", func(i int, g *fabric.Group) (fabric.Token, error) { return g.AllReduce(works[i]) }},
	} {
		one := func() {
			for i, m := range members {
				_, err := c.post(i, m.group)
				failed = errors.Join(failed, err)
			}
			e.run()
		}
		one()
		requireFree(t, one, c.name)
		require.NoError(t, errors.Join(failed, e.err))
	}
}
