package fabric

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// AddressSet is an ordered set of peers of an address vector, the members of a
// collective (fid_av_set). One goroutine at a time may use it, together with its
// vector. A peer that is in a set must not be removed from the vector. While the
// set has a [Group] it cannot change: what would change it is ErrBusy.
type AddressSet struct {
	handle
	raw      cgo.AddressSet
	vector   *AddressVector
	members  []Address
	capacity int
	joining  *Group // that was joined last
}

// CollectiveUse says which collectives a set is for, a set of bits; zero means
// any.
type CollectiveUse uint64

// The uses of a set.
const (
	ForBarrier       CollectiveUse = CollectiveUse(cgo.SetBarrier)       // FI_BARRIER_SET
	ForBroadcast     CollectiveUse = CollectiveUse(cgo.SetBroadcast)     // FI_BROADCAST_SET
	ForAllToAll      CollectiveUse = CollectiveUse(cgo.SetAllToAll)      // FI_ALLTOALL_SET
	ForAllReduce     CollectiveUse = CollectiveUse(cgo.SetAllReduce)     // FI_ALLREDUCE_SET
	ForAllGather     CollectiveUse = CollectiveUse(cgo.SetAllGather)     // FI_ALLGATHER_SET
	ForReduceScatter CollectiveUse = CollectiveUse(cgo.SetReduceScatter) // FI_REDUCE_SCATTER_SET
	ForReduce        CollectiveUse = CollectiveUse(cgo.SetReduce)        // FI_REDUCE_SET
	ForScatter       CollectiveUse = CollectiveUse(cgo.SetScatter)       // FI_SCATTER_SET
	ForGather        CollectiveUse = CollectiveUse(cgo.SetGather)        // FI_GATHER_SET
)

var collectiveUseNames = setNames[CollectiveUse]{
	{ForBarrier, "FI_BARRIER_SET"},
	{ForBroadcast, "FI_BROADCAST_SET"},
	{ForAllToAll, "FI_ALLTOALL_SET"},
	{ForAllReduce, "FI_ALLREDUCE_SET"},
	{ForAllGather, "FI_ALLGATHER_SET"},
	{ForReduceScatter, "FI_REDUCE_SCATTER_SET"},
	{ForReduce, "FI_REDUCE_SET"},
	{ForScatter, "FI_SCATTER_SET"},
	{ForGather, "FI_GATHER_SET"},
}

// String lists the set in libfabric's words.
func (u CollectiveUse) String() string { return collectiveUseNames.list(u) }

// AddressSetConfig describes a set. The zero value is an empty set for any use.
type AddressSetConfig struct {
	// Members are those to begin with, in order.
	Members []Address
	// Capacity is the most members that it will have; 0 means as many as the
	// vector has peers now.
	Capacity int
	// Key is a communication key, in the provider's format.
	Key []byte
	// For is what the set is to be used for.
	For CollectiveUse
}

// OpenSet opens a set of the vector's peers, of which there should be some: an
// older libfabric makes no set of a vector without. ErrNotSupported says that
// the provider has no collectives, or that the domain was opened without
// Collectives; ErrInvalid that there are more members than the capacity, or one
// twice; ErrNotFound that the vector does not know one.
//
// Implements: int fi_av_set(...)
func (v *AddressVector) OpenSet(config AddressSetConfig) (s *AddressSet, err error) {
	if err := v.enter(); err != nil {
		return nil, err
	}
	defer v.leave()
	if config.Capacity == 0 {
		config.Capacity = max(v.Len(), 1)
	}
	if config.Capacity < len(config.Members) || config.Capacity > mostPeers || len(config.Key) > longestAddress {
		return nil, v.invalid("fi_av_set", fmt.Sprintf("a set holds its members, at most %d, and a key has at most %d bytes", mostPeers, longestAddress))
	}
	raw, code := v.openSet(config)
	if code != 0 {
		return nil, fail("fi_av_set", v.provider, int(code))
	}
	s = &AddressSet{raw: raw, vector: v, capacity: config.Capacity}
	s.open("address set", v.provider, &v.handle)
	for _, member := range config.Members {
		if err := s.insert(member); err != nil {
			return nil, closeAfter(err, s.Close)
		}
	}
	return s, nil
}

// openSet opens an empty set. libfabric 1.17 says that there is no memory for
// one; there, a set of one peer is emptied.
func (v *AddressVector) openSet(config AddressSetConfig) (cgo.AddressSet, cgo.Code) {
	raw, code := v.raw.OpenSet(config.Capacity, cgo.NoAddress, config.Key, uint64(config.For))
	if code != cgo.Code(syscall.ENOMEM) {
		return raw, code
	}
	for peer := range v.peers {
		if raw, code = v.raw.OpenSet(config.Capacity, uint64(peer), config.Key, uint64(config.For)); code != 0 {
			return raw, code
		}
		if code = raw.Remove(uint64(peer)); code != 0 {
			raw.Close()
		}
		return raw, code
	}
	return raw, code
}

// closeAfter closes what cannot be used for an error, which it returns.
func closeAfter(err error, closing func() error) error {
	if failed := closing(); failed != nil {
		return fmt.Errorf("%w; and then: %w", err, failed)
	}
	return err
}

// Members are the peers in the set, in order. The caller may keep the slice.
func (s *AddressSet) Members() []Address { return slices.Clone(s.members) }

