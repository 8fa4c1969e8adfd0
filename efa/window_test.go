package efa

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A message that is longer than the whole window stays with its writer until it is
// read: the provider need not keep it, on however many connections.
func TestLongMessagesWaitWithTheWriter(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		const connections, size = 100, 100_000
		from, to := b.open(t, Config{WindowBytes: 20_000}), b.open(t, Config{WindowBytes: 20_000})
		var dialed, accepted []*Conn
		var requests []*Request
		for i := range connections {
			d, a := join(t, from, to)
			dialed, accepted = append(dialed, d), append(accepted, a)
			q, err := d.Send(message(i, 0, size))
			require.NoError(t, err)
			require.NotNil(t, q)
			requests = append(requests, q)
		}
		for _, a := range accepted {
			n, err := a.MessageSize(deadline(t))
			require.NoError(t, err)
			require.Equal(t, size, n)
		}
		var parked []int
		from.do(func() {
			for i, d := range dialed {
				if d.parked != nil {
					parked = append(parked, i)
				}
			}
		})
		require.Len(t, parked, connections)
		// The last first.
		for i := connections - 1; i >= 0; i-- {
			require.False(t, requests[i].Done())
			accepted[i].expect(t, i, 0, 1, size)
			require.NoError(t, requests[i].Wait(deadline(t)))
		}
		// And it goes on afterwards.
		for i, d := range dialed {
			require.NoError(t, d.WriteMessage(deadline(t), message(i, 1, 10)))
			accepted[i].expect(t, i, 1, 1, 10)
		}
		// One that nobody reads does not keep anybody from closing.
		q, err := dialed[0].Send(make([]byte, size))
		require.NoError(t, err)
		closeBoth(t, dialed[0], accepted[0])
		require.NoError(t, q.Wait(deadline(t)))
		for i := range connections - 1 {
			closeBoth(t, dialed[i+1], accepted[i+1])
		}
	})
}
