package fabrictest

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestSeed(t *testing.T) {
	require.EqualValues(t, 7, NewNetwork(Faults{Seed: 7}).Seed())
	require.NotZero(t, NewNetwork(Faults{}).Seed())
}

func TestSameSeedSameFaults(t *testing.T) {
	run := func(seed uint64) string {
		n := NewNetwork(Faults{Seed: seed, Reorder: 0.5, Refuse: 0.5, Delay: 5})
		d := open(t, n, 2, DeviceConfig{})
		log := ""
		var pending []fabric.Op
		for tag := range uint64(20) {
			pending = append(pending, inject(1, tag, "x"), receive(1, tag, 0, tag, 1))
		}
		for range 200 {
			completions := make([]fabric.Completion, 64)
			reaped, err := d[0].Turn(pending, completions, 0)
			require.NoError(t, err)
			pending = refusedOf(pending)
			log += fmt.Sprint(len(pending), reaped)
			d[1].turn()
			require.Empty(t, completions[:reaped], "nobody sends to it")
		}
		require.Empty(t, pending)
		return log + fmt.Sprintf("%+v", n.Stats())
	}
	require.Equal(t, run(7), run(7))
	require.NotEqual(t, run(7), run(8))
}

func refusedOf(ops []fabric.Op) []fabric.Op {
	var refused []fabric.Op
	for _, op := range ops {
		if op.Result == fabric.Refused {
			refused = append(refused, op)
		}
	}
	return refused
}

func TestRefuseShare(t *testing.T) {
	n := NewNetwork(Faults{Seed: 1, Refuse: 0.5})
	d := open(t, n, 2, DeviceConfig{})
	for range 400 {
		_, err := d[0].Turn([]fabric.Op{receive(0, 0, 0, 0, 1)}, nil, 0)
		require.NoError(t, err)
	}
	require.InDelta(t, 200, n.Stats().Refused, 60)

	always := open(t, NewNetwork(Faults{Refuse: 1}), 1, DeviceConfig{})
	ops := []fabric.Op{send(0, 1, "x"), receive(0, 1, 0, 0, 1)}
	_, err := always[0].Turn(ops, nil, 0)
	require.NoError(t, err)
	require.Len(t, refusedOf(ops), 2)
}

func TestRefuseEveryOther(t *testing.T) {
	n := NewNetwork(Faults{RefuseEveryOther: true})
	d := open(t, n, 1, DeviceConfig{})
	for tries := range 6 {
		ops := []fabric.Op{receive(0, 0, 0, 0, 1)}
		_, err := d[0].Turn(ops, nil, 0)
		require.NoError(t, err)
		require.Equal(t, tries%2 == 0, ops[0].Result == fabric.Refused)
	}
	require.EqualValues(t, 3, n.Stats().Refused)
}

func TestReorderOnBothSides(t *testing.T) {
	const count = 100
	n := NewNetwork(Faults{Seed: 3, Reorder: 0.5})
	d := open(t, n, 2, DeviceConfig{})
	for tag := range uint64(count) {
		d[1].post(receive(0, tag, 0, 1000+tag, 1))
		d[0].post(send(1, tag, "x"))
	}
	// The receiver first: its Turns are what lets the messages in.
	for _, side := range []int{1, 0} {
		var contexts []uint64
		for len(contexts) < count {
			require.False(t, d[side].Arm(), "only %d completed", len(contexts))
			for _, c := range d[side].turn() {
				contexts = append(contexts, c.Context)
			}
		}
		order := slices.Sorted(slices.Values(contexts))
		require.Len(t, slices.Compact(order), count, "completed twice")
		require.NotEqual(t, order, contexts, "they came in order")
	}
	require.InDelta(t, count, n.Stats().Reordered, count/2)
}

func TestLateCompletionsKeepWaitFromBlocking(t *testing.T) {
	d := open(t, NewNetwork(Faults{Reorder: 1}), 1, DeviceConfig{})
	require.NoError(t, d[0].Cancel(d[0].post(receive(0, 0, 0, 9, 1))[0].Token))
	turns := 0
	for ; !d[0].Arm(); turns++ {
		d[0].Wait(patience)
		if got := d[0].turn(); len(got) == 1 {
			require.EqualValues(t, 9, got[0].Context)
			break
		}
	}
	require.Less(t, turns, 8)
	require.True(t, d[0].Arm())
}

