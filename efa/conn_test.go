package efa

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tagged"
)

func TestMessageSizes(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		inject := dialed.reactor.attributes.MaxInject
		eager := dialed.eagerLimit
		require.Equal(t, 4096, eager)
		sizes := []int{
			0, 1, inject - 9, inject - 8, inject - 7, inject, inject + 1,
			eager - 1, eager, eager + 1, 64 << 10, 1 << 20, 3<<20 + 5, 9 << 20,
		}
		for _, way := range []struct{ from, to *Conn }{{dialed, accepted}, {accepted, dialed}} {
			written := make(chan error, 1)
			go func() {
				var err error
				for i, size := range sizes {
					err = errors.Join(err, way.from.WriteMessage(ctx, message(1, i, max(size, 0))))
				}
				written <- err
			}()
			buf := make([]byte, 9<<20)
			for i, size := range sizes {
				n, err := way.to.ReadMessage(ctx, buf)
				require.NoError(t, err)
				require.True(t, bytes.Equal(message(1, i, max(size, 0)), buf[:n]), "message of %d bytes", size)
			}
			require.NoError(t, <-written)
		}
		closeBoth(t, dialed, accepted)
	})
}

func TestOrder(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		const count = 2000
		sizes := make([]int, count)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range sizes {
			sizes[i] = rng.IntN(100)
			if rng.IntN(4) == 0 {
				sizes[i] = rng.IntN(40 << 10)
			}
		}
		var both sync.WaitGroup
		run := func(sender int, from, to *Conn) {
			both.Go(func() {
				for i, size := range sizes {
					if err := from.WriteMessage(ctx, message(sender, i, size)); err != nil {
						t.Errorf("write %d: %v", i, err)
						return
					}
				}
			})
			both.Go(func() {
				buf := make([]byte, 40<<10)
				for i, size := range sizes {
					n, err := to.ReadMessage(ctx, buf)
					if err != nil || !bytes.Equal(message(sender, i, size), buf[:n]) {
						t.Errorf("read %d: %d bytes of %d, %v", i, n, size, err)
						return
					}
				}
			})
		}
		run(1, dialed, accepted)
		run(2, accepted, dialed)
		both.Wait()
		closeBoth(t, dialed, accepted)
	})
}

func TestAsyncCallbacksInOrder(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		const count = 500
		order := make(chan int, count)
		for i := range count {
			size := 10
			if i%3 == 0 {
				size = 10 << 10
			}
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, size), func(err error) {
				if err != nil {
					t.Errorf("callback %d: %v", i, err)
				}
				order <- i
			}))
		}
		buf := make([]byte, 10<<10)
		for i := range count {
			n, err := accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, n), buf[:n]))
		}
		for i := range count {
			require.Equal(t, i, <-order)
		}
		closeBoth(t, dialed, accepted)
	})
}

func TestIDsWrap(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		const first = 1<<32 - 3
		dialed.reactor.do(func() { dialed.nextWrite = first })
		accepted.reactor.do(func() { accepted.reads = tagged.NewReadDeque[inbound](first, 64) })
		buf := make([]byte, 8192)
		for i := range 8 {
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, i*1000), func(err error) {
				if err != nil {
					t.Error(err)
				}
			}))
		}
		for i := range 8 {
			n, err := accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, i*1000), buf[:n]))
		}
		closeBoth(t, dialed, accepted)
	})
}

func TestReadIntoTooSmallBuffer(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		for i, size := range []int{100, 100 << 10} {
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, size), func(err error) {
				if err != nil {
					t.Error(err)
				}
			}))
			n, err := accepted.MessageSize(ctx)
			require.NoError(t, err)
			require.Equal(t, size, n)
			_, err = accepted.ReadMessage(ctx, make([]byte, size-1))
			var tooSmall *MessageSizeError
			require.ErrorAs(t, err, &tooSmall)
			require.EqualValues(t, size, tooSmall.Size)
			buf := make([]byte, size)
			n, err = accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, size), buf[:n]))
		}
		closeBoth(t, dialed, accepted)
	})
}

