package comm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// sizes are around the borders of the protocols, for a world with this eager limit.
func sizes(limit int) []int {
	return []int{0, 1, 8, 100, limit - 1, limit, limit + 1, limit + 24, 2*limit + 3, 100_000, 1 << 20, 5 << 20}
}

func TestSendAndReceive(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		worlds := b.open(t, 3, Config{}, efa.Config{})
		limit, err := worlds[0].EagerLimit(1)
		require.NoError(t, err)
		ctx := deadline(t)
		onAll(worlds, func(rank int, c *Comm) {
			next, previous := (rank+1)%3, (rank+2)%3
			for i, size := range sizes(limit) {
				buf := make([]byte, size+10)
				status, err := c.Sendrecv(ctx, content(rank, i, size), next, i, buf, previous, i)
				if !check(t, err == nil, "%d bytes: %v", size, err) {
					return
				}
				check(t, status == Status{Source: previous, Tag: i, Length: size}, "%v", status)
				check(t, string(buf[:size]) == string(content(previous, i, size)), "%d bytes differ", size)
			}
		})
	})
}

// A message of 256 MiB, by the way that long ones take.
func TestQuarterOfAGigabyte(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Name != "shm" {
			// The others take long for it.
			return
		}
		zero, one, _ := b.pair(t)
		const size = 256 << 20
		sent, buf := long(0, 1, size), make([]byte, size)
		q := irecv(t, one, buf, 0, 0)
		require.NoError(t, zero.Send(deadline(t), sent, 1, 0))
		require.Equal(t, Status{Source: 0, Tag: 0, Length: size}, finish(t, q))
		same(t, sent, buf)
	})
}

// check is require for goroutines other than the test's own.
func check(t *testing.T, ok bool, format string, args ...any) bool {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
	return ok
}
