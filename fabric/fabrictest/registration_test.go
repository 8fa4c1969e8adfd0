package fabrictest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

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
