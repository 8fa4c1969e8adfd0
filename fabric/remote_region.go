package fabric

import (
	"encoding/binary"
	"strconv"

	"github.com/weft-go/weft/cgo"
)

// RemoteRegion is what a peer must know to reach a region, whatever the mode of
// its domain: the owner takes it from [Region.Remote] and tells the peer, who
// gives it to [Domain.MapRemote] if RawKey is there, and then uses At.
type RemoteRegion struct {
	// Address is where the region begins for peers: its virtual address, or 0
	// in domains that count from the beginning of each region.
	Address uint64
	// Length is the number of bytes.
	Length uint64
	// Key is what operations carry, where RawKey is empty.
	Key uint64
	// RawKey is the key in domains that have longer ones (FI_MR_RAW).
	RawKey []byte
}

// Remote is what to tell peers about the region. ErrInvalid says that it must be
// bound and enabled first.
//
// Implements: uint64_t fi_mr_key(...), fi_mr_raw_attr(...)
func (r *Region) Remote() (RemoteRegion, error) {
	if err := r.enter(); err != nil {
		return RemoteRegion{}, err
	}
	defer r.leave()
	r.mu.Lock()
	enabled := r.enabled
	r.mu.Unlock()
	if !enabled {
		return RemoteRegion{}, r.invalid("fi_mr_key", "the region is not enabled yet")
	}
	remote := RemoteRegion{Length: r.length}
	if r.modes.VirtualAddress {
		remote.Address = uint64(r.segments[0].base)
	}
	if r.modes.Raw {
		base, key, code := r.raw.RawKey()
		if code != 0 {
			return RemoteRegion{}, fail("fi_mr_raw_attr", r.provider, int(code))
		}
		remote.Address, remote.RawKey, remote.Key = base, key, cgo.KeyUnavailable
		return remote, nil
	}
	if remote.Key = r.raw.Key(); remote.Key == cgo.KeyUnavailable {
		return RemoteRegion{}, r.invalid("fi_mr_key", "the region has no key yet")
	}
	return remote, nil
}

// RemoteOf is what to tell a peer about one buffer in the region, for use in
// operations as it is. It does not allocate, but for errors: a buffer that does not
// lie within the region is ErrInvalid. So is this in domains with raw keys, where
// there is only Remote.
//
// Implements: uint64_t fi_mr_key(...)
func (r *Region) RemoteOf(buf []byte) (Remote, error) {
	if err := r.enter(); err != nil {
		return Remote{}, err
	}
	defer r.leave()
	offset, ok := r.offset(buf)
	switch {
	case !ok:
		return Remote{}, r.invalid("remote address", "the buffer does not lie within the region")
	case r.modes.Raw:
		return Remote{}, r.invalid("remote address", "this domain has raw keys, which a peer must map: see Region.Remote")
	}
	if r.modes.VirtualAddress {
		offset = uint64(address(buf))
	}
	return Remote{Address: offset, Key: r.raw.Key()}, nil
}

// At is where length bytes from offset on are, for Op.Remote. ErrInvalid says that
// they do not lie within the region, or that its raw key must be mapped first.
func (r RemoteRegion) At(offset, length uint64) (Remote, error) {
	invalid := func(detail string) (Remote, error) {
		return Remote{}, &Error{Op: "remote address", Errno: errnoInvalid, Detail: detail}
	}
	switch {
	case offset > r.Length || length > r.Length-offset:
		return invalid(strconv.FormatUint(length, 10) + " bytes from " + strconv.FormatUint(offset, 10) +
			" on do not fit in a region of " + strconv.FormatUint(r.Length, 10))
	case r.Address > ^uint64(0)-offset:
		return invalid("the region ends beyond the last address")
	case len(r.RawKey) > 0:
		return invalid("a region with a raw key is mapped first: see Domain.MapRemote")
	}
	return Remote{Address: r.Address + offset, Key: r.Key}, nil
}

// mostRawKey is the longest raw key in bytes that is taken from a peer.
const mostRawKey = 256

// AppendBinary appends the region in the form that UnmarshalBinary reads: three
// little-endian 64-bit numbers (address, length, key) and the raw key. A raw key of
// more than 256 bytes is ErrInvalid.
func (r RemoteRegion) AppendBinary(b []byte) ([]byte, error) {
	if len(r.RawKey) > mostRawKey {
		return b, &Error{Op: "remote region", Errno: errnoInvalid, Detail: "a raw key has at most " + strconv.Itoa(mostRawKey) + " bytes"}
	}
	for _, n := range []uint64{r.Address, r.Length, r.Key} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return append(b, r.RawKey...), nil
}

// MarshalBinary is the form to send to a peer; see AppendBinary.
func (r RemoteRegion) MarshalBinary() ([]byte, error) { return r.AppendBinary(nil) }

// UnmarshalBinary reads what a peer has sent. What cannot be right is refused
// with ErrInvalid. It does not keep the bytes.
func (r *RemoteRegion) UnmarshalBinary(b []byte) error {
	const fixed = 24
	if len(b) < fixed || len(b) > fixed+mostRawKey {
		return &Error{
			Op: "remote region", Errno: errnoInvalid,
			Detail: "it has " + strconv.Itoa(fixed) + " to " + strconv.Itoa(fixed+mostRawKey) + " bytes, not " + strconv.Itoa(len(b)),
		}
	}
	var raw []byte
	if len(b) > fixed {
		raw = append(raw, b[fixed:]...)
	}
	*r = RemoteRegion{
		Address: binary.LittleEndian.Uint64(b), Length: binary.LittleEndian.Uint64(b[8:]),
		Key: binary.LittleEndian.Uint64(b[16:]), RawKey: raw,
	}
	return nil
}

// MappedRegion is a peer's region that this side can use: its At has the places. Its
// methods may be called from any goroutine.
type MappedRegion struct {
	handle
	RemoteRegion
	domain *Domain
	mapped bool
}

// MapRemote makes a peer's region usable in operations of this domain. Only raw
// keys need that; with others it costs nothing, so that programs need not know.
// It is to be closed when no operation uses it any more. It does not keep r.RawKey.
//
// Implements: int fi_mr_map_raw(...)
func (d *Domain) MapRemote(r RemoteRegion) (*MappedRegion, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	m := &MappedRegion{RemoteRegion: r, domain: d}
	if n := len(r.RawKey); n > mostRawKey {
		return nil, d.invalid("fi_mr_map_raw", "a raw key has at most "+strconv.Itoa(mostRawKey)+" bytes, not "+strconv.Itoa(n))
	} else if n > 0 {
		key, code := d.raw.MapKey(r.Address, r.RawKey)
		if code != 0 {
			return nil, fail("fi_mr_map_raw", d.provider, int(code))
		}
		m.Key, m.RawKey, m.mapped = key, nil, true
	}
	m.open("mapped region", d.provider, &d.handle)
	return m, nil
}

// Close ends the use of the peer's region.
//
// Implements: int fi_mr_unmap_key(...)
func (m *MappedRegion) Close() error {
	return m.close(func() error {
		if !m.mapped {
			return nil
		}
		return fail("fi_mr_unmap_key", m.provider, int(m.domain.raw.UnmapKey(m.Key)))
	})
}
