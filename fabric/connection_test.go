package fabric_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"time"

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
	got    []happening
}

type happening struct {
	event fabric.Event
	err   error
}

func openOffice(t *testing.T, info *fabric.Info) *exchangeOffice {
	t.Helper()
	x := &exchangeOffice{info: info}
	var err error
	x.fabric, err = info.OpenFabric()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.fabric.Close()) })
	x.domain, err = x.fabric.OpenDomain(info)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.domain.Close()) })
	x.events, err = x.fabric.OpenEventQueue()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.events.Close()) })
	return x
}

func (x *exchangeOffice) listen(t *testing.T) (p *fabric.PassiveEndpoint, address []byte) {
	t.Helper()
	p, err := x.fabric.OpenPassiveEndpoint(x.info)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	require.NoError(t, p.Listen(x.events))
	address, err = p.Name()
	require.NoError(t, err)
	return p, address
}

// party is one side of an exchange: an endpoint, or a part of one.
type party struct {
	turner
	e   *fabric.Endpoint
	q   *fabric.CompletionQueue
	got []fabric.Completion
}

type turner interface {
	Turn(posts []fabric.Op, completions []fabric.Completion, spins int) (int, error)
	TurnWait(posts []fabric.Op, completions []fabric.Completion, waitMS int) (int, error)
}

func newParty(e *fabric.Endpoint, q *fabric.CompletionQueue) *party {
	return &party{turner: e, e: e, q: q}
}

// caller opens an endpoint that can connect.
func (x *exchangeOffice) caller(t *testing.T) *party {
	t.Helper()
	e, err := x.domain.OpenEndpoint()
	require.NoError(t, err)
	return x.enable(t, e)
}

func (x *exchangeOffice) answer(t *testing.T, r *fabric.ConnectionRequest) *party {
	t.Helper()
	e, err := r.OpenEndpoint(x.domain)
	require.NoError(t, err)
	return x.enable(t, e)
}

func (x *exchangeOffice) enable(t *testing.T, e *fabric.Endpoint) *party {
	t.Helper()
	q, err := x.domain.OpenCompletionQueue(64)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.EnableWith(fabric.Bindings{Send: q, Receive: q, Events: x.events}))
	return newParty(e, q)
}

// await returns the first event that fits, and keeps the others.
func (x *exchangeOffice) await(t *testing.T, what string, fits func(happening) bool) happening {
	t.Helper()
	for i, h := range x.got {
		if fits(h) {
			x.got = append(x.got[:i:i], x.got[i+1:]...)
			return h
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		event, err := x.events.ReadWait(ctx)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "no %s", what)
		h := happening{event, err}
		if fits(h) {
			return h
		}
		x.got = append(x.got, h)
	}
}

func (x *exchangeOffice) request(t *testing.T) *fabric.ConnectionRequest {
	t.Helper()
	h := x.await(t, "connection request", func(h happening) bool { _, ok := h.event.(*fabric.ConnectionRequest); return ok })
	return h.event.(*fabric.ConnectionRequest)
}

func (x *exchangeOffice) connected(t *testing.T, p *party) fabric.ConnectedEvent {
	t.Helper()
	h := x.await(t, "connected event", func(h happening) bool {
		c, ok := h.event.(fabric.ConnectedEvent)
		return ok && c.Endpoint == p.e
	})
	return h.event.(fabric.ConnectedEvent)
}

// ended turns the endpoint until it has been told of the end: tcp does not look
// by itself.
func (x *exchangeOffice) ended(t *testing.T, p *party) {
	t.Helper()
	is := func(h happening) bool {
		c, ok := h.event.(fabric.ShutdownEvent)
		return ok && c.Endpoint == p.e
	}
	for deadline := time.Now().Add(30 * time.Second); !slices.ContainsFunc(x.got, is); {
		require.True(t, time.Now().Before(deadline), "no shutdown event")
		p.turnWait(t, nil, 1)
		event, ok, err := x.events.Read()
		if ok {
			x.got = append(x.got, happening{event, err})
		}
	}
	x.got = slices.DeleteFunc(x.got, is)
}

func (x *exchangeOffice) failed(t *testing.T, p *party) *fabric.ConnectionError {
	t.Helper()
	var failure *fabric.ConnectionError
	x.await(t, "connection error", func(h happening) bool {
		return errors.As(h.err, &failure) && failure.Endpoint == p.e
	})
	return failure
}

