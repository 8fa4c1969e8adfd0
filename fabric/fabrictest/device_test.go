package fabrictest

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// patience is a timeout that only a test that fails waits for.
const patience = time.Minute

func results(ops []fabric.Op) []fabric.Result {
	var all []fabric.Result
	for _, op := range ops {
		all = append(all, op.Result)
	}
	return all
}

func TestMaxOperationsBoundsWhatIsInFlight(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 3, DeviceConfig{MaxOperations: 2})
	ops := []fabric.Op{
		receive(fabric.AddressAny, 1, 0, 1, 1), send(1, 2, "x"), send(1, 3, "x"),
		inject(1, 4, "x"), inject(2, 5, "x"), send(2, 6, "x"),
	}
	_, err := d[0].Turn(ops, nil, 0)
	require.NoError(t, err)
	require.Equal(t, []fabric.Result{
		fabric.Posted, fabric.Posted, fabric.Refused,
		fabric.Refused, // behind a refused one
		fabric.Posted,  // to another peer, and not a slot
		fabric.Refused,
	}, results(ops))
	require.EqualValues(t, 3, n.Stats().Refused)
	require.Equal(t, 2, n.Stats().InFlight)

	d[1].turn()
	_, err = d[0].Turn(ops[2:3], nil, 0)
	require.NoError(t, err)
	require.Equal(t, fabric.Refused, ops[2].Result, "the completion was not read yet")
	require.Len(t, d[0].turn(), 1)
	d[0].post(ops[2])
}

func TestInjectsOnTheirWayAreBounded(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 2, DeviceConfig{MaxOperations: 2})
	ops := []fabric.Op{inject(1, 1, "x"), inject(1, 2, "x"), inject(1, 3, "x")}
	_, err := d[0].Turn(ops, nil, 0)
	require.NoError(t, err)
	require.Equal(t, []fabric.Result{fabric.Posted, fabric.Posted, fabric.Refused}, results(ops))
	d[0].post(receive(1, 0, 0, 0, 1)) // has room all the same
	d[1].turn()
	d[0].post(ops[2])
}

func TestRefusedKeepsOrderPerPeerAndDirection(t *testing.T) {
	d := open(t, NewNetwork(Faults{RefuseEveryOther: true}), 3, DeviceConfig{})
	ops := []fabric.Op{
		send(1, 1, "a"), // refused
		send(1, 2, "b"), // behind it
		send(2, 3, "c"), // tried
		receive(1, 4, 0, 0, 1),
		receive(1, 5, 0, 0, 1),
		receive(2, 6, 0, 0, 1),
		inject(1, 7, "d"),
	}
	_, err := d[0].Turn(ops, nil, 0)
	require.NoError(t, err)
	require.Equal(t, []fabric.Result{
		fabric.Refused, fabric.Refused, fabric.Posted, fabric.Refused, fabric.Refused, fabric.Posted, fabric.Refused,
	}, results(ops))
}

func TestFailedPosts(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{MaxMessage: 4, MaxInject: 2})
	require.NoError(t, d[0].Remove(0))
	for name, op := range map[string]fabric.Op{
		"no kind":               {Peer: 1},
		"unknown kind":          {Kind: fabric.OpTaggedInject + 1, Peer: 1},
		"send to any":           send(fabric.AddressAny, 1, "x"),
		"inject to any":         inject(fabric.AddressAny, 1, "x"),
		"send to nobody":        send(2, 1, "x"),
		"receive from nobody":   receive(2, 1, 0, 0, 1),
		"send to removed":       send(0, 1, "x"),
		"message too long":      send(1, 1, "12345"),
		"inject too long":       inject(1, 1, "123"),
		"descriptor of nothing": {Kind: fabric.OpTaggedSend, Peer: 1, Buf: []byte("x"), Descriptor: 77},
	} {
		t.Run(name, func(t *testing.T) {
			ops := []fabric.Op{op}
			_, err := d[0].Turn(ops, nil, 0)
			require.NoError(t, err, "it is about the operation, not the device")
			require.Equal(t, fabric.Failed, ops[0].Result)
			require.ErrorIs(t, ops[0].Err, fabric.ErrInvalid)
			var e *fabric.Error
			require.ErrorAs(t, ops[0].Err, &e)
			require.NotEmpty(t, e.Detail)
		})
	}
	ops := []fabric.Op{send(1, 1, "12345"), send(1, 2, "1234")}
	_, err := d[0].Turn(ops, nil, 0)
	require.NoError(t, err)
	require.Equal(t, []fabric.Result{fabric.Failed, fabric.Posted}, results(ops), "a failure holds nothing up")
	d[0].post(ops[1])
	require.NoError(t, ops[1].Err)
}

