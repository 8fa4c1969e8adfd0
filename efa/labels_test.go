package efa

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// labelled returns the stacks of goroutines with such labels.
func labelled(t *testing.T, labels string) string {
	t.Helper()
	var profile bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	var found strings.Builder
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, "# labels: {"+labels+"}") {
			found.WriteString(stack + "\n\n")
		}
	}
	return found.String()
}

// The goroutines of the engine can be told apart in a profile, and have nothing of
// whoever started them.
func TestLabels(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		mine := pprof.WithLabels(t.Context(), pprof.Labels("program", "test"))
		pprof.SetGoroutineLabels(mine)
		defer pprof.SetGoroutineLabels(context.Background())
		from, to := b.open(t, Config{}), b.open(t, Config{Key: testKey(0)})
		l, err := to.Listen(deadline(t), "127.0.0.1:0")
		require.NoError(t, err)
		silent := stranger(t, l, nil)
		dialed, accepted := join(t, from, b.open(t, Config{}))
		called, wait := make(chan error), make(chan struct{})
		require.NoError(t, dialed.WriteMessageAsync([]byte("x"), func(err error) {
			called <- err
			<-wait
		}))
		accepted.expectBytes(t, 1)
		require.NoError(t, <-called)
		for what, functions := range map[string][]string{
			"reactor":   {"efa.(*Reactor).background"},
			"callbacks": {"efa.(*callbackQueue).run"},
			"control":   {"efa.(*watcher).run"},
			"handshake": {"efa.(*Listener).loop", "efa.(*Listener).shake"},
		} {
			labels := `"provider":"` + from.Provider() + `", "weft":"` + what + `"`
			for _, f := range functions {
				require.Eventually(t, func() bool { return strings.Contains(labelled(t, labels), f) }, patience, time.Millisecond, "%s with %s", f, labels)
			}
			stacks := labelled(t, labels)
			for other, others := range map[string][]string{
				"reactor": {"background"}, "callbacks": {"callbackQueue"}, "control": {"(*watcher).run"}, "handshake": {"loop", "shake"},
			} {
				for _, f := range others {
					if other != what {
						require.NotContains(t, stacks, f+"\t", "%s among those of %s", f, what)
					}
				}
			}
		}
		own := labelled(t, `"program":"test"`)
		require.Contains(t, own, "TestLabels")
		require.NotContains(t, own, "efa.(*Reactor).background")
		require.NotContains(t, own, "efa.(*callbackQueue).run")
		require.NotContains(t, own, "efa.(*watcher).run")
		close(wait)
		closeBoth(t, dialed, accepted)
		require.NoError(t, silent.Close())
		require.NoError(t, l.Close())
	})
}
