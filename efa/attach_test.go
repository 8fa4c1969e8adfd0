package efa

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/tagged"
)

// attach makes both ends of a connection in the plain form. The config is a's;
// b's is the same the other way round.
func attach(t *testing.T, a, b *Reactor, config AttachConfig) (ca, cb *Conn) {
	t.Helper()
	ctx := deadline(t)
	there := config
	config.Address, there.Address = b.LocalAddress(), a.LocalAddress()
	there.LocalID, there.RemoteID = config.RemoteID, config.LocalID
	there.FirstWrite, there.FirstRead = config.FirstRead, config.FirstWrite
	ca, err := a.Attach(ctx, config)
	require.NoError(t, err)
	cb, err = b.Attach(ctx, there)
	require.NoError(t, err)
	return ca, cb
}

// eachPlain runs a test in every setting that Attach works in.
func eachPlain(t *testing.T, test func(t *testing.T, b *bed)) {
	each(t, func(t *testing.T, b *bed) {
		r := b.open(t, Config{})
		c, err := r.Attach(deadline(t), AttachConfig{Address: r.LocalAddress()})
		if errors.Is(err, fabric.ErrNotSupported) {
			testenv.Need(t, "Attach on "+b.Provider, err)
		}
		require.NoError(t, err)
		require.NoError(t, c.Close())
		test(t, b)
	})
}

// Where a length that came before its receive is lost, Attach says so.
func TestAttachNeedsMasks(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		r := b.open(t, Config{})
		c, err := r.Attach(deadline(t), AttachConfig{Address: r.LocalAddress()})
		if r.attributes.MasksMissWaiting {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
			return
		}
		require.NoError(t, err)
		require.NoError(t, c.Close())
	})
}

// detachBoth closes both ends, after which nothing is left of them.
func detachBoth(t *testing.T, conns ...*Conn) {
	t.Helper()
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
	for _, c := range conns {
		r := c.reactor
		require.Eventually(t, func() (gone bool) {
			r.do(func() { gone = c.released && (c.plain == nil || !c.plain.id.closing || len(c.plain.id.receives) == 0) })
			return gone
		}, patience, time.Millisecond, "the device still holds something of a closed connection")
	}
}

// exchange writes messages of these sizes to one end and reads them at the other.
func exchange(t *testing.T, sender int, from, to *Conn, sizes []int) {
	t.Helper()
	ctx := deadline(t)
	written := make(chan error, 1)
	go func() {
		var all error
		for i, size := range sizes {
			all = errors.Join(all, from.WriteMessage(ctx, message(sender, i, size)))
		}
		written <- all
	}()
	buf := make([]byte, slices.Max(sizes)+1)
	for i, size := range sizes {
		n, err := to.ReadMessage(ctx, buf)
		require.NoError(t, err)
		require.True(t, bytes.Equal(message(sender, i, size), buf[:n]), "message %d, of %d bytes: %d", i, size, n)
	}
	require.NoError(t, <-written)
}

func TestAttach(t *testing.T) {
	eachPlain(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		x, y := attach(t, from, to, AttachConfig{})
		require.Equal(t, from.LocalAddress(), y.RemoteAddr().(EndpointAddr).Bytes())
		require.Equal(t, y.LocalAddr(), x.RemoteAddr())
		require.Equal(t, from.Provider(), x.LocalAddr().Network())
		inject := from.attributes.MaxInject
		sizes := []int{0, 1, inject - 1, inject, inject + 1, 0, 0, 4096, 64 << 10, 1 << 20, 9 << 20, 3}
		exchange(t, 1, x, y, sizes)
		exchange(t, 2, y, x, sizes)
		require.Equal(t, 1, from.Stats().Connections)
		detachBoth(t, x, y)
		requireLetGo(t, from)
	})
}

