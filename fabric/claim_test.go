package fabric_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// A peek may have as many buffers as the receive that claims what it has found.
func TestClaimWithManyBuffers(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		if provider == "shm" && fabric.LibraryVersion().Major < 2 {
			testenv.Need(t, "peek on shm", errors.New("a peek gives no completion on shm (libfabric 1.17)"))
		}
		a, b := stations(t, provider, fabric.TaggedMessages)
		buffers := func() (list [][]byte) {
			for range b.info.Receive().Vectors {
				list = append(list, make([]byte, 4))
			}
			return list
		}
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: 3, Buf: []byte("in parts")})
		op := fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Flags: fabric.Peek | fabric.Claim}
		var found fabric.Completion
		for deadline := time.Now().Add(30 * time.Second); ; {
			op.Vector = buffers()
			b.must(t, a, op)
			if found = b.await(t, a); found.Err == nil {
				break
			}
			require.ErrorIs(t, found.Err, fabric.ErrNoMessage)
			require.True(t, time.Now().Before(deadline))
		}
		op.Vector, op.Flags, op.Claimed = buffers(), fabric.Claim, found.Token
		b.must(t, a, op)
		done := b.await(t, a)
		require.NoError(t, done.Err)
		require.Equal(t, 8, done.Len)
		require.Equal(t, "in parts", string(op.Vector[0])+string(op.Vector[1]))
		require.Zero(t, b.q.InFlight())
	})
}
