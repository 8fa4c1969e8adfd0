package fabric_test

import (
	"cmp"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// What was never opened, and an info that nobody has found, are errors: libfabric, which
// would look into them, is not called.
func TestNothingThere(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{Provider: "sockets", Endpoint: fabric.ReliableDatagram, Source: "127.0.0.1"})
	testenv.Need(t, "sockets", err)
	info := infos[0]
	f, d := partsOf(t, info)
	q := queueOf(t, d, 4)
	second := func(_ any, err error) error { return err }
	for name, none := range map[string]*fabric.Info{"nil": nil, "zero": new(fabric.Info)} {
		t.Run(name+" info", func(t *testing.T) {
			for what, err := range map[string]error{
				"Info.OpenFabric":             second(none.OpenFabric()),
				"Info.WithContexts":           second(none.WithContexts(1, 1)),
				"Fabric.OpenDomain":           second(f.OpenDomain(none)),
				"Fabric.OpenPassiveEndpoint":  second(f.OpenPassiveEndpoint(none)),
				"Domain.OpenEndpointFor":      second(d.OpenEndpointFor(none)),
				"Domain.OpenScalableEndpoint": second(d.OpenScalableEndpoint(none)),
				"Domain.OpenSharedSend":       second(d.OpenSharedSend(none)),
				"Domain.OpenSharedReceive":    second(d.OpenSharedReceive(none, q)),
				"OpenPort":                    second(fabric.OpenPort(none, fabric.PortConfig{})),
			} {
				require.ErrorIs(t, err, fabric.ErrInvalid, what)
			}
		})
	}
	closed, err := d.OpenCounter()
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	v, ev, e := vectorOf(t, d), eventsOf(t, f), endpointOf(t, d)
	for name, b := range map[string]fabric.Bindings{
		"vector":         {Vector: new(fabric.AddressVector)},
		"send queue":     {Send: new(fabric.CompletionQueue)},
		"receive queue":  {Receive: new(fabric.CompletionQueue)},
		"events":         {Events: new(fabric.EventQueue)},
		"shared send":    {SharedSend: new(fabric.SharedSend)},
		"shared receive": {SharedReceive: new(fabric.SharedReceive)},
		"no counter":     {Counters: []fabric.CounterBinding{{Events: fabric.CountSends}}},
		"zero counter":   {Counters: []fabric.CounterBinding{{Counter: new(fabric.Counter), Events: fabric.CountSends}}},
		"closed counter": {Counters: []fabric.CounterBinding{{Counter: closed, Events: fabric.CountSends}}},
	} {
		b.Vector, b.Send = cmp.Or(b.Vector, v), cmp.Or(b.Send, q)
		b.Receive, b.Events = cmp.Or(b.Receive, q), cmp.Or(b.Events, ev)
		want := fabric.ErrInvalid
		if name == "closed counter" {
			want = net.ErrClosed
		}
		require.ErrorIs(t, e.EnableWith(b), want, name)
	}
	require.NoError(t, e.Enable(v, q, ev), "what was refused has bound nothing")
	_, _, eventErr := new(fabric.EventQueue).Read()
	_, turnErr := new(fabric.Endpoint).Turn(nil, nil, 0)
	for what, err := range map[string]error{
		"Fabric.OpenEventQueue":      second(new(fabric.Fabric).OpenEventQueue()),
		"Fabric.OpenDomain":          second(new(fabric.Fabric).OpenDomain(info)),
		"Fabric.Close":               new(fabric.Fabric).Close(),
		"Domain.OpenCompletionQueue": second(new(fabric.Domain).OpenCompletionQueue(4)),
		"Domain.Register":            second(new(fabric.Domain).Register(make([]byte, 8))),
		"CompletionQueue.Read":       second(new(fabric.CompletionQueue).Read(make([]fabric.Completion, 1), 0)),
		"CompletionQueue.Signal":     new(fabric.CompletionQueue).Signal(),
		"EventQueue.Read":            eventErr,
		"EventQueue.Close":           new(fabric.EventQueue).Close(),
		"AddressVector.Insert":       second(new(fabric.AddressVector).Insert([]byte{1})),
		"Counter.Read":               second(new(fabric.Counter).Read()),
		"Counter.Wait":               new(fabric.Counter).Wait(t.Context(), 1),
		"Counter.Close":              new(fabric.Counter).Close(),
		"Endpoint.Turn":              turnErr,
		"Endpoint.Name":              second(new(fabric.Endpoint).Name()),
		"Region.Remote":              second(new(fabric.Region).Remote()),
		"Region.Close":               new(fabric.Region).Close(),
		"PassiveEndpoint.Name":       second(new(fabric.PassiveEndpoint).Name()),
		"ScalableEndpoint.Name":      second(new(fabric.ScalableEndpoint).Name()),
		"Arena.Register":             second(new(fabric.Arena).Register(d, fabric.RegionConfig{})),
		"Arena.Register without":     second(new(fabric.Arena).Register(nil, fabric.RegionConfig{})),
		"Arena.Close":                new(fabric.Arena).Close(),
		"NewPool without":            second(fabric.NewPool(nil, fabric.PoolConfig{Smallest: 64})),
		"NewPool":                    second(fabric.NewPool(new(fabric.Arena), fabric.PoolConfig{Smallest: 64})),
		"Buffer.Put":                 fabric.Buffer{}.Put(),
		"Buffer.Remote":              second(fabric.Buffer{}.Remote()),
		"Request.OpenEndpoint":       second(new(fabric.ConnectionRequest).OpenEndpoint(d)),
		"Request.Reject":             new(fabric.ConnectionRequest).Reject(nil),
	} {
		require.ErrorIs(t, err, fabric.ErrInvalid, what)
	}
}

