//go:build !race && !asan

package comm

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// heap is how much Go memory is in use.
func heap() int64 {
	var m runtime.MemStats
	// Twice: what a pool holds is freed by the second.
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What messages that wait count against their bound is what they take, and all that fit
// in it are taken in while nobody receives.
func TestUnexpectedIsCounted(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		count := 100_000
		soak := soakFlood(t)
		switch {
		case soak > 0:
			count = soak
		case b.Name != "fake":
			// What counts them is the same on all devices.
			return
		case b.matching == MatchByProvider:
			count = 20_000
		}
		const length = 8
		worlds := b.open(t, 2, Config{MaxUnexpected: int64(count+1) * (length + overhead)}, efa.Config{})
		zero, one := worlds[0], worlds[1]
		ctx := floodDeadline(t, 2*count)
		before := heap()
		for i := range count {
			require.NoError(t, zero.Send(ctx, binary.LittleEndian.AppendUint64(nil, uint64(i)), 1, i))
		}
		_, err := one.Probe(ctx, 0, AnyTag)
		require.NoError(t, err)
		bytes, messages, full := int64(0), 0, false
		for messages < count && ctx.Err() == nil {
			_, _, err := one.Iprobe(0, MaxTag)
			require.NoError(t, err)
			bytes, messages, full = used(one)
		}
		require.Equal(t, count, messages)
		require.False(t, full)
		require.EqualValues(t, count*(length+overhead), bytes)
		// What the connections keep for whatever comes is not part of it.
		const beside = 4 << 20
		require.LessOrEqual(t, heap()-before, bytes+beside, "%d messages", count)
		// Half of them in reverse, and then what is left in order.
		receive := func(source, tag, i int) {
			var buf [length]byte
			status, err := one.Recv(ctx, buf[:], source, tag)
			require.NoError(t, err)
			require.Equal(t, Status{Source: 0, Tag: i, Length: length}, status)
			require.EqualValues(t, i, binary.LittleEndian.Uint64(buf[:]))
		}
		for i := count - 1; i >= count/2; i-- {
			receive(AnySource, i, i)
		}
		for i := range count / 2 {
			receive(0, AnyTag, i)
		}
		bytes, messages, _ = used(one)
		require.Zero(t, bytes)
		require.Zero(t, messages)
	})
}