func TestAttachIDsWrap(t *testing.T) {
	eachPlain(t, func(t *testing.T, b *bed) {
		x, y := attach(t, b.open(t, Config{}), b.open(t, Config{}), AttachConfig{FirstWrite: 1<<32 - 3, FirstRead: 1<<32 - 5})
		sizes := []int{0, 1000, 2000, 3000, 0, 5000, 6000, 7000}
		exchange(t, 1, x, y, sizes)
		exchange(t, 2, y, x, sizes)
		detachBoth(t, x, y)
	})
}

// Several attached connections, and ordinary ones, between the same endpoints.
func TestAttachBesideOthers(t *testing.T) {
	eachPlain(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		var all sync.WaitGroup
		run := func(k int, x, y *Conn) {
			sizes := make([]int, 100)
			for i := range sizes {
				sizes[i] = (i * 131 * (k + 1)) % 9000
			}
			all.Go(func() { exchange(t, 2*k, x, y, sizes) })
			all.Go(func() { exchange(t, 2*k+1, y, x, sizes) })
		}
		var plain []*Conn
		// The narrow devices have room for one.
		most := max(from.attributes.MaxOperations/8, 1)
		for k, ids := range [][2]uint32{{0, 0}, {1, 1}, {tagged.HandshakeID - 1, 5}}[:min(most, 3)] {
			x, y := attach(t, from, to, AttachConfig{LocalID: ids[0], RemoteID: ids[1]})
			plain = append(plain, x, y)
			run(k, x, y)
		}
		x, y := join(t, from, to)
		run(8, x, y)
		all.Wait()
		detachBoth(t, plain...)
		closeBoth(t, x, y)
	})
}

// Peers that all use id 0, told apart by their addresses.
func TestAttachSharedID(t *testing.T) {
	eachPlain(t, func(t *testing.T, b *bed) {
		server := b.open(t, Config{})
		const peers, count, most = 5, 60, 20000
		var all sync.WaitGroup
		var conns []*Conn
		ctx := deadline(t)
		for range peers {
			client := b.open(t, Config{})
			x, err := client.Attach(ctx, AttachConfig{Address: server.LocalAddress()})
			require.NoError(t, err)
			y, err := server.Attach(ctx, AttachConfig{Address: client.LocalAddress(), Shared: true, MaxRead: most})
			require.NoError(t, err)
			conns = append(conns, x, y)
		}
		for k := range peers {
			x, y := conns[2*k], conns[2*k+1]
			sizes := make([]int, count)
			for i := range sizes {
				// Of one id, the lengths differ most.
				sizes[i] = (i*977 + k*7919) % (most + 1)
			}
			all.Go(func() { exchange(t, k, x, y, sizes) })
			all.Go(func() { exchange(t, k, y, x, sizes) })
		}
		all.Wait()
		detachBoth(t, conns...)
	})
}

// One of the peers that share an id leaves in the middle; the others go on.
func TestAttachSharedIDClose(t *testing.T) {
	eachPlain(t, func(t *testing.T, b *bed) {
		server := b.open(t, Config{})
		ctx := deadline(t)
		var x, y [3]*Conn
		for k := range x {
			client := b.open(t, Config{})
			var err error
			x[k], err = client.Attach(ctx, AttachConfig{Address: server.LocalAddress()})
			require.NoError(t, err)
			y[k], err = server.Attach(ctx, AttachConfig{Address: client.LocalAddress(), Shared: true, MaxRead: 10000})
			require.NoError(t, err)
		}
		// Message 0 of peer 0 is announced and does not come: its receive, with
		// the tag that the others use, is there when it closes.
		x[0].sendRaw(tagged.LengthTag(0, 0), lengthOf(10))
		size, err := y[0].MessageSize(ctx)
		require.NoError(t, err)
		require.Equal(t, 10, size)
		exchange(t, 1, x[1], y[1], []int{10000, 3000, 0})
		require.NoError(t, y[0].CloseNow())
		exchange(t, 2, x[2], y[2], []int{5000, 3000, 10000})
		exchange(t, 1, y[1], x[1], []int{10000, 3000, 0})
		require.NoError(t, x[0].CloseNow())
		detachBoth(t, x[1], y[1], x[2], y[2])
	})
}

