package fabric

import (
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/weft-go/weft/cgo"
)

// Region is registered memory (fid_mr). Its methods may be called from any
// goroutine.
//
// The memory stays the caller's, and what peers and operations may do with it
// they do until Close. It may be Go memory: it is pinned for as long as the
// region is open.
type Region struct {
	handle
	raw        cgo.Region
	descriptor Descriptor
	ofDevice   bool
	exposed    bool // the domain's reach has it
	// mayBeAwaited is until when atomic operations in it may wait for messages, once it is closed.
	mayBeAwaited time.Time
	// Once it is closed: whether an access of a peer may go on in pieces; by which descriptor, where that is
	// not its own; and whether one was seen to.
	inPieces, keptUsed bool
	innerDescriptor    uintptr
	domain             *Domain
	modes              cgo.RegionModes
	access             Access
	segments           []segment
	length             uint64
	pinner             runtime.Pinner

	mu      sync.Mutex
	bound   bool // to an endpoint or a counter
	enabled bool
}

// segment is one buffer of a region; its address is a number because it may be
// memory of a device.
type segment struct {
	base   uintptr
	length uint64
}

// RegionConfig says how memory is registered. The zero value is for messages,
// with a key that weft chooses.
type RegionConfig struct {
	// Access is what may be done with the memory; 0 means AccessMessages.
	Access Access
	// Key is the key that peers are to use, where the domain lets programs
	// choose (without ProviderKeys); nil leaves it to weft. A key that is in use
	// in the domain is refused.
	Key *uint64
	// Offset is reserved by libfabric, which wants 0 here.
	Offset uint64
	// AuthKey is the region's authorization key; empty means the domain's.
	AuthKey []byte
	Flags   RegionFlags // RegionEvents and so on
}

// RegionFlags adjust a registration, a set of bits.
type RegionFlags uint64

// The flags of regions.
const (
	// RegionEvents says that a counter will be bound to the region
	// (FI_RMA_EVENT), for domains that must know this from the beginning.
	RegionEvents RegionFlags = RegionFlags(cgo.RegionRemoteEvents)
	// RegionPersistent says that the memory is persistent (FI_RMA_PMEM).
	RegionPersistent RegionFlags = RegionFlags(cgo.RegionPersistent)
	// RegionDeviceOnly and RegionHostMapped say that memory of a device can only
	// be reached from there, or that it is the host's (FI_HMEM_DEVICE_ONLY,
	// FI_HMEM_HOST_ALLOC).
	RegionDeviceOnly RegionFlags = RegionFlags(cgo.RegionDeviceOnly)
	RegionHostMapped RegionFlags = RegionFlags(cgo.RegionHostMapped)

	regionFlags = RegionEvents | RegionPersistent | RegionDeviceOnly | RegionHostMapped
)

var regionFlagNames = setNames[RegionFlags]{
	{RegionEvents, "FI_RMA_EVENT"},
	{RegionPersistent, "FI_RMA_PMEM"},
	{RegionDeviceOnly, "FI_HMEM_DEVICE_ONLY"},
	{RegionHostMapped, "FI_HMEM_HOST_ALLOC"},
}

// String lists the set in libfabric's words.
func (f RegionFlags) String() string { return regionFlagNames.list(f) }

// Register makes buf known to the domain for sending and receiving. It is pinned
// until Close of the region. Errors are those of RegisterMemory.
//
// Implements: int fi_mr_reg(...)
func (d *Domain) Register(buf []byte) (*Region, error) {
	return d.RegisterMemory(RegionConfig{}, buf)
}

// RegisterMemory makes buffers known to the domain, as one region in which they
// follow each other. They are pinned until Close of the region; the slice of them is
// the caller's again on return. How many there can be is for the provider to say, and
// often 1; ErrInvalid names the number, or says that a buffer is empty or what of the
// configuration cannot be.
//
// Implements: int fi_mr_reg(...), fi_mr_regv(...), fi_mr_regattr(...)
func (d *Domain) RegisterMemory(c RegionConfig, buffers ...[]byte) (*Region, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	r := d.newRegion(c)
	for i, b := range buffers {
		if len(b) == 0 {
			return nil, d.invalidRegion("buffer " + strconv.Itoa(i) + " is empty: there is no memory to register")
		}
		r.segments = append(r.segments, segment{address(b), uint64(len(b))})
	}
	if err := r.check(c); err != nil {
		return nil, err
	}
	for _, b := range buffers {
		r.pinner.Pin(&b[0])
	}
	var req cgo.RegionRequest
	r.fill(&req, c)
	register := func(key uint64) (cgo.Region, cgo.Code) {
		req.Key = key
		switch {
		case len(c.AuthKey) > 0:
			return d.raw.RegisterAttributes(&req, c.AuthKey)
		case len(buffers) > 1 || c.Flags != 0 || c.Offset != 0:
			return d.raw.RegisterVector(&req)
		}
		return d.raw.Register(unsafe.Pointer(&buffers[0][0]), len(buffers[0]), req.Access, key)
	}
	if err := r.register(c, "fi_mr_reg", register); err != nil {
		r.pinner.Unpin()
		return nil, err
	}
	return r, nil
}

func (d *Domain) newRegion(c RegionConfig) *Region {
	r := &Region{domain: d, modes: d.info.raw.RegionModes(), access: c.Access}
	if r.access == 0 {
		r.access = AccessMessages
	}
	return r
}

func (d *Domain) invalidRegion(detail string) error {
	return d.invalid("fi_mr_reg", detail)
}

