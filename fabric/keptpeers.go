package fabric

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// The shm provider of libfabric 1.x gives each peer a place in a table, and tells it which,
// so that the peer's messages say where their sender is found. When it removes a peer it
// tells nobody, and leaves in the table what the peer had told. A peer that is inserted again
// while it is there goes on naming its old place, and one that gets the place of another
// gets messages in the name of that other's place: they seem to come from somebody else,
// or end the process.
//
// So a peer that is removed stays in libfabric as long as it is there, and has its old
// place when it is inserted again. One that is gone is removed at a later occasion: not
// before others have got places since, because the place that was given last is the only
// one that is given again before all have had their turn. (After 256 peers in the life of
// a vector they have.)

// keptPeers are those of a vector that the program has removed and libfabric has not.
type keptPeers struct {
	// memories are what the peers that the program knows have in /dev/shm.
	memories map[Address]os.FileInfo
	byName   map[string]keptPeer
	// recent are those that got their places last. A peer that sends before it is inserted
	// has one already, so that it need not be the very last.
	recent [4]Address
}

type keptPeer struct {
	address Address
	memory  os.FileInfo
}

// memoryOf finds the memory of an endpoint by its name, nil if there is none, as of one of
// this process that is closed, even where it is still open inside.
func memoryOf(name string) os.FileInfo {
	if name == "" || strings.ContainsRune(name, filepath.Separator) || onThisHost.isRetired(name) {
		return nil
	}
	memory, err := os.Lstat(filepath.Join("/dev/shm", name))
	if err != nil {
		return nil
	}
	return memory
}

// isThere says whether the endpoint that had the memory is there. A later one may have
// its name, which has the process id in it.
func (k keptPeer) isThere(name string) bool {
	now := memoryOf(name)
	return now != nil && k.memory != nil && os.SameFile(now, k.memory)
}

// keepsLiving says that peers stay in libfabric as long as they are there.
func (v *AddressVector) keepsLiving() bool {
	return core(v.provider) == "shm" && !v.shared && LibraryVersion().Major < 2
}

// reinsert returns the place of a peer that was removed and is still there. Before, it
// removes those that are gone.
func (v *AddressVector) reinsert(address []byte) (peer Address, ok bool, err error) {
	if err := v.removeGone(); err != nil {
		return AddressAny, false, err
	}
	name := plainName(address)
	k, ok := v.kept.byName[name]
	if !ok {
		return AddressAny, false, nil
	}
	if !k.isThere(name) {
		// Another endpoint has got its name: that of a process with its number.
		delete(v.kept.byName, name)
		return AddressAny, false, v.removeKept(k)
	}
	delete(v.kept.byName, name)
	v.kept.memories[k.address] = k.memory
	v.peers[k.address]++
	v.bits.add(k.address)
	v.name(k.address, address)
	onThisHost.comeBack(v, k.address)
	return k.address, true, nil
}

// remember notes a peer that libfabric knows from now on.
func (k *keptPeers) remember(peer Address, address []byte) {
	if k.memories == nil {
		k.memories = make(map[Address]os.FileInfo)
		k.recent = [...]Address{AddressAny, AddressAny, AddressAny, AddressAny}
	}
	if _, known := k.memories[peer]; known {
		return
	}
	// There is none of one that is not there yet.
	k.memories[peer] = memoryOf(plainName(address))
	copy(k.recent[1:], k.recent[:])
	k.recent[0] = peer
}

// keep keeps a peer that the program removes for the last time, if it was remembered.
func (v *AddressVector) keep(peer Address) bool {
	m, known := v.kept.memories[peer]
	if !known {
		return false
	}
	delete(v.kept.memories, peer)
	if v.kept.byName == nil {
		v.kept.byName = make(map[string]keptPeer)
	}
	v.kept.byName[onThisHost.nameOf(v, peer)] = keptPeer{peer, m}
	return true
}

// removeGone removes those from libfabric that are gone.
func (v *AddressVector) removeGone() error {
	before := len(v.kept.byName)
	for name, k := range v.kept.byName {
		if k.isThere(name) || slices.Contains(v.kept.recent[:], k.address) {
			continue
		}
		delete(v.kept.byName, name)
		if err := v.removeKept(k); err != nil {
			return err
		}
	}
	if len(v.kept.byName) == before {
		return nil
	}
	return onThisHost.endAll(v.domain)
}

func (v *AddressVector) removeKept(k keptPeer) error {
	if code := v.raw.RemoveMany([]uint64{uint64(k.address)}); code != 0 {
		return fail("fi_av_remove", v.provider, int(code))
	}
	onThisHost.forget(v, k.address)
	return nil
}

// withoutKept leaves out those of the peers that are removed for the last time that are kept, and notes
// which those are.
func (v *AddressVector) withoutKept(raw []uint64, kept map[Address]bool) []uint64 {
	left := raw[:0]
	for _, peer := range raw {
		if v.keep(Address(peer)) {
			kept[Address(peer)] = true
			continue
		}
		left = append(left, peer)
	}
	return left
}

// isUp says whether libfabric 1.x finds an endpoint of shm at the address that it can use. Of one that
// it does not find it keeps the name, with the place that the next peer gets, too, so that one is taken for
// the other, and counts it for ever.
func isUp(address []byte) bool {
	name := plainName(address)
	if name == "" || strings.ContainsRune(name, filepath.Separator) {
		return false
	}
	memory, err := os.Open(filepath.Join("/dev/shm", name))
	if err != nil {
		return false
	}
	defer memory.Close()
	// A version, and the number of the process, which is written last.
	var begin [8]byte
	_, err = memory.ReadAt(begin[:], 0)
	return err == nil && [4]byte(begin[4:]) != [4]byte{}
}

// absentPeer is for the address of an endpoint that is not up.
func (v *AddressVector) absentPeer() error {
	return &Error{
		Op: "fi_av_insert", Provider: v.provider, Errno: Errno(syscall.ENOENT),
		Detail: "no endpoint of this host has the address, or not yet",
	}
}