func TestAttachRefuses(t *testing.T) {
	eachPlain(t, func(t *testing.T, b *bed) {
		r, other, third := b.open(t, Config{MaxMessage: 1 << 20}), b.open(t, Config{}), b.open(t, Config{})
		ctx := deadline(t)
		good, goodEnd := attach(t, r, other, AttachConfig{RemoteID: 7, MaxWrite: 1 << 20})
		before := r.Stats().Connections
		for name, c := range map[string]struct {
			config AttachConfig
			want   error
		}{
			"the same again":     {AttachConfig{Address: other.LocalAddress()}, ErrAmbiguous},
			"another peer":       {AttachConfig{Address: third.LocalAddress()}, ErrAmbiguous},
			"only one is shared": {AttachConfig{Address: third.LocalAddress(), Shared: true}, ErrAmbiguous},
			"local id":           {AttachConfig{Address: third.LocalAddress(), LocalID: tagged.HandshakeID}, fabric.ErrInvalid},
			"remote id":          {AttachConfig{Address: third.LocalAddress(), RemoteID: 1 << 30}, fabric.ErrInvalid},
			"no address":         {AttachConfig{LocalID: 1}, fabric.ErrInvalid},
			"half an address":    {AttachConfig{Address: third.LocalAddress()[:5], LocalID: 1}, fabric.ErrInvalid},
			"reads too long":     {AttachConfig{Address: third.LocalAddress(), LocalID: 1, MaxRead: 2 << 20}, fabric.ErrInvalid},
			"negative":           {AttachConfig{Address: third.LocalAddress(), LocalID: 1, MaxWrite: -1}, fabric.ErrInvalid},
		} {
			_, err := r.Attach(ctx, c.config)
			require.ErrorIs(t, err, c.want, name)
			var e *ConnError
			require.ErrorAs(t, err, &e, name)
			require.Equal(t, "attach", e.Op)
		}
		require.Equal(t, before, r.Stats().Connections)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := r.Attach(ended, AttachConfig{Address: third.LocalAddress(), LocalID: 1})
		require.ErrorIs(t, err, context.Canceled)
		var tooLong *MessageSizeError
		require.ErrorAs(t, goodEnd.WriteMessage(ctx, make([]byte, 1<<20+1)), &tooLong)
		exchange(t, 1, good, goodEnd, []int{1, 2, 3000})
		detachBoth(t, good, goodEnd)
	})
}

// Without credits it is the receiving side that bounds its memory; nothing is
// lost when the reader comes back.
func TestAttachSlowReader(t *testing.T) {
	eachPlain(t, func(t *testing.T, b *bed) {
		config := Config{WindowMessages: 8, WindowBytes: 20000}
		x, y := attach(t, b.open(t, config), b.open(t, config), AttachConfig{})
		ctx := deadline(t)
		const count = 300
		written := make(chan error, 1)
		sizes := make([]int, count)
		for i := range sizes {
			sizes[i] = (i * 997) % 8000
		}
		sizes[5] = 50000 // more than the window
		go func() {
			var all error
			for i, size := range sizes {
				all = errors.Join(all, x.WriteMessage(ctx, message(1, i, size)))
			}
			written <- all
		}()
		var held int64 // at most
		var messages int
		look := func() (now int) {
			y.reactor.do(func() {
				all := int64(0)
				for id := y.reads.Next(); id < y.reads.Next()+64; id++ {
					if in, ok := y.reads.Get(id); ok {
						all += int64(len(in.data))
					}
				}
				now = y.reads.Len()
				held, messages = max(held, all), max(messages, now)
			})
			return now
		}
		require.Eventually(t, func() bool { return look() > 8-4 }, patience, time.Millisecond)
		buf := make([]byte, 50000)
		for i, size := range sizes {
			look()
			require.LessOrEqual(t, held, int64(20000))
			require.LessOrEqual(t, messages, 8)
			n, err := y.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, size), buf[:n]), "message %d, %d of %d bytes", i, n, size)
		}
		require.NoError(t, <-written)
		detachBoth(t, x, y)
	})
}

