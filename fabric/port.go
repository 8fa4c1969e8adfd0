package fabric

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Port is an endpoint with everything around it, opened together: fabric,
// domain, address vector, completion queue and event queue. It is the [Device]
// made of libfabric, whose methods say what a Port's do and who may call them at
// the same time. After Close, those that return an error return net.ErrClosed.
type Port struct {
	attributes Attributes
	address    []byte

	fabric   *Fabric
	domain   *Domain
	vector   *AddressVector
	queue    *CompletionQueue
	events   *EventQueue
	endpoint *Endpoint

	// registering guards regions: they may be closed while the port is.
	registering sync.Mutex
	regions     map[*Region]struct{}

	sleep   sleeper
	retired atomic.Bool
	closing sync.Mutex
}

var _ Device = (*Port)(nil)

// PortConfig adjusts a Port. The zero value works.
type PortConfig struct {
	// Operations is how many operations can be in flight; 0 means 1024.
	Operations int
	// Retries is how often efa's device sends a message again while the peer's
	// has no room for it, 1 to 6, before the operation fails with FI_ENORX; 0
	// means for ever. The info must have ResourcesDisabled, as that of a Choice
	// does. An inject that fails is lost, and nobody hears of it.
	Retries int
	// NoSharedMemory has efa's device carry what goes to processes of the same
	// host, too, which the provider gives to shm otherwise. Libraries before 1.21
	// know the variable FI_EFA_ENABLE_SHM_TRANSFER=0 only: without it they are
	// ErrNotSupported.
	NoSharedMemory bool
}

// OpenPort opens what the info describes, which is that of a [Choice], or another
// one of reliable datagrams. Any goroutine may call it.
func OpenPort(i *Info, config PortConfig) (port *Port, err error) {
	if config.Operations == 0 {
		config.Operations = 1024
	}
	p := &Port{regions: make(map[*Region]struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.closeParts())
		}
	}()
	if p.fabric, err = i.OpenFabric(); err != nil {
		return nil, err
	}
	if p.events, err = p.fabric.OpenEventQueue(); err != nil {
		return nil, err
	}
	if p.domain, err = p.fabric.OpenDomain(i); err != nil {
		return nil, err
	}
	if p.vector, err = p.domain.OpenAddressVector(); err != nil {
		return nil, err
	}
	if p.queue, err = p.domain.OpenCompletionQueue(config.Operations); err != nil {
		return nil, err
	}
	if p.endpoint, err = p.domain.OpenEndpoint(); err != nil {
		return nil, err
	}
	if err = p.endpoint.configure(config); err != nil {
		return nil, err
	}
	if err = p.endpoint.Enable(p.vector, p.queue, p.events); err != nil {
		return nil, err
	}
	if p.address, err = p.endpoint.Name(); err != nil {
		return nil, err
	}
	name := core(i.Provider())
	// The sockets provider moves data by a thread of its own, which a program
	// that spins keeps from the core.
	spin := name != "sockets"
	if p.sleep, err = newSleeper(p.queue.WaitDescriptor(), spin); err != nil {
		return nil, err
	}
	p.attributes = Attributes{
		Provider: i.Provider(), Fabric: i.Fabric(), Domain: i.Domain(),
		MaxMessage: i.MaxMessage(), MaxInject: int(min(i.InjectSize(), 1<<20)),
		MaxOperations:     p.queue.Size(),
		NeedsRegistration: i.MemoryMode()&LocalRegistration != 0,
		Spin:              spin,
		Notifies:          p.queue.WaitDescriptor() >= 0,
		KeepsOrder:        i.Send().Order&i.Receive().Order&SendAfterSend != 0,
		SameHostOnly:      name == "shm",
		IP:                i.IP(),
	}
	// Messages have numbers, by which the provider at the receiver goes.
	p.attributes.StallsAfterFailure = name == "efa" && p.attributes.KeepsOrder
	p.attributes.KeepLostPeers = p.attributes.SameHostOnly
	p.attributes.MasksMissWaiting = p.attributes.SameHostOnly && LibraryVersion().Major < 2
	return p, nil
}

// enter refuses what is asked of a port after Close.
func (p *Port) enter() error {
	if p.retired.Load() {
		return &Error{Op: "port", Provider: p.attributes.Provider, Errno: errnoClosed}
	}
	return nil
}

// Attributes implements Device.
func (p *Port) Attributes() Attributes { return p.attributes }

// LocalAddress implements Device.
func (p *Port) LocalAddress() []byte { return p.address }

// Insert implements Device.
func (p *Port) Insert(address []byte) (Address, error) {
	if err := p.enter(); err != nil {
		return AddressAny, err
	}
	return p.vector.Insert(address)
}

// Remove implements Device.
func (p *Port) Remove(peer Address) error {
	if err := p.enter(); err != nil {
		return err
	}
	return p.vector.Remove(peer)
}

