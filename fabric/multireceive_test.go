package fabric_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// parcel is a message for receivers of several: length bytes that are number.
type parcel struct {
	number byte
	length int
}

func (p parcel) text() []byte { return bytes.Repeat([]byte{p.number}, p.length) }

// tray are buffers for messages, far from each other, each the context of its receive.
type tray struct {
	memory []byte
	rooms  []int
}

const trayStride = 200_000

func trayOf(t *testing.T, rooms ...int) *tray {
	t.Helper()
	arena, err := fabric.NewArena(len(rooms) * trayStride)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, arena.Close()) })
	return &tray{memory: arena.Bytes(), rooms: rooms}
}

// receive is the operation with a buffer.
func (x *tray) receive(i int, flags fabric.OpFlags) fabric.Op {
	at := i * trayStride
	return fabric.Op{
		Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: x.memory[at : at+x.rooms[i] : at+x.rooms[i]], Fixed: true,
		Flags: flags, Context: uint64(i),
	}
}

// is requires a completion to be that of a message that is whole.
func (x *tray) is(t *testing.T, c fabric.Completion, p parcel) {
	t.Helper()
	require.NoError(t, c.Err, "message %d", p.number)
	require.Equal(t, p.length, c.Len, "message %d", p.number)
	require.LessOrEqual(t, c.Offset+c.Len, x.rooms[c.Context], "message %d", p.number)
	at := int(c.Context)*trayStride + c.Offset
	require.Equal(t, p.text(), x.memory[at:at+c.Len], "message %d", p.number)
}

// isKept requires what is behind the buffers to be as it was.
func (x *tray) isKept(t *testing.T) {
	t.Helper()
	for i, room := range x.rooms {
		require.Equal(t, make([]byte, trayStride-room), x.memory[i*trayStride+room:(i+1)*trayStride], "behind buffer %d", i)
	}
}

// arrived is the next completion of a receiver that is not about the end of a buffer alone.
func (s *station) arrived(t *testing.T, from *station) fabric.Completion {
	t.Helper()
	for {
		if c := s.await(t, from); c.Len > 0 || c.Err != nil {
			return c
		}
	}
}

// Of a buffer that was given back, as a message did not fit, nothing is written to and nothing taken
// any more, and that message fails alone: those before and behind it are received whole, in order, each by
// a receive that is there for it.
func TestMultiReceiveThatOneMessageDoesNotFit(t *testing.T) {
	const tooLong = 50_000
	sent := []parcel{{1, 300}, {2, tooLong}, {3, 300}, {4, 200}, {5, 100}}
	run := func(t *testing.T, provider string, late bool) {
		a, b := stations(t, provider, fabric.Messages|fabric.MultiReceiveBuffers)
		// They know each other by a message that needs no room.
		b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Context: 99})
		a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: a.peer})
		require.EqualValues(t, 99, b.await(t, a).Context)
		require.NoError(t, a.await(t, b).Err)
		x := trayOf(t, 40_000, 40_000, 1000, 40_000, 40_000, 40_000)
		for i := range x.rooms {
			flags := fabric.MultiReceive
			if i == 2 {
				flags = 0
			}
			b.must(t, a, x.receive(i, flags))
		}
		// Those that fit are in order. ofi_rxm fetches the long one, while others come.
		failed, fit := 0, slices.DeleteFunc(slices.Clone(sent), func(p parcel) bool { return p.length == tooLong })
		check := func() {
			c := b.arrived(t, a)
			if c.Err == nil {
				require.NotEmpty(t, fit)
				x.is(t, c, fit[0])
				fit = fit[1:]
				return
			}
			require.ErrorIs(t, c.Err, fabric.ErrTruncated)
			require.True(t, c.Released)
			failed++
		}
		for _, p := range sent {
			a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: p.text()})
			if !late {
				check()
			}
		}
		if late {
			// sockets has a thread, which needs no look at the receiver's queue.
			if provider == "sockets" {
				for range sent {
					require.NoError(t, a.await(t, a).Err)
				}
			}
			for range sent {
				check()
			}
		}
		require.Equal(t, 1, failed)
		require.Empty(t, fit)
		x.isKept(t)
		require.Zero(t, b.q.Strays())
	}
	eachWithLayers(t, func(t *testing.T, provider string) {
		t.Run("read at once", func(t *testing.T) { run(t, provider, false) })
		t.Run("read late", func(t *testing.T) { run(t, provider, true) })
	})
}

// A message that is longer than the whole buffer gives it back with nothing behind it written, however
// long it is, and one that fills it is received.
func TestMultiReceiveOfLongMessages(t *testing.T) {
	eachWithLayers(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.MultiReceiveBuffers)
		const room = 20
		parcels := []parcel{{1, room + 1}, {2, 4097}, {3, 100_000}, {4, room}}
		for _, p := range parcels {
			x := trayOf(t, room)
			b.must(t, a, x.receive(0, fabric.MultiReceive))
			a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: p.text()})
			c := b.await(t, a)
			if p.length > room {
				require.ErrorIs(t, c.Err, fabric.ErrTruncated)
				var told *fabric.Error
				require.ErrorAs(t, c.Err, &told)
				if b.e.Info().Provider() != "tcp" { // which does not say it
					require.Equal(t, p.length-room, told.Excess)
				}
			} else {
				x.is(t, c, p)
			}
			for !c.Released {
				c = b.await(t, a)
			}
			require.NoError(t, a.await(t, b).Err)
			x.isKept(t)
		}
		require.Zero(t, b.q.InFlight())
		require.Zero(t, b.q.Strays())
	})
}

// What is released is so by the completion of its own receive, with several in flight, whoever else's
// fail.
func TestMultiReceiveIsReleasedOnce(t *testing.T) {
	eachWithLayers(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.MultiReceiveBuffers)
		const room = 1000
		x := trayOf(t, room, room, room)
		// None leaves room for another.
		require.NoError(t, b.e.SetSizeOption(fabric.OptionMinMultiReceive, room))
		lengths := []int{50_000, 100, 60_000, 1000, 50_001, 20}
		for i := range x.rooms {
			b.must(t, a, x.receive(i, fabric.MultiReceive))
		}
		for i, n := range lengths {
			p := parcel{byte(i + 1), n}
			a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: p.text()})
			c := b.arrived(t, a)
			require.EqualValues(t, i%len(x.rooms), c.Context)
			if n > room {
				require.ErrorIs(t, c.Err, fabric.ErrTruncated)
			} else {
				x.is(t, c, p)
			}
			for !c.Released {
				c = b.await(t, a)
			}
			require.NoError(t, a.await(t, b).Err)
			b.must(t, a, x.receive(i%len(x.rooms), fabric.MultiReceive))
		}
		x.isKept(t)
		require.Equal(t, len(x.rooms), b.q.InFlight())
		require.Zero(t, b.q.Strays())
	})
}