func TestAttachBadPeer(t *testing.T) {
	lengths := func(id, n int) func(c *Conn) {
		return func(c *Conn) { c.sendRaw(tagged.LengthTag(c.remoteID, uint32(id)), lengthOf(int64(n))) }
	}
	cases := []struct {
		name   string
		shared bool
		send   func(c *Conn)
		reason any // what the error is as
	}{
		{"negative length", false, lengths(0, -1), new(*tagged.LengthError)},
		{"huge length", false, lengths(0, 1<<62), new(*tagged.LengthError)},
		{"above MaxRead", true, lengths(0, 8193), new(*tagged.LengthError)},
		{"short length message", false, func(c *Conn) { c.sendRaw(tagged.LengthTag(c.remoteID, 0), []byte{1, 2, 3}) }, new(*tagged.LengthError)},
		{"payload in the length message", false, func(c *Conn) { c.sendRaw(tagged.LengthTag(c.remoteID, 0), lengthOf(3, 1, 2, 3)) }, new(*tagged.LengthError)},
		{"id far ahead", false, lengths(1000, 1), new(*tagged.SequenceError)},
		{"duplicate id", false, func(c *Conn) {
			lengths(1, 100)(c)
			lengths(1, 100)(c)
		}, new(*tagged.SequenceError)},
		{"id left out", false, func(c *Conn) {
			for i := range 64 {
				lengths(i+1, 0)(c)
			}
		}, nil},
		{"short payload", false, func(c *Conn) {
			lengths(0, 5000)(c)
			c.sendRaw(tagged.PayloadTag(c.remoteID, 0), make([]byte, 200))
		}, nil},
		{"short payload of a shared id", true, func(c *Conn) {
			lengths(0, 5000)(c)
			c.sendRaw(tagged.PayloadTag(c.remoteID, 0), make([]byte, 200))
		}, nil},
		{"payload of a shared id above MaxRead", true, func(c *Conn) {
			lengths(0, 8000)(c)
			c.sendRaw(tagged.PayloadTag(c.remoteID, 0), make([]byte, 8100))
		}, nil},
	}
	eachPlain(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		good, goodEnd := join(t, from, to)
		for i, test := range cases {
			t.Run(test.name, func(t *testing.T) {
				bad, victim := attach(t, from, to, AttachConfig{
					LocalID: uint32(2 * i), RemoteID: uint32(2*i + 1), Shared: test.shared, MaxRead: 8192,
				})
				test.send(bad)
				requireProtocolError(t, victim, test.reason)
				exchange(t, 1, good, goodEnd, []int{3000})
				require.NoError(t, victim.Close())
				require.NoError(t, bad.CloseNow())
				detachBoth(t, victim, bad)
			})
		}
		closeBoth(t, good, goodEnd)
	})
}

// What comes with an attached id from somebody else is dropped, and counted.
func TestAttachUnknownSource(t *testing.T) {
	eachPlain(t, func(t *testing.T, b *bed) {
		from, to, third := b.open(t, Config{}), b.open(t, Config{}), b.open(t, Config{})
		good, goodEnd := attach(t, from, to, AttachConfig{})
		stranger, err := third.Attach(deadline(t), AttachConfig{Address: to.LocalAddress()})
		require.NoError(t, err)
		before := to.Stats().Dropped
		stranger.sendRaw(tagged.LengthTag(0, 0), lengthOf(3))
		stranger.sendRaw(tagged.LengthTag(0, 1), lengthOf(-3))
		require.Eventually(t, func() bool { return to.Stats().Dropped-before == 2 }, patience, time.Millisecond)
		exchange(t, 1, good, goodEnd, []int{10, 0, 10000})
		require.NoError(t, stranger.CloseNow())
		detachBoth(t, good, goodEnd)
	})
}
