package fabrictest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

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
