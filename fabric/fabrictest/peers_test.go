package fabrictest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

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
