package fabrictest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

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
