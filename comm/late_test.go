package comm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A Cancel that comes after the Wait of another goroutine has returned ends nothing of
// what has taken the place of that request.
func TestCancelThatIsLate(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		zero, one, _ := b.pair(t)
		for i := range 20 {
			late := irecv(t, one, make([]byte, 10), 0, 1)
			isend(t, zero, content(0, i, 10), 1, 1)
			finish(t, late)
			buf := make([]byte, 10)
			next := irecv(t, one, buf, 0, 2)
			late.Cancel()
			isend(t, zero, content(0, i, 10), 1, 2)
			require.Equal(t, Status{Source: 0, Tag: 2, Length: 10}, finish(t, next))
			require.Equal(t, content(0, i, 10), buf)
		}
	})
}