func TestMessageAboveMaximum(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{MaxMessage: 10000})
		ctx := deadline(t)
		var tooLong *MessageSizeError
		require.ErrorAs(t, dialed.WriteMessage(ctx, make([]byte, 10001)), &tooLong)
		require.EqualValues(t, 10000, tooLong.Limit)
		require.ErrorAs(t, dialed.WriteMessageAsync(make([]byte, 10001), nil), &tooLong)
		go func() { _ = dialed.WriteMessage(ctx, message(1, 1, 10000)) }()
		buf := make([]byte, 10000)
		n, err := accepted.ReadMessage(ctx, buf)
		require.NoError(t, err)
		require.True(t, bytes.Equal(message(1, 1, 10000), buf[:n]))
		closeBoth(t, dialed, accepted)
	})
}

// A writer whose reader does not read is held back, and goes on when it reads.
func TestSlowReaderHoldsWriterBack(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		config := Config{WindowMessages: 8, WindowBytes: 64 << 10}
		dialed, accepted := b.connect(t, config)
		other, otherEnd := join(t, dialed.reactor, accepted.reactor)
		ctx := deadline(t)
		const count = 200
		wrote := make(chan int, count)
		go func() {
			for i := range count {
				if err := dialed.WriteMessage(ctx, message(1, i, 3000+i*50)); err != nil {
					t.Errorf("write %d: %v", i, err)
				}
				wrote <- i
			}
			close(wrote)
		}()
		// Another connection of the same reactors goes on meanwhile, and by the
		// end of that the writer has come as far as it can.
		buf := make([]byte, 1<<20)
		for i := range 100 {
			require.NoError(t, other.WriteMessage(ctx, message(2, i, 100)))
			n, err := otherEnd.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(2, i, 100), buf[:n]))
		}
		require.Less(t, len(wrote), 10)
		held := 0
		accepted.reactor.do(func() {
			for id := accepted.reads.Next(); ; id++ {
				in, ok := accepted.reads.Get(id)
				if !ok {
					break
				}
				held += len(in.data)
			}
		})
		require.LessOrEqual(t, held, 64<<10)
		for i := range count {
			n, err := accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, 3000+i*50), buf[:n]))
		}
		for range wrote {
		}
		closeBoth(t, other, otherEnd)
		closeBoth(t, dialed, accepted)
	})
}

func TestManyConnections(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		ctx := deadline(t)
		const connections, count = 16, 100
		var all sync.WaitGroup
		var kept [connections][2]*Conn
		for k := range connections {
			dialed, accepted := join(t, from, to)
			kept[k] = [2]*Conn{dialed, accepted}
			all.Go(func() {
				for i := range count {
					if err := dialed.WriteMessage(ctx, message(k, i, (i*k*37)%20000)); err != nil {
						t.Errorf("connection %d write %d: %v", k, i, err)
					}
				}
				if k%2 == 0 {
					// Half of them close while the others are busy.
					if err := dialed.Close(); err != nil {
						t.Errorf("connection %d close: %v", k, err)
					}
				}
			})
			all.Go(func() {
				buf := make([]byte, 20000)
				for i := range count {
					n, err := accepted.ReadMessage(ctx, buf)
					if err != nil || !bytes.Equal(message(k, i, (i*k*37)%20000), buf[:n]) {
						t.Errorf("connection %d read %d: %v", k, i, err)
						return
					}
				}
				if k%2 == 0 {
					if _, err := accepted.ReadMessage(ctx, buf); err != io.EOF {
						t.Errorf("connection %d end: %v", k, err)
					}
				}
			})
		}
		all.Wait()
		for k, ends := range kept {
			if k%2 == 0 {
				require.NoError(t, ends[1].Close())
			} else {
				closeBoth(t, ends[0], ends[1])
			}
		}
		requireLetGo(t, from, to)
	})
}
