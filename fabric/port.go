package fabric

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
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

var _ RemoteDevice = (*Port)(nil)

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
// one of reliable datagrams. Without an info it is ErrInvalid. With tcp's own
// endpoints (libfabric 2.x), which Choose does not take by itself, a peer that ends in
// the middle of a message may end the process. Any goroutine may call it.
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
		RemoteReads:       i.reachesRemotely(CanRead | CanBeRead),
		RemoteWrites:      i.reachesRemotely(CanWrite | CanBeWritten),
		ImmediateSize:     i.ImmediateSize(),
		SameHostOnly:      name == "shm",
		IP:                i.IP(),
	}
	if name == "efa" && p.attributes.RemoteReads {
		if p.attributes.RemoteReads, err = p.endpoint.readsByDevice(); err != nil {
			return nil, err
		}
	}
	// Messages have numbers, by which the provider at the receiver goes.
	p.attributes.StallsAfterFailure = name == "efa" && p.attributes.KeepsOrder
	p.attributes.KeepLostPeers = p.attributes.SameHostOnly
	p.attributes.MasksMissWaiting = p.attributes.SameHostOnly && LibraryVersion().Major < 2
	return p, nil
}

// reachesRemotely says that memory of peers can be used in these ways by its keys as
// they are.
func (i *Info) reachesRemotely(ways Capabilities) bool {
	ways |= RemoteMemory
	return i.Capabilities()&ways == ways && i.MemoryMode()&RawKeys == 0
}

// enter refuses what is asked of a port that was not opened, and after Close.
func (p *Port) enter() error {
	if p.endpoint == nil {
		return unopened.neverOpened()
	}
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
	r, err := p.register(buf, AccessMessages)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// RegisterRemote implements RemoteDevice.
func (p *Port) RegisterRemote(buf []byte) (RemoteRegistration, error) {
	r, err := p.register(buf, AccessAll)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (p *Port) register(buf []byte, access Access) (*portRegion, error) {
	p.registering.Lock()
	defer p.registering.Unlock()
	if err := p.enter(); err != nil {
		return nil, err
	}
	region, err := p.domain.RegisterMemory(RegionConfig{Access: access}, buf)
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
	if err := r.Region.Close(); err != nil {
		return err
	}
	delete(r.port.regions, r.Region)
	return nil
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
func (p *Port) InFlight() int {
	if p.queue == nil {
		return 0
	}
	return p.queue.InFlight()
}

// Arm implements Device.
func (p *Port) Arm() bool {
	if p.queue == nil || p.queue.WaitDescriptor() < 0 {
		return true
	}
	ok, err := p.queue.TryWait()
	return ok && err == nil
}

// Wait implements Device. It blocks in Go's network poller where the provider
// has a wait descriptor, and sleeps for a short, growing time where it has none.
func (p *Port) Wait(timeout time.Duration) {
	if p.sleep != nil {
		p.sleep.wait(timeout)
	}
}

// Wake implements Device.
func (p *Port) Wake() {
	if p.sleep != nil {
		p.sleep.wake()
	}
}

// Errors implements Device.
func (p *Port) Errors() error {
	if p.events == nil {
		return p.enter()
	}
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
// once. On shm, and on efa within a host, a port that has to do with another of this
// process stays open inside until that one is closed, as [Endpoint.Close] says: it may
// still look at the memory.
func (p *Port) Close() error {
	if p.endpoint == nil {
		return p.enter()
	}
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

func systemError(op string, err error) error {
	var errno syscall.Errno
	errors.As(err, &errno)
	return &Error{Op: op, Errno: Errno(errno), Detail: err.Error()}
}
