package fabric_test

import (
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
)

// Of whatever arenas come and go, the one is found that a slice is part of as a whole.
func TestArenaOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var open []*fabric.Arena
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				a, err := fabric.NewArena(rapid.IntRange(1, 50_000).Draw(t, "size"))
				require.NoError(t, err)
				open = append(open, a)
			},
			"close": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("none is open")
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "arena")
				buf := open[i].Bytes()
				require.NoError(t, open[i].Close())
				require.Nil(t, fabric.ArenaOf(buf))
				open = append(open[:i], open[i+1:]...)
			},
			"": func(t *rapid.T) {
				for _, a := range open {
					buf := a.Bytes()
					first := rapid.IntRange(0, len(buf)-1).Draw(t, "first")
					end := rapid.IntRange(first+1, len(buf)).Draw(t, "end")
					for _, part := range [][]byte{buf, buf[:1], buf[len(buf)-1:], buf[first:end]} {
						require.Same(t, a, fabric.ArenaOf(part))
					}
					require.Nil(t, fabric.ArenaOf(buf[first:first]))
				}
				require.Nil(t, fabric.ArenaOf(make([]byte, 10)))
			},
		})
		for _, a := range open {
			require.NoError(t, a.Close())
		}
	})
	a, err := fabric.NewArena(1)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = fabric.ArenaOf(a.Bytes()) }))
	require.NoError(t, a.Close())
}

// Who keeps something of an arena gives it up before that is closed, or refuses.
func TestArenaBeforeClose(t *testing.T) {
	a, err := fabric.NewArena(1)
	require.NoError(t, err)
	busy := true
	var forget func()
	calls := 0
	forget, err = a.BeforeClose(func() error {
		calls++
		if busy {
			return fabric.ErrBusy
		}
		require.NotNil(t, a.Bytes())
		forget()
		return nil
	})
	require.NoError(t, err)
	other, err := a.BeforeClose(func() error { return errors.New("it was forgotten") })
	require.NoError(t, err)
	other()
	other()
	require.ErrorIs(t, a.Close(), fabric.ErrBusy)
	require.Same(t, a, fabric.ArenaOf(a.Bytes()))
	busy = false
	require.NoError(t, a.Close())
	require.Equal(t, 2, calls)
	_, err = a.BeforeClose(func() error { return nil })
	require.ErrorIs(t, err, net.ErrClosed)
}

// An arena that somebody holds again when Close has asked all is not closed.
func TestArenaIsHeldAgain(t *testing.T) {
	a, err := fabric.NewArena(1)
	require.NoError(t, err)
	var forget, again func()
	forget, err = a.BeforeClose(func() error {
		var err error
		again, err = a.BeforeClose(func() error { again(); return nil })
		forget()
		return err
	})
	require.NoError(t, err)
	require.ErrorIs(t, a.Close(), fabric.ErrBusy)
	require.NoError(t, a.Close())
}

// Who looks while arenas come and go finds its own.
func TestArenaOfConcurrently(t *testing.T) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 200 {
				a, err := fabric.NewArena(1 + i*500)
				if err == nil && fabric.ArenaOf(a.Bytes()) != a {
					err = errors.New("another arena was found")
				}
				if err == nil {
					err = a.Close()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
