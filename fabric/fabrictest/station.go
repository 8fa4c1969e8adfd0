package fabrictest

import (
	"slices"
	"unsafe"

	"github.com/weft-go/weft/fabric"
)

// turner is an endpoint, or a part of one that posts and completes on its own.
type turner interface {
	Turn(posts []fabric.Op, completions []fabric.Completion, spins int) (int, error)
	TurnWait(posts []fabric.Op, completions []fabric.Completion, waitMS int) (int, error)
}

// station is an endpoint with its queue, and what has come out of that.
type station struct {
	turner
	site *site
	e    *fabric.Endpoint
	q    *fabric.CompletionQueue
	v    *fabric.AddressVector
	// peer is where the station sends, if it does not say otherwise.
	peer fabric.Address
	// others make progress while this one waits.
	others []*station
	got    []fabric.Completion
	// held is what was registered to be posted.
	held map[*byte]*fabric.Region
}

// newStation is one on an endpoint, or on a part of one, whose operations
// complete in the queue.
func newStation(t *trial, s *site, on turner, q *fabric.CompletionQueue) *station {
	if t.fault != nil {
		on = t.fault(on)
	}
	return &station{turner: on, site: s, q: q, held: map[*byte]*fabric.Region{}}
}

// acquaint lets two stations know each other, and drive each other.
func acquaint(t *trial, a, b *station) {
	t.Helper()
	a.peer, b.peer = insert(t, a.v, b.e), insert(t, b.v, a.e)
	a.others, b.others = []*station{b}, []*station{a}
}

func insert(t *trial, v *fabric.AddressVector, e interface{ Name() ([]byte, error) }) fabric.Address {
	t.Helper()
	name, err := e.Name()
	noError(t, err)
	peer, err := v.Insert(name)
	noError(t, err)
	return peer
}

// turn turns the station once.
func (s *station) turn(t *trial, posts []fabric.Op) {
	t.Helper()
	var buf [32]fabric.Completion
	n, err := s.Turn(posts, buf[:], 0)
	noError(t, err)
	s.got = append(s.got, buf[:n]...)
}

// step turns the station, and those that it depends on. After a while without
// anything it blocks for a moment where that is possible: some providers have
// threads of their own, which need the core.
func (s *station) step(t *trial, posts []fabric.Op, try int) {
	t.Helper()
	if try > 50 && s.q.WaitDescriptor() >= 0 {
		var buf [32]fabric.Completion
		n, err := s.TurnWait(posts, buf[:], 1)
		noError(t, err)
		s.got = append(s.got, buf[:n]...)
	} else {
		s.turn(t, posts)
	}
	for _, o := range s.others {
		o.turn(t, nil)
	}
}

// post posts one operation, however often it is refused.
func (s *station) post(t *trial, op fabric.Op) fabric.Op {
	t.Helper()
	s.register(t, &op)
	posts := []fabric.Op{op}
	t.until("room for one "+op.Kind.String(), func(try int) bool {
		if try > 0 {
			s.step(t, nil, try)
		}
		s.turn(t, posts)
		return posts[0].Result != fabric.Refused
	})
	return posts[0]
}

// must posts an operation that has to be taken.
func (s *station) must(t *trial, op fabric.Op) fabric.Op {
	t.Helper()
	op = s.post(t, op)
	noError(t, op.Err)
	return op
}

// await returns the station's next completion.
func (s *station) await(t *trial) fabric.Completion {
	t.Helper()
	t.until("completion", func(try int) bool {
		if len(s.got) == 0 {
			s.step(t, nil, try)
		}
		return len(s.got) > 0
	})
	c := s.got[0]
	s.got = s.got[1:]
	return c
}

// done waits for an operation that must succeed.
func (s *station) done(t *trial) fabric.Completion {
	t.Helper()
	c := s.await(t)
	noError(t, c.Err)
	return c
}

// idle says that nothing is in flight and nothing was left unread.
func idle(t *trial, stations ...*station) {
	t.Helper()
	for _, s := range stations {
		s.turn(t, nil)
		equal(t, 0, len(s.got), "completions that nobody waited for: %v", s.got)
		zero(t, s.q.InFlight(), "operations in flight")
	}
}

// register covers the buffers of an operation with descriptors, where the
// provider asks for it.
func (s *station) register(t *trial, op *fabric.Op) {
	t.Helper()
	if s.site.info.MemoryMode()&fabric.LocalRegistration == 0 && !t.registers {
		return
	}
	switch op.Kind {
	case fabric.OpInject, fabric.OpTaggedInject, fabric.OpWriteInject, fabric.OpAtomicInject:
		return
	}
	if op.Descriptor == 0 {
		op.Descriptor = s.descriptor(t, op.Buf)
	}
	if len(op.Descriptors) == 0 {
		for _, part := range op.Vector {
			op.Descriptors = append(op.Descriptors, s.descriptor(t, part))
		}
	}
	if op.Atomic != nil {
		withResults := *op.Atomic
		withResults.ResultDescriptor = s.descriptor(t, withResults.Result)
		withResults.CompareDescriptor = s.descriptor(t, withResults.Compare)
		op.Atomic = &withResults
	}
}

// descriptor is that of a registration which ends after the endpoint: until then
// the provider may use what it covers.
func (s *station) descriptor(t *trial, buf []byte) fabric.Descriptor {
	t.Helper()
	if len(buf) == 0 {
		return 0
	}
	first := unsafe.SliceData(buf)
	if r := s.held[first]; r != nil && r.Len() >= uint64(len(buf)) {
		return r.Descriptor()
	}
	access := fabric.AccessMessages
	if s.site.info.Capabilities()&(fabric.RemoteMemory|fabric.Atomics) != 0 {
		access |= fabric.AccessRead | fabric.AccessWrite
	}
	r, err := s.site.domain.RegisterMemory(fabric.RegionConfig{Access: access}, buf)
	noError(t, err, "registering %d bytes", len(buf))
	s.site.kept = append(s.site.kept, r)
	s.held[first] = r
	return r.Descriptor()
}

// accepted leaves those that were refused, and fails for those that failed.
func accepted(t *trial, posts []fabric.Op) (rest []fabric.Op) {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(posts), func(op fabric.Op) bool {
		t.Helper()
		noError(t, op.Err)
		return op.Result != fabric.Refused
	})
}

// carry posts on both sides, and turns them until each has its completions.
func carry(t *trial, a, b *station, postA, postB []fabric.Op, wantA, wantB int) (fromA, fromB []fabric.Completion) {
	t.Helper()
	for i := range postA {
		a.register(t, &postA[i])
	}
	for i := range postB {
		b.register(t, &postB[i])
	}
	t.until("completions of all", func(try int) bool {
		a.step(t, postA, try)
		b.step(t, postB, try)
		postA, postB = accepted(t, postA), accepted(t, postB)
		return len(a.got) >= wantA && len(b.got) >= wantB && len(postA)+len(postB) == 0
	})
	fromA, fromB, a.got, b.got = a.got, b.got, nil, nil
	return fromA, fromB
}
