//go:build !asan

package fabric_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// among makes an errand of two parties.
func among(a, b *party, patient bool, op fabric.Op, forB ...fabric.Op) *errand {
	return &errand{
		sides: [2]turner{a, b}, patient: patient,
		posts: [2][]fabric.Op{{op}, forB}, want: [2]int{completions(op), len(forB)},
	}
}

// messages are what the endpoints of all types carry.
func messages(peer fabric.Address) (send, receive fabric.Op) {
	return fabric.Op{Kind: fabric.OpSend, Peer: peer, Buf: make([]byte, 64)},
		fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 256)}
}

func TestConnectedDoesNotAllocate(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		a, b := x.couple(t)
		patient := x.info.Provider() == "sockets"
		send, receive := messages(0)
		among(a, b, patient, send, receive).requireFree(t, "send")
		send.Kind = fabric.OpInject
		among(a, b, patient, send, receive).requireFree(t, "inject")
	})
}

func TestDatagramDoesNotAllocate(t *testing.T) {
	for _, provider := range []string{"udp", "sockets"} {
		t.Run(provider, func(t *testing.T) {
			info := datagramInfo(t, provider)
			c := openCorner(t, info)
			a, va := c.endpoint(t, info, fabric.Bindings{})
			b, _ := c.endpoint(t, info, fabric.Bindings{})
			send, receive := messages(insert(t, va, b.e))
			// A prefix, where the provider has one, is a part of both buffers.
			among(a, b, provider == "sockets", send, receive).requireFree(t, "send")
		})
	}
}

func TestTwoQueuesDoNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := datagramsFor(t, provider, fabric.Messages)
		c := openCorner(t, info)
		a, va := c.endpoint(t, info, fabric.Bindings{Events: c.events, Receive: c.queue(t)})
		b, _ := c.endpoint(t, info, fabric.Bindings{Events: c.events, Receive: c.queue(t)})
		send, receive := messages(insert(t, va, b.e))
		among(a, b, false, send, receive).requireFree(t, "send")
	})
}

func TestAliasDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := datagramsFor(t, provider, fabric.Messages)
		c := openCorner(t, info)
		a, va := c.endpoint(t, info, fabric.Bindings{Events: c.events})
		b, _ := c.endpoint(t, info, fabric.Bindings{Events: c.events})
		alias, err := a.e.OpenAlias(fabric.Sending, fabric.DeliveryComplete)
		testenv.Need(t, provider+" with aliases", err)
		t.Cleanup(func() { require.NoError(t, alias.Close()) })
		send, receive := messages(insert(t, va, b.e))
		among(&party{turner: alias}, b, provider == "sockets", send, receive).requireFree(t, "send")
	})
}

func TestContextsDoNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const bits = 1
		info := datagramsFor(t, provider, fabric.Messages|fabric.NamedReceiveContexts)
		if most := info.Limits().EndpointReceiveContexts; most < 2 {
			testenv.Need(t, provider+" with scalable endpoints", fmt.Errorf("it has %d contexts", most))
		}
		c := openCorner(t, info)
		several, err := info.WithContexts(2, 2)
		require.NoError(t, err)
		v := c.vector(t, fabric.AddressVectorConfig{ReceiveBits: bits})
		s, err := c.domain.OpenScalableEndpoint(several)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		require.NoError(t, s.Enable(v, c.events))
		ready := func(x *fabric.Context, err error) *party {
			require.NoError(t, err)
			q := c.queue(t)
			t.Cleanup(func() { require.NoError(t, x.Close()) })
			require.NoError(t, x.Enable(q))
			return &party{turner: x, q: q}
		}
		a, b := ready(s.OpenSend(0)), ready(s.OpenReceive(1))
		send, receive := messages(insert(t, v, s).Context(1, bits))
		among(a, b, true, send, receive).requireFree(t, "send")
	})
}

func TestSharedReceiveDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := datagramsFor(t, provider, fabric.Messages)
		c := openCorner(t, info)
		sharing, err := info.WithContexts(1, fabric.SharedContext)
		require.NoError(t, err)
		pool := c.queue(t)
		srx, err := c.domain.OpenSharedReceive(sharing, pool)
		testenv.Need(t, provider+" with shared receive contexts", err)
		t.Cleanup(func() { require.NoError(t, srx.Close()) })
		v := c.vector(t, fabric.AddressVectorConfig{})
		end, _ := c.endpoint(t, sharing, fabric.Bindings{Vector: v, Events: c.events, Receive: pool, SharedReceive: srx})
		from, _ := c.endpoint(t, info, fabric.Bindings{Vector: v, Events: c.events})
		send, receive := messages(insert(t, v, end.e))
		among(from, &party{turner: srx, q: pool}, true, send, receive).requireFree(t, "send")
	})
}

// An operation that waits for a counter, and the counter's change that begins
// it.
func TestPostWhenDoesNotAllocate(t *testing.T) {
	s := deferring(t, nil, nil)
	c := openCounter(t, s.domain)
	send := fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.a.peer, Tag: 1, Buf: make([]byte, 64)}
	receive := fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 64)}
	e := between(s.a, s.b, send, receive)
	e.posts[0], e.want[0] = nil, 1
	when := fabric.Trigger{Counter: c}
	var failed error
	one := func() {
		when.Threshold++
		err := s.a.e.PostWhen(&send, when)
		failed = errors.Join(failed, err, send.Err, c.Add(1))
		e.run()
	}
	one()
	requireFree(t, one, "post for later")
	require.NoError(t, errors.Join(failed, e.err))
}
