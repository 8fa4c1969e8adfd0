package efa

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// waitFor is what a Sender was told.
func (s told) waitFor(t *testing.T) error {
	select {
	case err := <-s:
		return err
	case <-deadline(t).Done():
		t.Fatal("the access does not end")
		return nil
	}
}

// Memory of a peer is written where the device can, and the peer hears of it if it is to.
func TestWrite(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.connect(t, Config{RemoteMemory: true})
		require.Equal(t, b.Provider != "", from.reactor.CanWrite())
		require.Equal(t, b.Provider != "", from.reactor.CanTell())
		data := message(1, 1, 50_000)
		s := make(told, 1)
		write := func(w *RemoteWrite) (err error) {
			from.reactor.do(func() { err = Progress{from.reactor}.Write(from, w, s) })
			return err
		}
		if !from.reactor.CanWrite() {
			require.ErrorIs(t, write(&RemoteWrite{Src: data}), fabric.ErrNotSupported)
			closeBoth(t, from, to)
			return
		}
		memory := make([]byte, 100_000)
		var e, local *Exposure
		var err error
		to.reactor.do(func() { e, err = Progress{to.reactor}.Expose(memory) })
		require.NoError(t, err)
		from.reactor.do(func() { local, err = Progress{from.reactor}.Expose(data) })
		require.NoError(t, err)
		heard := make(chan uint32, 1)
		to.reactor.HandleWrites(func(_ Progress, immediate uint32) { heard <- immediate })
		for i, w := range []RemoteWrite{
			{Src: data},
			{Src: data[:1], Local: local},
			{Src: data, Tell: true, Immediate: 0},
			{Src: data, Tell: true, Immediate: 1<<32 - 1, Local: local},
		} {
			clear(memory)
			w.To = e.Remote
			w.To.Address += 777
			require.NoError(t, write(&w))
			require.NoError(t, s.waitFor(t), i)
			if w.Tell {
				select {
				case immediate := <-heard:
					require.Equal(t, w.Immediate, immediate)
				case <-deadline(t).Done():
					t.Fatal("the peer does not hear of the write")
				}
			}
			// Without word, that the write has ended is that it is there.
			require.Equal(t, w.Src, memory[777:][:len(w.Src)], i)
			require.Zero(t, memory[776])
			require.Zero(t, memory[777+len(w.Src)])
		}
		require.EqualValues(t, 4, from.reactor.Stats().Writes)
		require.EqualValues(t, 150_001, from.reactor.Stats().BytesWritten)

		// Nobody listens any more.
		dropped := to.reactor.Stats().Dropped
		to.reactor.HandleWrites(nil)
		require.NoError(t, write(&RemoteWrite{Src: data, To: e.Remote, Tell: true, Immediate: 3}))
		require.NoError(t, s.waitFor(t))
		require.Eventually(t, func() bool { return to.reactor.Stats().Dropped == dropped+1 }, patience, time.Millisecond)

		to.reactor.do(func() { err = e.Close() })
		require.NoError(t, err)
		from.reactor.do(func() { err = local.Close() })
		require.NoError(t, err)
		closeBoth(t, from, to)
		require.Error(t, write(&RemoteWrite{Src: data, To: e.Remote}))
	})
}

// A peer that asks for memory that it may not have ends nothing but that.
func TestForbiddenWrite(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Provider != "efa" {
			// Others end the connection, or say nothing.
			return
		}
		from, to := b.connect(t, Config{RemoteMemory: true})
		memory := make([]byte, 1000)
		var e *Exposure
		var err error
		to.reactor.do(func() { e, err = Progress{to.reactor}.Expose(memory) })
		require.NoError(t, err)
		wrong := e.Remote
		wrong.Key += 1000
		for i := range 2 * eventsEvery {
			w := RemoteWrite{Src: []byte("not yours"), To: wrong, Tell: true, Immediate: 1}
			s := make(told, 1)
			from.reactor.do(func() { err = Progress{from.reactor}.Write(from, &w, s) })
			require.NoError(t, err)
			// It has succeeded when it is on its way, where the device does not look.
			_ = s.waitFor(t)
			require.NoError(t, from.WriteMessage(deadline(t), message(1, i, 10)))
			to.expect(t, 1, i, 1, 10)
		}
		require.Equal(t, make([]byte, len(memory)), memory)
		to.reactor.do(func() { err = e.Close() })
		require.NoError(t, err)
		closeBoth(t, from, to)
	})
}
