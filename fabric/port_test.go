package fabric_test

import (
	"bytes"
	"errors"
	"math"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
)

func TestMain(m *testing.M) { fabrictest.Main(m) }

// each runs a test on every provider to test on.
func each(t *testing.T, test func(t *testing.T, provider string)) {
	for _, p := range testenv.Providers() {
		t.Run(p, func(t *testing.T) {
			_, err := fabric.Choose(fabric.Preference{Providers: []string{p}, Source: "127.0.0.1"})
			testenv.Need(t, p, err)
			test(t, p)
		})
	}
}

// eachWithLayers is each, and ofi_rxm over tcp where tcp has endpoints of its own.
func eachWithLayers(t *testing.T, test func(t *testing.T, provider string)) {
	each(t, test)
	if fabric.LibraryVersion().Major >= 2 && slices.Contains(testenv.Providers(), "tcp") {
		t.Run("ofi_rxm", func(t *testing.T) { test(t, "tcp;ofi_rxm") })
	}
}

func open(t *testing.T, provider string, config fabric.PortConfig) *fabric.Port {
	t.Helper()
	choice, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true, Source: "127.0.0.1"})
	require.NoError(t, err)
	port, err := fabric.OpenPort(choice.Info, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, port.Close()) })
	return port
}

// pair opens two ports that know each other.
func pair(t *testing.T, provider string) (a, b *fabric.Port, toB, toA fabric.Address) {
	t.Helper()
	a, b = open(t, provider, fabric.PortConfig{}), open(t, provider, fabric.PortConfig{})
	toB, err := a.Insert(b.LocalAddress())
	require.NoError(t, err)
	toA, err = b.Insert(a.LocalAddress())
	require.NoError(t, err)
	return a, b, toB, toA
}

// A port says whether memory of peers can be read: on efa by the device alone.
func TestReadsByTheDevice(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Source: "127.0.0.1", Capabilities: fabric.RemoteMemory})
		require.NoError(t, err)
		port, err := fabric.OpenPort(choice.Info, fabric.PortConfig{})
		require.NoError(t, err)
		require.Equal(t, fabrictest.ReadsMemory(provider), port.Attributes().RemoteReads)
		require.NoError(t, port.Close())
	})
}

// exchange turns both ports until each has its completions, waiting in between
// as an engine does.
func exchange(t *testing.T, a, b *fabric.Port, postA, postB []fabric.Op, wantA, wantB int) (fromA, fromB []fabric.Completion) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	ports := []*fabric.Port{a, b}
	posts := [][]fabric.Op{postA, postB}
	got := [][]fabric.Completion{nil, nil}
	buf := make([]fabric.Completion, 64)
	for len(got[0]) < wantA || len(got[1]) < wantB || len(posts[0])+len(posts[1]) > 0 {
		require.True(t, time.Now().Before(deadline), "completions: %d of %d and %d of %d", len(got[0]), wantA, len(got[1]), wantB)
		idle := true
		for i, p := range ports {
			n, err := p.Turn(posts[i], buf, 0)
			require.NoError(t, err)
			got[i] = append(got[i], buf[:n]...)
			var rest []fabric.Op
			for _, op := range posts[i] {
				require.NoError(t, op.Err)
				if op.Result == fabric.Refused {
					rest = append(rest, op)
				}
			}
			idle = idle && n == 0 && len(rest) == len(posts[i])
			posts[i] = rest
		}
		if idle && b.Arm() {
			b.Wait(time.Millisecond)
		}
	}
	return got[0], got[1]
}

func TestSlotsBoundOperations(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a := open(t, provider, fabric.PortConfig{Operations: 16})
		most := a.Attributes().MaxOperations
		limit := 256
		if provider == "efa" {
			limit = 1 << 14 // it has queues of one size
		}
		if most >= limit {
			t.Fatalf("queue of %d entries where 16 were asked for", most)
		}
		posts := make([]fabric.Op, most+1)
		for i := range posts {
			posts[i] = fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(i), Buf: make([]byte, 8)}
		}
		_, err := a.Turn(posts, nil, 0)
		require.NoError(t, err)
		require.Equal(t, fabric.Refused, posts[most].Result)
		require.LessOrEqual(t, a.InFlight(), most)
	})
}

func TestUnknownKindFailsAlone(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a := open(t, provider, fabric.PortConfig{})
		posts := []fabric.Op{{Kind: 77}, {Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: make([]byte, 1)}}
		_, err := a.Turn(posts, nil, 0)
		require.NoError(t, err)
		require.Equal(t, fabric.Failed, posts[0].Result)
		require.ErrorIs(t, posts[0].Err, fabric.ErrInvalid)
		require.Equal(t, fabric.Posted, posts[1].Result)
	})
}