// Register implements Device.
func (p *Port) Register(buf []byte) (Registration, error) {
	p.registering.Lock()
	defer p.registering.Unlock()
	if err := p.enter(); err != nil {
		return nil, err
	}
	region, err := p.domain.Register(buf)
	if err != nil {
		return nil, err
	}
	p.regions[region] = struct{}{}
	return &portRegion{region, p}, nil
}

// portRegion is a registration that its port closes at the latest.
type portRegion struct {
	*Region
	port *Port
}

// Close implements Registration.
func (r *portRegion) Close() error {
	r.port.registering.Lock()
	defer r.port.registering.Unlock()
	delete(r.port.regions, r.Region)
	return r.Region.Close()
}

// Turn implements Device, as [Endpoint.Turn].
func (p *Port) Turn(posts []Op, completions []Completion, spins int) (reaped int, err error) {
	if err := p.enter(); err != nil {
		return 0, failAll(posts, err)
	}
	reaped, err = p.endpoint.Turn(posts, completions, spins)
	if reaped > 0 {
		p.sleep.active()
	}
	return reaped, err
}

// Cancel implements Device.
func (p *Port) Cancel(token Token) error {
	if err := p.enter(); err != nil {
		return err
	}
	return p.endpoint.Cancel(token)
}

// InFlight is the number of operations whose completion is still to come. It is
// called like Turn.
func (p *Port) InFlight() int { return p.queue.InFlight() }

// Arm implements Device.
func (p *Port) Arm() bool {
	if p.queue.WaitDescriptor() < 0 {
		return true
	}
	ok, err := p.queue.TryWait()
	return ok && err == nil
}

// Wait implements Device. It blocks in Go's network poller where the provider
// has a wait descriptor, and sleeps for a short, growing time where it has none.
func (p *Port) Wait(timeout time.Duration) { p.sleep.wait(timeout) }

// Wake implements Device.
func (p *Port) Wake() { p.sleep.wake() }

// Errors implements Device.
func (p *Port) Errors() error {
	var all error
	// Bounded: an event queue that never ends must not stop progress.
	for range 64 {
		_, ok, err := p.events.Read()
		if err != nil {
			all = errors.Join(all, err)
		}
		if !ok {
			break
		}
	}
	return all
}

// Close implements Device. It may be called from any goroutine, and more than
// once. On shm, a port that another of this process has inserted stays open
// inside until that one is closed or removes it: it may still look at the memory.
func (p *Port) Close() error {
	p.retired.Store(true)
	p.sleep.close()
	return p.closeParts()
}

// closeParts closes what has been opened.
func (p *Port) closeParts() error {
	// One after the other: a handle counts as closed as soon as its closing
	// begins, but what it is part of cannot be closed before it ends.
	p.closing.Lock()
	defer p.closing.Unlock()
	if p.sleep != nil {
		p.sleep.close()
	}
	all := closer(p.endpoint)()
	p.registering.Lock()
	for region := range p.regions {
		all = errors.Join(all, region.Close())
	}
	clear(p.regions)
	p.registering.Unlock()
	for _, close := range []func() error{
		closer(p.queue), closer(p.vector), closer(p.events), closer(p.domain), closer(p.fabric),
	} {
		all = errors.Join(all, close())
	}
	return all
}

// closer returns the Close of a handle that may not have been opened.
func closer[T interface {
	comparable
	Close() error
}](h T) func() error {
	var none T
	if h == none {
		return func() error { return nil }
	}
	return h.Close
}

// sleeper is how a port waits.
type sleeper interface {
	wait(timeout time.Duration)
	wake()
	active()
	close()
}

func newSleeper(fd int, spin bool) (sleeper, error) {
	if fd < 0 {
		return newNapper()
	}
	return newPoller(fd, spin)
}

// poller waits for a descriptor in Go's network poller.
//
// Where turns are taken without waiting, the descriptor itself is not in there:
// it becomes readable with every completion, and each time a thread of the
// runtime would wake up for nobody. It is in a set of its own, armed for one
// event by each wait, and the set is in the network poller.
type poller struct {
	fd    int      // of the completion queue, which owns it, if there is a set
	file  *os.File // of the set, or a duplicate of the queue's
	raw   syscall.RawConn
	ready func(fd uintptr) bool
	woken atomic.Bool
}

func newPoller(fd int, spin bool) (*poller, error) {
	w := &poller{fd: fd}
	polled, err := w.polled(fd, spin)
	if err != nil {
		return nil, systemError("wait descriptor", err)
	}
	// os.NewFile gives a file to the network poller if it does not block.
	if err := unix.SetNonblock(polled, true); err != nil {
		unix.Close(polled)
		return nil, systemError("wait descriptor", err)
	}
	w.file = os.NewFile(uintptr(polled), "wait descriptor")
	w.raw, err = w.file.SyscallConn()
	if err == nil {
		err = w.file.SetReadDeadline(time.Time{})
	}
	if err != nil {
		w.file.Close()
		return nil, systemError("wait descriptor", err)
	}
	return w, nil
}