func TestCancelReceives(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	ops := d[1].post(
		receive(fabric.AddressAny, 1, 0, 0, 1), receive(fabric.AddressAny, 1, 0, 1, 1),
		receive(fabric.AddressAny, 1, 0, 2, 1), receive(fabric.AddressAny, 1, 0, 3, 1),
	)
	for _, i := range []int{2, 3, 0} {
		require.NoError(t, d[1].Cancel(ops[i].Token))
		require.NoError(t, d[1].Cancel(ops[i].Token), "cancelled already: one completion all the same")
	}
	got := d[1].turn()
	require.Len(t, got, 3)
	for i, context := range []uint64{2, 3, 0} {
		require.Equal(t, context, got[i].Context)
		require.ErrorIs(t, got[i].Err, fabric.ErrCanceled)
		require.Equal(t, fabric.AddressAny, got[i].Source)
	}
	d[0].post(send(1, 1, "x"))
	require.EqualValues(t, 1, d[1].one().Context, "the message goes to the receive that is left")
	require.NoError(t, d[1].Cancel(ops[1].Token), "completed")
	require.Empty(t, d[1].turn())
}

func TestCancelOfAMatchedReceiveChangesNothing(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	ops := d[1].post(receive(fabric.AddressAny, 1, 0, 5, 1))
	d[0].post(send(1, 1, "x"))
	_, err := d[1].Turn(nil, nil, 0) // matched, and not reaped
	require.NoError(t, err)
	require.NoError(t, d[1].Cancel(ops[0].Token))
	require.NoError(t, d[1].one().Err)
	require.Empty(t, d[1].turn())
}

func TestTokensAreNotReused(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{MaxOperations: 1})
	old := d[0].post(receive(fabric.AddressAny, 1, 0, 1, 1))[0].Token
	require.NoError(t, d[0].Cancel(old))
	d[0].one()
	fresh := d[0].post(receive(fabric.AddressAny, 1, 0, 2, 1))[0].Token
	require.NotEqual(t, old, fresh)
	require.NoError(t, d[0].Cancel(old))
	require.Empty(t, d[0].turn(), "the slot is another operation's now")

	for _, token := range []fabric.Token{0, fresh + 1, fresh + 1<<32, ^fabric.Token(0)} {
		require.ErrorIs(t, d[0].Cancel(token), fabric.ErrInvalid)
	}
}

func TestCancelSends(t *testing.T) {
	for name, test := range map[string]struct {
		share float64
		want  error
	}{"never": {0, nil}, "always": {1, fabric.ErrCanceled}} {
		t.Run(name, func(t *testing.T) {
			d := open(t, NewNetwork(Faults{CancelSends: test.share}), 2, DeviceConfig{UnexpectedLimit: 1})
			ops := d[0].post(send(1, 0, "0"), send(1, 1, "1"), send(1, 2, "2"))
			d[1].turn() // the second has no room to arrive
			require.NoError(t, d[0].Cancel(ops[0].Token))
			require.NoError(t, d[0].one().Err, "arrived already")
			require.NoError(t, d[0].Cancel(ops[1].Token))
			d[1].post(receive(fabric.AddressAny, 0, 0, 0, 1), receive(fabric.AddressAny, 1, 2, 0, 1), receive(fabric.AddressAny, 1, 3, 0, 1))
			d[1].turn()
			for _, c := range d[0].turn() {
				if c.Context == 1001 {
					require.ErrorIs(t, c.Err, test.want)
				} else {
					require.NoError(t, c.Err)
				}
			}
		})
	}
}

