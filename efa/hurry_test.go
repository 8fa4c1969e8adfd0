package efa

import (
	"fmt"
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
	var wrong []string
	r.do(func() {
		r.hasty = true // something is to be posted
		expect := func(want bool, c *call, n int, when string) {
			for i := range n {
				if got := r.hurries(c); got != want {
					wrong = append(wrong, fmt.Sprintf("%s, %d of %d: %v", when, i, n, got))
				}
			}
		}
		expect(false, handed, hurryAfter, "at first")
		expect(true, handed, 1, "after that")
		expect(false, waits, 1, "it waits for its message")
		expect(false, handed, hurryAfter, "after one that waits")
		expect(true, handed, fewLeft, "again")
		r.takeLeft()
		expect(true, handed, 1, "there is one")
		r.takeLeft()
		expect(false, handed, calmFor+hurryAfter, "there was no hurry")
		expect(true, handed, 1, "in the end")
		r.hurry = hurry{}
	})
	require.Empty(t, wrong)
	handed.free()
	waits.free()
	closeBoth(t, dialed, accepted)
}
