package efa

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func newArena(t *testing.T, size int) *fabric.Arena {
	a, err := fabric.NewArena(size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// borrow borrows in the progress role.
func (r *Reactor) borrow(buf []byte) (e *Exposure) {
	r.do(func() { e = Progress{r}.Borrow(buf) })
	return e
}

// An arena is registered once, and peers write to every part of it.
func TestBorrow(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.connect(t, Config{RemoteMemory: true})
		r := to.reactor
		arena := newArena(t, 100_000)
		memory := arena.Bytes()
		require.Nil(t, r.borrow(make([]byte, 10)))
		if !r.CanWrite() {
			require.Nil(t, r.borrow(memory))
			closeBoth(t, from, to)
			return
		}
		e := r.borrow(memory[:10])
		require.NotNil(t, e)
		require.ErrorIs(t, e.Close(), fabric.ErrInvalid)
		for _, part := range [][]byte{memory[:777], memory[99_001:], memory[50_003:51_000]} {
			require.Same(t, e, r.borrow(part))
			at, err := e.RemoteOf(part)
			require.NoError(t, err)
			s := make(told, 1)
			data := message(1, 1, len(part))
			from.reactor.do(func() { err = Progress{from.reactor}.Write(from, &RemoteWrite{Src: data, To: at}, s) })
			require.NoError(t, err)
			require.NoError(t, s.waitFor(t))
			require.Equal(t, data, part)
			require.ErrorIs(t, arena.Close(), fabric.ErrBusy)
			e.Return()
		}
		require.Len(t, r.arenas.known, 1)
		e.Return()
		// It is not in use, and goes with the arena.
		require.NoError(t, arena.Close())
		require.Empty(t, r.arenas.known)
		closeBoth(t, from, to)
	})
}

// Of many arenas, those that were lent last stay registered, and those that are lent.
func TestArenasAreBounded(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.connect(t, Config{RemoteMemory: true})
		r := to.reactor
		if !r.CanWrite() {
			closeBoth(t, from, to)
			return
		}
		var all []*fabric.Arena
		for range mostArenas + 1 {
			all = append(all, newArena(t, 1))
		}
		lent := r.borrow(all[0].Bytes())
		for _, a := range all[1:] {
			r.borrow(a.Bytes()).Return()
		}
		require.Len(t, r.arenas.known, mostArenas)
		require.Contains(t, r.arenas.known, all[0])
		require.NotContains(t, r.arenas.known, all[1])
		require.Same(t, lent, r.borrow(all[0].Bytes()))
		// There is no room while all are lent.
		for _, a := range all[2:] {
			require.NotNil(t, r.borrow(a.Bytes()))
		}
		require.Nil(t, r.borrow(all[1].Bytes()))
		closeBoth(t, from, to)
		require.NoError(t, r.Close())
		// What is still lent does not keep arenas of a reactor that is closed.
		lent.Return()
		require.NoError(t, all[0].Close())
		require.Nil(t, r.borrow(all[1].Bytes()))
	})
}

// An arena that the device does not register is not tried again, and can be closed.
func TestArenaIsNotRegistered(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.connect(t, Config{RemoteMemory: true})
		r := to.reactor
		arena := newArena(t, 1)
		attributes := r.attributes
		r.do(func() { r.attributes.RemoteReads, r.attributes.RemoteWrites = false, false })
		require.Nil(t, r.borrow(arena.Bytes()))
		r.do(func() { r.attributes = attributes })
		require.Nil(t, r.borrow(arena.Bytes()))
		require.NoError(t, arena.Close())
		require.Empty(t, r.arenas.known)
		closeBoth(t, from, to)
	})
}