func TestCancelledSendMakesWayForTheNext(t *testing.T) {
	d := open(t, NewNetwork(Faults{CancelSends: 1}), 2, DeviceConfig{UnexpectedLimit: 1})
	ops := d[0].post(send(1, 0, "0"), send(1, 1, "1"), send(1, 2, "2"))
	d[1].post(receive(fabric.AddressAny, 2, 0, 20, 1))
	require.True(t, d[1].Arm(), "the second has no room and is in the way")
	require.NoError(t, d[0].Cancel(ops[1].Token))
	require.False(t, d[1].Arm())
	require.EqualValues(t, 20, d[1].one().Context)
}

func TestInsertTwiceAndRemove(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 2, DeviceConfig{})
	again, err := d[1].Insert(d[0].LocalAddress())
	require.NoError(t, err)
	require.EqualValues(t, 2, again, "another Address, as on sockets")
	from := func() fabric.Address {
		d[1].post(receive(fabric.AddressAny, 1, 0, 0, 1))
		d[0].post(send(1, 1, "x"))
		source := d[1].one().Source
		d[0].one()
		return source
	}
	require.EqualValues(t, 0, from(), "the first insertion is who sent")
	require.NoError(t, d[1].Remove(0))
	require.EqualValues(t, 2, from())
	require.NoError(t, d[1].Remove(2))
	require.Equal(t, fabric.AddressAny, from(), "not known any more")
	require.ErrorIs(t, d[1].Remove(2), fabric.ErrInvalid)
	require.ErrorIs(t, d[1].Remove(fabric.AddressAny), fabric.ErrInvalid)

	fresh, err := d[1].Insert(d[0].LocalAddress())
	require.NoError(t, err)
	require.EqualValues(t, 3, fresh)
	require.EqualValues(t, 3, from())
}

func TestSendAndReceiveByASecondInsertion(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	again, err := d[1].Insert(d[0].LocalAddress())
	require.NoError(t, err)
	d[0].post(receive(1, 1, 0, 0, 1), send(1, 1, "x"))
	d[1].post(send(again, 1, "x"), receive(again, 1, 0, 0, 1))
	require.Len(t, d[0].turn(), 2, "it sends to the same device")
	require.Equal(t, fabric.OpTaggedSend, d[1].one().Kind, "messages come from the first address")
}

func TestInsertRejectsWhatIsNoAddress(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	own := string(d[0].LocalAddress())
	for _, address := range []string{"", "fake", own[1:], own + " ", own + "x", "fake/00/1", "\x00\xff"} {
		_, err := d[0].Insert([]byte(address))
		require.ErrorIs(t, err, fabric.ErrInvalid, "%q", address)
	}
}

func TestRemoveWithOperationsInFlight(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	ops := d[0].post(send(1, 1, "x"), receive(1, 1, 0, 0, 1))
	require.ErrorIs(t, d[0].Remove(1), fabric.ErrBusy)
	d[1].turn()
	require.NoError(t, d[0].Cancel(ops[1].Token))
	require.ErrorIs(t, d[0].Remove(1), fabric.ErrBusy, "the completions were not read")
	require.Len(t, d[0].turn(), 2)
	require.NoError(t, d[0].Remove(1))
}

