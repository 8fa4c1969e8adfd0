package fabric_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// An operation that fails fails alone: those before and after it end as if
// nothing had happened.
func TestErrorOfOneOperation(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, c := range []struct {
			name  string
			want  error
			limit string // of tcp before 2
		}{
			{"cancelled", fabric.ErrCanceled, ""},
			{"truncated", fabric.ErrTruncated, "the message after a truncated one does not arrive"},
		} {
			t.Run(c.name, func(t *testing.T) {
				if c.limit != "" && provider == "tcp" && fabric.LibraryVersion().Major < 2 {
					testenv.Need(t, "messages after a truncated one on tcp", errors.New(c.limit))
				}
				a, b := stations(t, provider, fabric.TaggedMessages)
				bufs := [3][]byte{make([]byte, 16), make([]byte, 4), make([]byte, 16)}
				var posted [3]fabric.Op
				for i := range bufs {
					posted[i] = b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(i), Buf: bufs[i], Context: uint64(10 + i)})
				}
				if c.want == fabric.ErrCanceled {
					require.NoError(t, b.e.Cancel(posted[1].Token))
				}
				for i := range bufs {
					if i != 1 || c.want != fabric.ErrCanceled {
						a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: uint64(i), Buf: []byte("text number x")})
						require.NoError(t, a.await(t, b).Err, "the sender does not learn of it")
					}
				}
				ended := map[uint64]fabric.Completion{}
				for range bufs {
					done := b.await(t, a)
					ended[done.Context] = done
				}
				require.Len(t, ended, 3)
				require.ErrorIs(t, ended[11].Err, c.want)
				for _, i := range []int{0, 2} {
					require.NoError(t, ended[uint64(10+i)].Err)
					require.Equal(t, "text number x", string(bufs[i][:ended[uint64(10+i)].Len]))
				}
				// And the endpoint goes on.
				b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: bufs[0]})
				a.must(t, b, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: 1, Buf: []byte("again")})
				done := b.await(t, a)
				require.NoError(t, done.Err)
				require.Equal(t, "again", string(bufs[0][:done.Len]))
				require.Zero(t, a.q.InFlight()+b.q.InFlight())
			})
		}
	})
}
