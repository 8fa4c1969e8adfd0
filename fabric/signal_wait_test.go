package fabric_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// waitsOf are the ways to wait for so long, or none where nobody can, which Signal says too.
func waitsOf(t *testing.T, a *station, longest time.Duration) map[string]func() (int, error) {
	t.Helper()
	buf := make([]fabric.Completion, 8)
	if _, err := a.q.ReadWait(buf, 0); err != nil {
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		require.ErrorIs(t, a.q.Signal(), fabric.ErrNotSupported)
		return nil
	}
	return map[string]func() (int, error){
		"ReadWait": func() (int, error) { return a.q.ReadWait(buf, int(longest.Milliseconds())) },
		"TurnWait": func() (int, error) { return a.e.TurnWait(nil, buf, int(longest.Milliseconds())) },
	}
}

// Signal ends a wait under way, and one that has not begun; where nobody can wait, it
// says so.
func TestSignalEndsWait(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, _ := stations(t, provider, fabric.TaggedMessages)
		const longest = 60 * time.Second
		for name, wait := range waitsOf(t, a, longest) {
			// The more often the other yields, the surer the wait is under way.
			for yields := range 100 {
				began, signaled := time.Now(), make(chan error, 1)
				go func() {
					for range yields * yields {
						runtime.Gosched()
					}
					signaled <- a.q.Signal()
				}()
				n, err := wait()
				require.NoError(t, err, name)
				require.Zero(t, n, name)
				require.Less(t, time.Since(began), longest/2, name)
				require.NoError(t, <-signaled, name)
			}
		}
	})
}

// Also one that libfabric forgets, as tcp does where a wait is about to begin.
func TestLostSignalEndsWait(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, _ := stations(t, provider, fabric.TaggedMessages)
		const longest = 2 * time.Minute
		for name, wait := range waitsOf(t, a, longest) {
			began, waited := time.Now(), make(chan error, 1)
			go func() {
				_, err := wait()
				waited <- err
			}()
			fabric.LoseSignal(a.q)
			require.NoError(t, <-waited, name)
			require.Less(t, time.Since(began), longest/2, name)
		}
	})
}

// Without room for a completion there is nothing to wait for.
func TestWaitWithoutRoom(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, _ := stations(t, provider, fabric.TaggedMessages)
		const longest = 2 * time.Minute
		if waitsOf(t, a, longest) == nil {
			return
		}
		began := time.Now()
		n, err := a.q.ReadWait(nil, int(longest.Milliseconds()))
		require.NoError(t, err)
		require.Zero(t, n)
		require.Less(t, time.Since(began), longest/2)
	})
}

// What the provider says of a failure in its own words is in the error.
func TestErrorHasTheProvidersWords(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		r := b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: make([]byte, 8)})
		require.NoError(t, b.e.Cancel(r.Token))
		var e *fabric.Error
		require.ErrorAs(t, b.await(t, a).Err, &e)
		require.ErrorIs(t, e, fabric.ErrCanceled)
		require.NotEmpty(t, e.Detail, "of fi_cq_strerror")
	})
}

// An error that nobody has read before its endpoint was closed is not the process's end: ofi_rxm asks the first
// endpoint of the queue for words, if there is one or not.
func TestErrorsOutliveEndpoints(t *testing.T) {
	run := func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		r := b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: make([]byte, 8)})
		require.NoError(t, b.e.Cancel(r.Token))
		require.NoError(t, b.e.Close())
		var buf [4]fabric.Completion
		n, err := b.q.Read(buf[:], 0)
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, b.q.Close())
	}
	eachWithLayers(t, run)
	t.Run("ofi_rxd", func(t *testing.T) { run(t, rxd) })
}
