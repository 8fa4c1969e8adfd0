package fabric_test

import (
	"encoding/binary"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// eachThatListens is eachWithLayers for the providers whose endpoints listen at an address of tcp.
func eachThatListens(t *testing.T, test func(t *testing.T, provider string)) {
	eachWithLayers(t, func(t *testing.T, provider string) {
		if strings.HasPrefix(provider, "tcp") {
			test(t, provider)
		}
	})
}

// An endpoint that was refused its address has none: enabling it is refused with words, binds nothing,
// and works when it has got another.
func TestEnableWithoutAddress(t *testing.T) {
	eachThatListens(t, func(t *testing.T, provider string) {
		info := datagramsFor(t, provider, fabric.TaggedMessages)
		c := openCorner(t, info)
		q, v := c.queue(t), c.vector(t, fabric.AddressVectorConfig{})
		for _, again := range []bool{false, true} {
			e := endpointOf(t, c.domain)
			require.ErrorIs(t, e.SetName(ipv4(9, 9, 9, 9)), syscall.EADDRNOTAVAIL)
			err := e.Enable(v, q, c.events)
			require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
			require.ErrorContains(t, err, "SetName was refused 9.9.9.9")
			if again {
				require.NoError(t, e.SetName(ipv4(127, 0, 0, 1)))
				require.NoError(t, e.Enable(v, q, c.events))
			}
			require.NoError(t, e.Close())
		}
	})
}

func ipv4(host ...byte) []byte {
	address := make([]byte, 16)
	address[0] = syscall.AF_INET
	copy(address[4:], host)
	return address
}

// Two endpoints may have one address as long as neither listens there. The one that cannot be enabled is
// closed like any other: libfabric 2.1 ended the process, because it freed what it had freed when it failed.
func TestEnableWhereAnotherListens(t *testing.T) {
	eachThatListens(t, func(t *testing.T, provider string) {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(free.Addr().String())
		require.NoError(t, err)
		require.NoError(t, free.Close())
		infos, err := fabric.Discover(fabric.Hints{
			Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: fabric.TaggedMessages,
			MemoryMode: everyMemoryMode, Source: "127.0.0.1", Service: port,
		})
		require.NoError(t, err)
		c := openCorner(t, infos[0])
		v, q := c.vector(t, fabric.AddressVectorConfig{}), c.queue(t)
		others, reads := c.vector(t, fabric.AddressVectorConfig{}), c.queue(t)
		first, second := endpointOf(t, c.domain), endpointOf(t, c.domain)
		require.NoError(t, first.Enable(others, reads, c.events))
		require.ErrorIs(t, second.Enable(v, q, c.events), syscall.EADDRINUSE)
		require.ErrorIs(t, second.Enable(v, q, c.events), fabric.ErrInvalid, "again")
		require.NoError(t, second.Close())
		require.NoError(t, q.Close())
		require.NoError(t, v.Close())
	})
}

// A passive endpoint that was refused its address has none either: Listen says which one it was, binds
// nothing, and works when the endpoint has got another.
func TestListenWithoutAddress(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		for _, again := range []bool{false, true} {
			p, err := x.fabric.OpenPassiveEndpoint(x.info)
			require.NoError(t, err)
			require.ErrorIs(t, p.SetName(ipv4(9, 9, 9, 9)), syscall.EADDRNOTAVAIL)
			err = p.Listen(x.events)
			require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
			require.ErrorContains(t, err, "SetName was refused 9.9.9.9")
			_, err = p.Name()
			require.ErrorIs(t, err, fabric.ErrInvalid, "it does not listen")
			if again {
				require.NoError(t, p.SetName(ipv4(127, 0, 0, 1)))
				require.NoError(t, p.Listen(x.events))
				address, err := p.Name()
				require.NoError(t, err)
				a := x.caller(t)
				require.NoError(t, a.e.Connect(address, nil))
				require.NoError(t, x.request(t).Reject(nil))
			}
			require.NoError(t, p.Close())
		}
	})
}

// What libfabric has not let listen does not listen, and is not said to.
func TestListenWhereAnotherListens(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		address := ipv4(127, 0, 0, 1)
		binary.BigEndian.PutUint16(address[2:], uint16(free.Addr().(*net.TCPAddr).Port))
		require.NoError(t, free.Close())
		var both [2]*fabric.PassiveEndpoint
		for i := range both {
			both[i], err = x.fabric.OpenPassiveEndpoint(x.info)
			require.NoError(t, err)
			defer func() { require.NoError(t, both[i].Close()) }()
			if err := both[i].SetName(address); err != nil {
				require.ErrorIs(t, err, syscall.EADDRINUSE, "sockets looks at once")
				return
			}
		}
		require.NoError(t, both[0].Listen(x.events))
		require.ErrorIs(t, both[1].Listen(x.events), syscall.EADDRINUSE)
		for range 2 {
			_, err = both[1].Name()
			require.ErrorContains(t, err, "does not listen")
			for _, err := range []error{both[1].Listen(x.events), both[1].SetName(address), both[1].SetBacklog(1)} {
				require.ErrorContains(t, err, "can only be closed")
			}
		}
	})
}
