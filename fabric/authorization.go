package fabric

import "github.com/weft-go/weft/cgo"

// InsertKey adds an authorization key to an address vector of a domain whose
// endpoints have several. The address stands for all peers with the key. The
// key's format is the provider's; it has 1 to 4096 bytes, which is ErrInvalid else,
// and which are not kept. libfabric has it from 2.0 on; before, it is ErrNotSupported.
//
// Implements: int fi_av_insert_auth_key(...)
func (v *AddressVector) InsertKey(key []byte) (Address, error) {
	if err := v.enter(); err != nil {
		return AddressAny, err
	}
	defer v.leave()
	if len(key) == 0 || len(key) > longestAddress {
		return AddressAny, v.invalid("fi_av_insert_auth_key", "a key has 1 to 4096 bytes")
	}
	peer, code := v.raw.InsertAuthKey(key)
	if code != 0 {
		return AddressAny, fail("fi_av_insert_auth_key", v.provider, int(code))
	}
	v.peers[Address(peer)]++
	v.bits.add(Address(peer))
	return Address(peer), nil
}

// LookupKey returns the authorization key of a peer, which the caller may keep.
// ErrNotFound says that the peer is not known here. libfabric has it from 2.0 on;
// before, it is ErrNotSupported.
//
// Implements: int fi_av_lookup_auth_key(...)
func (v *AddressVector) LookupKey(peer Address) ([]byte, error) {
	if err := v.enter(); err != nil {
		return nil, err
	}
	defer v.leave()
	if err := v.known("fi_av_lookup_auth_key", peer); err != nil {
		return nil, err
	}
	buf := make([]byte, longestAddress)
	n, code := v.raw.LookupAuthKey(uint64(peer), buf)
	if code != 0 {
		return nil, fail("fi_av_lookup_auth_key", v.provider, int(code))
	}
	return buf[:min(n, len(buf))], nil
}

// SetUserID gives a peer the number that completions name it by, in a vector
// with UserIDs. ErrNotFound says that the peer is not known here. libfabric has it
// from 2.0 on; before, it is ErrNotSupported.
//
// Implements: int fi_av_set_user_id(...)
func (v *AddressVector) SetUserID(peer, id Address) error {
	if err := v.enter(); err != nil {
		return err
	}
	defer v.leave()
	if err := v.known("fi_av_set_user_id", peer); err != nil {
		return err
	}
	return fail("fi_av_set_user_id", v.provider, int(v.raw.SetUserID(uint64(peer), uint64(id))))
}

// InGroup names the peer within a group of a job, on providers whose
// Limits.Group is not 0. Before libfabric 2.0 there are no groups, and it
// returns the address as it is.
//
// Implements: fi_addr_t fi_group_addr(...)
func (a Address) InGroup(group uint32) Address {
	return Address(cgo.GroupAddress(uint64(a), group))
}
