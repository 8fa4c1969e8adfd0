package efa

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// Short messages that are written while others wait to be posted share a message
// of the device's, in order and whole, whatever their sizes.
func TestGathering(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 256})
		r := dialed.reactor
		const count = 100
		operations := 0
		// Nothing is posted while the role is held.
		r.do(func() {
			for i := range count {
				w := r.newWrite(dialed, message(1, i, gatheredSize(i)))
				r.enqueue(w)
			}
			operations = dialed.queue.Len()
		})
		require.Less(t, operations, count/4)
		buf := make([]byte, 20_000)
		for i := range count {
			n, err := accepted.ReadMessage(deadline(t), buf)
			require.NoError(t, err)
			require.Equal(t, message(1, i, gatheredSize(i)), buf[:n], "message %d", i)
		}
		closeBoth(t, dialed, accepted)
	})
}

// gatheredSize has a message that cannot be gathered now and then, an empty one,
// and one that fills a buffer of the small size.
func gatheredSize(i int) int {
	switch {
	case i%25 == 24:
		return 10_000
	case i%10 == 9:
		return 0
	case i%10 == 8:
		return 300
	}
	return i%7 + 1
}

// A message that was refused after a flush behind it was begun takes no more
// messages in: theirs would not be the places in line right behind its own.
func TestGatherBehindFlush(t *testing.T) {
	b := newBed(t, setting{Name: "fake", Faults: fabrictest.Faults{Refuse: 0.5, Seed: 7}})
	dialed, accepted := b.connect(t, Config{})
	r := dialed.reactor
	const count = 100
	done := make(chan error, 2*count)
	write := func(i int) {
		k := newCall(dialed, message(1, i, 10))
		k.callback = func(err error) { done <- err }
		startAsync(r, &request{call: k, conn: dialed})
	}
	for i := range count {
		r.do(func() {
			write(2 * i)
			r.flush(dialed, &flush{completion: NewCompletion(1, func(error) {})})
			r.step(0)
			write(2*i + 1)
		})
		accepted.expect(t, 1, 2*i, 2, 10)
	}
	for i := range 2 * count {
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(patience):
			t.Fatalf("%d writes of %d have ended", i, 2*count)
		}
	}
	closeBoth(t, dialed, accepted)
}
