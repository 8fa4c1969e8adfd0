package fabric

import (
	"cmp"
	"encoding/binary"
	"errors"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// connection is how far the connection of an endpoint is, if it needs one, and
// which operations are not for it. The zero connection restricts nothing.
type connection struct {
	info  *Info // that the endpoint was opened with; nil: the domain's
	part  part
	stage atomic.Int32
	// restricted is the one thing to look at for each operation.
	restricted atomic.Bool
	request    *ConnectionRequest // that an accepting endpoint is for
	events     *EventQueue        // nil until the endpoint is enabled
	of         *Endpoint          // that this one is an alias of, or nil
}

// part is what of an endpoint a handle stands for.
type part uint8

const (
	wholeEndpoint   part = iota
	transmitContext      // of a scalable endpoint
	receiveContext       // likewise
	sharedReceive        // fi_srx_context
	sharingReceive       // an endpoint that receives into a shared context
)

// The stages of a connected endpoint's life.
const (
	unconnected int32 = iota
	connecting        // Connect or Accept was called
	established
	ended
)

func (c *connection) begin() {
	if c.stage.CompareAndSwap(unconnected, established) || c.stage.CompareAndSwap(connecting, established) {
		c.restricted.Store(c.part != wholeEndpoint)
	}
}

func (c *connection) end() {
	if c.stage.Swap(ended) != ended {
		c.restricted.Store(true)
	}
}

// refuses says why an operation is not to be posted, or "".
func (c *connection) refuses(e *Endpoint, receive bool) (Errno, string) {
	if c.of != nil {
		e, c = c.of, &c.of.connection
	}
	switch {
	case !c.restricted.Load():
		return 0, ""
	case receive && c.part == transmitContext:
		return errnoInvalid, "a transmit context does not receive"
	case receive && c.part == sharingReceive:
		return errnoInvalid, "receives are posted to the shared receive context"
	case !receive && (c.part == receiveContext || c.part == sharedReceive):
		return errnoInvalid, "a receive context does not send"
	case e.Info().Endpoint() != Connected || c.part == sharedReceive:
		return 0, ""
	}
	switch stage := c.stage.Load(); {
	case stage == ended:
		return Errno(syscall.ENOTCONN), "the connection has ended"
	case stage != established && !receive:
		return errnoInvalid, "the endpoint is not connected: it can send once its event queue has given its ConnectedEvent"
	}
	return 0, ""
}

// comes says that the endpoint has accepted a connection whose ConnectedEvent was not read
// yet. A message of the peer may be there before it, on sockets, and an answer to that is not
// wrong but too early.
func (c *connection) comes() bool {
	if c.of != nil {
		c = &c.of.connection
	}
	return c.request != nil && c.stage.Load() == connecting
}

// Info is what the endpoint was opened with.
func (e *Endpoint) Info() *Info {
	switch {
	case e.connection.info != nil:
		return e.connection.info
	case e.domain == nil:
		return new(Info)
	}
	return e.domain.info
}

// OpenEndpointFor makes an endpoint as the info describes it, where that is not
// the info that the domain was opened with: one with shared contexts, or one of
// another type that the domain has too. It can be used after EnableWith. ErrInvalid
// says that there is no info, or that it has more contexts than an endpoint here.
//
// Implements: int fi_endpoint(...)
func (d *Domain) OpenEndpointFor(i *Info) (*Endpoint, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := i.there("fi_endpoint"); err != nil {
		return nil, err
	}
	if detail := i.wrong(d.provider); detail != "" {
		return nil, d.invalid("fi_endpoint", detail)
	}
	if detail := i.tooManyContexts(false); detail != "" {
		return nil, d.invalid("fi_endpoint", detail)
	}
	return d.openEndpoint(i)
}

func (d *Domain) openEndpoint(i *Info) (*Endpoint, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	var raw cgo.Endpoint
	var code cgo.Code
	var made *links
	own, modes, unasked := fetches(i), int32(0), namesSources(i)
	if own {
		modes = cgo.MRLocal
	}
	if c := core(d.provider); (c == "shm" || c == "efa") && LibraryVersion().Major < 2 {
		// Without it, a killed peer may hold up everything for ever. It is not known to fail.
		cgo.BreakAbandonedLocks()
	}
	open := func() { raw, code = d.raw.OpenEndpoint(i.raw, modes, unasked) }
	if doubtsDatagrams(d.provider) {
		open = func() { raw, code = d.raw.OpenDatagramEndpoint(i.raw, modes, unasked) }
	}
	switch core(d.provider) {
	case "sockets":
		made = linksMade(open)
	case "efa":
		setup.Lock()
		open()
		setup.Unlock()
	default:
		open()
	}
	if code != 0 {
		return nil, fail("fi_endpoint", d.provider, int(code))
	}
	e := &Endpoint{raw: raw, domain: d, several: newSeveral(), links: made, takesAny: unasked != 0}
	e.connection.info = i
	e.fetching.own = own
	e.open("endpoint", d.provider, &d.handle)
	if core(d.provider) == "efa" && i.Endpoint() == ReliableDatagram {
		if err := cmp.Or(e.watchWithinHost(), e.retryForever()); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

// Connect asks the passive endpoint at the address for a connection, and sends
// data along, of at most OptionConnectionData bytes, here 256. It does not wait: the
// event queue will give a ConnectedEvent, or a *ConnectionError that has what
// the peer gave to Reject. On sockets, the call itself blocks until the peer's
// host has answered, and fails if that refuses. An endpoint connects once.
// address and data are the caller's again on return. ErrInvalid says what is wrong
// with them, or that the endpoint is not enabled, not of the type, or has connected
// before.
//
// Implements: int fi_connect(...)
func (e *Endpoint) Connect(address, data []byte) error {
	const op = "fi_connect"
	return e.connects(op, func() error {
		if detail := wrongAddress(e.Info(), address); detail != "" {
			return e.invalid(op, detail)
		}
		if e.connection.request != nil {
			return e.invalid(op, "the endpoint is for a request, to be accepted")
		}
		return nil
	}, data, func() error {
		connect := e.raw.Connect
		if doubtsCallers(e.provider) {
			connect = e.raw.ConnectDoubting
		}
		err := fail(op, e.provider, int(connect(address, data)))
		if errors.Is(err, syscall.ENOMEM) && core(e.provider) == "sockets" {
			// What sockets says of whatever keeps it from connecting.
			return &Error{Op: op, Provider: e.provider, Errno: Errno(syscall.ECONNREFUSED), Detail: "sockets does not say why it could not connect"}
		}
		return e.brokenOff(err)
	})
}

// Accept answers the request that the endpoint was opened with, and sends data
// along, which are the caller's again on return. The event queue will give a
// ConnectedEvent, until which whatever the endpoint is to send is Refused. Errors are those
// of Connect.
//
// Implements: int fi_accept(...)
func (e *Endpoint) Accept(data []byte) error {
	const op = "fi_accept"
	return e.connects(op, func() error {
		if e.connection.request == nil {
			return e.invalid(op, "the endpoint was not opened with a connection request")
		}
		return nil
	}, data, func() error {
		accept := e.raw.Accept
		if doubtsCallers(e.provider) {
			accept = e.raw.AcceptDoubting
		}
		return e.brokenOff(fail(op, e.provider, int(accept(data))))
	})
}

// brokenOff is the error of a call that found its peer gone: of sockets, EIO.
func (e *Endpoint) brokenOff(err error) error {
	var failure *Error
	if errors.As(err, &failure) && errors.Is(err, syscall.EIO) && core(e.provider) == "sockets" {
		return &Error{Op: failure.Op, Provider: e.provider, Errno: Errno(syscall.ECONNABORTED), Detail: "the peer has ended it"}
	}
	return err
}

// failed changes the error of a connection that was not there yet to what it can be. To a
// peer that hangs up, tcp and net give the code of whatever failed last on their thread,
// which may be that of an argument.
func (c *connection) failed(e *Error) {
	name := core(e.Provider)
	if c.stage.Load() != connecting || name != "tcp" && name != "net" ||
		errors.Is(e, ErrUnreachable) || errors.Is(e, syscall.ENOPROTOOPT) {
		return
	}
	e.Detail = "the peer has ended it, and " + name + " says: " + e.Errno.Error()
	e.Errno = Errno(syscall.ECONNABORTED)
}

// connects checks what Connect and Accept have in common.
func (e *Endpoint) connects(op string, check func() error, data []byte, call func() error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	switch {
	case e.Info().Endpoint() != Connected:
		return e.invalid(op, "the endpoint is not of the connected type")
	case e.turn == nil:
		return e.notEnabled(op)
	}
	if detail := wrongData(data, e.raw.SizeOption); detail != "" {
		return e.invalid(op, detail)
	}
	if err := check(); err != nil {
		return err
	}
	if !e.connection.stage.CompareAndSwap(unconnected, connecting) {
		return e.invalid(op, "an endpoint connects once; open another")
	}
	if err := call(); err != nil {
		e.connection.end()
		return err
	}
	return nil
}

// Shutdown ends the connection. The peer gets a ShutdownEvent, on providers
// without progress of their own, such as tcp, only while it turns its endpoint.
// What was sent and is not complete may be lost. On sockets, and on tcp and net of libfabric 1.17
// if the endpoint is for RemoteMemory, its calls and a ReadWait of its queues wait, as with Close,
// and other endpoints of the queues must not be in a turn; its reads in flight end with
// ErrCanceled, or have been done. It is for a connection whose ConnectedEvent was read; one that
// has ended already is no error, and one that is not there yet ends by Close. On sockets,
// operations in flight end with ErrCanceled, and ErrBusy says what of the endpoint is still open.
//
// Implements: int fi_shutdown(...)
func (e *Endpoint) Shutdown() error {
	if alone, err := e.shutdown(); !alone {
		return err
	}
	// As Close: whoever posts or reads would do so in what is freed.
	readmit, err := excludeFrom(e.queues()...)
	if err != nil {
		return err
	}
	defer readmit()
	if !e.exclude() {
		return e.closedError()
	}
	defer e.readmit()
	if e.severed {
		return nil
	}
	if core(e.provider) == "sockets" {
		return e.sever()
	}
	e.endReads(false)
	return e.endConnection()
}

// shutdown says whether the connection is still to be ended, with nobody else at the endpoint.
func (e *Endpoint) shutdown() (alone bool, err error) {
	const op = "fi_shutdown"
	if err := e.enter(); err != nil {
		return false, err
	}
	defer e.leave()
	if q := e.connection.events; q != nil {
		// The peer may have ended it meanwhile, and sockets must not be told
		// twice.
		q.lock.Lock()
		q.drain()
		q.lock.Unlock()
	}
	switch e.connection.stage.Load() {
	case ended:
		return false, nil
	case established:
		if core(e.provider) == "sockets" || readsEndTwice(e.provider) && e.Info().Capabilities()&RemoteMemory != 0 {
			return true, nil
		}
		return false, e.endConnection()
	}
	return false, e.invalid(op, "the endpoint is not connected")
}

func (e *Endpoint) endConnection() error {
	code := e.raw.Shutdown()
	e.connection.end()
	return fail("fi_shutdown", e.provider, int(code))
}

// sever ends the connection by closing the endpoint in libfabric. fi_shutdown of
// sockets closes a descriptor that its thread, or fi_close, closes again, when
// the number may stand for another file of the program. One with a shared receive
// context stays open inside, as with Close.
func (e *Endpoint) sever() error {
	e.mu.Lock()
	children := len(e.children)
	text := e.childrenText()
	e.mu.Unlock()
	e.domain.deferred.Lock()
	awaited := e.awaited
	e.domain.deferred.Unlock()
	if awaited {
		return &Error{
			Op: "fi_shutdown", Provider: e.provider, Errno: Errno(syscall.EOPNOTSUPP),
			Detail: "operations may be deferred until something that the endpoint does: close it",
		}
	}
	if children > 0 {
		return &Error{Op: "fi_shutdown", Provider: e.provider, Errno: Errno(syscall.EBUSY), Detail: "still open: " + text}
	}
	e.connection.end()
	e.hangUp()
	if e.shared != nil {
		e.hungUp = true
	} else if err := fail("fi_shutdown", e.provider, int(e.raw.Close())); err != nil {
		return err
	}
	e.severed = true
	for _, q := range e.queues() {
		q.cancelAll(e)
	}
	return nil
}

// whole refuses what needs the endpoint in libfabric after it was severed.
func (e *Endpoint) whole(op string) error {
	if !e.severed {
		return nil
	}
	return &Error{Op: op, Provider: e.provider, Errno: Errno(syscall.ENOTCONN), Detail: "the connection has ended"}
}

// Peer returns the address of the other side while the endpoint is connected;
// ErrInvalid before and after. The caller may keep it.
//
// Implements: int fi_getpeer(...)
func (e *Endpoint) Peer() ([]byte, error) {
	const op = "fi_getpeer"
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if e.connection.stage.Load() != established {
		return nil, e.invalid(op, "the endpoint is not connected")
	}
	address, code := e.raw.Peer()
	return address, fail(op, e.provider, int(code))
}

// SetName gives the endpoint its address, before it is enabled; it does not keep the
// bytes. Not every provider lets one choose other than by the info's source: others
// answer ErrNotSupported or ErrInvalid. With tcp, an endpoint whose address libfabric has refused has
// none any more, not even that of the info: it can be given another, or closed, and Enable refuses it until
// then. On shm, an endpoint that is given the name of one of this process that is closed has another, if it
// was libfabric's own; or, of 1.x, cannot have to do with others of the process: EnableWith, or Insert, is EADDRINUSE
// then.
//
// Implements: int fi_setname(...)
func (e *Endpoint) SetName(address []byte) error {
	const op = "fi_setname"
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if e.turn != nil {
		return e.invalid(op, "the endpoint is enabled already")
	}
	if detail := wrongAddress(e.Info(), address); detail != "" {
		return e.invalid(op, detail)
	}
	set := e.raw.SetName
	if doubtsCallers(e.provider) {
		set = e.raw.SetNameDoubting
	}
	err := fail(op, e.provider, int(set(address)))
	e.refusedName = ""
	if err != nil {
		e.refusedName = addressName(e.Info().AddressFormat(), address)
	}
	return err
}

// mostConnectionData is for a provider that does not say how much it takes.
const mostConnectionData = 256

// wrongData says what is wrong with data for the peer. Providers that are given too much write beyond
// the end of what they have for it, refuse it without a word, or cut it off.
func wrongData(data []byte, option func(cgo.Option) (uint64, cgo.Code)) string {
	if len(data) == 0 {
		return ""
	}
	most, code := option(cgo.OptConnectionData)
	if code != 0 || most == 0 {
		most = mostConnectionData
	}
	if uint64(len(data)) <= most {
		return ""
	}
	return strconv.Itoa(len(data)) + " bytes of data, where " + strconv.FormatUint(most, 10) + " are the most (OptionConnectionData)"
}

// wrongAddress says what is wrong with an address, of which libfabric reads as
// many bytes as its format has.
func wrongAddress(i *Info, address []byte) string {
	const longest = 256
	if len(address) < 2 || len(address) > longest {
		return "an address has 2 to " + strconv.Itoa(longest) + " bytes, this one has " + strconv.Itoa(len(address))
	}
	if !i.IP() {
		return ""
	}
	return wrongSocketAddress(i.a.AddressFormat, address)
}

// wrongSocketAddress is wrongAddress of one of a format of sockets, or of any of them.
func wrongSocketAddress(format uint32, address []byte) string {
	if len(address) < 2 {
		return "an address of " + strconv.Itoa(len(address)) + " bytes is none"
	}
	family := binary.NativeEndian.Uint16(address)
	switch {
	case family == syscall.AF_INET && format != cgo.FormatIPv6 && len(address) == sizeofIPv4:
	case family == syscall.AF_INET6 && format != cgo.FormatIPv4 && len(address) == sizeofIPv6:
	default:
		return "an address of " + strconv.Itoa(len(address)) + " bytes and family " + strconv.Itoa(int(family)) + " is none of the format"
	}
	return ""
}