func TestWrongAddress(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a := open(t, provider, fabric.PortConfig{})
		for _, address := range [][]byte{nil, {1}, make([]byte, 300), bytes.Repeat([]byte{1}, 16)} {
			_, err := a.Insert(address)
			require.ErrorIs(t, err, fabric.ErrInvalid, "%d bytes", len(address))
		}
	})
}

func TestUseAfterClose(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a := open(t, provider, fabric.PortConfig{})
		require.NoError(t, a.Close())
		require.NoError(t, a.Close())
		_, err := a.Turn(nil, nil, 0)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = a.Insert(a.LocalAddress())
		require.ErrorIs(t, err, net.ErrClosed)
		a.Wake()
		a.Wait(time.Hour)
	})
}

func TestCloseFromAnotherGoroutine(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a := open(t, provider, fabric.PortConfig{})
		started, ended := make(chan struct{}), make(chan error)
		go func() {
			buf := make([]fabric.Completion, 1)
			for first := true; ; first = false {
				_, err := a.Turn(nil, buf, 10)
				if err != nil {
					ended <- err
					return
				}
				if first {
					close(started)
				}
			}
		}()
		<-started
		require.NoError(t, a.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
	})
}

func TestWakeEndsWait(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a := open(t, provider, fabric.PortConfig{})
		for range 3 {
			// Before the wait.
			a.Wake()
			a.Wait(time.Hour)
		}
		done := make(chan struct{})
		go func() {
			// A wait may end early, so this one ends when the other side says so.
			for {
				a.Wait(time.Hour)
				select {
				case done <- struct{}{}:
					return
				default:
				}
			}
		}()
		for {
			a.Wake()
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
}

// A wake that has ended a wait does not end the next one as well.
func TestWakeEndsOneWait(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a := open(t, provider, fabric.PortConfig{})
		if !a.Attributes().Notifies {
			// It sleeps for short times, whoever wakes it.
			return
		}
		const wakes = 40
		var waits atomic.Int32
		var over atomic.Bool
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for !over.Load() {
				a.Wait(time.Hour)
				waits.Add(1)
			}
		}()
		for range wakes {
			before := waits.Load()
			a.Wake()
			require.Eventually(t, func() bool { return waits.Load() > before }, time.Minute, time.Millisecond)
		}
		require.Less(t, waits.Load(), int32(wakes*3/2))
		over.Store(true)
		a.Wake()
		<-ended
	})
}

func TestCloseOrder(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Source: "127.0.0.1"})
		require.NoError(t, err)
		f, err := choice.Info.OpenFabric()
		require.NoError(t, err)
		d, err := f.OpenDomain(choice.Info)
		require.NoError(t, err)
		q, err := d.OpenCompletionQueue(64)
		require.NoError(t, err)
		v, err := d.OpenAddressVector()
		require.NoError(t, err)
		ev, err := f.OpenEventQueue()
		require.NoError(t, err)
		e, err := d.OpenEndpoint()
		require.NoError(t, err)
		_, err = e.Turn(nil, nil, 0)
		require.ErrorIs(t, err, fabric.ErrInvalid, "before enable")
		_, err = e.Name()
		require.ErrorIs(t, err, fabric.ErrInvalid, "before enable")
		require.ErrorIs(t, e.Enable(v, nil, ev), fabric.ErrInvalid)
		require.NoError(t, e.Enable(v, q, ev))
		require.ErrorIs(t, e.Enable(v, q, ev), fabric.ErrInvalid)
		// Wrong order: each is refused and says what lives.
		for _, close := range []func() error{f.Close, d.Close, q.Close, v.Close, ev.Close} {
			err := close()
			require.ErrorIs(t, err, fabric.ErrBusy)
			require.ErrorContains(t, err, "still open")
		}
		require.Len(t, fabric.OpenHandles(), 6)
		for _, close := range []func() error{e.Close, q.Close, v.Close, ev.Close, d.Close, f.Close} {
			require.NoError(t, close())
			require.NoError(t, close())
		}
		_, err = f.OpenDomain(choice.Info)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// Registered memory goes out and comes in by its descriptor.
func TestRegisteredMemory(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b, toB, _ := pair(t, provider)
		const size = 64 << 10
		var bufs [2][]byte
		var descriptors [2]fabric.Descriptor
		for i, p := range []*fabric.Port{a, b} {
			arena, err := fabric.NewArena(size)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, arena.Close()) })
			region, err := p.Register(arena.Bytes())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, region.Close()) })
			bufs[i], descriptors[i] = arena.Bytes(), region.Descriptor()
		}
		for i := range bufs[0] {
			bufs[0][i] = byte(i * 7)
		}
		_, fromB := exchange(t, a, b,
			[]fabric.Op{{Kind: fabric.OpTaggedSend, Peer: toB, Tag: 9, Buf: bufs[0], Descriptor: descriptors[0], Fixed: true}},
			[]fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 9, Buf: bufs[1], Descriptor: descriptors[1], Fixed: true}}, 1, 1)
		require.NoError(t, fromB[0].Err)
		require.True(t, bytes.Equal(bufs[0], bufs[1]))
		region, err := a.Register(nil)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.True(t, region == nil, "an interface with nothing in it is not nil")
	})
}

