package fabric

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// Group is an endpoint's membership in the group of an AddressSet, by which it
// takes part in collectives (fid_mc). One goroutine at a time may use it,
// together with its endpoint. Every member calls the same collectives in the
// same order, with buffers of the same length; a collective completes when all
// have, which some providers see only while their queues are read.
//
// A member that is lost is not noticed: the collectives of the others never
// complete. Close of the endpoint ends them.
type Group struct {
	handle
	raw      cgo.Multicast
	endpoint *Endpoint
	members  []Address
	rank     int
	address  uint64
	state    atomic.Int32
	// inFlight are the operations of which some may be complete by now.
	inFlight []Token
}

// The states of a Group.
const (
	groupJoining = iota
	groupJoined
	groupFailed
)

// JoinCollective lets the endpoint join the group of a set, as every other
// member must. Its own address has to be in the set. The group is joined when
// the endpoint's event queue has the JoinCompleteEvent; until then the queues of
// all members must be read. The set cannot change while it has a group, and
// needs to have the same members in the same order for all.
//
// flags may restrict the group to CanSend or CanReceive; 0 does not.
//
// ErrInvalid says what does not fit: the endpoint is not enabled, its own address is
// not in the set, or the set is of another address vector. ErrNotSupported says that
// the provider has no collectives, ErrBusy that the endpoint is joining another group,
// or another endpoint this one: groups that are joined at the same time may get the
// same number. An endpoint joins 255 groups in its life, because libfabric takes no
// number back; a further one is ErrNotSupported.
//
// Implements: int fi_join_collective(...)
func (e *Endpoint) JoinCollective(set *AddressSet, flags Capabilities) (*Group, error) {
	const op = "fi_join_collective"
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if set == nil {
		return nil, e.cannotJoin(op, errnoInvalid, "there is no set")
	}
	if err := set.enter(); err != nil {
		return nil, err
	}
	defer set.leave()
	switch {
	case e.turn == nil:
		return nil, e.notEnabled(op)
	case flags&^(CanSend|CanReceive) != 0:
		return nil, e.cannotJoin(op, errnoInvalid, "the flags of a group are CanSend and CanReceive")
	case !e.within(&set.vector.handle):
		return nil, e.cannotJoin(op, errnoInvalid, "the set is of another address vector than the endpoint's")
	case e.connection.events == nil:
		return nil, e.cannotJoin(op, errnoInvalid, "the endpoint has no event queue")
	case e.send == nil:
		return nil, e.cannotJoin(op, errnoInvalid, "the endpoint has no completion queue for sends, where collectives complete")
	case slices.ContainsFunc(e.groups, (*Group).joining), set.joining != nil && set.joining.joining():
		return nil, e.cannotJoin(op, Errno(syscall.EBUSY), "another group of the endpoint, or of the set, is being joined")
	}
	if e.joins == mostJoins {
		return nil, e.cannotJoin(op, Errno(syscall.ENOSYS), fmt.Sprintf("an endpoint joins at most %d groups", mostJoins))
	}
	rank, err := e.rankIn(set)
	if err != nil {
		return nil, err
	}
	address, code := set.raw.Address()
	if code != 0 {
		return nil, fail("fi_av_set_addr", e.provider, int(code))
	}
	g := &Group{endpoint: e, members: slices.Clone(set.members), rank: rank}
	// libfabric's own collectives name the set's address in the event.
	code = e.connection.events.attachJoin(g, uintptr(address), func() (cgo.Multicast, cgo.Code) {
		g.raw, code = e.raw.JoinCollective(address, set.raw, uint64(flags))
		return g.raw, code
	})
	if code != 0 {
		return nil, fail(op, e.provider, int(code))
	}
	g.address = g.raw.Address()
	g.open("group", e.provider, &set.handle)
	e.groups = append(e.groups, g)
	set.joining = g
	e.joins++
	return g, nil
}

// mostJoins is how many numbers libfabric has for the groups of an endpoint.
// Beyond, it writes past its map of them and gives out one number again and
// again.
const mostJoins = 255

func (e *Endpoint) cannotJoin(op string, errno Errno, detail string) error {
	return &Error{Op: op, Provider: e.provider, Errno: errno, Detail: detail}
}