// couple connects two endpoints.
func (x *exchangeOffice) couple(t *testing.T) (a, b *party) {
	t.Helper()
	_, address := x.listen(t)
	a = x.caller(t)
	require.NoError(t, a.e.Connect(address, nil))
	b = x.answer(t, x.request(t))
	require.NoError(t, b.e.Accept(nil))
	x.connected(t, a)
	x.connected(t, b)
	return a, b
}

func (p *party) turn(t *testing.T, posts []fabric.Op) {
	t.Helper()
	p.turnWait(t, posts, 0)
}

// turnWait blocks for up to wait milliseconds with nothing to read: providers
// with a thread of their own need the core.
func (p *party) turnWait(t *testing.T, posts []fabric.Op, wait int) {
	t.Helper()
	var buf [32]fabric.Completion
	var n int
	var err error
	if wait > 0 && p.q.WaitDescriptor() >= 0 {
		n, err = p.TurnWait(posts, buf[:], wait)
	} else {
		n, err = p.Turn(posts, buf[:], 0)
	}
	require.NoError(t, err)
	p.got = append(p.got, buf[:n]...)
}

// carry posts on both sides and turns them until each has its completions.
func carry(t *testing.T, a, b *party, postA, postB []fabric.Op, wantA, wantB int) (fromA, fromB []fabric.Completion) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	parties, posts := []*party{a, b}, [][]fabric.Op{postA, postB}
	for round := 0; len(a.got) < wantA || len(b.got) < wantB || len(posts[0])+len(posts[1]) > 0; round++ {
		require.True(t, time.Now().Before(deadline), "completions: %d of %d and %d of %d", len(a.got), wantA, len(b.got), wantB)
		for i, p := range parties {
			p.turnWait(t, posts[i], min(round, 1))
			var rest []fabric.Op
			for _, op := range posts[i] {
				require.NoError(t, op.Err)
				if op.Result == fabric.Refused {
					rest = append(rest, op)
				}
			}
			posts[i] = rest
		}
	}
	fromA, fromB, a.got, b.got = a.got, b.got, nil, nil
	return fromA, fromB
}

func TestConnection(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		_, address := x.listen(t)
		a := x.caller(t)
		require.NoError(t, a.e.Connect(address, []byte("may I come in?")))
		r := x.request(t)
		require.Equal(t, "may I come in?", string(r.Data))
		require.Equal(t, fabric.Connected, r.Info().Endpoint())
		b := x.answer(t, r)
		require.NoError(t, b.e.Accept([]byte("welcome")))
		require.Equal(t, "welcome", string(x.connected(t, a).Data))
		require.Empty(t, x.connected(t, b).Data)

		peer, err := a.e.Peer()
		require.NoError(t, err)
		require.Equal(t, address[:8], peer[:8], "family, port and host")
		_, err = b.e.Peer()
		require.NoError(t, err)
		name, err := a.e.Name()
		require.NoError(t, err)
		require.Len(t, name, len(address))

		for _, size := range []int{0, 1, 64, 4096, 1 << 20} {
			there, back := bytes.Repeat([]byte{1, 2, 3}, size/3+1)[:size], make([]byte, size)
			got := make([]byte, size+1)
			fromA, fromB := carry(t, a, b, []fabric.Op{{Kind: fabric.OpSend, Buf: there, Context: 1}},
				[]fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 2}}, 1, 1)
			require.NoError(t, errors.Join(fromA[0].Err, fromB[0].Err))
			require.EqualValues(t, 1, fromA[0].Context)
			require.EqualValues(t, 2, fromB[0].Context)
			require.Equal(t, size, fromB[0].Len)
			fromA, fromB = carry(t, a, b, []fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: back}},
				[]fabric.Op{{Kind: fabric.OpSend, Buf: got[:size]}}, 1, 1)
			require.NoError(t, errors.Join(fromA[0].Err, fromB[0].Err))
			require.True(t, bytes.Equal(there, back), "size %d", size)
		}
		got := make([]byte, 8)
		_, fromB := carry(t, a, b, []fabric.Op{{Kind: fabric.OpInject, Buf: []byte("injected")}},
			[]fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got}}, 0, 1)
		require.NoError(t, fromB[0].Err)
		require.Equal(t, "injected", string(got))

		require.NoError(t, a.e.Shutdown())
		x.ended(t, b)
		require.NoError(t, a.e.Shutdown(), "again")
		require.NoError(t, b.e.Shutdown(), "after the peer")
		for _, p := range []*party{a, b} {
			for _, kind := range []fabric.OpKind{fabric.OpSend, fabric.OpReceive, fabric.OpInject} {
				posts := []fabric.Op{{Kind: kind, Buf: []byte{1}}}
				p.turn(t, posts)
				require.Equal(t, fabric.Failed, posts[0].Result, kind)
				require.ErrorIs(t, posts[0].Err, fabric.ErrUnreachable, kind)
			}
			_, err := p.e.Peer()
			require.ErrorIs(t, err, fabric.ErrInvalid)
		}
	})
}

