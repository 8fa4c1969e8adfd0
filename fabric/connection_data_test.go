package fabric_test

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Data go along up to what the provider takes. More are refused in words, and nothing is done: the
// endpoint may connect still, and the request be answered.
func TestConnectionData(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		p, address := x.listen(t)
		most, err := p.SizeOption(fabric.OptionConnectionData)
		require.NoError(t, err)
		says := func(err error, n int) {
			t.Helper()
			require.ErrorIs(t, err, fabric.ErrInvalid)
			require.ErrorContains(t, err, strconv.Itoa(n)+" bytes of data, where "+strconv.FormatUint(most, 10)+" are the most")
		}
		tooLong := []int{int(most) + 1, 2 * int(most), 4096, 1 << 20}
		data := bytes.Repeat([]byte("data"), 1+int(most)/4)[:most]

		// A request that is accepted, and one that is rejected.
		for _, accepts := range []bool{true, false} {
			from := x.caller(t)
			for _, n := range tooLong {
				says(from.e.Connect(address, make([]byte, n)), n)
			}
			require.NoError(t, from.e.Connect(address, data))
			r := x.request(t)
			require.Equal(t, data, r.Data)
			if accepts {
				to := x.answer(t, r)
				for _, n := range tooLong {
					says(to.e.Accept(make([]byte, n)), n)
				}
				require.NoError(t, to.e.Accept(data))
				require.Equal(t, data, x.connected(t, from).Data)
				x.connected(t, to)
				continue
			}
			for _, n := range tooLong {
				says(r.Reject(make([]byte, n)), n)
			}
			require.NoError(t, r.Reject(data))
			var refused *fabric.ConnectionError
			x.await(t, "refusal", func(h happening) bool { return errors.As(h.err, &refused) && refused.Endpoint == from.e })
			require.Equal(t, data, refused.Data)
		}
	})
}
