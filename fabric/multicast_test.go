package fabric_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// multicastParty is a datagram endpoint with multicast, and its events.
func multicastParty(t *testing.T, source string) (*party, *fabric.EventQueue) {
	t.Helper()
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "udp", Endpoint: fabric.Datagram, Capabilities: fabric.Messages | fabric.Multicast,
		Source: source, MemoryMode: everyMemoryMode,
	})
	testenv.Need(t, "multicast", err)
	c := openCorner(t, infos[0])
	p, _ := c.endpoint(t, infos[0], fabric.Bindings{Events: c.events})
	return p, c.events
}

// groupAddress is that of the group of all hosts, which nobody outside is told
// about, with the port of an endpoint: its own format, with another host.
func groupAddress(t *testing.T, e *fabric.Endpoint) []byte {
	t.Helper()
	name, err := e.Name()
	require.NoError(t, err)
	require.Len(t, name, 16, "a sockaddr_in")
	copy(name[4:8], net.IPv4(224, 0, 0, 1).To4())
	return name
}

func TestMulticastJoin(t *testing.T) {
	p, events := multicastParty(t, "127.0.0.1")
	address := groupAddress(t, p.e)
	for range 2 {
		g, err := p.e.JoinMulticast(address, 0)
		require.NoError(t, err)
		event, ok, err := events.Read()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, fabric.JoinCompleteEvent{Multicast: g}, event)
		require.NotEqual(t, fabric.AddressAny, g.Address())
		require.ErrorIs(t, p.e.Close(), fabric.ErrBusy)
		require.NoError(t, g.Close())
		require.NoError(t, g.Close())
	}
	for name, wrong := range map[string][]byte{
		"none": nil, "short": address[:15], "of another family": append([]byte{10, 0}, address[2:]...),
	} {
		_, err := p.e.JoinMulticast(wrong, 0)
		require.ErrorIs(t, err, fabric.ErrInvalid, name)
	}
	_, err := p.e.JoinMulticast(address, fabric.Messages)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.NoError(t, p.e.Close())
	_, err = p.e.JoinMulticast(address, 0)
	require.ErrorIs(t, err, net.ErrClosed)
}

// Providers take the peer of a send to a group for what they have of one, in memory.
func TestMulticastOfNobody(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages)
		for _, peer := range []fabric.Address{0, a.peer, 1 << 50, fabric.AddressAny} {
			op := fabric.Op{Kind: fabric.OpSend, Peer: peer, Flags: fabric.ToMulticast, Buf: []byte("x")}
			require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrNotSupported)
		}
	})
}

func TestMulticastOfOthers(t *testing.T) {
	p, events := multicastParty(t, "127.0.0.1")
	g, err := p.e.JoinMulticast(groupAddress(t, p.e), 0)
	require.NoError(t, err)
	_, _, err = events.Read()
	require.NoError(t, err)
	own := g.Address()
	require.NoError(t, g.Close())
	for _, peer := range []fabric.Address{0, 1 << 50, own, fabric.AddressAny} {
		send := []fabric.Op{{Kind: fabric.OpSend, Peer: peer, Buf: []byte("to all"), Flags: fabric.ToMulticast}}
		_, err = p.e.Turn(send, nil, 0)
		require.NoError(t, err)
		require.Equal(t, fabric.Failed, send[0].Result)
		require.ErrorIs(t, send[0].Err, fabric.ErrNotFound)
	}
}

func TestMulticastSend(t *testing.T) {
	testenv.Need(t, "multicast on the loopback interface", multicastRoute())
	from, _ := multicastParty(t, "127.0.0.1")
	// What is bound to an address gets what is sent to that address alone.
	to, _ := multicastParty(t, "0.0.0.0")
	address := groupAddress(t, to.e)
	g, err := from.e.JoinMulticast(address, fabric.CanSend)
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	receiving, err := to.e.JoinMulticast(address, fabric.CanReceive)
	require.NoError(t, err)
	defer func() { require.NoError(t, receiving.Close()) }()

	got := make([]byte, 64)
	receive := []fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got}}
	_, err = to.e.Turn(receive, nil, 0)
	require.NoError(t, err)
	require.Equal(t, fabric.Posted, receive[0].Result)
	var completions [8]fabric.Completion
	send := []fabric.Op{{Kind: fabric.OpSend, Peer: g.Address(), Buf: []byte("to all"), Flags: fabric.ToMulticast}}
	_, err = from.e.Turn(send, completions[:], 0)
	require.NoError(t, err)
	require.NoError(t, send[0].Err)
	require.Equal(t, fabric.Posted, send[0].Result)
	for deadline := time.Now().Add(30 * time.Second); ; {
		n, err := to.e.Turn(nil, completions[:], 0)
		require.NoError(t, err)
		if n > 0 {
			require.NoError(t, completions[0].Err)
			require.Equal(t, "to all", string(got[:completions[0].Len]))
			return
		}
		require.True(t, time.Now().Before(deadline), "nothing arrived")
	}
}

// multicastRoute says whether what is sent to the group leaves the host. Nothing
// is sent to find out.
func multicastRoute() error {
	probe, err := net.Dial("udp4", "224.0.0.1:9")
	if err != nil {
		return err
	}
	defer probe.Close()
	if !probe.LocalAddr().(*net.UDPAddr).IP.IsLoopback() {
		return errors.New("it is routed to another interface")
	}
	return nil
}