func TestRegistration(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 2, DeviceConfig{NeedsRegistration: true})
	memory := make([]byte, 100)
	r, err := d[0].Register(memory[10:90])
	require.NoError(t, err)
	_, err = d[0].Register(nil)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.Equal(t, 1, n.Stats().OpenRegistrations)

	try := func(kind fabric.OpKind, buf []byte, descriptor fabric.Descriptor) fabric.Op {
		ops := []fabric.Op{{Kind: kind, Peer: 1, Tag: 1, Buf: buf, Descriptor: descriptor}}
		_, err := d[0].Turn(ops, nil, 0)
		require.NoError(t, err)
		return ops[0]
	}
	for name, bad := range map[string]fabric.Op{
		"none":    try(fabric.OpTaggedSend, memory[10:90], 0),
		"before":  try(fabric.OpTaggedSend, memory[9:20], r.Descriptor()),
		"beyond":  try(fabric.OpTaggedReceive, memory[80:91], r.Descriptor()),
		"another": try(fabric.OpTaggedSend, memory[10:90], r.Descriptor()+1),
	} {
		require.Equal(t, fabric.Failed, bad.Result, name)
		require.ErrorIs(t, bad.Err, fabric.ErrInvalid, name)
	}
	require.Equal(t, fabric.Posted, try(fabric.OpTaggedInject, memory[:4], 0).Result, "exempt")
	require.Equal(t, fabric.Posted, try(fabric.OpTaggedSend, nil, 0).Result, "no bytes")

	require.Equal(t, fabric.Posted, try(fabric.OpTaggedSend, memory[10:90], r.Descriptor()).Result)
	require.ErrorIs(t, r.Close(), fabric.ErrBusy)
	d[1].turn()
	require.ErrorIs(t, r.Close(), fabric.ErrBusy, "the completion was not read")
	require.Len(t, d[0].turn(), 2)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.Zero(t, n.Stats().OpenRegistrations)
	require.Equal(t, fabric.Failed, try(fabric.OpTaggedSend, memory[10:90], r.Descriptor()).Result)
}

func TestRegistrationOutlivesItsDevice(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 1, DeviceConfig{NeedsRegistration: true})
	buf := make([]byte, 8)
	r, err := d[0].Register(buf)
	require.NoError(t, err)
	d[0].post(fabric.Op{Kind: fabric.OpTaggedReceive, Peer: 0, Buf: buf, Descriptor: r.Descriptor()})
	require.NoError(t, d[0].Close())
	require.Equal(t, 1, n.Stats().OpenRegistrations)
	require.NoError(t, r.Close())
	require.Zero(t, n.Stats().OpenRegistrations)
}

func TestWakeEndsTheNextWait(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	d[0].Wake()
	d[0].Wait(patience)
	require.True(t, d[0].Arm())
}

// waitIn starts a Wait, and returns once it blocks. The channel is closed when
// it has returned.
func waitIn(t *testing.T, d *Device) <-chan struct{} {
	t.Helper()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		d.Wait(patience)
	}()
	require.Eventually(t, func() bool {
		d.network.mu.Lock()
		defer d.network.mu.Unlock()
		return d.waiting
	}, patience/2, time.Millisecond)
	return returned
}

func requireDone(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience / 2):
		t.Fatal("Wait did not return")
	}
}

func TestWaitEnds(t *testing.T) {
	for name, end := range map[string]func(n *Network, a, b node){
		"by Wake":              func(n *Network, a, b node) { a.Wake() },
		"by a message":         func(n *Network, a, b node) { b.post(send(0, 1, "x")) },
		"by a device's error":  func(n *Network, a, b node) { n.RaiseError(a.Device, fabric.ErrNotFound) },
		"by Close of itself":   func(n *Network, a, b node) { require.NoError(a.t, a.Close()) },
		"by Kill of itself":    func(n *Network, a, b node) { n.Kill(a.Device) },
		"by Cancel":            func(n *Network, a, b node) { require.NoError(a.t, a.Cancel(a.slots[0].token())) },
		"by the end of a peer": func(n *Network, a, b node) { n.Kill(b.Device) },
		"by its message's end": func(n *Network, a, b node) { b.turn() },
		"by a held one's end": func(n *Network, a, b node) {
			n.HoldCompletions(a.Device)
			b.turn()
			n.StopHolding(a.Device)
		},
		"by Heal of its peer's": func(n *Network, a, b node) {
			n.Partition(a.Device, b.Device)
			b.post(send(0, 1, "x"))
			n.Heal(a.Device, b.Device)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := NewNetwork(Faults{})
			d := open(t, n, 2, DeviceConfig{})
			d[0].post(receive(1, 1, 0, 0, 1), send(1, 2, "x"))
			require.True(t, d[0].Arm())
			done := waitIn(t, d[0].Device)
			end(n, d[0], d[1])
			requireDone(t, done)
		})
	}
}

