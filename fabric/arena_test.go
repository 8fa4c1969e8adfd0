package fabric_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

func TestArena(t *testing.T) {
	before := fabric.MemoryInUse()["arenas"]
	a, err := fabric.NewArena(1)
	require.NoError(t, err)
	require.Len(t, a.Bytes(), os.Getpagesize())
	require.EqualValues(t, os.Getpagesize(), fabric.MemoryInUse()["arenas"]-before)
	a.Bytes()[os.Getpagesize()-1] = 1
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.Nil(t, a.Bytes())
	require.Equal(t, before, fabric.MemoryInUse()["arenas"])
	for _, size := range []int{0, -1, 1<<40 + 1} {
		_, err := fabric.NewArena(size)
		require.ErrorIs(t, err, fabric.ErrInvalid, "%d bytes", size)
	}
	_, err = fabric.NewArenaWith(1, fabric.ArenaConfig{Pages: 77})
	require.ErrorIs(t, err, fabric.ErrInvalid)
}

// A large arena asks for huge pages by itself, unless it is told not to, and a small one is not
// made larger for that.
func TestArenaAsksForHugePages(t *testing.T) {
	const huge = 2 << 20
	page := os.Getpagesize()
	for _, c := range []struct {
		size, has, takes int
		pages            fabric.Pages
		asks             bool
	}{
		{huge - page, huge - page, huge - page, fabric.SuitablePages, false},
		{huge - 1, huge, huge, fabric.SuitablePages, true},
		{huge, huge, huge, fabric.SuitablePages, true},
		{huge + 1, huge + page, 2 * huge, fabric.SuitablePages, true},
		{huge, huge, huge, fabric.OrdinaryPages, false},
		{huge + 1, huge + page, huge + page, fabric.OrdinaryPages, false},
		{huge + 1, 2 * huge, 2 * huge, fabric.TransparentHugePages, true},
	} {
		before := fabric.MemoryInUse()["arenas"]
		a, err := fabric.NewArenaWith(c.size, fabric.ArenaConfig{Pages: c.pages})
		if c.pages == fabric.TransparentHugePages && errors.Is(err, fabric.ErrNotSupported) {
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.has, len(a.Bytes())) // Len would print them
		require.Equal(t, c.has, cap(a.Bytes()))
		require.EqualValues(t, c.takes, fabric.MemoryInUse()["arenas"]-before)
		a.Bytes()[c.has-1] = 1
		if c.asks {
			require.Zero(t, addressOf(a.Bytes())%huge)
			if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
				c.asks = false
			}
		}
		require.Equal(t, c.asks, slices.Contains(flagsOf(t, a.Bytes()), "hg"), "%d bytes of %v", c.size, c.pages)
		require.NoError(t, a.Close())
	}
}

// What huge pages have beyond an arena is not locked, and not counted against the limit.
func TestLockedArenaIsNoLargerThanAsked(t *testing.T) {
	const size = 2<<20 + 1
	want := 2<<20 + os.Getpagesize()
	before, inUse := lockedBytes(t), fabric.MemoryInUse()["arenas"]
	a, err := fabric.NewArenaWith(size, fabric.ArenaConfig{Locked: true})
	if errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EAGAIN) {
		testenv.Need(t, "2 MiB that may be locked", err)
	}
	require.NoError(t, err)
	require.Equal(t, want, len(a.Bytes())) // Len would print them
	require.Equal(t, want, lockedBytes(t)-before)
	require.EqualValues(t, want, fabric.MemoryInUse()["arenas"]-inUse)
	require.NoError(t, a.Close())
	require.Equal(t, before, lockedBytes(t))
	require.Equal(t, inUse, fabric.MemoryInUse()["arenas"])
}

// lockedBytes is what the process keeps in memory, as in proc(5).
func lockedBytes(t *testing.T) (kibibytes int) {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if n, _ := fmt.Sscanf(line, "VmLck: %d kB", &kibibytes); n == 1 {
			return kibibytes << 10
		}
	}
	t.Fatal("the kernel does not say how much is locked")
	return 0
}

// flagsOf are those of the mapping that memory is part of, as in proc(5).
func flagsOf(t *testing.T, memory []byte) []string {
	smaps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	inside := false
	for line := range strings.Lines(string(smaps)) {
		var first, end uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &first, &end); n == 2 {
			inside = first <= addressOf(memory) && addressOf(memory) < end
		}
		if flags, is := strings.CutPrefix(line, "VmFlags:"); is && inside {
			return strings.Fields(flags)
		}
	}
	t.Fatal("no mapping has the memory")
	return nil
}