// Receives that are posted before the connection is there take what comes
// first, and sends are refused until then.
func TestBeforeConnected(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		_, address := x.listen(t)
		a := x.caller(t)
		for _, kind := range []fabric.OpKind{fabric.OpSend, fabric.OpInject, fabric.OpTaggedSend, fabric.OpWriteInject} {
			posts := []fabric.Op{{Kind: kind, Buf: []byte{1}}}
			a.turn(t, posts)
			require.Equal(t, fabric.Failed, posts[0].Result, kind)
			require.ErrorIs(t, posts[0].Err, fabric.ErrInvalid, kind)
			require.ErrorContains(t, posts[0].Err, "not connected", kind)
		}
		require.Zero(t, a.q.InFlight())
		require.NoError(t, a.e.Connect(address, nil))
		b := x.answer(t, x.request(t))
		got := make([]byte, 16)
		early := []fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got}}
		b.turn(t, early)
		require.Equal(t, fabric.Posted, early[0].Result)
		require.NoError(t, b.e.Accept(nil))
		x.connected(t, a)
		x.connected(t, b)
		_, fromB := carry(t, a, b, []fabric.Op{{Kind: fabric.OpSend, Buf: []byte("early")}}, nil, 1, 1)
		require.NoError(t, fromB[0].Err)
		require.Equal(t, "early", string(got[:fromB[0].Len]))
	})
}

func TestReject(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		_, address := x.listen(t)
		for _, reason := range []string{"full", ""} {
			a := x.caller(t)
			require.NoError(t, a.e.Connect(address, nil))
			r := x.request(t)
			require.ErrorIs(t, r.Reject(make([]byte, 1<<20)), fabric.ErrInvalid)
			require.NoError(t, r.Reject([]byte(reason)))
			require.ErrorIs(t, r.Reject(nil), fabric.ErrInvalid, "twice")
			_, err := r.OpenEndpoint(x.domain)
			require.ErrorIs(t, err, fabric.ErrInvalid, "after reject")
			failure := x.failed(t, a)
			require.Equal(t, reason, string(failure.Data))
			require.ErrorIs(t, failure, fabric.ErrUnreachable)
			require.ErrorIs(t, a.e.Connect(address, nil), fabric.ErrInvalid, "an endpoint connects once")
		}
	})
}

// refused connects where the attempt must fail, in whichever way.
func (x *exchangeOffice) refused(t *testing.T, address []byte) error {
	t.Helper()
	a := x.caller(t)
	if err := a.e.Connect(address, []byte("anybody?")); err != nil {
		return err
	}
	return x.failed(t, a)
}

func TestRefusedPort(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		p, address := x.listen(t)
		require.NoError(t, p.Close())
		require.ErrorIs(t, x.refused(t, address), fabric.ErrUnreachable)
	})
}

// What answers need not be of libfabric.
func TestConnectToStranger(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		for name, greet := range map[string]func(net.Conn){
			"closes": func(net.Conn) {},
			"talks":  func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte{0xff}, 1<<12)) },
		} {
			t.Run(name, func(t *testing.T) {
				l, err := net.Listen("tcp4", "127.0.0.1:0")
				require.NoError(t, err)
				served := make(chan struct{})
				go func() {
					defer close(served)
					c, err := l.Accept()
					if err != nil {
						return
					}
					greet(c)
					c.Close()
				}()
				defer func() {
					require.NoError(t, l.Close())
					<-served
				}()
				require.Error(t, x.refused(t, sockaddr(l.Addr())))
			})
		}
	})
}

// sockaddr is how libfabric has an IPv4 address.
func sockaddr(a net.Addr) []byte {
	tcp := a.(*net.TCPAddr)
	s := make([]byte, 16)
	s[0], s[2], s[3] = 2, byte(tcp.Port>>8), byte(tcp.Port)
	copy(s[4:], tcp.IP.To4())
	return s
}

func TestCloseWhileConnecting(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		_, address := x.listen(t)
		for range 4 {
			a := x.caller(t)
			require.NoError(t, a.e.Connect(address, nil))
			require.NoError(t, a.e.Close())
			_, err := a.e.Name()
			require.ErrorIs(t, err, net.ErrClosed)
		}
		// The listener is none the worse for it.
		a := x.caller(t)
		require.NoError(t, a.e.Connect(address, []byte("last")))
		for {
			r := x.request(t)
			if string(r.Data) != "last" {
				require.NoError(t, r.Reject(nil))
				continue
			}
			b := x.answer(t, r)
			require.NoError(t, b.e.Accept(nil))
			x.connected(t, a)
			x.connected(t, b)
			return
		}
	})
}