func TestWaitDoesNotBlockWithSomethingToRead(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	d[1].post(send(0, 1, "x"))
	require.False(t, d[0].Arm())
	d[0].Wait(patience)
	d[0].post(receive(1, 1, 0, 0, 1))
	require.False(t, d[0].Arm(), "a completion is there")
	d[0].Wait(patience)
	d[0].one()
	require.True(t, d[0].Arm())
}

func TestWaitTimesOut(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	for _, timeout := range []time.Duration{-1, 0, 1} {
		d[0].Wait(timeout)
	}
	require.True(t, d[0].Arm())
}

func TestSpinsWaitForAMessage(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	got := make(chan int)
	go func() {
		completions := make([]fabric.Completion, 1)
		reaped, err := d[0].Turn([]fabric.Op{receive(1, 1, 0, 0, 1)}, completions, 1<<40)
		if err != nil {
			reaped = -1
		}
		got <- reaped
	}()
	d[1].post(send(0, 1, "x"))
	select {
	case reaped := <-got:
		require.Equal(t, 1, reaped)
	case <-time.After(patience):
		t.Fatal("the message did not end the spinning")
	}
}

func TestTurnReadsNoMoreThanAskedFor(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	for context := range uint64(3) {
		require.NoError(t, d[0].Cancel(d[0].post(receive(0, 1, 0, context, 1))[0].Token))
	}
	completions := make([]fabric.Completion, 2)
	reaped, err := d[0].Turn(nil, completions, 0)
	require.NoError(t, err)
	require.Equal(t, 2, reaped)
	require.EqualValues(t, 2, d[0].one().Context)
}

func TestErrors(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 1, DeviceConfig{})
	require.NoError(t, d[0].Errors())
	n.RaiseError(d[0].Device, fabric.ErrNotFound)
	n.RaiseError(d[0].Device, fabric.ErrUnreachable)
	err := d[0].Errors()
	require.ErrorIs(t, err, fabric.ErrNotFound)
	require.ErrorIs(t, err, fabric.ErrUnreachable)
	require.NoError(t, d[0].Errors())
}

func TestAfterClose(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	token := d[0].post(receive(0, 1, 0, 0, 1))[0].Token
	require.NoError(t, d[0].Close())
	require.NoError(t, d[0].Close())

	ops := []fabric.Op{send(0, 1, "x")}
	_, err := d[0].Turn(ops, nil, 0)
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, fabric.Failed, ops[0].Result)
	require.ErrorIs(t, ops[0].Err, net.ErrClosed)
	_, err = d[0].Insert(d[0].LocalAddress())
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = d[0].Register(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, d[0].Remove(0), net.ErrClosed)
	require.ErrorIs(t, d[0].Cancel(token), net.ErrClosed)
	require.ErrorIs(t, d[0].Errors(), net.ErrClosed)
	require.False(t, d[0].Arm())
	d[0].Wait(patience)
	d[0].Wake()
}