// rankIn is the endpoint's place in the set. libfabric does not check that it
// has one.
func (e *Endpoint) rankIn(set *AddressSet) (int, error) {
	name, code := e.raw.Name()
	if code != 0 {
		return 0, fail("fi_getname", e.provider, int(code))
	}
	for i, member := range set.members {
		address, err := set.vector.Lookup(member)
		if err != nil {
			return 0, err
		}
		if bytes.Equal(address, name) {
			return i, nil
		}
	}
	return 0, e.cannotJoin("fi_join_collective", errnoInvalid, "the endpoint's own address is not in the set")
}

// fixed says that the set cannot change because a group has joined it.
func (s *AddressSet) fixed(op string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.children) == 0 {
		return nil
	}
	return &Error{Op: op, Provider: s.provider, Errno: Errno(syscall.EBUSY), Detail: "the set cannot change while it has " + s.childrenText()}
}

// attachJoin joins something, and makes it known by what an event may name, before
// anybody can read that event. other is a further name; 0 is none.
func (q *EventQueue) attachJoin(owner eventOwner, other uintptr, join func() (cgo.Multicast, cgo.Code)) cgo.Code {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.drain()
	q.forgetClosed()
	m, code := join()
	if code != 0 {
		return code
	}
	q.owners[m.Identity()] = owner
	if other != 0 {
		q.owners[other] = owner
	}
	return 0
}

// settle is called for the event of the join.
func (g *Group) settle(err error) {
	if err != nil {
		g.state.CompareAndSwap(groupJoining, groupFailed)
		return
	}
	g.state.CompareAndSwap(groupJoining, groupJoined)
}

func (g *Group) joining() bool { return g.state.Load() == groupJoining }

// Rank is the endpoint's place among the members, from 0.
func (g *Group) Rank() int { return g.rank }

// Size is the number of members.
func (g *Group) Size() int { return len(g.members) }

// Address is the group's own (fi_mc_addr). The methods of the group use it by
// themselves.
//
// Implements: fi_addr_t fi_mc_addr(...)
func (g *Group) Address() Address { return Address(g.address) }

// busy says whether libfabric still works on something of the group.
func (g *Group) busy() bool {
	g.inFlight = slices.DeleteFunc(g.inFlight, func(t Token) bool {
		_, s := g.endpoint.send.lookup(uint64(t))
		return s == nil
	})
	return g.joining() || len(g.inFlight) > 0
}

// Close leaves the group. ErrBusy says that joining it, or an operation, is not
// complete: libfabric would go on with memory that it has freed. Close of the
// endpoint ends its groups in any case.
//
// Implements: int fi_close(...)
func (g *Group) Close() error {
	if g.number == 0 {
		return g.neverOpened()
	}
	if !g.closed() && g.busy() {
		return &Error{
			Op: "close of group", Provider: g.provider, Errno: Errno(syscall.EBUSY),
			Detail: "joining it, or an operation, is not complete",
		}
	}
	if err := g.end(); err != nil {
		return err
	}
	e := g.endpoint
	e.groups = slices.DeleteFunc(e.groups, func(other *Group) bool { return other == g })
	return nil
}

func (g *Group) end() error {
	return g.close(func() error {
		if err := fail("fi_close of group", g.provider, int(g.raw.Close())); err != nil {
			return err
		}
		g.state.CompareAndSwap(groupJoining, groupFailed)
		return nil
	})
}

// endGroups leaves the groups of an endpoint that is being closed: before it is,
// those that nothing goes on in, and then the others.
func (e *Endpoint) endGroups(all bool) error {
	for _, g := range slices.Clone(e.groups) {
		if !all && g.busy() {
			continue
		}
		if err := g.end(); err != nil {
			return err
		}
		e.groups = slices.DeleteFunc(e.groups, func(other *Group) bool { return other == g })
	}
	return nil
}

// Collective is what a collective works on. Its buffers are the endpoint's until
// the completion.
type Collective struct {
	// Buf is this member's contribution, and Result where the result goes; the
	// methods of Group say how long they are. They do not overlap.
	Buf, Result []byte
	// Descriptor and ResultDescriptor cover them where the device needs
	// registration.
	Descriptor, ResultDescriptor Descriptor
	// Type is that of the values, Operation how they are combined, from Min to
	// BitXor.
	Type      DataType
	Operation AtomicOp
	// Root is the place of the one member that sends or gets everything, from 0.
	// The collectives without one want a place all the same: 0 is one.
	Root int
	// Flags are WithCompletion, Fence, and those that say what the completion
	// means.
	Flags OpFlags
	// Fixed is that of Op.
	Fixed bool
	// Context is given back in the Completion.
	Context uint64
}