func TestPeerClosesWithoutShutdown(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		a, b := x.couple(t)
		post := []fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)}}
		a.turn(t, post)
		require.Equal(t, fabric.Posted, post[0].Result)
		require.NoError(t, b.e.Close())
		for deadline := time.Now().Add(30 * time.Second); ; {
			// tcp sees it in the data path, others in the event queue.
			require.True(t, time.Now().Before(deadline))
			a.turn(t, nil)
			event, ok, err := x.events.Read()
			var failure *fabric.ConnectionError
			if end, is := event.(fabric.ShutdownEvent); ok && (is && end.Endpoint == a.e || errors.As(err, &failure) && failure.Endpoint == a.e) {
				break
			}
		}
		posts := []fabric.Op{{Kind: fabric.OpSend, Buf: []byte{1}}}
		a.turn(t, posts)
		require.ErrorIs(t, posts[0].Err, fabric.ErrUnreachable)
	})
}

// A listener that closes refuses who is waiting, whether the request was read or
// not, and what was accepted goes on.
func TestCloseListener(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		p, address := x.listen(t)
		a := x.caller(t)
		require.NoError(t, a.e.Connect(address, nil))
		b := x.answer(t, x.request(t))
		require.NoError(t, b.e.Accept(nil))
		x.connected(t, a)
		x.connected(t, b)
		read := x.caller(t)
		require.NoError(t, read.e.Connect(address, nil))
		r := x.request(t)
		require.NoError(t, p.Close())
		require.NoError(t, p.Close(), "twice")
		require.ErrorIs(t, x.failed(t, read), fabric.ErrUnreachable)
		require.ErrorIs(t, r.Reject(nil), net.ErrClosed)
		_, err := r.OpenEndpoint(x.domain)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.ErrorIs(t, p.Listen(x.events), net.ErrClosed)
		got := make([]byte, 4)
		_, fromB := carry(t, a, b, []fabric.Op{{Kind: fabric.OpSend, Buf: []byte("on")}},
			[]fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got}}, 1, 1)
		require.NoError(t, fromB[0].Err)
		require.Equal(t, "on", string(got[:2]))
	})
}

func TestManyConnections(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		_, address := x.listen(t)
		const count = 12
		var callers, answers []*party
		for i := range count {
			a := x.caller(t)
			require.NoError(t, a.e.Connect(address, []byte{byte(i)}))
			callers = append(callers, a)
		}
		order := make(map[int]*party)
		for range count {
			r := x.request(t)
			b := x.answer(t, r)
			require.NoError(t, b.e.Accept(r.Data))
			order[int(r.Data[0])] = b
		}
		for i, a := range callers {
			require.Equal(t, []byte{byte(i)}, x.connected(t, a).Data)
			answers = append(answers, order[i])
			x.connected(t, order[i])
		}
		for i := range count {
			got := make([]byte, 1)
			_, fromB := carry(t, callers[i], answers[i], []fabric.Op{{Kind: fabric.OpSend, Buf: []byte{byte(i)}}},
				[]fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got}}, 1, 1)
			require.NoError(t, fromB[0].Err)
			require.Equal(t, byte(i), got[0])
		}
		// One that ends leaves the others alone.
		require.NoError(t, callers[0].e.Shutdown())
		x.ended(t, answers[0])
		got := make([]byte, 1)
		_, fromB := carry(t, callers[1], answers[1], []fabric.Op{{Kind: fabric.OpSend, Buf: []byte{7}}},
			[]fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got}}, 1, 1)
		require.NoError(t, fromB[0].Err)
	})
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

// Connections that come and go leave no file descriptors behind.
func TestConnectionsLeaveNothing(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		cycle := func() {
			t.Helper()
			t.Run("", func(t *testing.T) {
				a, _ := x.couple(t)
				require.NoError(t, a.e.Shutdown())
			})
			t.Run("", func(t *testing.T) {
				p, address := x.listen(t)
				require.NoError(t, x.caller(t).e.Connect(address, nil))
				x.request(t)
				require.NoError(t, p.Close())
			})
		}
		cycle()
		before := descriptors(t)
		for range 5 {
			cycle()
			x.got = nil
		}
		require.LessOrEqual(t, descriptors(t), before)
	})
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}
