package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// eachConnected runs a test on every provider here that has connected endpoints.
func eachConnected(t *testing.T, test func(t *testing.T, x *exchangeOffice)) {
	for _, p := range []string{"sockets", "tcp", "net"} {
		t.Run(p, func(t *testing.T) {
			infos, err := fabric.Discover(fabric.Hints{
				Provider: p, Endpoint: fabric.Connected, Capabilities: fabric.Messages,
				MemoryMode: everyMemoryMode, Source: "127.0.0.1",
			})
			testenv.Need(t, p, err)
			test(t, openOffice(t, infos[0]))
		})
	}
}

// exchangeOffice is a fabric and a domain with one event queue, at which
// endpoints of both sides connect.
type exchangeOffice struct {
	info   *fabric.Info
	fabric *fabric.Fabric
	domain *fabric.Domain
	events *fabric.EventQueue
	queue  *fabric.CompletionQueue // of its endpoints, or nil: each has one
	got    []happening
}

func openOffice(t *testing.T, info *fabric.Info) *exchangeOffice {
	t.Helper()
	x := &exchangeOffice{info: info}
	x.fabric, x.domain = partsOf(t, info)
	x.events = eventsOf(t, x.fabric)
	return x
}

func TestConnectionState(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		p, err := x.fabric.OpenPassiveEndpoint(x.info)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close()) }()
		_, err = p.Name()
		require.ErrorIs(t, err, fabric.ErrInvalid, "before Listen")
		require.ErrorIs(t, p.Listen(nil), fabric.ErrInvalid)
		for _, n := range []int{-1, 0, 1 << 30} {
			require.ErrorIs(t, p.SetBacklog(n), fabric.ErrInvalid)
		}
		if err := p.SetBacklog(7); err != nil {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
		}
		require.NoError(t, p.Listen(x.events))
		require.ErrorIs(t, p.Listen(x.events), fabric.ErrInvalid, "twice")
		require.ErrorIs(t, p.SetBacklog(7), fabric.ErrInvalid, "after Listen")
		require.ErrorIs(t, x.events.Close(), fabric.ErrBusy)
		address, err := p.Name()
		require.NoError(t, err)

		e, err := x.domain.OpenEndpoint()
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		q, err := x.domain.OpenCompletionQueue(8)
		require.NoError(t, err)
		defer func() {
			require.NoError(t, e.Close())
			require.NoError(t, q.Close())
		}()
		require.ErrorIs(t, e.Connect(address, nil), fabric.ErrInvalid, "before EnableWith")
		for _, b := range []fabric.Bindings{
			{}, {Events: x.events}, {Send: q, Receive: q}, {Events: x.events, Send: q, Counters: make([]fabric.CounterBinding, 1)},
		} {
			require.ErrorIs(t, e.EnableWith(b), fabric.ErrInvalid)
		}
		require.NoError(t, e.EnableWith(fabric.Bindings{Events: x.events, Send: q, Receive: q}))
		require.ErrorIs(t, e.EnableWith(fabric.Bindings{Events: x.events, Send: q, Receive: q}), fabric.ErrInvalid)
		require.ErrorIs(t, e.SetName(address), fabric.ErrInvalid, "after EnableWith")
		require.ErrorIs(t, e.Accept(nil), fabric.ErrInvalid)
		require.ErrorIs(t, e.Shutdown(), fabric.ErrInvalid)
		_, err = e.Peer()
		require.ErrorIs(t, err, fabric.ErrInvalid)
		for _, bad := range [][]byte{nil, {1}, make([]byte, 16), address[:15], make([]byte, 300)} {
			require.ErrorIs(t, e.Connect(bad, nil), fabric.ErrInvalid)
		}
		require.ErrorIs(t, e.Connect(address, make([]byte, 1<<20)), fabric.ErrInvalid)
	})
}

