package fabrictest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQueueKeepsOrderAndForgetsWhatItGaveUp(t *testing.T) {
	var q queue[*int]
	var model []*int
	push := func(v int) { q.push(&v); model = append(model, &v) }
	for v := range 200 {
		push(v)
		if v%3 != 0 {
			i := (v * 7) % len(model)
			require.Same(t, model[i], q.remove(i))
			model = append(model[:i:i], model[i+1:]...)
		}
		require.Equal(t, len(model), q.len())
		for i := range model {
			require.Same(t, model[i], q.at(i))
		}
		kept := 0
		for _, p := range q.items[:cap(q.items)] {
			if p != nil {
				kept++
			}
		}
		require.Equal(t, len(model), kept, "what was removed must not be kept alive")
	}
}
