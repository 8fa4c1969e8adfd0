package fabric_test

import (
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// A region that is closed amid an access of a peer ends nothing but the access, if that. What was freed is
// something else at once in these processes.
func TestRegionIsClosedAmidAccess(t *testing.T) {
	const child = "WEFT_TEST_CLOSED_AMID"
	if os.Getenv(child) != "" {
		for _, provider := range testenv.Providers() {
			for name, op := range map[string]fabric.Op{"read": {Kind: fabric.OpRead}, "write": {Kind: fabric.OpWrite, Flags: fabric.DeliveryComplete}} {
				t.Run(provider+"/"+name, func(t *testing.T) { closeRegionAmid(t, provider, op) })
				t.Run(provider+"/"+name+"/begins", func(t *testing.T) { closeRegionAsAccessBegins(t, provider, op) })
			}
		}
		return
	}
	settings := map[string][]string{"as usual": nil}
	if slices.Contains(testenv.Providers(), "shm") {
		settings["in pieces"] = []string{"WEFT_TEST_PROVIDERS=shm", "FI_SHM_DISABLE_CMA=1"}
	}
	for name, setting := range settings {
		t.Run(name, func(t *testing.T) {
			command := testprocess.Command(t, os.Args[0], "-test.run=^TestRegionIsClosedAmidAccess$", "-test.short="+strconv.FormatBool(testing.Short()), "-test.count=1", "-test.timeout=1m")
			command.Env = append(os.Environ(), child+"=yes", "GLIBC_TUNABLES=glibc.malloc.perturb=165:glibc.malloc.tcache_count=0")
			command.Env = append(command.Env, setting...)
			said, err := command.CombinedOutput()
			require.NoError(t, err, "%s", said)
		})
	}
}

func closeRegionAmid(t *testing.T, provider string, op fabric.Op) {
	const size = 32 << 20
	info := undertakingInfo(t, provider)
	here, there := openCouple(t, info), openCouple(t, info)
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		a, b := here.another(t), there.another(t)
		a.peer, b.peer = a.insert(t, b), b.insert(t, a)
		arena, err := fabric.NewArena(size)
		require.NoError(t, err)
		region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessRemoteRead | fabric.AccessRemoteWrite}, arena.Bytes()[:size])
		require.NoError(t, err)
		from, to := make([]byte, size), arena.Bytes()[:size]
		op.Peer, op.Buf = a.peer, from
		op.Remote, err = region.RemoteOf(to)
		require.NoError(t, err)
		if op.Kind == fabric.OpRead {
			from, to = to, from
		}
		from[0], from[size-1] = 1, 1
		a.must(t, b, op)
		for deadline := time.Now().Add(30 * time.Second); to[0] == 0 && to[size-1] == 0 && len(a.got) == 0; {
			require.True(t, time.Now().Before(deadline), "nothing comes")
			a.turn(t, nil)
			b.turn(t, nil)
		}
		require.NoError(t, region.Close())
		require.NoError(t, arena.Close())
		// Others take what was its place.
		for range 50 {
			other, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessRemoteRead}, make([]byte, 100))
			require.NoError(t, err)
			for range 20 {
				a.turn(t, nil)
				b.turn(t, nil)
			}
			require.NoError(t, other.Close())
		}
		here.goOn(t)
		there.goOn(t)
		require.NoError(t, a.e.Close())
		require.NoError(t, b.e.Close())
	}
	here.goOn(t)
	there.goOn(t)
}

// closeRegionAsAccessBegins has another goroutine in the turns in which accesses begin.
func closeRegionAsAccessBegins(t *testing.T, provider string, op fabric.Op) {
	const size = 256 << 10
	info := undertakingInfoFor(t, provider, false)
	here, there := openCouple(t, info), openCouple(t, info)
	arena, err := fabric.NewArena(size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, arena.Close()) })
	rounds := 15
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		a, b := here.another(t), openStation(t, there.a.fabric, there.a.domain, info)
		a.peer, b.peer = a.insert(t, b), b.insert(t, a)
		region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessRemoteRead | fabric.AccessRemoteWrite}, arena.Bytes())
		require.NoError(t, err)
		op.Peer, op.Buf = a.peer, make([]byte, size)
		op.Remote, err = region.RemoteOf(arena.Bytes())
		require.NoError(t, err)
		failed := make(chan error, 1)
		go func() {
			var err error
			for buf := make([]fabric.Completion, 8); err == nil; {
				_, err = b.e.Turn(nil, buf, 0)
			}
			failed <- err
		}()
		a.post(t, a, op)
		for range i * 20 {
			runtime.Gosched()
		}
		require.NoError(t, region.Close())
		require.NoError(t, a.e.Close())
		require.NoError(t, b.e.Close())
		require.ErrorIs(t, <-failed, net.ErrClosed)
	}
	here.goOn(t)
	there.goOn(t)
}