func TestDelayKeepsTheOrderOfEachSender(t *testing.T) {
	const count = 50
	n := NewNetwork(Faults{Seed: 5, Delay: 10})
	d := open(t, n, 3, DeviceConfig{})
	for tag := range uint64(count) {
		d[0].post(send(2, tag, "x"))
		d[1].post(inject(2, 1000+tag, "x"))
		d[2].post(receive(fabric.AddressAny, 0, anyTag, 0, 1), receive(fabric.AddressAny, 0, anyTag, 0, 1))
	}
	var last [2]uint64
	var arrived [2]int
	for arrived[0]+arrived[1] < 2*count {
		require.False(t, d[2].Arm(), "Turns are needed while messages are on their way")
		d[2].Wait(patience)
		for _, c := range d[2].turn() {
			if arrived[c.Source] > 0 {
				require.Equal(t, last[c.Source]+1, c.Tag)
			}
			last[c.Source] = c.Tag
			arrived[c.Source]++
		}
	}
	require.True(t, d[2].Arm())
	require.InDelta(t, 2*count, n.Stats().Delayed, count)
	require.Len(t, d[0].turn(), count)
}

func TestDelayCountsTheReceiversTurns(t *testing.T) {
	for seed := range uint64(20) {
		n := NewNetwork(Faults{Seed: seed + 1, Delay: 3})
		d := open(t, n, 2, DeviceConfig{})
		d[1].post(receive(0, 1, 0, 0, 1))
		d[0].post(send(1, 1, "x"))
		for range 10 {
			require.Empty(t, d[0].turn(), "the sender's Turns do not count")
		}
		turns := 1
		for len(d[1].turn()) == 0 {
			turns++
		}
		require.LessOrEqual(t, turns, 4)
		require.Equal(t, n.Stats().Delayed == 1, turns > 1)
	}
}

func TestFailSend(t *testing.T) {
	n := NewNetwork(Faults{FailSend: 1})
	d := open(t, n, 2, DeviceConfig{})
	d[0].post(send(1, 1, "x"), inject(1, 2, "x"))
	c := d[0].one()
	require.ErrorIs(t, c.Err, syscall.EIO)
	require.EqualValues(t, 1001, c.Context)
	d[1].post(receive(0, 0, anyTag, 0, 1))
	require.EqualValues(t, 2, d[1].one().Tag, "the inject is not concerned")
	require.EqualValues(t, 1, n.Stats().Dropped)
}

func TestFailSendWith(t *testing.T) {
	n := NewNetwork(Faults{FailSend: 1, FailSendWith: 269})
	d := open(t, n, 2, DeviceConfig{})
	d[0].post(send(1, 1, "x"))
	var e *fabric.Error
	require.ErrorAs(t, d[0].one().Err, &e)
	require.Equal(t, fabric.Errno(269), e.Errno)
}

// ends are the two ways in which a device goes.
var ends = map[string]func(*testing.T, *Network, *Device){
	"Kill":  func(_ *testing.T, n *Network, d *Device) { n.Kill(d) },
	"Close": func(t *testing.T, _ *Network, d *Device) { require.NoError(t, d.Close()) },
}

func TestEndOfAPeerFailsWhatIsInFlight(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			n := NewNetwork(Faults{})
			d := open(t, n, 3, DeviceConfig{})
			n.Partition(d[0].Device, d[1].Device) // or else what is posted last lets the first in
			ops := d[0].post(
				send(1, 1, "lost"), inject(1, 2, "lost"), receive(1, 3, 0, 30, 4), receive(2, 4, 0, 40, 4),
				receive(fabric.AddressAny, 5, 0, 50, 4), send(2, 6, "stay"),
			)
			d[1].post(send(0, 5, "lost"), send(2, 5, "lost"), inject(0, 5, "lost"))
			end(t, n, d[1].Device)

			got := map[uint64]fabric.Completion{}
			for _, c := range d[0].turn() {
				got[c.Context] = c
			}
			require.Len(t, got, 2)
			require.ErrorIs(t, got[1001].Err, fabric.ErrUnreachable)
			require.ErrorIs(t, got[30].Err, fabric.ErrUnreachable)
			require.EqualValues(t, 5, n.Stats().Dropped)

			d[2].post(send(0, 4, "here"), receive(fabric.AddressAny, 0, anyTag, 60, 4))
			require.Len(t, d[0].turn(), 2, "others go on")
			require.NoError(t, d[0].Cancel(ops[4].Token))
			require.EqualValues(t, 50, d[0].one().Context, "a receive from any source stays until it is cancelled")
		})
	}
}

