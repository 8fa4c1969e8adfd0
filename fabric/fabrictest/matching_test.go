package fabrictest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestEarliestReceiveTakesTheMessage(t *testing.T) {
	exact := receive(fabric.AddressAny, 7, 0, 1, 4)
	wild := receive(fabric.AddressAny, 0, anyTag, 2, 4)
	named := receive(0, 7, 0, 3, 4)
	other := receive(0, 8, 0, 4, 4)
	elsewhere := receive(2, 7, 0, 5, 4)
	for name, test := range map[string]struct {
		receives []fabric.Op
		taker    uint64
	}{
		"exact then wild":           {[]fabric.Op{exact, wild}, 1},
		"wild then exact":           {[]fabric.Op{wild, exact}, 2},
		"any source then named":     {[]fabric.Op{exact, named}, 1},
		"named then any source":     {[]fabric.Op{named, exact}, 3},
		"other tag is passed over":  {[]fabric.Op{other, wild}, 2},
		"other peer is passed over": {[]fabric.Op{elsewhere, named}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, NewNetwork(Faults{}), 3, DeviceConfig{})
			d[1].post(test.receives...)
			d[0].post(send(1, 7, "text"))
			require.Equal(t, test.taker, d[1].one().Context)
		})
	}
}

func TestIgnoredBitsMatchOnBothSides(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{})
	// The receive's own bits under the mask do not count either.
	d[1].post(receive(fabric.AddressAny, 0x1ff, 0xff, 1, 4), receive(fabric.AddressAny, 0x200, 0xff, 2, 4))
	d[0].post(send(1, 0x2ab, "b"), send(1, 0x1ab, "a"))
	got := d[1].turn()
	require.Len(t, got, 2)
	require.Equal(t, []uint64{2, 0x2ab, 1, 0x1ab}, []uint64{got[0].Context, got[0].Tag, got[1].Context, got[1].Tag})
}

func TestUnexpectedMessagesWaitInOrder(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 2, DeviceConfig{})
	d[0].post(send(1, 1, "one"), inject(1, 2, "two"), send(1, 3, "tri"))
	require.Empty(t, d[1].turn())
	require.Len(t, d[0].turn(), 2, "the messages have arrived: the sends are complete")
	require.EqualValues(t, 3, n.Stats().Unexpected)

	d[1].post(receive(fabric.AddressAny, 3, 0, 30, 3)) // a later one first
	require.EqualValues(t, 30, d[1].one().Context)
	wild := d[1].post(receive(fabric.AddressAny, 0, anyTag, 10, 3), receive(fabric.AddressAny, 0, anyTag, 20, 3))
	got := d[1].turn()
	require.Len(t, got, 2)
	require.Equal(t, []uint64{1, 2}, []uint64{got[0].Tag, got[1].Tag})
	require.Equal(t, []string{"one", "two"}, []string{string(wild[0].Buf), string(wild[1].Buf)})
}

func TestManyUnexpectedInOrderAndInReverse(t *testing.T) {
	const count = 1000
	for _, reverse := range []bool{false, true} {
		t.Run(fmt.Sprint(reverse), func(t *testing.T) {
			d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{MaxOperations: count})
			for tag := range uint64(count) {
				d[0].post(inject(1, tag, fmt.Sprint(tag)))
			}
			d[1].turn()
			for i := range uint64(count) {
				tag := i
				if reverse {
					tag = count - 1 - i
				}
				r := d[1].post(receive(fabric.AddressAny, tag, 0, tag, 8))
				c := d[1].one()
				require.Equal(t, tag, c.Tag)
				require.Equal(t, fmt.Sprint(tag), string(r[0].Buf[:c.Len]))
			}
		})
	}
}

func TestUnexpectedLimitHoldsSendersBack(t *testing.T) {
	n := NewNetwork(Faults{})
	d := open(t, n, 2, DeviceConfig{UnexpectedLimit: 2})
	d[0].post(send(1, 1, "one"), send(1, 2, "two"), send(1, 3, "tri"))
	require.Empty(t, d[1].turn())
	require.Len(t, d[0].turn(), 2, "the third message has no place to arrive at")
	require.True(t, d[1].Arm(), "a Turn alone would not help")

	more := []fabric.Op{send(1, 4, "for"), inject(1, 5, "fiv")}
	_, err := d[0].Turn(more, nil, 0)
	require.NoError(t, err)
	require.Equal(t, []fabric.Result{fabric.Refused, fabric.Refused}, []fabric.Result{more[0].Result, more[1].Result})

	for tag := uint64(1); tag <= 3; tag++ {
		d[1].post(receive(fabric.AddressAny, 0, anyTag, 0, 3))
		require.Equal(t, tag, d[1].one().Tag)
	}
	require.Len(t, d[0].turn(), 1)
	d[0].post(more...)
	require.EqualValues(t, 3, n.Stats().Unexpected)
}

func TestLimitIsPassedByWhatMatches(t *testing.T) {
	d := open(t, NewNetwork(Faults{}), 2, DeviceConfig{UnexpectedLimit: 1})
	d[0].post(send(1, 1, "one"), send(1, 2, "two"))
	d[1].turn()
	d[1].post(receive(fabric.AddressAny, 2, 0, 20, 3))
	require.EqualValues(t, 20, d[1].one().Context)
}

func TestTruncation(t *testing.T) {
	for _, room := range []int{0, 1, 4} {
		for _, unexpected := range []bool{false, true} {
			t.Run(fmt.Sprintf("room %d, unexpected %v", room, unexpected), func(t *testing.T) {
				n := NewNetwork(Faults{})
				d := open(t, n, 2, DeviceConfig{})
				memory := []byte("????????")
				short := receive(fabric.AddressAny, 1, 0, 10, 0)
				short.Buf = memory[:room]
				next := receive(fabric.AddressAny, 1, 0, 11, 8)
				if unexpected {
					d[0].post(send(1, 1, "too long"), send(1, 1, "next one"))
					d[1].turn()
					d[1].post(short, next)
				} else {
					d[1].post(short, next)
					d[0].post(send(1, 1, "too long"), send(1, 1, "next one"))
				}
				got := d[1].turn()
				require.Len(t, got, 2)
				require.ErrorIs(t, got[0].Err, fabric.ErrTruncated)
				require.Equal(t, fabric.Completion{
					Context: 10, Kind: fabric.OpTaggedReceive, Len: room, Source: fabric.AddressAny, Err: got[0].Err,
				}, got[0])
				var e *fabric.Error
				require.ErrorAs(t, got[0].Err, &e)
				require.Equal(t, 8-room, e.Excess)
				require.Equal(t, "too long"[:room]+"????????"[room:], string(memory))

				require.NoError(t, got[1].Err)
				require.Equal(t, "next one", string(next.Buf))
				for _, c := range d[0].turn() {
					require.NoError(t, c.Err, "the sender does not learn of it")
				}
				require.EqualValues(t, 1, n.Stats().Truncated)
			})
		}
	}
}
