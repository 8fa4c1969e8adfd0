package fabrictest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestMessageArrives(t *testing.T) {
	for _, length := range []int{0, 1, 64, 100_000} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
			text := string(bytes.Repeat([]byte{'x'}, length))
			r := d[1].post(receive(fabric.AddressAny, 7, 0, 5, length))
			d[0].post(send(1, 7, text))
			require.Empty(t, d[0].turn(), "a send is not complete before the message has arrived")

			require.Equal(t, fabric.Completion{
				Context: 5, Kind: fabric.OpTaggedReceive, Tag: 7, Len: length, Source: 0,
			}, d[1].one())
			require.Equal(t, text, string(r[0].Buf))
			require.Equal(t, fabric.Completion{
				Context: 1007, Kind: fabric.OpTaggedSend, Source: fabric.AddressAny,
			}, d[0].one())
			require.Empty(t, d[0].turn())
			require.Empty(t, d[1].turn())
		})
	}
}

func TestMessageToItself(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 1, DeviceConfig{})
	r := d[0].post(receive(0, 7, 0, 5, 4), send(0, 7, "self"))
	require.Len(t, d[0].turn(), 2)
	require.Equal(t, "self", string(r[0].Buf))
}

func TestSendReadsItsBufferWhenTheMessageArrives(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	s := d[0].post(send(1, 1, "before"), inject(1, 2, "inject"))
	copy(s[0].Buf, "AFTER!") // too early, and that shows
	copy(s[1].Buf, "AFTER!") // an inject is done with its buffer
	r := d[1].post(receive(fabric.AddressAny, 1, 0, 1, 6), receive(fabric.AddressAny, 2, 0, 2, 6))
	d[1].turn()
	require.Equal(t, "AFTER!", string(r[0].Buf))
	require.Equal(t, "inject", string(r[1].Buf))
}

func TestUnexpectedMessageIsIndependentOfTheSender(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	s := d[0].post(send(1, 1, "before"))
	d[1].turn()
	require.NoError(t, d[0].one().Err)
	copy(s[0].Buf, "AFTER!")
	r := d[1].post(receive(fabric.AddressAny, 1, 0, 1, 6))
	d[1].turn()
	require.Equal(t, "before", string(r[0].Buf))
}

func TestReceivedBytesComeInTheReceiversTurn(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	r := d[1].post(receive(fabric.AddressAny, 1, 0, 1, 4))
	d[0].post(send(1, 1, "text"))
	require.Empty(t, d[0].turn())
	require.Equal(t, make([]byte, 4), r[0].Buf)
	require.NoError(t, d[1].one().Err)
	require.Equal(t, "text", string(r[0].Buf))
}

func TestOpenRejectsNegativeLimits(t *testing.T) {
	for _, config := range []DeviceConfig{{MaxInject: -2}, {MaxOperations: -1}, {UnexpectedLimit: -1}} {
		_, err := NewNetwork(Faults{}).Open(config)
		require.ErrorIs(t, err, fabric.ErrInvalid)
	}
}

func TestAttributes(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 1, DeviceConfig{})
	a := d[0].Attributes()
	require.Equal(t, "fake", a.Provider)
	require.Positive(t, a.MaxMessage)
	require.Positive(t, a.MaxInject)
	require.Positive(t, a.MaxOperations)

	other, err := n.Open(DeviceConfig{
		Provider: "odd", MaxMessage: 9, MaxInject: -1, MaxOperations: 3, NeedsRegistration: true, Spin: true,
	})
	require.NoError(t, err)
	require.NotEqual(t, d[0].LocalAddress(), other.LocalAddress())
	a = other.Attributes()
	require.Equal(t, fabric.Attributes{
		Provider: "odd", Fabric: a.Fabric, Domain: a.Domain, MaxMessage: 9, MaxInject: 0, MaxOperations: 3,
		NeedsRegistration: true, Spin: true, Notifies: true, KeepsOrder: true, SameHostOnly: true,
	}, a)
	require.Equal(t, 2, n.Stats().OpenDevices)
	require.NoError(t, other.Close())
	require.Equal(t, 1, n.Stats().OpenDevices)
}
