package fabric

import (
	"bytes"
	"strconv"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// AddressVector holds the peers that endpoints send to (fid_av). One goroutine
// at a time may use it, together with the endpoints that are bound to it. Peers
// may come and go while operations with others are in flight.
type AddressVector struct {
	handle
	raw    cgo.AddressVector
	format AddressFormat
	kind   AddressVectorType
	length int // of each address in bytes; 0 where they differ
	// peers counts how often each has been inserted: providers look addresses
	// up unchecked. bits has them for the look at each operation.
	peers map[Address]int
	bits  peerBits
	// shared says that others may have inserted peers too, which libfabric knows.
	shared      bool
	receiveBits int  // see AddressVectorConfig
	grouped     bool // an address may have the number of a group above its low 32 bits
	domain      *Domain
	// Of endpoints of this process that may look at each other, guarded by the lock of neighbours:
	// names are those that libfabric has, parted those that the program has removed.
	names  map[Address]string
	parted map[string]struct{}
	kept   keptPeers          // of shm's
	named  map[string]Address // those that are known, where libfabric gets each once
	// newcomers are those of sockets.
	newcomers newcomers
}

// AddressVectorConfig describes an address vector. The zero value works.
type AddressVectorConfig struct {
	// Type says what the addresses are; zero means AddressTable.
	Type AddressVectorType
	// Peers is about how many there will be, PeersPerNode how many of them on
	// one host, 2^20 at most; zero leaves it to the provider. shm has 256 at most.
	Peers, PeersPerNode uint64
	// ReceiveBits is how many bits of an address name a receive context of the
	// peer, from the top (NamedReceiveContexts); see [Address.Context].
	ReceiveBits int
	// Name shares the vector with the processes of this host that open it by
	// the same name (SharedAddressVectors).
	Name string
	// ReadOnly leaves inserting to the others that share it by its Name (FI_READ).
	ReadOnly bool
	// UserIDs has completions name their source by the number that SetUserID
	// gave it (PeerUserIDs).
	UserIDs bool
	// Symmetric promises that every host has the same number of peers
	// (FI_SYMMETRIC).
	Symmetric bool
}

// OpenAddressVector opens an empty table of peers. It is OpenAddressVectorConfig
// with the zero configuration.
//
// Implements: int fi_av_open(...)
func (d *Domain) OpenAddressVector() (*AddressVector, error) {
	return d.OpenAddressVectorConfig(AddressVectorConfig{})
}

// OpenAddressVectorConfig opens an address vector, as OpenAddressVector does,
// with the properties of config. Providers refuse, with ErrNotSupported or
// ErrInvalid, those that they do not have.
//
// Implements: int fi_av_open(...)
func (d *Domain) OpenAddressVectorConfig(config AddressVectorConfig) (*AddressVector, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if config.Type == 0 {
		config.Type = AddressTable
	}
	if detail := config.wrong(core(d.provider)); detail != "" {
		return nil, d.invalid("fi_av_open", detail)
	}
	raw := cgo.AddressVectorConfig{
		Type: uint32(config.Type), ReceiveBits: config.ReceiveBits,
		Count: config.Peers, PerNode: config.PeersPerNode, Name: config.Name,
	}
	for flag, wanted := range map[uint64]bool{
		cgo.FlagReadOnly: config.ReadOnly, cgo.FlagUserID: config.UserIDs, cgo.FlagTwins: config.Symmetric,
	} {
		if wanted {
			raw.Flags |= flag
		}
	}
	opened, code := d.raw.OpenAddressVectorConfig(raw)
	if code != 0 {
		err := &Error{Op: "fi_av_open", Provider: d.provider, Errno: Errno(code)}
		if has := d.info.AddressVector(); has != 0 && has != config.Type {
			err.Detail = "the domain's info has vectors of type " + has.String() + ", not " + config.Type.String()
		} else if config.UserIDs && err.Errno == Errno(syscall.EINVAL) {
			err.Errno, err.Detail = Errno(syscall.ENOSYS), "the provider has no vectors with numbers of the program's (UserIDs)"
		}
		return nil, err
	}
	v := &AddressVector{
		raw: opened, format: d.info.AddressFormat(), kind: config.Type,
		length: addressLength(d.info), peers: make(map[Address]int), shared: config.Name != "",
		receiveBits: config.ReceiveBits, grouped: d.info.Limits().Group != 0, domain: d,
	}
	v.open("address vector", d.provider, &d.handle)
	return v, nil
}

// wrong says what cannot be.
func (c *AddressVectorConfig) wrong(provider string) string {
	// smr refuses more, and others multiply what they are told until it is little.
	most := uint64(mostPeers)
	if provider == "shm" {
		most = mostShmPeers
	}
	switch {
	case c.Type != AddressTable && c.Type != AddressMap:
		return "there is no such type of address vectors: " + strconv.Itoa(int(c.Type))
	case c.ReceiveBits < 0 || c.ReceiveBits > 32:
		return "0 to 32 bits of an address can name a receive context, not " + strconv.Itoa(c.ReceiveBits)
	case hasZero(c.Name):
		return zeroByte
	case c.ReadOnly && c.Name == "":
		return "a vector that only others insert into is one with a name"
	case max(c.Peers, c.PeersPerNode) > most:
		return "an address vector is opened for " + strconv.FormatUint(most, 10) + " peers at most"
	}
	return ""
}

// addressLength is how long each address is in bytes, 0 where they differ.
func addressLength(i *Info) int {
	switch f := i.AddressFormat(); f {
	case FormatIPv4:
		return sizeofIPv4
	case FormatIPv6:
		return sizeofIPv6
	case FormatEFA:
		return 32
	case FormatSocket, FormatText:
		return 0
	default:
		return len(i.a.Source)
	}
}

// Type is the type of the vector.
func (v *AddressVector) Type() AddressVectorType { return v.kind }

// Len is how many peers have been inserted and not removed.
func (v *AddressVector) Len() int { return len(v.peers) }

// Insert makes a peer known by its endpoint's name, and returns what stands for
// it in operations (Op.Peer). An address that the provider cannot have made is
// refused with ErrInvalid, because libfabric reads as many bytes as the address
// should have. On shm, and on efa where that uses it, that of an endpoint of this process
// that is closed is ErrNotFound, and on shm of libfabric 1.x that of any endpoint that is not there, or not
// yet: try again. A vector of shm has 256 peers at most. It does not keep the bytes. A peer that is inserted again may have
// its old address or another; it is to be removed as often.
//
// Implements: int fi_av_insert(...)
func (v *AddressVector) Insert(address []byte) (Address, error) {
	if err := v.enter(); err != nil {
		return AddressAny, err
	}
	defer v.leave()
	return v.insert(address)
}

func (v *AddressVector) insert(address []byte) (Address, error) {
	if err := v.check("fi_av_insert", address); err != nil {
		return AddressAny, err
	}
	arrived, ok := onThisHost.approach(v.provider, address)
	if !ok {
		return AddressAny, v.closedPeer()
	}
	defer arrived()
	if v.insertsOnce() {
		if peer, ok := v.insertedAgain(address); ok {
			return peer, nil
		}
	}
	if v.keepsLiving() {
		if err := v.misnamed(plainName(address)); err != nil {
			return AddressAny, err
		}
		if peer, ok, err := v.reinsert(address); ok || err != nil {
			return peer, err
		}
		if !isUp(address) {
			return AddressAny, v.absentPeer()
		}
	}
	peer, code := v.raw.Insert(address)
	if code != 0 {
		return AddressAny, v.insertError(code)
	}
	v.met(Address(peer), address)
	return Address(peer), nil
}

// closedPeer is for an address that an endpoint of this process had.
func (v *AddressVector) closedPeer() error {
	return &Error{
		Op: "fi_av_insert", Provider: v.provider, Errno: Errno(syscall.ENOENT),
		Detail: "the endpoint of this process that had the address is closed",
	}
}

// met counts a peer that was inserted.
func (v *AddressVector) met(peer Address, address []byte) {
	v.peers[peer]++
	v.bits.add(peer)
	if looksAtNeighbours(v.provider) {
		onThisHost.meet(v, peer, address)
	}
	if v.insertsOnce() {
		v.name(peer, address)
	}
	if v.keepsLiving() {
		v.kept.remember(peer, address)
	}
	if core(v.provider) == "sockets" {
		v.newcomers.add(address)
	}
}

// Inserted is what became of one address of many.
type Inserted struct {
	// Address is AddressAny where Err is not nil.
	Address Address
	Err     error // why this one was not inserted; nil if it was
}

// InsertAll makes peers known, in one call of libfabric where their format
// allows it. It returns as many results as there are addresses, each on its
// own; the error is about the vector as a whole. Addresses that Insert would
// refuse are not passed on. It keeps neither the slice nor the bytes.
//
// Implements: int fi_av_insert(...)
func (v *AddressVector) InsertAll(addresses [][]byte) ([]Inserted, error) {
	if err := v.enter(); err != nil {
		return nil, err
	}
	defer v.leave()
	results := make([]Inserted, len(addresses))
	var packed []byte
	var places []int
	for i, address := range addresses {
		if err := v.check("fi_av_insert", address); err != nil {
			results[i] = Inserted{AddressAny, err}
			continue
		}
		// libfabric finds the next address by the length of this one, or of
		// its text. A peer that it has is not inserted again.
		if v.insertsOnce() || v.length == 0 && (v.format != FormatText || bytes.IndexByte(address, 0) != len(address)-1) {
			results[i].Address, results[i].Err = v.insert(address)
			continue
		}
		arrived, ok := onThisHost.approach(v.provider, address)
		if !ok {
			results[i] = Inserted{AddressAny, v.closedPeer()}
			continue
		}
		defer arrived()
		packed, places = append(packed, address...), append(places, i)
	}
	if len(places) == 0 {
		return results, nil
	}
	peers, codes := make([]uint64, len(places)), make([]int32, len(places))
	taken, code := v.raw.InsertMany(packed, peers, codes)
	v.befriend(peers, codes, taken)
	for n, i := range places {
		if peers[n] == cgo.NoAddress || codes[n] != 0 {
			results[i] = Inserted{AddressAny, v.notInserted("fi_av_insert", code, codes[n])}
			continue
		}
		v.met(Address(peers[n]), addresses[i])
		results[i] = Inserted{Address: Address(peers[n])}
	}
	return results, nil
}

// notInserted says why one address was not taken: for its own reason if the
// provider gave one, else for that of the call.
func (v *AddressVector) notInserted(op string, call cgo.Code, own int32) error {
	errno := Errno(max(own, -own))
	if errno == 0 {
		errno = Errno(call)
	}
	if errno == 0 {
		errno = errnoInvalid
	}
	return &Error{Op: op, Provider: v.provider, Errno: errno, Detail: "the provider did not take the address"}
}

// known refuses a peer that was not inserted, which providers would look for
// outside of their tables.
func (v *AddressVector) known(op string, peer Address) error {
	if v.peers[peer] > 0 || v.shared && v.ofOthers(peer) {
		return nil
	}
	return &Error{
		Op: op, Provider: v.provider, Errno: Errno(syscall.ENOENT),
		Detail: noPeer(peer),
	}
}

func noPeer(peer Address) string {
	if peer == AddressAny {
		return "AddressAny is no peer: it is for receives"
	}
	return "no peer of this address vector has the address " + strconv.FormatUint(uint64(peer), 10)
}

// Lookup returns the address of a peer in the provider's format, as Insert
// takes it; it need not be the same bytes: shm of libfabric 2.x leaves
// "fi_shm://" out. The caller may keep the bytes. ErrNotFound says that the peer
// is not known here.
//
// Implements: int fi_av_lookup(...)
func (v *AddressVector) Lookup(peer Address) ([]byte, error) {
	if err := v.enter(); err != nil {
		return nil, err
	}
	defer v.leave()
	if err := v.known("fi_av_lookup", peer); err != nil {
		return nil, err
	}
	buf := make([]byte, 256)
	n, code := v.raw.Lookup(uint64(peer), buf)
	if n > len(buf) && n <= longestAddress {
		buf = make([]byte, n)
		n, code = v.raw.Lookup(uint64(peer), buf)
	}
	if code != 0 {
		return nil, fail("fi_av_lookup", v.provider, int(code))
	}
	return buf[:min(n, len(buf))], nil
}

// Text puts an address into words, such as "fi_sockaddr_in://127.0.0.1:4000".
// The peer need not be known. What cannot be an address of the provider is
// ErrInvalid.
//
// Implements: const char *fi_av_straddr(...)
func (v *AddressVector) Text(address []byte) (string, error) {
	if err := v.enter(); err != nil {
		return "", err
	}
	defer v.leave()
	if err := v.check("fi_av_straddr", address); err != nil {
		return "", err
	}
	text, code := v.raw.Text(address)
	return text, fail("fi_av_straddr", v.provider, int(code))
}

// Remove forgets a peer. No operation to it may be in flight. ErrNotFound says
// that the peer is not known here. The peer's place in libfabric is kept for when it
// comes back: on efa until the vector is closed, on shm of libfabric 1.x as long as its
// endpoint is there. Where [Attributes].KeepLostPeers says so, as on shm, a peer is not to be
// removed while messages of it may not have been received, also not one that is gone: they
// would be looked for in the memory of another, and that may end the process.
//
// Implements: int fi_av_remove(...)
func (v *AddressVector) Remove(peer Address) error {
	return v.RemoveAll([]Address{peer})
}

// RemoveAll forgets peers, as Remove does. No operation to any may be in flight. If
// one of them is not known here (ErrNotFound), or is named more often than it was
// inserted (ErrInvalid), none is removed.
//
// Implements: int fi_av_remove(...)
func (v *AddressVector) RemoveAll(peers []Address) error {
	if err := v.enter(); err != nil {
		return err
	}
	defer v.leave()
	if len(peers) == 0 {
		return nil
	}
	raw, times := make([]uint64, len(peers)), make(map[Address]int, len(peers))
	for i, peer := range peers {
		times[peer]++
		if err := v.known("fi_av_remove", peer); err != nil {
			return err
		}
		if !v.shared && times[peer] > v.peers[peer] {
			return v.invalid("fi_av_remove", "the peer "+strconv.FormatUint(uint64(peer), 10)+" is to be removed more often than it was inserted")
		}
		raw[i] = uint64(peer)
	}
	for peer, n := range times {
		if len(v.newcomers.names) > 0 && n >= v.peers[peer] {
			v.newcomers.remove(v, peer)
		}
	}
	if v.insertsOnce() {
		raw = v.lastRemovals(times)
	}
	kept := make(map[Address]bool)
	if v.keepsLiving() {
		raw = v.withoutKept(raw, kept)
	}
	if !v.keepsRemoved() && len(raw) > 0 {
		if code := v.removeInside(raw); code != 0 {
			return fail("fi_av_remove", v.provider, int(code))
		}
	}
	for peer, n := range times {
		if v.peers[peer] -= n; v.peers[peer] <= 0 {
			delete(v.peers, peer)
			v.bits.remove(peer)
			onThisHost.part(v, peer)
			if !kept[peer] {
				onThisHost.forget(v, peer)
			}
		}
	}
	return onThisHost.endAll(v.domain)
}

// keepsRemoved says that removed peers stay in libfabric until the vector is
// closed. The efa provider frees what a removed peer had sent and nobody has
// received, but leaves it in its list of such messages: the next receive that
// goes through the list, or fi_close, dies of SIGSEGV. A peer that is inserted
// again has its old address.
func (v *AddressVector) keepsRemoved() bool { return core(v.provider) == "efa" }

// Close closes the vector. ErrBusy says which endpoints and sets still use it.
//
// Implements: int fi_close(...)
func (v *AddressVector) Close() error {
	if err := v.close(func() error { return fail("fi_close of address vector", v.provider, int(v.raw.Close())) }); err != nil {
		return err
	}
	onThisHost.close(v)
	return onThisHost.endAll(v.domain)
}
