// A matcher is used by one goroutine: the race detector has nothing to see in it.

//go:build !race

package tagged_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tagged"
)

type buffer [1 << 10]byte

// What was taken out is not kept alive by the slot that it was in: buffers are
// large, and a connection may be idle for long.
func TestNothingIsKeptAlive(t *testing.T) {
	var writes tagged.WriteDeque[*buffer]
	reads := tagged.NewReadDeque[*buffer](0, 4)
	dropped := tagged.NewReadDeque[*buffer](0, 4)
	var arbiter tagged.Arbiter[*buffer]
	var queue tagged.Queue[*buffer]
	var matcher tagged.Matcher[*buffer, *buffer]

	for name, pass := range map[string]func(*buffer){
		"WriteDeque": func(b *buffer) {
			writes.Push(b, 0)
			_, _, ok := writes.Pop()
			require.True(t, ok)
		},
		"ReadDeque": func(b *buffer) {
			_, err := reads.Arrive(0, b)
			require.NoError(t, err)
			require.NoError(t, reads.Finish(0, nil))
			_, _, ok := reads.Pop()
			require.True(t, ok)
		},
		"ReadDeque.Drop": func(b *buffer) {
			_, err := dropped.Arrive(1, b)
			require.NoError(t, err)
			dropped.Drop(func(uint32, *buffer) {})
		},
		"Arbiter": func(b *buffer) {
			arbiter.Push(&queue, b)
			require.Equal(t, 1, arbiter.Gather(make([]*buffer, 1), 1))
		},
		"Matcher.Arrive": func(b *buffer) {
			matcher.Post(everything, b)
			_, matched := matcher.Arrive(tagged.Envelope{}, b)
			require.True(t, matched)
		},
		"Matcher.Cancel": func(b *buffer) {
			ticket, _, _ := matcher.Post(everything, b)
			_, ok := matcher.Cancel(ticket)
			require.True(t, ok)
		},
		"Matcher.Take": func(b *buffer) {
			matcher.Arrive(tagged.Envelope{}, b)
			matcher.Arrive(tagged.Envelope{}, nil) // so that the class of the mask stays
			_, ok := matcher.Take(tagged.Pattern{Ignore: 1})
			require.True(t, ok)
			_, ok = matcher.Take(everything)
			require.True(t, ok)
		},
	} {
		pointer := passNew(pass)
		runtime.GC()
		require.Nil(t, pointer.Value(), name)
	}

	closed := passNew(func(q *tagged.Queue[*buffer]) {
		arbiter.Push(q, nil)
		require.Equal(t, 1, arbiter.Gather(make([]*buffer, 1), 1))
	})
	arbiter.Gather(nil, 1)
	runtime.GC()
	require.Nil(t, closed.Value(), "Queue")

	runtime.KeepAlive(&writes)
	runtime.KeepAlive(reads)
	runtime.KeepAlive(dropped)
	runtime.KeepAlive(&arbiter)
	runtime.KeepAlive(&queue)
	runtime.KeepAlive(&matcher)
}

// passNew makes a value, passes it on, and keeps a weak pointer alone.
func passNew[T any](pass func(*T)) weak.Pointer[T] {
	value := new(T)
	pass(value)
	return weak.Make(value)
}