// An endpoint that listens for no info, or for one without a source, would make
// providers read what is not there.
func TestPassiveEndpointNeedsSource(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		_, err := x.fabric.OpenPassiveEndpoint(nil)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		infos, err := fabric.Discover(fabric.Hints{Provider: "sockets", Endpoint: fabric.ReliableDatagram, Source: "127.0.0.1"})
		testenv.Need(t, "sockets", err)
		_, err = x.fabric.OpenPassiveEndpoint(infos[0])
		require.ErrorIs(t, err, fabric.ErrInvalid)
	})
}

// What libfabric has put into the info of a request is there for one endpoint: sockets would
// free it with each, and tcp look at what is freed.
func TestInfoOfRequestIsForItsEndpoint(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		_, address := x.listen(t)
		a := x.caller(t)
		require.NoError(t, a.e.Connect(address, nil))
		r := x.request(t)
		again, err := r.Info().WithContexts(1, 1)
		require.NoError(t, err)
		for _, info := range []*fabric.Info{r.Info(), again} {
			require.Equal(t, x.info.Provider(), info.Provider())
			// Of one listener at all of 127.0.0.0/8, sockets of libfabric 2.1 says another name.
			require.NotEmpty(t, info.Fabric())
			require.Equal(t, x.info.APIVersion(), info.APIVersion())
		}
		d, err := x.fabric.OpenDomain(r.Info())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		refused := func() {
			t.Helper()
			for _, info := range []*fabric.Info{r.Info(), again} {
				_, err := x.domain.OpenEndpointFor(info)
				require.ErrorIs(t, err, fabric.ErrInvalid)
				_, err = x.domain.OpenScalableEndpoint(info)
				require.ErrorIs(t, err, fabric.ErrInvalid)
			}
			_, err := d.OpenEndpoint()
			require.ErrorIs(t, err, fabric.ErrInvalid)
		}
		refused()
		_, err = r.OpenEndpoint(nil)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		e, err := r.OpenEndpoint(d)
		require.NoError(t, err)
		y := &exchangeOffice{info: x.info, fabric: x.fabric, domain: d, events: x.events}
		b := y.enable(t, e)
		refused()
		require.NoError(t, b.e.Accept(nil))
		x.connected(t, a)
		x.connected(t, b)
		other, err := d.OpenEndpointFor(x.info)
		require.NoError(t, err)
		require.NoError(t, y.enable(t, other).e.Connect(address, nil))
		require.NoError(t, x.request(t).Reject(nil))
	})
}

// What an endpoint that has accepted is to send comes too early until it is connected, and is
// not wrong: its peer may have said something before.
func TestSendBeforeConnectedEvent(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		_, address := x.listen(t)
		a := x.caller(t)
		require.NoError(t, a.e.Connect(address, nil))
		send := []fabric.Op{{Kind: fabric.OpSend, Buf: []byte("early")}, {Kind: fabric.OpSend, Buf: []byte("later")}}
		turn := func(p *party) {
			t.Helper()
			_, err := p.e.Turn(send, make([]fabric.Completion, 4), 0)
			require.NoError(t, err)
		}
		turn(a)
		require.ErrorIs(t, send[0].Err, fabric.ErrInvalid, "who calls knows when it is connected")
		e, err := x.request(t).OpenEndpoint(x.domain)
		require.NoError(t, err)
		b := x.enable(t, e)
		turn(b)
		require.ErrorIs(t, send[0].Err, fabric.ErrInvalid, "it was not accepted")
		require.NoError(t, b.e.Accept(nil))
		turn(b)
		for _, op := range send {
			require.Equal(t, fabric.Refused, op.Result)
			require.NoError(t, op.Err)
		}
		x.connected(t, a)
		x.connected(t, b)
		turn(b)
		require.Equal(t, fabric.Posted, send[0].Result)
		require.NoError(t, b.e.Shutdown())
		turn(b)
		require.Equal(t, fabric.Failed, send[0].Result)
	})
}
