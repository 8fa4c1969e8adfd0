package fabric_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A socket of the program that has the number of an endpoint's port, but is of
// another kind, is not the endpoint's to close.
func TestOthersKeepTheirSockets(t *testing.T) {
	eachPort(t, func(t *testing.T, open func() fabric.Device) {
		d := open()
		name := d.LocalAddress()
		if !d.Attributes().IP {
			require.NoError(t, d.Close())
			return
		}
		at := &net.UDPAddr{IP: net.IP(name[4:8]), Port: int(name[2])<<8 | int(name[3])}
		mine, err := net.DialUDP("udp", at, &net.UDPAddr{IP: at.IP, Port: at.Port})
		require.NoError(t, err)
		require.NoError(t, d.Close())
		require.NoError(t, mine.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = mine.Write([]byte("still here"))
		require.NoError(t, err)
		buf := make([]byte, 20)
		n, err := mine.Read(buf)
		require.NoError(t, err)
		require.Equal(t, "still here", string(buf[:n]))
		require.NoError(t, mine.Close())
	})
}
