package fabric_test

import (
	"math"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
)

func openPool(t *testing.T, size int, c fabric.PoolConfig) *fabric.Pool {
	t.Helper()
	p, err := fabric.NewPool(arena(t, size), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func TestPoolOfOneSize(t *testing.T) {
	p := openPool(t, 1<<16, fabric.PoolConfig{Smallest: 9000})
	var out []fabric.Buffer
	seen := map[uintptr]bool{}
	for {
		b, err := p.Get(9000)
		if err != nil {
			require.ErrorIs(t, err, fabric.ErrAgain)
			break
		}
		require.Len(t, b.Bytes(), 9000)
		require.Zero(t, addressOf(b.Bytes())%64)
		require.False(t, seen[addressOf(b.Bytes())])
		seen[addressOf(b.Bytes())] = true
		out = append(out, b)
	}
	require.Len(t, out, (1<<16)/9024)
	require.Equal(t, len(out), p.Out())
	for _, b := range out {
		require.NoError(t, b.Put())
	}
	require.Zero(t, p.Out())
	for _, n := range []int{-1, 9025, 1 << 40, math.MaxInt} {
		_, err := p.Get(n)
		require.ErrorIs(t, err, fabric.ErrInvalid, "%d bytes", n)
	}
}

func TestPoolsThatCannotBe(t *testing.T) {
	a := arena(t, 4096)
	for _, c := range []fabric.PoolConfig{
		{},
		{Smallest: -1},
		{Smallest: 4097},
		{Smallest: 32, Largest: 64},
		{Smallest: 64, Largest: 100},
		{Smallest: 96, Largest: 192},
		{Smallest: 128, Largest: 64},
		{Smallest: 64, Largest: 8192},
	} {
		_, err := fabric.NewPool(a, c)
		require.ErrorIs(t, err, fabric.ErrInvalid, "%+v", c)
	}
	// Two would hand out the same memory.
	for range 2 {
		p, err := fabric.NewPool(a, fabric.PoolConfig{Smallest: 64})
		require.NoError(t, err)
		_, err = fabric.NewPool(a, fabric.PoolConfig{Smallest: 128})
		require.ErrorIs(t, err, fabric.ErrBusy)
		require.NoError(t, p.Close())
	}
}

// A buffer that is put back twice is told so, and whoever has it now keeps it.
func TestPutTwice(t *testing.T) {
	p := openPool(t, 4096, fabric.PoolConfig{Smallest: 64, Largest: 4096})
	first, err := p.Get(64)
	require.NoError(t, err)
	require.NoError(t, first.Put())
	require.ErrorIs(t, first.Put(), fabric.ErrInvalid)
	again, err := p.Get(64)
	require.NoError(t, err)
	require.Equal(t, addressOf(first.Bytes()), addressOf(again.Bytes()))
	require.ErrorIs(t, first.Put(), fabric.ErrInvalid)
	require.Equal(t, 1, p.Out())
	require.NoError(t, again.Put())
	whole, err := p.Get(4096)
	require.NoError(t, err, "all halves are together again")
	require.ErrorIs(t, again.Put(), fabric.ErrInvalid)
	require.NoError(t, whole.Put())
	require.ErrorIs(t, fabric.Buffer{}.Put(), fabric.ErrInvalid)
	require.Zero(t, fabric.Buffer{}.Descriptor())
	_, err = fabric.Buffer{}.Remote()
	require.ErrorIs(t, err, fabric.ErrInvalid)
}

func TestPoolCountsWhatIsOut(t *testing.T) {
	a := arena(t, 4096)
	p, err := fabric.NewPool(a, fabric.PoolConfig{Smallest: 64})
	require.NoError(t, err)
	b, err := p.Get(10)
	require.NoError(t, err)
	require.Equal(t, 64, cap(b.Bytes()))
	err = p.Close()
	require.ErrorIs(t, err, fabric.ErrBusy)
	require.ErrorContains(t, err, "1 buffers")
	require.ErrorIs(t, a.Close(), fabric.ErrBusy)
	require.NoError(t, b.Put())
	require.NoError(t, p.Close())
	_, err = p.Get(1)
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, b.Put(), net.ErrClosed)
}

func TestPoolDoesNotAllocate(t *testing.T) {
	p := openPool(t, 1<<20, fabric.PoolConfig{Smallest: 64, Largest: 1 << 18})
	var failure error
	require.Zero(t, testing.AllocsPerRun(200, func() {
		for _, n := range []int{1, 64, 65, 5000, 1 << 18} {
			b, err := p.Get(n)
			if err == nil {
				err = b.Put()
			}
			if err != nil {
				failure = err
			}
		}
	}))
	require.NoError(t, failure)
}

func TestPoolOfManyGoroutines(t *testing.T) {
	p := openPool(t, 1<<16, fabric.PoolConfig{Smallest: 64, Largest: 4096})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				b, err := p.Get((i*131 + g*977) % 4097)
				if err != nil {
					t.Error(err)
					return
				}
				for j := range b.Bytes() {
					b.Bytes()[j] = byte(g)
				}
				for _, v := range b.Bytes() {
					if v != byte(g) {
						t.Error("two have one buffer")
						return
					}
				}
				if err := b.Put(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Whatever is taken and given back: buffers never overlap, never leave the
// arena, and in the end everything is as it was in the beginning.
func TestPoolModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pages := rapid.IntRange(1, 7).Draw(rt, "pages")
		smallest := 64 << rapid.IntRange(0, 3).Draw(rt, "smallest")
		largest := smallest << rapid.IntRange(0, 3).Draw(rt, "largest")
		a, err := fabric.NewArena(pages * 4096)
		require.NoError(rt, err)
		p, err := fabric.NewPool(a, fabric.PoolConfig{Smallest: smallest, Largest: largest})
		require.NoError(rt, err)
		base := addressOf(a.Bytes())
		used := make([]int, len(a.Bytes())/64) // by lines of 64 bytes: whose it is
		type held struct {
			b  fabric.Buffer
			id int
		}
		var out []held
		mark := func(b fabric.Buffer, from, to int) {
			begin := int(addressOf(b.Bytes())-base) / 64
			for i := begin; i < begin+cap(b.Bytes())/64; i++ {
				require.Equal(rt, from, used[i])
				used[i] = to
			}
		}
		for step := range rapid.IntRange(1, 200).Draw(rt, "steps") {
			if len(out) > 0 && rapid.Bool().Draw(rt, "put") {
				i := rapid.IntRange(0, len(out)-1).Draw(rt, "which")
				mark(out[i].b, out[i].id, 0)
				require.NoError(rt, out[i].b.Put())
				require.Error(rt, out[i].b.Put())
				out = append(out[:i], out[i+1:]...)
				continue
			}
			n := rapid.IntRange(1, largest).Draw(rt, "length")
			b, err := p.Get(n)
			if err != nil {
				require.ErrorIs(rt, err, fabric.ErrAgain)
				continue
			}
			require.Len(rt, b.Bytes(), n)
			require.Less(rt, cap(b.Bytes()), max(2*n, smallest+1))
			mark(b, 0, step+1)
			out = append(out, held{b, step + 1})
		}
		require.Equal(rt, len(out), p.Out())
		for _, h := range out {
			require.NoError(rt, h.b.Put())
		}
		var all []fabric.Buffer
		for range len(a.Bytes()) / largest {
			b, err := p.Get(largest)
			require.NoError(rt, err)
			all = append(all, b)
		}
		for _, b := range all {
			require.NoError(rt, b.Put())
		}
		require.NoError(rt, p.Close())
		require.NoError(rt, a.Close())
	})
}
