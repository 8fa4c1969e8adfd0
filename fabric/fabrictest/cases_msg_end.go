package fabrictest

import (
	"os"

	"github.com/weft-go/weft/fabric"
)

// A peer that is gone without a word is noticed, and nothing can be sent to it
// any more.
func peerCloses(t *trial) {
	x := openOffice(t)
	a, b := x.couple(t)
	a.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
	noError(t, b.e.Close())
	a.others = nil
	x.ended(t, a, false)
	errorIs(t, a.post(t, fabric.Op{Kind: fabric.OpSend, Buf: []byte{1}}).Err, fabric.ErrUnreachable)
}

// A connection that is shut down on one side ends on both.
func shutdown(t *trial) {
	x := openOffice(t)
	a, b := x.couple(t)
	noError(t, a.e.Shutdown())
	x.ended(t, b, true)
	noError(t, a.e.Shutdown(), "again")
	noError(t, b.e.Shutdown(), "after the peer")
	for _, s := range []*station{a, b} {
		for _, kind := range []fabric.OpKind{fabric.OpSend, fabric.OpReceive, fabric.OpInject} {
			op := s.post(t, fabric.Op{Kind: kind, Buf: []byte{1}})
			equal(t, fabric.Failed, op.Result, "%v", kind)
			errorIs(t, op.Err, fabric.ErrUnreachable, "%v", kind)
		}
		_, err := s.e.Peer()
		errorIs(t, err, fabric.ErrInvalid)
	}
}

// A listener that closes refuses who is waiting, whether the request was read or
// not, and what was accepted goes on.
func closeListener(t *trial) {
	x := openOffice(t)
	p, address := x.listen(t)
	a, b := x.join(t, address)
	waiting := x.caller(t)
	noError(t, waiting.e.Connect(address, nil))
	r := x.request(t)
	noError(t, p.Close())
	noError(t, p.Close(), "twice")
	errorIs(t, x.failed(t, waiting), fabric.ErrUnreachable)
	isTrue(t, fabric.IsClosed(r.Reject(nil)), "a request of a listener that is closed")
	_, err := r.OpenEndpoint(x.domain)
	errorIs(t, err, fabric.ErrInvalid)
	isTrue(t, fabric.IsClosed(p.Listen(x.events)), "a listener that is closed")
	talk(t, a, b, []byte("on"))
}

// Connections that come and go leave no file descriptors behind.
func nothingLeft(t *trial) {
	x := openOffice(t)
	cycle := func() {
		t.Helper()
		t.sub("accepted", func(t *trial) {
			a, _ := x.couple(t)
			noError(t, a.e.Shutdown())
		})
		t.sub("not answered", func(t *trial) {
			p, address := x.listen(t)
			noError(t, x.caller(t).e.Connect(address, nil))
			x.request(t)
			noError(t, p.Close())
		})
	}
	cycle()
	before := descriptors(t)
	for range 5 {
		cycle()
		x.got = nil
	}
	isTrue(t, descriptors(t) <= before, "%d file descriptors, and %d before", descriptors(t), before)
}

func descriptors(t *trial) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	noError(t, err)
	return len(list)
}
