package fabrictest

import (
	"errors"
	"slices"

	"github.com/weft-go/weft/fabric"
)

// site is a fabric and a domain with one event queue, in which a case opens what
// it needs. Everything is closed at the end of the case, the last first.
type site struct {
	info   *fabric.Info
	fabric *fabric.Fabric
	domain *fabric.Domain
	events *fabric.EventQueue
	// kept are to be closed after every endpoint, which may be using them.
	kept []interface{ Close() error }
}

// openSite opens the first thing that answers the hints.
func openSite(t *trial, h fabric.Hints) *site {
	t.Helper()
	return openSiteOf(t, t.discover(h))
}

func openSiteOf(t *trial, info *fabric.Info) *site {
	t.Helper()
	s := &site{info: info}
	var err error
	s.fabric, err = info.OpenFabric()
	noError(t, err)
	closeAtEnd(t, s.fabric)
	s.domain, err = s.fabric.OpenDomain(info)
	noError(t, err)
	closeAtEnd(t, s.domain)
	s.events, err = s.fabric.OpenEventQueue()
	noError(t, err)
	closeAtEnd(t, s.events)
	closeKeptAtEnd(t, s)
	return s
}

// closeKeptAtEnd is to be called before the site opens endpoints: these are
// closed first.
func closeKeptAtEnd(t *trial, s *site) {
	t.Cleanup(func() {
		for _, handle := range slices.Backward(s.kept) {
			if err := handle.Close(); err != nil {
				t.Errorf("at the end: %v", err)
			}
		}
	})
}

// pairOf opens two stations for reliable datagrams that know each other.
func pairOf(t *trial, caps fabric.Capabilities) (a, b *station) {
	t.Helper()
	return openSite(t, t.hints(fabric.ReliableDatagram, caps)).pair(t, nil, nil)
}

// pair opens two stations that know each other, with counters bound to each.
func (s *site) pair(t *trial, forA, forB []fabric.CounterBinding) (a, b *station) {
	t.Helper()
	a = s.open(t, s.info, fabric.Bindings{Counters: forA})
	b = s.open(t, s.info, fabric.Bindings{Counters: forB})
	acquaint(t, a, b)
	return a, b
}

// open opens an endpoint, and enables it with what the bindings leave out.
func (s *site) open(t *trial, info *fabric.Info, b fabric.Bindings) *station {
	t.Helper()
	if b.Vector == nil {
		b.Vector = s.vector(t, fabric.AddressVectorConfig{})
	}
	if b.Send == nil {
		b.Send = s.queue(t, 512)
	}
	if b.Receive == nil {
		b.Receive = b.Send
	}
	if b.Events == nil {
		b.Events = s.events
	}
	e, err := s.domain.OpenEndpointFor(info)
	noError(t, err)
	closeAtEnd(t, e)
	noError(t, e.EnableWith(b))
	if t.provider.Batching {
		noError(t, e.SetBatching(true))
	}
	x := newStation(t, s, e, b.Send)
	x.e, x.v = e, b.Vector
	return x
}

func (s *site) queue(t *trial, size int) *fabric.CompletionQueue {
	t.Helper()
	return s.queueOf(t, fabric.CompletionQueueConfig{Size: size})
}

func (s *site) queueOf(t *trial, c fabric.CompletionQueueConfig) *fabric.CompletionQueue {
	t.Helper()
	q, err := s.domain.OpenCompletionQueueConfig(c)
	t.need("completions of "+c.Format.String(), err)
	closeAtEnd(t, q)
	return q
}

func (s *site) vector(t *trial, c fabric.AddressVectorConfig) *fabric.AddressVector {
	t.Helper()
	v, err := s.domain.OpenAddressVectorConfig(c)
	noError(t, err)
	closeAtEnd(t, v)
	return v
}

func (s *site) counter(t *trial) *fabric.Counter {
	t.Helper()
	c, err := s.domain.OpenCounter()
	t.need("counters", err)
	s.kept = append(s.kept, c)
	return c
}

// register registers memory that peers may use.
func (s *site) register(t *trial, access fabric.Access, buffers ...[]byte) *fabric.Region {
	t.Helper()
	r, err := s.domain.RegisterMemory(fabric.RegionConfig{Access: access}, buffers...)
	noError(t, err)
	t.Cleanup(func() {
		err := r.Close()
		if errors.Is(err, fabric.ErrBusy) {
			// A case that has failed may leave operations in flight, which end with
			// their endpoints.
			s.kept = append(s.kept, r)
			return
		}
		noError(t, err)
	})
	return r
}

// shared is memory that peers may read and write, and how they name it.
func (s *site) shared(t *trial, size int) ([]byte, fabric.Remote) {
	t.Helper()
	memory := mapped(t, size)
	return memory, at(t, s.register(t, fabric.AccessRemoteRead|fabric.AccessRemoteWrite, memory), 0, size)
}

// mapped is memory outside the Go heap.
func mapped(t *trial, size int) []byte {
	t.Helper()
	a, err := fabric.NewArena(size)
	noError(t, err)
	closeAtEnd(t, a)
	return a.Bytes()[:size]
}

// at is a part of a region, as peers name it.
func at(t *trial, r *fabric.Region, offset, length int) fabric.Remote {
	t.Helper()
	remote, err := r.Remote()
	noError(t, err)
	part, err := remote.At(uint64(offset), uint64(length))
	noError(t, err)
	return part
}

// counting is bytes of which none is like its neighbour.
func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func closeAtEnd(t *trial, handle interface{ Close() error }) {
	t.Cleanup(func() {
		t.Helper()
		noError(t, handle.Close())
	})
}
