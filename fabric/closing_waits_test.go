package fabric_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// waiting runs a wait that takes an hour, and returns when it is under way. ended
// says that it is over, and fails the test if that takes long.
func waiting(t *testing.T, provider string, users func() int64, wait func(waitMS int) (int, error)) (ended func()) {
	t.Helper()
	const hour = 3600 * 1000
	_, err := wait(1)
	if errors.Is(err, fabric.ErrNotSupported) {
		testenv.Need(t, provider+" blocks", err)
	}
	require.NoError(t, err)
	result := make(chan error, 1)
	go func() {
		// A wait may bring nothing before its time.
		n, err := 0, error(nil)
		for n == 0 && err == nil {
			n, err = wait(hour)
		}
		result <- err
	}()
	require.Eventually(t, func() bool { return users() > 0 }, 30*time.Second, time.Millisecond)
	return func() {
		t.Helper()
		select {
		case err := <-result:
			require.ErrorIs(t, err, net.ErrClosed)
		case <-time.After(30 * time.Second):
			t.Fatal("the wait goes on")
		}
	}
}

// soon is what a Close in another goroutine returns, which may not take long.
func soon(t *testing.T, h interface{ Close() error }) error {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- h.Close() }()
	select {
	case err := <-result:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("Close waits for the end of the wait")
		return nil
	}
}

// Close ends the waits of other goroutines, and one that is refused is so at once.
func TestCloseEndsWaits(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := strewInfo(t, provider)
		f, d := partsOf(t, info)
		var one [1]fabric.Completion
		t.Run("endpoint", func(t *testing.T) {
			s := openStation(t, f, d, info)
			ended := waiting(t, provider, func() int64 { return fabric.UsersOfEndpoint(s.e) },
				func(waitMS int) (int, error) { return s.e.TurnWait(nil, one[:], waitMS) })
			require.ErrorIs(t, soon(t, s.q), fabric.ErrBusy)
			require.NoError(t, soon(t, s.e))
			ended()
		})
		t.Run("alias", func(t *testing.T) {
			s := openStation(t, f, d, info)
			a, err := s.e.OpenAlias(fabric.Sending, 0)
			testenv.Need(t, "an alias on "+provider, err)
			ended := waiting(t, provider, func() int64 { return fabric.UsersOfAlias(a) },
				func(waitMS int) (int, error) { return a.TurnWait(nil, one[:], waitMS) })
			require.NoError(t, soon(t, a))
			ended()
		})
		t.Run("queue", func(t *testing.T) {
			s := openStation(t, f, d, info)
			ended := waiting(t, provider, func() int64 { return fabric.UsersOfQueue(s.q) },
				func(waitMS int) (int, error) { return s.q.ReadWait(one[:], waitMS) })
			require.ErrorIs(t, soon(t, s.q), fabric.ErrBusy)
			require.NoError(t, s.e.Close())
			require.NoError(t, soon(t, s.q))
			ended()
		})
	})
}
