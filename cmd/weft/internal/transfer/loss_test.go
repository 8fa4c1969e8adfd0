package transfer

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeathOfEitherSide(t *testing.T) {
	from := t.TempDir()
	write(t, filepath.Join(from, "name"), random(64*MaxMessage), 0o644)
	for _, victim := range []string{"sender", "receiver"} {
		to := t.TempDir()
		a, b := memoryPair()
		half := Options{Progress: func() func(int) {
			total := 0
			return func(n int) {
				if total += n; total > 32*MaxMessage {
					if victim == "sender" {
						a.Kill()
					} else {
						b.Kill()
					}
				}
			}
		}()}
		sent, received := carry(t, a, b, sourcesOf(t, filepath.Join(from, "name")), openRoot(t, to), Options{}, half)
		require.ErrorIs(t, sent.err, ErrLost, victim)
		require.ErrorIs(t, received.err, ErrLost, victim)
		require.Empty(t, tree(t, to), victim)
	}
}

func TestInterruption(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "name"), random(64*MaxMessage), 0o644)
	root := openRoot(t, to)
	a, b := memoryPair()
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted by a test")
	done := make(chan outcome)
	go func() {
		summary, err := Receive(ctx, b, root, Options{Progress: func(int) { cancel(interrupted) }})
		b.Close()
		done <- outcome{summary, err}
	}()
	_, sendErr := Send(t.Context(), a, sourcesOf(t, filepath.Join(from, "name")), Options{})
	a.Close()
	require.ErrorIs(t, (<-done).err, interrupted)
	var peer *PeerError
	require.ErrorAs(t, sendErr, &peer)
	require.Contains(t, peer.Text, interrupted.Error())
	require.Empty(t, tree(t, to))

	_, err := Send(ctx, a, sourcesOf(t, filepath.Join(from, "name")), Options{})
	require.ErrorIs(t, err, interrupted)
}

func TestSilentPeer(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "name"), random(64*MaxMessage), 0o644)
	root := openRoot(t, to)
	a, b := memoryPair()
	soon := Options{Timeout: 10 * time.Millisecond}
	_, err := Receive(t.Context(), b, root, soon)
	require.ErrorIs(t, err, ErrLost)
	_, err = Send(t.Context(), a, sourcesOf(t, filepath.Join(from, "name")), soon)
	require.ErrorIs(t, err, ErrLost)
}

// The time limit counts once, whatever this side was doing when the peer fell
// silent.
func TestTimeLimitCountsOnce(t *testing.T) {
	from := t.TempDir()
	write(t, filepath.Join(from, "short"), []byte("short"), 0o644)
	write(t, filepath.Join(from, "some"), random(6*MaxMessage), 0o644)
	write(t, filepath.Join(from, "long"), random(64*MaxMessage), 0o644)
	for _, c := range []struct {
		doing string
		paths []string
		limit time.Duration
		want  time.Duration
	}{
		{"writing", []string{filepath.Join(from, "long")}, 7 * time.Second, 7 * time.Second},
		{"waiting for the verdict", []string{filepath.Join(from, "short")}, 7 * time.Second, 7 * time.Second},
		{"telling of a failure", []string{filepath.Join(from, "short"), "/proc/self/mem"}, time.Minute, grace},
		{"telling of a failure behind what it does not take", []string{filepath.Join(from, "some"), "/proc/self/mem"}, time.Minute, grace},
	} {
		sources := sourcesOf(t, c.paths...)
		synctest.Test(t, func(t *testing.T) {
			a, _ := memoryPair()
			begin := time.Now()
			_, err := Send(t.Context(), a, sources, Options{Timeout: c.limit})
			require.Error(t, err, c.doing)
			require.Equal(t, c.want, time.Since(begin), c.doing)
		})
	}
}
