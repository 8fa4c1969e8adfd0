package fabric_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// strewnSizes are of messages that each provider carries in its own ways. Through ofi_rxm
// those above 16 KiB are fetched from whoever sent them.
var strewnSizes = []int{0, 1, 8, 100, 300, 4096, 4097, 9000, 16_000, 16_384, 16_385, 40_000, 131_072, 131_073, 300_000}

// eagerLimit is the variable by which ofi_rxm of 1.17 sends longer messages at once, to
// peers that have the same value of it.
const eagerLimit = "FI_OFI_RXM_EAGER_LIMIT"

// strewn are the messages, by tag. Nobody changes them: what is under way when an
// endpoint is closed may still be read.
var strewn = func() (messages [][]byte) {
	for tag, size := range strewnSizes {
		messages = append(messages, bytes.Repeat([]byte{byte(tag + 1)}, size))
	}
	return messages
}()

// strew sends messages that nobody has asked for, until the provider takes no more
// of them or count have been sent. Some have no tag.
func (s *station) strew(t *testing.T, random *rand.Rand, count int) {
	t.Helper()
	for refused := 0; count > 0 && refused < 50; {
		tag := random.IntN(len(strewnSizes))
		op := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: uint64(tag), Buf: strewn[tag]}}
		// On tcp one without a tag would hold up all that come after it.
		if s.info.Provider() == "shm" && random.IntN(5) == 0 {
			op[0].Kind = fabric.OpSend
		}
		s.turn(t, op)
		require.NoError(t, op[0].Err)
		if op[0].Result == fabric.Refused {
			refused++
			continue
		}
		count--
	}
	s.got = nil
}

// gathering is who takes what is still there of the messages of a peer that may be
// gone. Those that come are as they were sent; the others do not come, or fail.
type gathering struct {
	*station
	bufs [][]byte // by context
}

func (g *gathering) some(t *testing.T, random *rand.Rand) {
	t.Helper()
	g.got = nil
	for range 12 {
		tag := random.IntN(len(strewnSizes))
		buf := make([]byte, 300_000)
		op := fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(tag), Buf: buf, Context: uint64(len(g.bufs))}
		if random.IntN(2) == 0 {
			op.Ignore = 0xff
		}
		g.bufs = append(g.bufs, buf)
		posts := []fabric.Op{op}
		g.turn(t, posts)
		require.NoError(t, posts[0].Err)
		for range random.IntN(20) {
			g.turn(t, nil)
		}
	}
	for range 200 {
		g.turn(t, nil)
	}
	for _, c := range g.got {
		if c.Err != nil || c.Kind != fabric.OpTaggedReceive {
			continue
		}
		require.Less(t, c.Tag, uint64(len(strewnSizes)))
		want := strewn[c.Tag]
		require.Equal(t, len(want), c.Len)
		require.True(t, bytes.Equal(want, g.bufs[c.Context][:c.Len]), "message of %d bytes", c.Len)
	}
	g.got = nil
}

// orderly has two endpoints exchange a message each, past what else they have.
func orderly(t *testing.T, a, b *station, toB, toA fabric.Address) {
	t.Helper()
	for i, way := range []struct {
		from, to *station
		peer     fabric.Address
	}{{a, b, toB}, {b, a, toA}} {
		tag, buf := uint64(1000+i), make([]byte, 10)
		way.to.got, way.from.got = nil, nil
		way.to.must(t, way.from, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: buf, Context: tag})
		way.from.must(t, way.to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: way.peer, Tag: tag, Buf: []byte("still here")})
		for {
			if c := way.to.await(t, way.from); c.Context == tag {
				require.NoError(t, c.Err)
				break
			}
		}
		require.Equal(t, "still here", string(buf))
	}
}

// strewInfo is what Choose takes.
func strewInfo(t *testing.T, provider string) *fabric.Info {
	t.Helper()
	choice, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true, Source: "127.0.0.1"})
	testenv.Need(t, provider, err)
	return choice.Info
}
