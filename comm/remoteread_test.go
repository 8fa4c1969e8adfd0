package comm

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
)

// Long messages are read by their receivers where the provider can, and sent where
// nobody wants that, or where it fails; all of them arrive, and nothing stays exposed.
func TestRemoteReads(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, c := range []struct {
			name   string
			config Config
			broken bool
		}{
			{"read", Config{}, false},
			{"small pieces", Config{ReadPiece: 4000, ReadWindow: 2}, false},
			{"sent", Config{NoRemoteReads: true}, false},
			{"read fails", Config{}, true},
		} {
			t.Run(c.name, func(t *testing.T) {
				if c.broken && b.Provider != "sockets" && fabrictest.ReadsMemory(b.Provider) {
					testenv.Need(t, "failed reads on "+b.Provider, errors.New("a wrong key ends the connection, or never completes (docs/PROVIDERS.md)"))
				}
				worlds := b.open(t, 2, c.config, efa.Config{})
				zero, one := worlds[0], worlds[1]
				can := zero.engine.readsRemotely()
				require.Equal(t, fabrictest.ReadsMemory(b.Provider) && !c.config.NoRemoteReads, can)
				for i, size := range []int{8200, 100_000, 3<<20 + 1} {
					q, err := zero.Isend(content(0, i, size), 1, i)
					require.NoError(t, err)
					arrive(t, zero, one)
					if c.broken && can {
						// As where a rule of the system forbids it.
						m, err := one.Mprobe(deadline(t), 0, i)
						require.NoError(t, err)
						one.engine.do(func(efa.Progress) {
							if m.op.claimed.header.kind == kindOpen {
								m.op.claimed.header.remote = fabric.Remote{Address: 1, Key: 1 << 50}
							}
						})
						buf := make([]byte, size)
						_, err = m.Recv(deadline(t), buf)
						require.NoError(t, err)
						require.Equal(t, content(0, i, size), buf)
					} else {
						expect(t, one, 0, i, Status{Source: 0, Tag: i, Length: size}, i)
					}
					_, err = q.Wait(deadline(t))
					require.NoError(t, err)
				}
				stats := one.Stats()
				require.Equal(t, can && !c.broken, stats.BytesRead > 3<<20, "%d bytes read", stats.BytesRead)
				require.Empty(t, zero.engine.sends.live())
				require.Empty(t, one.engine.receives.live())
			})
		}
	})
}
