package fabric_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// mostWriteInjected is how many bytes a write that is injected can have.
func mostWriteInjected(info *fabric.Info) int {
	if info.Provider() == "efa" && fabric.LibraryVersion().Major < 2 {
		return min(4096, int(info.InjectSize()))
	}
	return int(info.InjectSize())
}

// The longest write that can be injected is there, as a whole, when its immediate is, also at
// the endpoint that has posted it, and a longer one is refused.
func TestLongestInjectedWrite(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.RemoteMemory)
		for _, to := range []*station{b, a} {
			memory, remote := shared(t, to, 1<<16)
			peer := insert(t, a.v, to.e)
			for _, length := range []int{mostWriteInjected(a.info) - 1, mostWriteInjected(a.info), mostWriteInjected(a.info) + 1, int(a.info.InjectSize())} {
				clear(memory)
				text := bytes.Repeat([]byte{9}, length)
				op := a.post(t, to, fabric.Op{Kind: fabric.OpWriteInject, Flags: fabric.Immediate, Immediate: 3, Peer: peer, Buf: text, Remote: remote})
				if length > mostWriteInjected(a.info) {
					require.ErrorIs(t, op.Err, fabric.ErrInvalid)
					continue
				}
				require.NoError(t, op.Err)
				c := to.await(t, b)
				require.NoError(t, c.Err)
				require.Equal(t, fabric.OpRemoteWrite, c.Kind)
				require.Equal(t, length, bytes.Count(memory, []byte{9}))
			}
		}
	})
}