// Insert appends a peer. ErrInvalid says that it is in the set already, or that
// the set is full, ErrNotFound that the vector does not know it.
//
// Implements: int fi_av_set_insert(...)
func (s *AddressSet) Insert(peer Address) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	return s.insert(peer)
}

func (s *AddressSet) insert(peer Address) error {
	const op = "fi_av_set_insert"
	if err := s.fixed(op); err != nil {
		return err
	}
	if err := s.vector.known(op, peer); err != nil {
		return err
	}
	switch {
	case slices.Contains(s.members, peer):
		return s.invalid(op, fmt.Sprintf("the set has the peer %d already", peer))
	case len(s.members) == s.capacity:
		return s.invalid(op, fmt.Sprintf("the set was opened for %d members", s.capacity))
	}
	if code := s.raw.Insert(uint64(peer)); code != 0 {
		return fail(op, s.provider, int(code))
	}
	s.members = append(s.members, peer)
	return nil
}

// Remove takes a peer out of the set; the others keep their order. ErrNotFound
// says that it is not in the set.
//
// Implements: int fi_av_set_remove(...)
func (s *AddressSet) Remove(peer Address) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if !slices.Contains(s.members, peer) {
		return &Error{
			Op: "fi_av_set_remove", Provider: s.provider, Errno: Errno(syscall.ENOENT),
			Detail: fmt.Sprintf("the set has no peer %d", peer),
		}
	}
	return s.keep(func(member Address) bool { return member != peer })
}

// Union appends the members of another set of the same vector that are missing,
// in their order. ErrInvalid says that the other set is of another vector, or that
// this one has no room for them.
//
// Implements: int fi_av_set_union(...)
func (s *AddressSet) Union(other *AddressSet) error {
	return s.with("fi_av_set_union", other, func() error {
		var missing []Address
		for _, member := range other.members {
			if !slices.Contains(s.members, member) {
				missing = append(missing, member)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if len(s.members)+len(missing) > s.capacity {
			return s.invalid("fi_av_set_union", fmt.Sprintf("the set was opened for %d members", s.capacity))
		}
		if err := s.fixed("fi_av_set_union"); err != nil {
			return err
		}
		if code := s.raw.Union(other.raw); code != 0 {
			return fail("fi_av_set_union", s.provider, int(code))
		}
		s.members = append(s.members, missing...)
		return nil
	})
}

// Intersect keeps the members that another set of the same vector has too, in
// their order. ErrInvalid says that the other set is of another vector. It takes
// members out one by one: fi_av_set_intersect loses some.
func (s *AddressSet) Intersect(other *AddressSet) error {
	return s.with("intersection of address sets", other, func() error {
		return s.keep(func(member Address) bool { return slices.Contains(other.members, member) })
	})
}

// Diff takes the members out that another set of the same vector has; the
// others keep their order. ErrInvalid says that the other set is of another vector.
// It takes them out one by one: fi_av_set_diff loses others.
func (s *AddressSet) Diff(other *AddressSet) error {
	return s.with("difference of address sets", other, func() error {
		return s.keep(func(member Address) bool { return !slices.Contains(other.members, member) })
	})
}

// with does something with two sets that must be of the same vector.
func (s *AddressSet) with(op string, other *AddressSet, do func() error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if other == nil || other.vector != s.vector {
		return s.invalid(op, "the sets are of different address vectors")
	}
	if err := other.enter(); err != nil {
		return err
	}
	defer other.leave()
	return do()
}

// keep drops the members that do not stay. libfabric's own fi_av_set_intersect
// and fi_av_set_diff lose members that should stay, and fi_av_set_remove puts
// the last one in the place of the one removed: so the set is taken down to
// the first that goes, from its end, and what stays is put back.
func (s *AddressSet) keep(stays func(Address) bool) error {
	first := slices.IndexFunc(s.members, func(member Address) bool { return !stays(member) })
	if first < 0 {
		return nil
	}
	if err := s.fixed("fi_av_set_remove"); err != nil {
		return err
	}
	tail := slices.Clone(s.members[first:])
	for i := len(s.members) - 1; i >= first; i-- {
		if code := s.raw.Remove(uint64(s.members[i])); code != 0 {
			return fail("fi_av_set_remove", s.provider, int(code))
		}
		s.members = s.members[:i]
	}
	for _, member := range tail {
		if !stays(member) {
			continue
		}
		if code := s.raw.Insert(uint64(member)); code != 0 {
			return fail("fi_av_set_insert", s.provider, int(code))
		}
		s.members = append(s.members, member)
	}
	return nil
}

// Address is what an endpoint joins the set by (fi_join_collective). It holds
// for the members of now.
//
// Implements: int fi_av_set_addr(...)
func (s *AddressSet) Address() (Address, error) {
	if err := s.enter(); err != nil {
		return AddressAny, err
	}
	defer s.leave()
	address, code := s.raw.Address()
	if code != 0 {
		return AddressAny, fail("fi_av_set_addr", s.provider, int(code))
	}
	return Address(address), nil
}

// Close closes the set. ErrBusy says that it still has groups.
//
// Implements: int fi_close(...)
func (s *AddressSet) Close() error {
	return s.close(func() error { return fail("fi_close of address set", s.provider, int(s.raw.Close())) })
}
