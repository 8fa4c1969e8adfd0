package fabric_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
)

// eachPort runs a test on every provider; open opens one more port.
func eachPort(t *testing.T, test func(t *testing.T, open func() fabric.Device)) {
	each(t, func(t *testing.T, provider string) {
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true, Source: "127.0.0.1"})
		require.NoError(t, err)
		test(t, func() fabric.Device {
			p, err := fabric.OpenPort(choice.Info, fabric.PortConfig{})
			require.NoError(t, err)
			return p
		})
	})
}

// eachDevice is eachPort, and the device in memory, which is only for whoever
// holds the progress role.
func eachDevice(t *testing.T, test func(t *testing.T, open func() fabric.Device)) {
	eachPort(t, test)
	t.Run("fake", func(t *testing.T) {
		network := fabrictest.NewNetwork(fabrictest.Faults{Seed: 1})
		test(t, func() fabric.Device {
			d, err := network.Open(fabrictest.DeviceConfig{})
			require.NoError(t, err)
			return d
		})
	})
}

// acquaint makes devices know each other.
func acquaint(t *testing.T, a, b fabric.Device) (toB, toA fabric.Address) {
	t.Helper()
	toB, err := a.Insert(b.LocalAddress())
	require.NoError(t, err)
	toA, err = b.Insert(a.LocalAddress())
	require.NoError(t, err)
	return toB, toA
}

// leaveInFlight posts what a port can have under way.
func leaveInFlight(t *testing.T, d fabric.Device, peer fabric.Address, random *rand.Rand) {
	t.Helper()
	ops := []fabric.Op{
		{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 99, Buf: make([]byte, 64)},
		{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 98, Ignore: 1, Buf: nil},
		{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 1},
		{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 1, Buf: make([]byte, 16)},
		{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 2, Buf: make([]byte, 1<<20)},
		{Kind: fabric.OpTaggedInject, Peer: peer, Tag: 3, Buf: make([]byte, 16)},
	}
	random.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	_, err := d.Turn(ops, make([]fabric.Completion, 4), 0)
	require.NoError(t, err)
	for _, op := range ops {
		require.NoError(t, op.Err)
	}
}

// turnUntil takes turns until it is told to stop.
func turnUntil(t *testing.T, d fabric.Device, stop <-chan struct{}) {
	for {
		if _, err := d.Turn(nil, make([]fabric.Completion, 8), 0); err != nil {
			t.Errorf("a turn: %v", err)
			return
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// One of three is closed with operations in flight on all sides; the other two
// go on with each other, and are closed in turn.
func TestClosePortInFlight(t *testing.T) {
	eachDevice(t, func(t *testing.T, open func() fabric.Device) {
		run := func(t *testing.T, seed uint64) {
			random := rand.New(rand.NewPCG(seed, 3))
			devices := []fabric.Device{open(), open(), open()}
			toB, toA := acquaint(t, devices[0], devices[1])
			_, toAOfC := acquaint(t, devices[0], devices[2])
			_, toBOfC := acquaint(t, devices[1], devices[2])
			region, err := devices[2].Register(make([]byte, 4096))
			require.NoError(t, err)
			leaveInFlight(t, devices[0], toB, random)
			leaveInFlight(t, devices[1], toA, random)
			leaveInFlight(t, devices[2], toAOfC, random)
			leaveInFlight(t, devices[2], toBOfC, random)
			for range random.IntN(6) {
				for _, d := range devices {
					_, err := d.Turn(nil, make([]fabric.Completion, 8), 0)
					require.NoError(t, err)
				}
			}
			late := random.IntN(2) == 0
			if !late {
				if err := region.Close(); err != nil {
					require.ErrorIs(t, err, fabric.ErrBusy)
				}
			}
			require.NoError(t, devices[2].Close())
			if late {
				require.NoError(t, region.Close(), "after the device")
			}
			_, err = devices[2].Turn(nil, nil, 0)
			require.ErrorIs(t, err, net.ErrClosed)

			across(t, devices[0], devices[1], toB, "after the end of the third")
			// The other way round each time.
			first := random.IntN(2)
			require.NoError(t, devices[first].Close())
			require.NoError(t, devices[first].Close())
			_, err = devices[1-first].Turn(nil, make([]fabric.Completion, 8), 0)
			require.NoError(t, err)
			require.NoError(t, devices[1-first].Close())
			nothingOpen(t)
		}
		run(t, 0)
		run(t, 1)
		before := processHas(t)
		seeds := uint64(20)
		if testing.Short() {
			seeds = 5
		}
		for i := range seeds {
			if !t.Run(strconv.FormatUint(i, 10), func(t *testing.T) { run(t, i) }) {
				return
			}
		}
		before.again(t)
	})
}

// across sends a message from a to b, past whatever else is on its way.
func across(t *testing.T, a, b fabric.Device, toB fabric.Address, text string) {
	t.Helper()
	const tag, context = 77, 4711
	got := make([]byte, 64)
	receive := []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: got, Context: context}}
	send := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: toB, Tag: tag, Buf: []byte(text), Context: context}}
	completions := make([]fabric.Completion, 16)
	sent := false
	for deadline := time.Now().Add(30 * time.Second); ; {
		require.True(t, time.Now().Before(deadline), "the message did not come")
		for _, side := range []struct {
			d     fabric.Device
			posts *[]fabric.Op
		}{{b, &receive}, {a, &send}} {
			n, err := side.d.Turn(*side.posts, completions, 0)
			require.NoError(t, err)
			if len(*side.posts) > 0 && (*side.posts)[0].Result != fabric.Refused {
				require.NoError(t, (*side.posts)[0].Err)
				*side.posts = nil
			}
			for _, c := range completions[:n] {
				switch {
				case c.Context != context:
				case c.Kind == fabric.OpTaggedSend:
					require.NoError(t, c.Err)
					sent = true
				default:
					require.NoError(t, c.Err)
					require.Equal(t, text, string(got[:c.Len]))
					receive = []fabric.Op{}
					got = nil
				}
			}
		}
		if sent && got == nil {
			return
		}
		if b.Arm() {
			b.Wait(time.Millisecond)
		}
	}
}