// polled makes the descriptor for the network poller, which closes its own.
func (w *poller) polled(fd int, spin bool) (int, error) {
	if !spin {
		w.ready = readable
		return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	w.ready = w.readableSet
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, err
	}
	if err := unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT}); err != nil {
		unix.Close(set)
		return -1, err
	}
	return set, nil
}

func (w *poller) wait(timeout time.Duration) {
	// The deadline comes before the look at woken, and wake sets woken before
	// the deadline: one of the two is always seen.
	if w.file.SetReadDeadline(time.Now().Add(timeout)) != nil || w.woken.Swap(false) {
		return
	}
	// An error is a deadline or a close, and the caller looks anyway.
	_ = w.raw.Read(w.ready)
}

// readable looks at the descriptor itself: the network poller tells only of
// changes, and of none that came before.
func readable(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return n > 0 || (err != nil && err != unix.EINTR)
}

// readableSet is readable for a set, which it arms.
func (w *poller) readableSet(set uintptr) bool {
	armed := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT}
	if unix.EpollCtl(int(set), unix.EPOLL_CTL_MOD, w.fd, &armed) != nil {
		return true
	}
	// To take the event is what disarms the set.
	var events [1]unix.EpollEvent
	n, err := unix.EpollWait(int(set), events[:], 0)
	return n > 0 || (err != nil && err != unix.EINTR)
}

func (w *poller) wake() {
	w.woken.Store(true)
	_ = w.file.SetReadDeadline(time.Unix(1, 0))
}

func (w *poller) active() {}
func (w *poller) close()  { w.file.Close() }

// napper waits where there is nothing to wait on: in naps that grow while
// nothing happens. Longer ones end by a timer of the system's in Go's network poller:
// one of Go's wakes several threads each time that it ends.
type napper struct {
	timer  *os.File
	raw    syscall.RawConn
	set    func(fd uintptr) // to nap
	ring   func(fd uintptr) // to end at once
	nap    time.Duration
	next   time.Duration
	expiry [8]byte
	busy   atomic.Bool
	woken  atomic.Bool
	timed  atomic.Bool // the timer matters
}

// Naps grow by an eighth, so that one of two sides that wait for each other is
// late by an eighth of what the other was at most, and not the more the longer
// it goes on. A waking costs some 50 us of processor time, and naps of longNap 1 %
// and more of a core: beyond that they grow on, to what costs half of it, but only
// by so little that what comes is late by a hundredth of what it took to come.
const (
	shortestNap = 20 * time.Microsecond
	longNap     = 4 * time.Millisecond
	longestNap  = 10 * time.Millisecond
	// Go's timers are not finer than this while the process is idle.
	timerNap = time.Millisecond
)

func longer(nap time.Duration) time.Duration {
	if nap < longNap {
		return min(nap+nap/8, longNap)
	}
	return min(nap+nap/100, longestNap)
}

// doze sleeps, and for less than timerNap with the thread, which is exact.
func doze(nap time.Duration) {
	if nap >= timerNap {
		time.Sleep(nap)
		return
	}
	t := unix.NsecToTimespec(int64(nap))
	// A signal ends it early, which is as good.
	_ = unix.Nanosleep(&t, nil)
}

func newNapper() (*napper, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, systemError("timer", err)
	}
	n := &napper{next: shortestNap, timer: os.NewFile(uintptr(fd), "timer")}
	n.set = func(fd uintptr) { setTimer(fd, n.nap) }
	n.ring = func(fd uintptr) { setTimer(fd, 1) }
	if n.raw, err = n.timer.SyscallConn(); err == nil {
		err = n.timer.SetReadDeadline(time.Time{})
	}
	if err != nil {
		n.timer.Close()
		return nil, systemError("timer", err)
	}
	return n, nil
}

// setTimer has a timer end once, after d, whatever it was set to before.
func setTimer(fd uintptr, d time.Duration) {
	// It fails for no time that is not negative.
	_ = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
}

func (n *napper) wait(timeout time.Duration) {
	if n.busy.Swap(false) {
		n.next = shortestNap
	}
	n.nap = min(n.next, timeout)
	n.next = longer(n.next)
	if n.nap < timerNap {
		if !n.woken.Swap(false) {
			doze(n.nap)
		}
		return
	}
	// What is set here comes before the look at woken, and wake sets woken first: one
	// of the two is always seen.
	n.timed.Store(true)
	if n.raw.Control(n.set) == nil && !n.woken.Swap(false) {
		// An error is a close, and the caller looks anyway.
		_, _ = n.timer.Read(n.expiry[:])
	}
	n.timed.Store(false)
}

func (n *napper) wake() {
	n.active()
	n.woken.Store(true)
	if n.timed.Load() {
		_ = n.raw.Control(n.ring)
	}
}

func (n *napper) active() {
	if !n.busy.Load() {
		n.busy.Store(true)
	}
}

func (n *napper) close() { n.timer.Close() }

func systemError(op string, err error) error {
	var errno syscall.Errno
	errors.As(err, &errno)
	return &Error{Op: op, Errno: Errno(errno), Detail: err.Error()}
}
