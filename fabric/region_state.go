package fabric

import (
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// BindEndpoint binds the region to an endpoint, where the domain keeps regions
// by endpoint (FI_MR_ENDPOINT): there it comes between registration and Enable, and
// is ErrInvalid later, as is an endpoint of another domain. The endpoint cannot be
// closed before the region. In other domains it is ErrNotSupported.
//
// Implements: int fi_mr_bind(...)
func (r *Region) BindEndpoint(e *Endpoint) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	if e == nil || e.domain != r.domain {
		return r.invalid("fi_mr_bind", "a region is bound to an endpoint of its own domain")
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := e.whole("fi_mr_bind"); err != nil {
		return err
	}
	if r.domain.info.MemoryMode()&EndpointRegions == 0 {
		return &Error{
			Op: "fi_mr_bind", Provider: r.provider, Errno: Errno(syscall.ENOSYS),
			Detail: "the domain does not keep regions by endpoint (FI_MR_ENDPOINT)",
		}
	}
	return r.bind(&e.handle, func() cgo.Code { return r.raw.BindEndpoint(e.raw) })
}

// BindCounter lets the counter count the writes and atomic operations of peers
// in the region. In domains that say so (FI_MR_RMA_EVENT), the region is
// registered with RegionEvents, and this comes before Enable. The counter cannot
// be closed before the region. ErrNotSupported says that the provider does not count
// for regions, ErrBusy that the counter counts deferred operations.
//
// Implements: int fi_mr_bind(...)
func (r *Region) BindCounter(c *Counter) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	if c == nil || c.domain != r.domain {
		return r.invalid("fi_mr_bind", "a region is bound to a counter of its own domain")
	}
	if err := c.countRegion(); err != nil {
		return err
	}
	return r.bind(&c.handle, func() cgo.Code { return r.raw.BindCounter(c.raw) })
}

// bind is called by those that have entered the region.
func (r *Region) bind(h *handle, call func() cgo.Code) error {
	if err := h.enter(); err != nil {
		return err
	}
	defer h.leave()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.enabled && (r.modes.Endpoint || r.modes.RemoteEvents) {
		return r.invalid("fi_mr_bind", "the region is enabled already: it is bound before that")
	}
	if code := call(); code != 0 {
		return fail("fi_mr_bind", r.provider, int(code))
	}
	r.bound = true
	r.adopt(h)
	return nil
}

// Enable makes a region usable in domains where it is bound first; in others it
// is usable from the beginning, and this does nothing. It can be called again.
// ErrInvalid says that the region is not bound yet.
//
// Implements: int fi_mr_enable(...)
func (r *Region) Enable() error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.enabled {
		return nil
	}
	if !r.bound {
		return r.invalid("fi_mr_enable", "the region must be bound first, to an endpoint or a counter")
	}
	if code := r.raw.Enable(); code != 0 {
		return fail("fi_mr_enable", r.provider, int(code))
	}
	r.enabled = true
	return nil
}

// Refresh says that the pages behind parts of the region have changed, or behind
// all of it if there are none. Only domains with FI_MR_MMU_NOTIFY ask for it;
// for others there is nothing to do. A part that does not lie within the region is
// ErrInvalid.
//
// Implements: int fi_mr_refresh(...)
func (r *Region) Refresh(parts ...[]byte) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	var req cgo.RegionRequest
	if len(parts) == 0 {
		r.fill(&req, RegionConfig{})
		req.Flags = 0
	}
	if len(parts) > len(req.Buffers) {
		return r.invalid("fi_mr_refresh", "too many parts at once")
	}
	for i, p := range parts {
		if _, ok := r.offset(p); !ok || len(p) == 0 {
			return r.invalid("fi_mr_refresh", "a part to refresh must lie within the region")
		}
		req.Buffers[i] = cgo.Vector{Base: address(p), Len: uint64(len(p))}
		req.Count++
	}
	if !r.modes.Notify {
		return nil
	}
	return fail("fi_mr_refresh", r.provider, int(r.raw.Refresh(&req)))
}

// offset is where a buffer begins in the region, if all of it lies in one of the
// region's.
func (r *Region) offset(b []byte) (uint64, bool) {
	base, length, before := address(b), uint64(len(b)), uint64(0)
	for _, s := range r.segments {
		if base >= s.base && uint64(base-s.base) <= s.length && length <= s.length-uint64(base-s.base) {
			return before + uint64(base-s.base), true
		}
		before += s.length
	}
	return 0, false
}