func TestWhatHadArrivedStaysAfterTheEndOfItsSender(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			n := NewNetwork(Faults{})
			d := open(t, n, 2, DeviceConfig{})
			d[0].post(send(1, 1, "here"), inject(1, 2, "here"))
			d[1].turn()
			end(t, n, d[0].Device)
			r := d[1].post(receive(fabric.AddressAny, 1, 0, 1, 4), receive(0, 2, 0, 2, 4))
			for i, c := range d[1].turn() {
				require.NoError(t, c.Err)
				require.EqualValues(t, 0, c.Source)
				require.Equal(t, "here", string(r[i].Buf))
			}
			d[1].post(receive(0, 3, 0, 3, 4))
			require.ErrorIs(t, d[1].one().Err, fabric.ErrUnreachable, "nothing more can come")
		})
	}
}

func TestPostsToADeadPeer(t *testing.T) {
	for name, test := range map[string]struct {
		dead         DeadPeers
		send, inject fabric.Result
	}{
		"complete": {DeadPeersComplete, fabric.Posted, fabric.Failed},
		"fail":     {DeadPeersFail, fabric.Failed, fabric.Failed},
		"refuse":   {DeadPeersRefuse, fabric.Refused, fabric.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			n := NewNetwork(Faults{DeadPeers: test.dead})
			d := open(t, n, 2, DeviceConfig{})
			address := d[1].LocalAddress()
			n.Kill(d[1].Device)
			late, err := d[0].Insert(address)
			require.NoError(t, err, "an address tells nothing of its device")
			stranger, err := d[0].Insert(open(t, NewNetwork(Faults{}), 1, DeviceConfig{})[0].LocalAddress())
			require.NoError(t, err)

			for _, peer := range []fabric.Address{1, late, stranger} {
				for _, op := range []fabric.Op{send(peer, 1, "x"), inject(peer, 1, "x")} {
					want := test.send
					if op.Kind == fabric.OpTaggedInject {
						want = test.inject
					}
					ops := []fabric.Op{op}
					_, err := d[0].Turn(ops, nil, 0)
					require.NoError(t, err)
					require.Equal(t, want, ops[0].Result)
					switch want {
					case fabric.Failed:
						require.ErrorIs(t, ops[0].Err, fabric.ErrUnreachable)
					case fabric.Posted:
						require.ErrorIs(t, d[0].one().Err, fabric.ErrUnreachable)
					}
				}
				require.NoError(t, d[0].Remove(peer))
			}
		})
	}
}

func TestAKilledDeviceFails(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 2, DeviceConfig{})
	d[0].post(receive(fabric.AddressAny, 1, 0, 0, 1), send(0, 1, "x"))
	n.Kill(d[0].Device)
	n.Kill(d[0].Device)

	ops := []fabric.Op{send(1, 1, "x")}
	reaped, err := d[0].Turn(ops, make([]fabric.Completion, 4), 10)
	require.ErrorIs(t, err, syscall.ENODEV)
	require.Zero(t, reaped)
	require.Equal(t, fabric.Failed, ops[0].Result)
	_, err = d[0].Insert(d[1].LocalAddress())
	require.ErrorIs(t, err, syscall.ENODEV)
	require.False(t, d[0].Arm())
	d[0].Wait(patience)
	n.Partition(d[0].Device, d[1].Device)
	require.NoError(t, d[0].Close())
	require.Equal(t, 1, n.Stats().OpenDevices)
	require.Zero(t, n.Stats().InFlight)
}

