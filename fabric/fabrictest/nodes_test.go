package fabrictest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// patience is a timeout that only a test that fails waits for.
const patience = time.Minute

// node is a device with the other devices of its network inserted, by their
// place among them.
type node struct {
	*Device
	t *testing.T
}

// open returns count devices that know each other: device i is Address i to all.
func open(t *testing.T, n *Network, count int, config DeviceConfig) []node {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the faults had the seed %d", n.Seed())
		}
	})
	nodes := make([]node, count)
	for i := range nodes {
		d, err := n.Open(config)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		nodes[i] = node{d, t}
	}
	for _, from := range nodes {
		for i, to := range nodes {
			address, err := from.Insert(to.LocalAddress())
			require.NoError(t, err)
			require.Equal(t, fabric.Address(i), address)
		}
	}
	return nodes
}

func send(peer fabric.Address, tag uint64, text string) fabric.Op {
	return fabric.Op{Kind: fabric.OpTaggedSend, Peer: peer, Tag: tag, Buf: []byte(text), Context: 1000 + tag}
}

func inject(peer fabric.Address, tag uint64, text string) fabric.Op {
	return fabric.Op{Kind: fabric.OpTaggedInject, Peer: peer, Tag: tag, Buf: []byte(text)}
}

func receive(peer fabric.Address, tag, ignore, context uint64, room int) fabric.Op {
	return fabric.Op{Kind: fabric.OpTaggedReceive, Peer: peer, Tag: tag, Ignore: ignore, Buf: make([]byte, room), Context: context}
}

// post posts operations that the device has to accept.
func (d node) post(ops ...fabric.Op) []fabric.Op {
	d.t.Helper()
	_, err := d.Turn(ops, nil, 0)
	require.NoError(d.t, err)
	for _, op := range ops {
		require.Equal(d.t, fabric.Posted, op.Result, "%v", op.Err)
	}
	return ops
}

// turn takes one Turn and returns what completed.
func (d node) turn() []fabric.Completion {
	d.t.Helper()
	completions := make([]fabric.Completion, 64)
	reaped, err := d.Turn(nil, completions, 0)
	require.NoError(d.t, err)
	return completions[:reaped]
}

// one takes a Turn that has to give one completion.
func (d node) one() fabric.Completion {
	d.t.Helper()
	completions := d.turn()
	require.Len(d.t, completions, 1)
	return completions[0]
}

const anyTag = ^uint64(0)

func results(ops []fabric.Op) []fabric.Result {
	var all []fabric.Result
	for _, op := range ops {
		all = append(all, op.Result)
	}
	return all
}