// An endpoint with one completion queue does nothing in the other direction, on any
// provider, whether its info says so or not.
func TestOneDirection(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for name, caps := range map[string][2]fabric.Capabilities{
			"of both": {fabric.TaggedMessages, fabric.TaggedMessages},
			"of one":  {fabric.TaggedMessages | fabric.CanSend, fabric.TaggedMessages | fabric.CanReceive},
		} {
			t.Run(name, func(t *testing.T) {
				var ends [2]*station
				for i := range ends {
					info := datagramsFor(t, provider, caps[i])
					c := openCorner(t, info)
					s := &station{info: info, domain: c.domain, q: c.queue(t), v: c.vector(t, fabric.AddressVectorConfig{})}
					s.e = endpointOf(t, c.domain)
					b := fabric.Bindings{Vector: s.v, Events: c.events, Send: s.q}
					if i == 1 {
						b.Send, b.Receive = nil, s.q
					}
					require.NoError(t, s.e.EnableWith(b))
					ends[i] = s
				}
				sends, receives := ends[0], ends[1]
				sends.peer, receives.peer = sends.insert(t, receives), receives.insert(t, sends)
				refused := func(s *station, op fabric.Op) {
					t.Helper()
					posts := []fabric.Op{op}
					_, err := s.e.Turn(posts, nil, 0)
					require.NoError(t, err)
					require.Equal(t, fabric.Failed, posts[0].Result)
					require.ErrorIs(t, posts[0].Err, fabric.ErrInvalid)
				}
				buf := make([]byte, 8)
				refused(sends, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: buf})
				refused(receives, fabric.Op{Kind: fabric.OpTaggedSend, Peer: receives.peer, Buf: []byte("back")})
				refused(receives, fabric.Op{Kind: fabric.OpTaggedInject, Peer: receives.peer, Buf: []byte("back")})

				receives.must(t, sends, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: buf, Context: 1})
				sends.must(t, receives, fabric.Op{Kind: fabric.OpTaggedSend, Peer: sends.peer, Buf: []byte("one way"), Context: 2})
				done := receives.await(t, sends)
				require.NoError(t, done.Err)
				require.Equal(t, "one way", string(buf[:done.Len]))
				done = sends.await(t, receives)
				require.NoError(t, done.Err)
				require.EqualValues(t, 2, done.Context)
				require.Zero(t, sends.q.InFlight())
				require.Zero(t, receives.q.InFlight())
			})
		}
	})
}

// A token of another endpoint's other direction is nothing to cancel.
func TestCancelOfOtherDirection(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, _ := stations(t, provider, fabric.TaggedMessages)
		f, d := partsOf(t, a.info)
		e, err := d.OpenEndpoint()
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		require.NoError(t, e.EnableWith(fabric.Bindings{Vector: vectorOf(t, d), Send: queueOf(t, d, 4), Events: eventsOf(t, f)}))
		for _, token := range []fabric.Token{0, 1, 1 << 63, 1<<63 | 1<<32, ^fabric.Token(0)} {
			require.NoError(t, e.Cancel(token))
		}
	})
}