func TestPartition(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 3, DeviceConfig{})
	n.Partition(d[0].Device, d[1].Device)
	d[0].post(send(1, 1, "a"), send(2, 1, "b"))
	d[1].post(send(0, 1, "c"), receive(fabric.AddressAny, 1, 0, 10, 1))
	d[2].post(receive(fabric.AddressAny, 1, 0, 20, 1))
	require.EqualValues(t, 20, d[2].one().Context, "others are not concerned")
	require.EqualValues(t, 1001, d[0].one().Context)
	require.Empty(t, d[1].turn())
	require.True(t, d[1].Arm(), "Turns do not help")

	n.Heal(d[1].Device, d[0].Device)
	require.False(t, d[1].Arm())
	require.EqualValues(t, 10, d[1].one().Context)
	require.EqualValues(t, 1001, d[0].one().Context)
	d[0].turn()
	require.EqualValues(t, 1001, d[1].one().Context)
	require.Zero(t, n.Stats().Dropped)
}

func TestPartitionedPeerDies(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 2, DeviceConfig{})
	n.Partition(d[0].Device, d[1].Device)
	d[0].post(send(1, 1, "x"))
	require.Empty(t, d[0].turn())
	n.Kill(d[1].Device)
	require.ErrorIs(t, d[0].one().Err, fabric.ErrUnreachable)
}

func TestInjectsLostWithTheirPeerMakeRoom(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 3, DeviceConfig{MaxOperations: 1})
	d[0].post(inject(1, 1, "x"))
	n.Kill(d[1].Device)
	d[0].post(inject(2, 1, "x"))
}

func TestEveryPermutationOfFourCompletions(t *testing.T) {
	for _, order := range permutations([]int{0, 1, 2, 3}) {
		n := NewNetwork(Faults{})
		d := open(t, n, 2, DeviceConfig{})
		n.HoldCompletions(d[0].Device)
		for tag := range uint64(4) {
			d[0].post(send(1, tag, "x"))
		}
		d[1].turn()
		require.NoError(t, n.AwaitHeld(t.Context(), d[0].Device, 4))
		held := n.Held(d[0].Device)
		for tag := range uint64(4) {
			require.Equal(t, 1000+tag, held[tag].Context)
		}
		require.Empty(t, d[0].turn())
		require.True(t, d[0].Arm())

		n.ReleaseCompletions(d[0].Device, order)
		for i, c := range d[0].turn() {
			require.Equal(t, held[order[i]], c)
		}
		require.Empty(t, n.Held(d[0].Device))
	}
}

func permutations(items []int) [][]int {
	if len(items) == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for i, first := range items {
		rest := append(append([]int{}, items[:i]...), items[i+1:]...)
		for _, tail := range permutations(rest) {
			all = append(all, append([]int{first}, tail...))
		}
	}
	return all
}

func TestReleaseSomeThenAll(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 1, DeviceConfig{})
	n.HoldCompletions(d[0].Device)
	end := func(context uint64) {
		require.NoError(t, d[0].Cancel(d[0].post(receive(0, 0, 0, context, 1))[0].Token))
	}
	for context := range uint64(3) {
		end(context)
	}
	n.ReleaseCompletions(d[0].Device, []int{1})
	require.EqualValues(t, 1, d[0].one().Context)
	end(3)
	require.Len(t, n.Held(d[0].Device), 3, "the holding goes on")
	n.StopHolding(d[0].Device)
	end(4)
	var contexts []uint64
	for _, c := range d[0].turn() {
		contexts = append(contexts, c.Context)
	}
	require.Equal(t, []uint64{0, 2, 3, 4}, contexts)

	n.HoldCompletions(d[0].Device)
	end(5)
	for _, order := range [][]int{{1}, {-1}, {0, 0}} {
		require.Panics(t, func() { n.ReleaseCompletions(d[0].Device, order) })
	}
}

func TestAwaitHeldEndsWithItsContext(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 1, DeviceConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- n.AwaitHeld(ctx, d[0].Device, 1) }()
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)

	n.HoldCompletions(d[0].Device)
	go func() { result <- n.AwaitHeld(t.Context(), d[0].Device, 1) }()
	require.NoError(t, d[0].Cancel(d[0].post(receive(0, 0, 0, 0, 1))[0].Token))
	require.NoError(t, <-result)
}