// A receive with a mask finds what came before it, unless the attributes say
// that it does not, and one with the very tag finds it in any case.
func TestMaskFindsWaiting(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b, toB, _ := pair(t, provider)
		const early, late, mask, masked, exact = 1<<32 | 5, 2 << 32, 0xff, 1, 2
		send := func(tag uint64) fabric.Op {
			op := fabric.Op{Kind: fabric.OpTaggedSend, Peer: toB, Tag: tag, Buf: []byte("text")}
			if a.Attributes().ImmediateSize == 8 {
				op.Flags, op.Immediate = fabric.Immediate, tag
			}
			return op
		}
		receive := func(tag, ignore, context uint64) fabric.Op {
			return fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Ignore: ignore, Buf: make([]byte, 8), Context: context}
		}
		// When the second message is here, so is the first, for which there was
		// no receive.
		_, fromB := exchange(t, a, b, []fabric.Op{send(early), send(late)}, []fabric.Op{receive(late, 0, 0)}, 2, 1)
		require.EqualValues(t, late, fromB[0].Tag)
		_, fromB = exchange(t, a, b, nil, []fabric.Op{receive(early&^mask, mask, masked), receive(early, 0, exact)}, 0, 1)
		require.EqualValues(t, early, fromB[0].Tag)
		missed := fromB[0].Context == exact
		require.Equal(t, b.Attributes().MasksMissWaiting, missed)
		if missed {
			// What the engine goes by instead.
			require.True(t, fromB[0].HasImmediate)
			require.EqualValues(t, early, fromB[0].Immediate)
		}
	})
}

// A message of another tag than a receive is for is not passed off as its own.
func TestMessageOfAnotherTag(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b, toB, _ := pair(t, provider)
		send := func(tag uint64, text string) []fabric.Op {
			return []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: toB, Tag: tag, Buf: []byte(text)}}
		}
		receive := func(tag, ignore uint64, buf []byte) []fabric.Op {
			return []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Ignore: ignore, Buf: buf}}
		}
		both := append(receive(0x301, 0, make([]byte, 8)), receive(0x100, 0xff, make([]byte, 8))...)
		_, fromB := exchange(t, a, b, send(0x101, "1"), both, 1, 1)
		require.NoError(t, fromB[0].Err)
		// When the second is here, so is the first, for which there is no receive.
		exchange(t, a, b, append(send(0x201, "waits"), send(0x301, "here")...), nil, 2, 1)
		buf := make([]byte, 8)
		_, fromB = exchange(t, a, b, send(0x202, "own"), receive(0x202, 0, buf), 1, 1)
		if fromB[0].Err == nil {
			require.EqualValues(t, 0x202, fromB[0].Tag)
			require.Equal(t, "own", string(buf[:fromB[0].Len]))
		} else {
			t.Logf("another: %v", fromB[0].Err)
			require.Equal(t, "shm", provider)
			require.ErrorIs(t, fromB[0].Err, fabric.ErrMismatched)
			require.EqualValues(t, 0x201, fromB[0].Tag)
			require.Equal(t, "waits", string(buf[:fromB[0].Len]))
			_, fromB = exchange(t, a, b, nil, receive(0x202, 0, buf), 0, 1)
			require.Equal(t, "own", string(buf[:fromB[0].Len]))
		}
	})
}

// Fewer than no looks, and a wait that is over before it begins, are none: they do
// not go on for ever.
func TestNegativeWaits(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s, _ := stations(t, provider, fabric.Messages)
		for name, turn := range map[string]func(n int) (int, error){
			"spins": func(n int) (int, error) { return s.e.Turn(nil, make([]fabric.Completion, 1), n) },
			"reads": func(n int) (int, error) { return s.q.Read(make([]fabric.Completion, 1), n) },
			"wait":  func(n int) (int, error) { return s.e.TurnWait(nil, make([]fabric.Completion, 1), n) },
			"read and wait": func(n int) (int, error) {
				return s.q.ReadWait(make([]fabric.Completion, 1), n)
			},
		} {
			for _, n := range []int{-1, math.MinInt} {
				reaped, err := turn(n)
				if !errors.Is(err, fabric.ErrNotSupported) {
					require.NoError(t, err, name)
				}
				require.Zero(t, reaped, name)
			}
		}
	})
}
