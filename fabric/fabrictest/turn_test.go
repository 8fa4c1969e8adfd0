package fabrictest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

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