// Either the kernel has it, or there is an error that says what is missing.
func TestArenaOfHugePages(t *testing.T) {
	for name, c := range map[string]struct {
		pages fabric.Pages
		unit  int
	}{
		"transparent": {fabric.TransparentHugePages, 2 << 20},
		"2 MiB":       {fabric.HugePages2M, 2 << 20},
		"1 GiB":       {fabric.HugePages1G, 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := fabric.NewArenaWith(1, fabric.ArenaConfig{Pages: c.pages})
			if err != nil {
				require.True(t, errors.Is(err, syscall.ENOMEM) || errors.Is(err, fabric.ErrInvalid) || errors.Is(err, fabric.ErrNotSupported), "%v", err)
				require.ErrorContains(t, err, "huge pages")
			}
			testenv.Need(t, name+" huge pages", err)
			defer func() { require.NoError(t, a.Close()) }()
			require.Len(t, a.Bytes(), c.unit)
			require.Zero(t, addressOf(a.Bytes())%uintptr(c.unit))
			a.Bytes()[0], a.Bytes()[c.unit-1] = 1, 1
		})
	}
}

func TestArenaOnANode(t *testing.T) {
	a, err := fabric.NewArenaWith(1<<20, fabric.ArenaConfig{Node: new(0), Locked: true})
	testenv.Need(t, "NUMA nodes", err)
	a.Bytes()[0] = 1
	require.NoError(t, a.Close())
	for _, node := range []int{-1, 1024, 1 << 40} {
		_, err := fabric.NewArenaWith(1, fabric.ArenaConfig{Node: &node})
		require.ErrorIs(t, err, fabric.ErrInvalid)
	}
	_, err = fabric.NewArenaWith(1, fabric.ArenaConfig{Node: new(1000)})
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.ErrorContains(t, err, "no such node")
}

func TestArenaBeyondTheLimitOfLocking(t *testing.T) {
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit))
	lower := limit
	lower.Cur = 1 << 16
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &lower))
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit)) })
	a, err := fabric.NewArenaWith(1<<20, fabric.ArenaConfig{Locked: true})
	if err == nil {
		// The superuser is not limited.
		require.NoError(t, a.Close())
		require.Zero(t, os.Geteuid())
		return
	}
	require.ErrorContains(t, err, "RLIMIT_MEMLOCK")
}

// An arena's registration gives each buffer a descriptor and an address.
func TestArenaRegistered(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openSite(t, rmaHints(provider), nil, nil)
		a, err := fabric.NewArena(1 << 16)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, a.Close()) })
		r, err := a.Register(s.domain, fabric.RegionConfig{Access: fabric.AccessAll})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Close()) })
		require.ErrorIs(t, a.Close(), fabric.ErrBusy)
		p, err := fabric.NewPool(a, fabric.PoolConfig{Smallest: 1024, Region: r})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		require.ErrorIs(t, r.Close(), fabric.ErrBusy)

		from, err := p.Get(1000)
		require.NoError(t, err)
		to, err := p.Get(1000)
		require.NoError(t, err)
		copy(from.Bytes(), counting(1000))
		where, err := to.Remote()
		require.NoError(t, err)
		s.a.must(t, s.b, fabric.Op{
			Kind: fabric.OpWrite, Peer: s.a.peer, Buf: from.Bytes(), Descriptor: from.Descriptor(),
			Remote: where, Flags: fabric.DeliveryComplete, Fixed: true,
		})
		require.NoError(t, s.a.await(t, s.b).Err)
		require.Equal(t, counting(1000), to.Bytes())
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_, err = to.Remote()
			_ = to.Descriptor()
		}))
		require.NoError(t, err)
		require.NoError(t, from.Put())
		require.NoError(t, to.Put())
	})
}

func TestClosedArena(t *testing.T) {
	s := openDomain(t, rmaHints("sockets"))
	a, err := fabric.NewArena(1)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	_, err = a.Register(s.domain, fabric.RegionConfig{})
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = fabric.NewPool(a, fabric.PoolConfig{Smallest: 64})
	require.ErrorIs(t, err, net.ErrClosed)
}