// check refuses what a provider might fail at later, or not notice.
func (r *Region) check(c RegionConfig) error {
	most := min(max(int(r.modes.Buffers), 1), cgo.MaxRegionBuffers)
	switch n := len(r.segments); {
	case n == 0:
		return r.domain.invalidRegion("no memory to register")
	case n > most:
		return r.domain.invalidRegion("a region has at most " + strconv.Itoa(most) + " buffers here, not " + strconv.Itoa(n))
	case !r.access.known():
		return r.domain.invalidRegion("there is no such access: " + c.Access.String())
	case c.Flags&^regionFlags != 0:
		return r.domain.invalidRegion("there are no such flags: " + (c.Flags &^ regionFlags).String())
	case c.Offset != 0:
		return r.domain.invalidRegion("the offset of a region must be 0")
	}
	for _, s := range r.segments {
		if s.length > ^uint64(0)-r.length || s.length > uint64(^uintptr(0)-s.base) {
			return r.domain.invalidRegion("the memory ends beyond the last address")
		}
		r.length += s.length
	}
	if k := r.modes.KeySize; c.Key != nil && k > 0 && k < 8 && *c.Key>>(8*k) != 0 {
		return r.domain.invalidRegion("keys have " + strconv.FormatUint(k, 10) + " bytes here, and this one does not fit")
	}
	return nil
}

// fill copies the wishes to where C reads them.
func (r *Region) fill(req *cgo.RegionRequest, c RegionConfig) {
	req.Access, req.Offset, req.Flags = uint64(r.access), c.Offset, uint64(c.Flags)
	req.Count = uint64(len(r.segments))
	for i, s := range r.segments {
		req.Buffers[i] = cgo.Vector{Base: s.base, Len: s.length}
	}
}

// registerAttempts is how many keys are tried that the program may have chosen itself.
const registerAttempts = 1024

// register asks for the key that the program chose, or for one after the other
// until one is free, and opens the region.
func (r *Region) register(c RegionConfig, op string, call func(key uint64) (cgo.Region, cgo.Code)) error {
	d := r.domain
	var code cgo.Code
	if c.Key != nil {
		r.raw, code = call(*c.Key)
	} else {
		for range registerAttempts {
			if r.raw, code = call(d.keys.Add(1)); code != cgo.NoKey {
				break
			}
		}
	}
	if code == cgo.NoKey && c.Key != nil {
		return &Error{Op: op, Provider: d.provider, Errno: Errno(code), Detail: "the key " + strconv.FormatUint(*c.Key, 10) + " is in use in this domain"}
	}
	if code != 0 {
		return fail(op, d.provider, int(code))
	}
	if !r.expose() {
		r.raw.Close()
		return fail(op, d.provider, int(syscall.ENOMEM))
	}
	// In these modes a region is bound first and then enabled.
	r.enabled = !r.modes.Endpoint && (!r.modes.RemoteEvents || c.Flags&RegionEvents == 0)
	raw := r.raw.Descriptor()
	if raw != 0 && !r.ofDevice && core(d.provider) == "shm" {
		// Of the host's memory it says nothing there. That of libfabric 2.x looks at it
		// as long as peers take what was sent, also when the endpoint is closed and only
		// stays open inside.
		raw = needless
	}
	r.descriptor = d.descriptors.add(raw)
	r.open("region", d.provider, &d.handle)
	return nil
}

// Descriptor is what operations carry for buffers within the region
// of a device that needs registration. It is 0, which is none, after Close, and
// operations with one from before are refused then.
//
// Implements: void *fi_mr_desc(...)
func (r *Region) Descriptor() Descriptor {
	if r.enter() != nil {
		return 0
	}
	defer r.leave()
	return r.descriptor
}

// Access is what the region was registered for.
func (r *Region) Access() Access { return r.access }

// Len is the number of bytes in the region.
func (r *Region) Len() uint64 { return r.length }

// Close ends the registration, and peers that use it any more get an error where the
// provider has one: on shm such a write or read of a peer's never ends, and on 1.17 all that
// it sends to this endpoint after it is Refused. Let them be done before. ErrBusy
// says which operations in flight have its descriptor: providers look at what it stands
// for until they complete. They end with their endpoints, too, so that a region can be
// closed at once behind those. Calls of the endpoints and queues of the domain wait
// meanwhile, and one that waits for completions is ended.
//
// A peer's write that is coming when the region is closed may still come, to its end. On shm of libfabric
// 2.x, and within a host on efa, if an access in pieces goes on then, the memory stays pinned, and peers
// can reach it, until that has ended and another region is closed, or the domain. On efa
// the memory may stay pinned, and be reached by the devices of peers, until the domain is
// closed or 1024 other such regions, or 256 MiB of them, of those with atomic operations 16 times
// as many within 10 seconds.
// Memory that peers write to is for nothing else until they have said that they are done,
// or the endpoints are closed that they reach it by.
//
// Implements: int fi_close(...)
func (r *Region) Close() error {
	return r.close(func() error {
		// Before the look at what is in flight: no more begins behind it.
		table := &r.domain.descriptors
		raw := table.bar(r.descriptor)
		err := r.inFlight()
		lingers := false
		if err == nil {
			var code cgo.Code
			code, lingers = r.closeExposed()
			err = fail("fi_close of region", r.provider, int(code))
		}
		if err != nil {
			table.admit(r.descriptor, raw)
			return err
		}
		table.remove(r.descriptor)
		if !lingers {
			r.pinner.Unpin()
		}
		return nil
	})
}