func TestASecondGoroutineInsidePanics(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = d[0].Turn(nil, make([]fabric.Completion, 1), 1<<40)
	}()
	require.Eventually(t, func() bool { return d[0].busy.Load() != nil }, patience, time.Millisecond)
	for name, use := range map[string]func(){
		"Turn":     func() { _, _ = d[0].Turn(nil, nil, 0) },
		"Insert":   func() { _, _ = d[0].Insert(nil) },
		"Remove":   func() { _ = d[0].Remove(0) },
		"Register": func() { _, _ = d[0].Register(nil) },
		"Cancel":   func() { _ = d[0].Cancel(0) },
		"Arm":      func() { d[0].Arm() },
		"Errors":   func() { _ = d[0].Errors() },
		"Close":    func() { _ = d[0].Close() },
	} {
		require.PanicsWithValue(t, "fabrictest: "+name+" of device "+d[0].address+" was called while another goroutine "+
			"was in Turn; only the holder of the progress role may use a device", use)
	}
	d[0].Wake() // for anyone
	d[0].network.Kill(d[0].Device)
	requireDone(t, done)
}

func TestASecondWaitPanics(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	done := waitIn(t, d[0].Device)
	require.Panics(t, func() { d[0].Wait(patience) })
	d[0].Wake()
	requireDone(t, done)
}

// TestDevicesInParallel has the race detector look at buffers that two
// goroutines hand to each other.
func TestDevicesInParallel(t *testing.T) {
	n := NewNetwork(Faults{Reorder: 0.2, Refuse: 0.2, Delay: 3})
	d := open(t, n, 2, DeviceConfig{MaxOperations: 4})
	const rounds = 200
	var group sync.WaitGroup
	failures := make(chan string, 2)
	for self, peer := range []fabric.Address{1, 0} {
		group.Go(func() {
			if problem := exchange(d[self].Device, peer, rounds); problem != "" {
				failures <- problem
			}
		})
	}
	group.Wait()
	close(failures)
	for problem := range failures {
		t.Error(problem)
	}
}

// exchange sends and receives rounds messages, one after the other, and reuses
// one buffer for each direction.
func exchange(d *Device, peer fabric.Address, rounds int) string {
	out, in := make([]byte, 100), make([]byte, 100)
	completions := make([]fabric.Completion, 4)
	deadline := time.Now().Add(patience)
	for round := range rounds {
		for i := range out {
			out[i] = byte(round + i)
		}
		pending := []fabric.Op{
			{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(round), Buf: in},
			{Kind: fabric.OpTaggedSend, Peer: peer, Tag: uint64(round), Buf: out},
		}
		for done := 0; done < 2; {
			reaped, err := d.Turn(pending, completions, 2)
			if err != nil || time.Now().After(deadline) {
				return "no progress"
			}
			left := pending[:0]
			for _, op := range pending {
				if op.Result == fabric.Refused {
					left = append(left, op)
				}
			}
			pending = left
			for _, c := range completions[:reaped] {
				if c.Err != nil {
					return c.Err.Error()
				}
			}
			if done += reaped; done < 2 && len(pending) == 0 && d.Arm() {
				d.Wait(patience)
			}
		}
		for i := range in {
			if in[i] != byte(round+i) {
				return "wrong bytes"
			}
		}
	}
	return ""
}

func TestPingPongDoesNotAllocate(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	buf := [2][]byte{make([]byte, 64), make([]byte, 64)}
	ops := [2][]fabric.Op{}
	for self := range ops {
		ops[self] = []fabric.Op{
			{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: buf[self]},
			{Kind: fabric.OpTaggedSend, Peer: fabric.Address(1 - self), Tag: 1, Buf: buf[self]},
			{Kind: fabric.OpTaggedInject, Peer: fabric.Address(1 - self), Tag: 1, Buf: buf[self]},
			{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: buf[self]},
		}
	}
	completions := make([]fabric.Completion, 8)
	failed := false
	round := func() {
		reaped := 0
		for self := range d {
			count, err := d[self].Turn(ops[self], completions, 0)
			failed = failed || err != nil
			reaped += count
		}
		for self := range d {
			count, err := d[self].Turn(nil, completions, 0)
			failed = failed || err != nil
			reaped += count
		}
		failed = failed || reaped != 6
	}
	require.Zero(t, testing.AllocsPerRun(100, round))
	require.False(t, failed, "each round has two receives and one send a side")
}