// Close while others are in Turn and in Wait, by several at once: all of them
// get through, and the peer goes on.
func TestClosePortInUse(t *testing.T) {
	eachPort(t, func(t *testing.T, open func() fabric.Device) {
		for range 10 {
			a, b, c := open(), open(), open()
			toB, _ := acquaint(t, a, b)
			toC, _ := acquaint(t, b, c)
			leaveInFlight(t, a, toB, rand.New(rand.NewPCG(1, 1)))

			var users, closers sync.WaitGroup
			turning, waiting := make(chan struct{}), make(chan struct{})
			ends := make(chan error, 1)
			users.Go(func() {
				completions := make([]fabric.Completion, 8)
				for first := true; ; first = false {
					if _, err := a.Turn([]fabric.Op{{Kind: fabric.OpTaggedInject, Peer: toB, Tag: 5}}, completions, 10); err != nil {
						ends <- err
						return
					}
					if first {
						close(turning)
					}
				}
			})
			stop := make(chan struct{})
			if a.Attributes().Provider == "efa" {
				// Its close waits until the peer has taken everything.
				users.Go(func() { turnUntil(t, b, stop) })
			}
			users.Go(func() {
				close(waiting)
				for {
					a.Wait(time.Hour)
					select {
					case <-stop:
						return
					default:
					}
				}
			})
			<-turning
			<-waiting
			errs := make([]error, 4)
			for i := range errs {
				closers.Go(func() { errs[i] = a.Close() })
			}
			closers.Wait()
			close(stop)
			a.Wake()
			users.Wait()
			require.NoError(t, errors.Join(errs...))
			require.ErrorIs(t, <-ends, net.ErrClosed)

			across(t, b, c, toC, "the others go on")
			require.NoError(t, b.Close())
			require.NoError(t, c.Close())
		}
		nothingOpen(t)
	})
}

// Close of what a device has registered may come at the same time as its own.
func TestClosePortWithRegistrations(t *testing.T) {
	eachPort(t, func(t *testing.T, open func() fabric.Device) {
		d := open()
		var regions []fabric.Registration
		for i := range 8 {
			r, err := d.Register(make([]byte, 64*(i+1)))
			require.NoError(t, err, fmt.Sprint(i))
			regions = append(regions, r)
		}
		for _, r := range regions[:4] {
			require.NoError(t, r.Close())
			require.NoError(t, r.Close(), "again")
		}
		var wait sync.WaitGroup
		errs := make([]error, 5)
		for i, c := range []interface{ Close() error }{d, regions[4], regions[5], d, regions[6]} {
			wait.Go(func() { errs[i] = c.Close() })
		}
		wait.Wait()
		require.NoError(t, errors.Join(errs...))
		require.NoError(t, regions[7].Close(), "after the device")
		nothingOpen(t)
	})
}
