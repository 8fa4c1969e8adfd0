package fabric_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

func TestWrongCompletionFormat(t *testing.T) {
	_, d := domainOf(t, "sockets", fabric.Messages)
	for _, c := range []fabric.CompletionQueueConfig{
		{}, {Size: -1}, {Size: 16, Format: fabric.CompletionContext + 1}, {Size: 1<<20 + 1, Format: fabric.CompletionData},
	} {
		_, err := d.OpenCompletionQueueConfig(c)
		require.ErrorIs(t, err, fabric.ErrInvalid)
	}
	require.Equal(t, "FI_CQ_FORMAT_CONTEXT", fabric.CompletionContext.String())
	require.Equal(t, "unknown", (fabric.CompletionContext + 1).String())
}

// What a peer does has no context, and an entry without flags does not say what it is:
// it must not be taken for an operation of this side.
func TestRemoteWriteWithoutFlags(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, format := range []fabric.CompletionFormat{fabric.CompletionData, fabric.CompletionMessage, fabric.CompletionContext} {
			t.Run(format.String(), func(t *testing.T) { writtenTo(t, provider, format) })
		}
	})
}

func writtenTo(t *testing.T, provider string, format fabric.CompletionFormat) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: fabric.Messages | fabric.RemoteMemory,
		MemoryMode: everyMemoryMode, Source: sourceOn(provider), OneThread: true,
	})
	testenv.Need(t, provider+" with remote memory", err)
	f, d := partsOf(t, infos[0])
	q, err := d.OpenCompletionQueueConfig(fabric.CompletionQueueConfig{Size: 64, Format: format})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	a, b := openStation(t, f, d, infos[0]), stationAt(t, f, d, infos[0], q)
	a.peer, b.peer = a.insert(t, b), b.insert(t, a)
	memory, remote := shared(t, b, 64)
	a.must(t, b, fabric.Op{
		Kind: fabric.OpWriteInject, Peer: a.peer, Buf: []byte("written"), Remote: remote, Flags: fabric.Immediate, Immediate: 7,
	})
	for deadline := time.Now().Add(30 * time.Second); b.q.Strays() == 0 && len(b.got) == 0; {
		require.True(t, time.Now().Before(deadline), "no completion")
		a.turn(t, nil)
		b.turn(t, nil)
	}
	require.Equal(t, "written", string(memory[:7]))
	if format == fabric.CompletionContext {
		require.Equal(t, uint64(1), b.q.Strays())
		require.Empty(t, b.got)
		return
	}
	require.Equal(t, fabric.OpRemoteWrite, b.got[0].Kind)
	require.Equal(t, format == fabric.CompletionData, b.got[0].HasImmediate)
}
