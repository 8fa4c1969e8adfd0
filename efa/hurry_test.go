package efa

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Who hands over one message after the other has them posted by the background, unless
// there was no hurry after all.
func TestHurry(t *testing.T) {
	b := newBed(t, plain)
	dialed, accepted := b.connect(t, Config{})
	r := dialed.reactor
	handed, waits := newCall(dialed, nil), newCall(dialed, nil)
	handed.callback = func(error) {}
	handed.done.Store(true)
	waits.done.Store(true)
	r.do(func() {
		r.hasty = true // something is to be posted
		before := func(n int) {
			for i := range n {
				require.False(t, r.hurries(handed), "%d of %d", i, n)
			}
		}
		before(hurryAfter)
		require.True(t, r.hurries(handed))
		require.False(t, r.hurries(waits), "it waits for its message")
		before(hurryAfter)
		for range fewLeft {
			require.True(t, r.hurries(handed))
		}
		r.takeLeft()
		require.True(t, r.hurries(handed), "there is one")
		r.takeLeft()
		before(calmFor + hurryAfter)
		require.True(t, r.hurries(handed))
		r.hurry = hurry{}
	})
	handed.free()
	waits.free()
	closeBoth(t, dialed, accepted)
}
