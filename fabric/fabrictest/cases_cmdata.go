package fabrictest

import (
	"bytes"
	"fmt"
	"net"

	"github.com/weft-go/weft/fabric"
)

var connectionDataCases = []named{
	{"lengths", connectionData},
	{"reject", reject},
	{"refused port", refusedPort},
	{"stranger", stranger},
	{"not accepted", notAccepted},
}

// Data of every length goes along with a request, with its acceptance and with
// its rejection, up to what the provider says.
func connectionData(t *trial) {
	x := openOffice(t)
	_, address := x.listen(t)
	most, err := x.caller(t).e.SizeOption(fabric.OptionConnectionData)
	noError(t, err)
	isTrue(t, most > 0, "room for data")
	for _, size := range []int{0, 1, 16, min(255, int(most)), int(most)} {
		t.sub(fmt.Sprint(size), func(t *trial) {
			request, answer := counting(size), counting(size + 7)[7:]
			a := x.caller(t)
			noError(t, a.e.Connect(address, request))
			r := x.request(t)
			equal(t, string(request), string(r.Data))
			equal(t, fabric.Connected, r.Info().Endpoint())
			b := x.answer(t, r)
			noError(t, b.e.Accept(answer))
			equal(t, string(answer), string(x.connected(t, a).Data))
			equal(t, 0, len(x.connected(t, b).Data))

			a = x.caller(t)
			noError(t, a.e.Connect(address, request))
			r = x.request(t)
			equal(t, string(request), string(r.Data))
			noError(t, r.Reject(answer))
			equal(t, string(answer), string(x.failed(t, a).Data))
		})
	}
}

// Who is rejected learns the reason, and a request is answered once.
func reject(t *trial) {
	x := openOffice(t)
	_, address := x.listen(t)
	for _, reason := range []string{"full", ""} {
		a := x.caller(t)
		noError(t, a.e.Connect(address, nil))
		r := x.request(t)
		errorIs(t, r.Reject(make([]byte, 1<<20)), fabric.ErrInvalid)
		noError(t, r.Reject([]byte(reason)))
		errorIs(t, r.Reject(nil), fabric.ErrInvalid, "twice")
		_, err := r.OpenEndpoint(x.domain)
		errorIs(t, err, fabric.ErrInvalid, "after reject")
		failure := x.failed(t, a)
		equal(t, reason, string(failure.Data))
		errorIs(t, failure, fabric.ErrUnreachable)
		errorIs(t, a.e.Connect(address, nil), fabric.ErrInvalid, "an endpoint connects once")
	}
}

// refused connects where the attempt must fail, in whichever way.
func (x *office) refused(t *trial, address []byte) error {
	t.Helper()
	a := x.caller(t)
	if err := a.e.Connect(address, []byte("anybody?")); err != nil {
		return err
	}
	return x.failed(t, a)
}

// Where nobody listens any more, an attempt ends with an error.
func refusedPort(t *trial) {
	x := openOffice(t)
	p, address := x.listen(t)
	noError(t, p.Close())
	errorIs(t, x.refused(t, address), fabric.ErrUnreachable)
}

// Who takes a request, and closes its endpoint in place of accepting, refuses it.
func notAccepted(t *trial) {
	x := openOffice(t)
	_, address := x.listen(t)
	a := x.caller(t)
	noError(t, a.e.Connect(address, nil))
	e, err := x.request(t).OpenEndpoint(x.domain)
	noError(t, err)
	noError(t, e.Close())
	errorIs(t, x.failed(t, a), fabric.ErrUnreachable)
}

// What answers need not be of libfabric.
func stranger(t *trial) {
	x := openOffice(t)
	if x.info.AddressFormat() != fabric.FormatIPv4 {
		t.need("strangers to connect to", fmt.Errorf("its addresses are of format %v", x.info.AddressFormat()))
	}
	for _, c := range []struct {
		name  string
		greet func(net.Conn)
		is    error // nil: any
	}{
		{"closes", func(net.Conn) {}, fabric.ErrUnreachable},
		{"says little", func(c net.Conn) { _, _ = c.Write([]byte{1}) }, fabric.ErrUnreachable},
		{"talks", func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte{0xff}, 1<<12)) }, nil},
	} {
		t.sub(c.name, func(t *trial) {
			l, err := net.Listen("tcp4", net.JoinHostPort(t.host(), "0"))
			noError(t, err)
			served := make(chan struct{})
			go func() {
				defer close(served)
				conn, err := l.Accept()
				if err != nil {
					return
				}
				c.greet(conn)
				conn.Close()
			}()
			defer func() {
				noError(t, l.Close())
				<-served
			}()
			failure := x.refused(t, sockaddr(l.Addr()))
			anError(t, failure)
			if c.is != nil {
				errorIs(t, failure, c.is)
			}
		})
	}
}

// sockaddr is how libfabric has an IPv4 address.
func sockaddr(a net.Addr) []byte {
	tcp := a.(*net.TCPAddr)
	s := make([]byte, 16)
	s[0], s[2], s[3] = 2, byte(tcp.Port>>8), byte(tcp.Port)
	copy(s[4:], tcp.IP.To4())
	return s
}
