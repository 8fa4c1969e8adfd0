package fabric_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Data of every length goes along with a request, with its acceptance and with
// its rejection, up to what the provider says.
func TestConnectionData(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		_, address := x.listen(t)
		asked := x.caller(t)
		most, err := asked.e.SizeOption(fabric.OptionConnectionData)
		require.NoError(t, err)
		require.GreaterOrEqual(t, most, uint64(256))
		for _, size := range []int{0, 1, 16, 255, int(most)} {
			t.Run(fmt.Sprint(size), func(t *testing.T) {
				request, answer := counting(size), counting(size + 7)[7:]
				a := x.caller(t)
				require.NoError(t, a.e.Connect(address, request))
				r := x.request(t)
				require.Equal(t, string(request), string(r.Data))
				b := x.answer(t, r)
				require.NoError(t, b.e.Accept(answer))
				require.Equal(t, string(answer), string(x.connected(t, a).Data))
				require.Empty(t, x.connected(t, b).Data)

				a = x.caller(t)
				require.NoError(t, a.e.Connect(address, request))
				r = x.request(t)
				require.Equal(t, string(request), string(r.Data))
				require.NoError(t, r.Reject(answer))
				require.Equal(t, string(answer), string(x.failed(t, a).Data))
			})
		}
	})
}