// collectiveFlags are those that a collective may have.
const collectiveFlags = WithCompletion | Fence | completionLevels

// Barrier completes when all members have called it.
//
// This and the other collectives do not block. They return a token, and the
// Completion of kind OpCollective comes from Turn or from the endpoint's
// send queue. ErrAgain says that there is no room now, ErrNotSupported that the
// provider has no such collective, ErrInvalid that a buffer has the wrong length
// or that the group is not joined yet. Cancel does nothing to collectives. They do
// not allocate, but for errors.
//
// context and flags are those of a [Collective].
//
// Implements: ssize_t fi_barrier(...), fi_barrier2(...)
func (g *Group) Barrier(context uint64, flags OpFlags) (Token, error) {
	return g.post(Barrier, &Collective{Context: context, Flags: flags}, 0, 0)
}

// Broadcast copies Buf of the root to Buf of all others. It has a whole number
// of values for each member: of any other number, libfabric's own broadcast
// would write beyond the end.
//
// Implements: ssize_t fi_broadcast(...)
func (g *Group) Broadcast(c Collective) (Token, error) {
	return g.post(Broadcast, &c, g.Size(), 0)
}

// AllToAll sends the part of Buf at each member's place to that member. Result
// has as many values and gets the parts of all members.
//
// Implements: ssize_t fi_alltoall(...)
func (g *Group) AllToAll(c Collective) (Token, error) {
	return g.post(AllToAll, &c, g.Size(), g.Size())
}

// AllReduce combines the Buf of all members, value by value, into the Result of
// all, which has as many.
//
// Implements: ssize_t fi_allreduce(...)
func (g *Group) AllReduce(c Collective) (Token, error) { return g.post(AllReduce, &c, 1, 1) }

// AllGather puts the Buf of all members, one after the other, into the Result of
// all, which has as many values for each member.
//
// Implements: ssize_t fi_allgather(...)
func (g *Group) AllGather(c Collective) (Token, error) {
	return g.post(AllGather, &c, 1, g.Size())
}

// ReduceScatter combines the Buf of all members and leaves each with the part at
// its place, in Result. Buf has as many values as Result for each member.
//
// Implements: ssize_t fi_reduce_scatter(...)
func (g *Group) ReduceScatter(c Collective) (Token, error) {
	return g.post(ReduceScatter, &c, g.Size(), 1)
}

// Reduce combines the Buf of all members into the root's Result, which has as
// many values. The others have none.
//
// Implements: ssize_t fi_reduce(...)
func (g *Group) Reduce(c Collective) (Token, error) { return g.post(Reduce, &c, 1, g.atRoot(&c, 1)) }

// Scatter puts the part of the root's Buf at each member's place into that
// member's Result. The others have no Buf.
//
// Implements: ssize_t fi_scatter(...)
func (g *Group) Scatter(c Collective) (Token, error) {
	return g.post(Scatter, &c, g.atRoot(&c, g.Size()), 1)
}

// Gather puts the Buf of all members, one after the other, into the root's
// Result. The others have none.
//
// Implements: ssize_t fi_gather(...)
func (g *Group) Gather(c Collective) (Token, error) {
	return g.post(Gather, &c, 1, g.atRoot(&c, g.Size()))
}

func (g *Group) atRoot(c *Collective, parts int) int {
	if c.Root == g.rank {
		return parts
	}
	return 0
}

