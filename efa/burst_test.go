package efa

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// More messages at once than there are shared receives, of many connections:
// those that find no receive wait, and none is lost.
func TestBurst(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		const connections, count = 20, 50
		var ends [connections][2]*Conn
		for k := range ends {
			dialed, accepted := join(t, from, to)
			ends[k] = [2]*Conn{dialed, accepted}
		}
		// Nothing is taken in meanwhile.
		to.do(func() {
			for k, e := range ends {
				for i := range count {
					failed := func(err error) {
						if err != nil {
							t.Errorf("connection %d write %d: %v", k, i, err)
						}
					}
					if err := e[0].WriteMessageAsync(message(k, i, i), failed); err != nil {
						failed(err)
					}
				}
			}
		})
		ctx := deadline(t)
		buf := make([]byte, count)
		for k, e := range ends {
			for i := range count {
				n, err := e[1].ReadMessage(ctx, buf)
				require.NoError(t, err)
				require.True(t, bytes.Equal(message(k, i, i), buf[:n]), "connection %d message %d", k, i)
			}
			closeBoth(t, e[0], e[1])
		}
	})
}
