package efa

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Reactors of one process that talk to one that goes on do not stay with it when they are
// closed, but for the last few on shm (fabric/keptpeers.go).
func TestReactorsComeAndGo(t *testing.T) {
	const few = 6
	each(t, func(t *testing.T, b *bed) {
		stays := b.open(t, Config{})
		for range 3 * few {
			t.Run("", func(t *testing.T) {
				dialed, accepted := join(t, b.open(t, Config{}), stays)
				require.NoError(t, dialed.WriteMessage(deadline(t), []byte("here")))
				closeBoth(t, dialed, accepted)
			})
		}
		memories, err := filepath.Glob(fmt.Sprintf("/dev/shm/%d:*", os.Getpid()))
		require.NoError(t, err)
		require.LessOrEqual(t, len(memories), few)
	})
}