// post posts a collective whose Buf and Result have so many parts of the same
// length.
func (g *Group) post(kind CollectiveKind, c *Collective, parts, resultParts int) (Token, error) {
	// Close of the endpoint closes the group, and waits for those in it.
	e := cmp.Or(g.endpoint, &unopened)
	if err := e.enter(); err != nil {
		return 0, err
	}
	defer e.leave()
	if err := g.enter(); err != nil {
		return 0, err
	}
	defer g.leave()
	count, why := g.count(kind, c, parts, resultParts)
	if why != "" {
		return 0, g.invalid(kind.String(), why)
	}
	// libfabric calls what it has for the type and the operation without a look
	// whether it has it.
	limits, err := e.domain.collectiveLimits(kind, c.Operation, c.Type)
	if err != nil {
		return 0, err
	}
	if limits.MaxMembers > 0 && g.Size() > limits.MaxMembers {
		return 0, &Error{
			Op: kind.String(), Provider: g.provider, Errno: Errno(syscall.ENOSYS),
			Detail: fmt.Sprintf("a group may have %d members, not %d", limits.MaxMembers, g.Size()),
		}
	}
	if n := g.message(kind, c); limits.MaxMessage > 0 && n > limits.MaxMessage {
		return 0, &Error{
			Op: kind.String(), Provider: g.provider, Errno: Errno(syscall.ENOSYS),
			Detail: fmt.Sprintf("a message of %d bytes would never arrive, only one of up to %d", n, limits.MaxMessage),
		}
	}
	var own, result uintptr
	known := &e.domain.descriptors
	state := max(known.translate(&own, c.Descriptor), known.translate(&result, c.ResultDescriptor))
	if state == descriptorUnknown {
		return 0, g.invalid(kind.String(), e.domain.unknownDescriptor(&Op{Descriptors: []Descriptor{c.Descriptor, c.ResultDescriptor}}))
	}
	q := e.send
	if len(q.free) == 0 || state == descriptorClosing {
		return 0, fail(kind.String(), g.provider, int(cgo.Again))
	}
	// Pinned here: an Op with a second buffer would be memory of its own.
	op := Op{Kind: OpCollective, Fixed: true, Context: c.Context, Descriptor: c.Descriptor}
	index, token := q.take(e, &op)
	if c.ResultDescriptor != 0 {
		q.describe(index, &Op{Descriptors: []Descriptor{c.Descriptor, c.ResultDescriptor}})
	}
	if !c.Fixed {
		q.table[index].pinBytes(c.Buf)
		q.table[index].pinBytes(c.Result)
	}
	raw := cgo.Collective{
		Kind: uint32(kind), Datatype: c.Type.native(), Op: c.Operation.native(),
		Buf: address(c.Buf), Count: uint64(count), Descriptor: own,
		Result: address(c.Result), ResultDescriptor: result,
		Group: g.address, Root: uint64(c.Root), Flags: uint64(c.Flags),
		Slot: q.slots.Address(int(index)), Token: uint64(token),
	}
	if code := e.raw.PostCollective(&raw); code != 0 {
		q.give(index)
		return 0, fail(kind.String(), g.provider, int(code))
	}
	if len(g.inFlight) >= 64 {
		g.busy()
	}
	g.inFlight = append(g.inFlight, token)
	return token, nil
}

// message is the most bytes that may go from one member to another at once.
func (g *Group) message(kind CollectiveKind, c *Collective) int {
	if kind == Scatter {
		return len(c.Result) * g.Size()
	}
	return len(c.Buf)
}

// count is the number of values in a part, or why the collective cannot be.
func (g *Group) count(kind CollectiveKind, c *Collective, parts, resultParts int) (count int, why string) {
	switch {
	case g.state.Load() != groupJoined:
		return 0, "the group is not joined: there was no JoinCompleteEvent"
	case c.Flags&^collectiveFlags != 0:
		return 0, fmt.Sprintf("a collective cannot have the flags %#x", uint64(c.Flags&^collectiveFlags))
	case kind == Barrier:
		return 0, ""
	case c.Root < 0 || c.Root >= g.Size():
		return 0, fmt.Sprintf("the root is one of %d members, not %d", g.Size(), c.Root)
	case c.Type.Size() == 0:
		return 0, noType(c.Type)
	case kind.reduces() && !c.Operation.combines():
		return 0, noCombination(c.Operation)
	}
	size := c.Type.Size()
	if parts > 0 {
		count = len(c.Buf) / size / parts
	} else {
		count = len(c.Result) / size / resultParts
	}
	switch {
	case count == 0:
		return 0, "there are no values for each member"
	case len(c.Buf) != count*size*parts:
		return 0, fmt.Sprintf("Buf has %d bytes, where there are %d values of %d bytes %d times", len(c.Buf), count, size, parts)
	case len(c.Result) != count*size*resultParts:
		return 0, fmt.Sprintf("Result has %d bytes, where there are %d values of %d bytes %d times", len(c.Result), count, size, resultParts)
	case count > math.MaxInt32/g.Size():
		return 0, fmt.Sprintf("%d values for each of %d members are too many", count, g.Size())
	}
	if kind == Broadcast {
		count *= parts
	}
	return count, ""
}
