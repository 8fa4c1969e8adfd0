package fabrictest

import (
	"bytes"

	"github.com/weft-go/weft/fabric"
)

var connectionCases = []named{
	{"messages both ways", connectedMessages},
	{"many connections", manyConnections},
	{"before connected", beforeConnected},
	{"close while connecting", closeWhileConnecting},
	{"peer closes", peerCloses},
	{"shutdown", shutdown},
	{"close listener", closeListener},
	{"nothing is left", nothingLeft},
}

// talk sends a message, and back what arrived.
func talk(t *trial, a, b *station, text []byte) {
	t.Helper()
	got, back := make([]byte, len(text)+1), make([]byte, len(text))
	b.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 2})
	a.must(t, fabric.Op{Kind: fabric.OpSend, Buf: text, Context: 1})
	equal(t, 1, a.done(t).Context)
	c := b.done(t)
	equal(t, 2, c.Context)
	equal(t, len(text), c.Len)
	a.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: back})
	b.must(t, fabric.Op{Kind: fabric.OpSend, Buf: got[:len(text)]})
	b.done(t)
	a.done(t)
	isTrue(t, bytes.Equal(text, back), "%d bytes and back", len(text))
}

func connectedMessages(t *trial) {
	x := openOffice(t)
	_, address := x.listen(t)
	a, b := x.join(t, address)
	peer, err := a.e.Peer()
	noError(t, err)
	equal(t, address[:8], peer[:8], "family, port and host")
	_, err = b.e.Peer()
	noError(t, err)
	name, err := a.e.Name()
	noError(t, err)
	equal(t, len(address), len(name))
	for _, size := range []int{0, 1, 64, 4096, 1 << 20} {
		talk(t, a, b, counting(size))
	}
	got := make([]byte, 8)
	b.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got})
	a.must(t, fabric.Op{Kind: fabric.OpInject, Buf: []byte("injected")})
	b.done(t)
	equal(t, "injected", string(got))
	idle(t, a, b)
}

// Many connect at once, and each has its own connection.
func manyConnections(t *trial) {
	x := openOffice(t)
	_, address := x.listen(t)
	const count = 12
	var callers, answers [count]*station
	for i := range callers {
		callers[i] = x.caller(t)
		noError(t, callers[i].e.Connect(address, []byte{byte(i)}))
	}
	for range count {
		r := x.request(t)
		b := x.answer(t, r)
		noError(t, b.e.Accept(r.Data))
		answers[r.Data[0]] = b
	}
	for i, a := range callers {
		equal(t, []byte{byte(i)}, x.connected(t, a).Data)
		x.connected(t, answers[i])
		pairUp(a, answers[i])
	}
	for i := range count {
		talk(t, callers[i], answers[i], []byte{byte(i)})
	}
	// One that ends leaves the others alone.
	noError(t, callers[0].e.Shutdown())
	x.ended(t, answers[0], true)
	talk(t, callers[1], answers[1], []byte{7})
}

// Receives that are posted before the connection is there take what comes
// first, and sends are refused until then.
func beforeConnected(t *trial) {
	x := openOffice(t)
	_, address := x.listen(t)
	a := x.caller(t)
	for _, kind := range []fabric.OpKind{fabric.OpSend, fabric.OpInject, fabric.OpTaggedSend} {
		op := a.post(t, fabric.Op{Kind: kind, Buf: []byte{1}})
		equal(t, fabric.Failed, op.Result, "%v", kind)
		errorIs(t, op.Err, fabric.ErrInvalid, "%v", kind)
		errorSays(t, op.Err, "not connected", "%v", kind)
	}
	zero(t, a.q.InFlight())
	noError(t, a.e.Connect(address, nil))
	b := x.answer(t, x.request(t))
	got := make([]byte, 16)
	b.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got})
	noError(t, b.e.Accept(nil))
	x.connected(t, a)
	x.connected(t, b)
	pairUp(a, b)
	a.must(t, fabric.Op{Kind: fabric.OpSend, Buf: []byte("early")})
	c := b.done(t)
	equal(t, "early", string(got[:c.Len]))
	a.done(t)
}

// Endpoints that close before they are connected leave the listener as it was.
func closeWhileConnecting(t *trial) {
	x := openOffice(t)
	_, address := x.listen(t)
	for range 4 {
		a := x.caller(t)
		noError(t, a.e.Connect(address, nil))
		noError(t, a.e.Close())
		_, err := a.e.Name()
		isTrue(t, fabric.IsClosed(err), "%v", err)
	}
	a := x.caller(t)
	noError(t, a.e.Connect(address, []byte("last")))
	for {
		r := x.request(t)
		if string(r.Data) != "last" {
			noError(t, r.Reject(nil))
			continue
		}
		b := x.answer(t, r)
		noError(t, b.e.Accept(nil))
		x.connected(t, a)
		x.connected(t, b)
		pairUp(a, b)
		talk(t, a, b, []byte("last"))
		return
	}
}
