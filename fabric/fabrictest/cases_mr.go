package fabrictest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/weft-go/weft/fabric"
)

var regionCases = []named{
	{"register and close", registerAndClose},
	{"registered messages", registeredMessages},
	{"keys", keysOfRegions},
	{"several buffers", severalBuffers},
	{"go memory", goMemory},
	{"counter", regionCounter},
	{"endpoint", regionOfEndpoint},
	{"flags", flaggedRegions},
	{"host memory as a device's", hostAsDevice},
}

// A region is what was registered, can be refreshed, and keeps its domain open.
func registerAndClose(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess))
	memory := mapped(t, 4096)
	r, err := s.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
	noError(t, err)
	equal(t, 4096, r.Len())
	equal(t, fabric.AccessAll, r.Access())
	errorIs(t, s.domain.Close(), fabric.ErrBusy)
	noError(t, r.Refresh())
	noError(t, r.Refresh(memory[:100], memory[1000:2048]))
	noError(t, r.Close())
	noError(t, r.Close(), "twice")
	_, err = r.Remote()
	isTrue(t, fabric.IsClosed(err), "%v", err)
}

// Registered memory goes out and comes in by its descriptor.
func registeredMessages(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages)
	const size = 64 << 10
	here, there := mapped(t, size), mapped(t, size)
	source := a.site.register(t, fabric.AccessMessages, here)
	target := b.site.register(t, fabric.AccessMessages, there)
	copy(here, counting(size))
	b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 9, Buf: there, Descriptor: target.Descriptor(), Fixed: true})
	a.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 9, Buf: here, Descriptor: source.Descriptor(), Fixed: true})
	equal(t, size, b.done(t).Len)
	a.done(t)
	isTrue(t, bytes.Equal(counting(size), there), "the bytes")
	idle(t, a, b)
}

// Keys are the program's own where the provider does not choose them.
func keysOfRegions(t *trial) {
	h := t.hints(fabric.ReliableDatagram, remoteAccess)
	h.MemoryMode &^= fabric.ProviderKeys
	s := openSite(t, h)
	memory := mapped(t, 4096)
	for _, key := range []uint64{0, 3, 1 << 40, ^uint64(0) - 1} {
		r, err := s.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll, Key: &key}, memory)
		noError(t, err, "key %d", key)
		closeAtEnd(t, r)
		equal(t, key, at(t, r, 0, 1).Key)
		_, err = s.domain.RegisterMemory(fabric.RegionConfig{Key: &key}, memory)
		anError(t, err, "the key %d is in use", key)
	}
	// Keys that weft chooses go around those that the program has chosen.
	keys := map[uint64]bool{}
	for range 5 {
		keys[at(t, s.register(t, fabric.AccessMessages, memory), 0, 1).Key] = true
	}
	equal(t, 5, len(keys))
	isTrue(t, !keys[3] && !keys[0], "%v", keys)
}

// Several buffers are one region, where the provider takes them.
func severalBuffers(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess))
	a, _ := s.pair(t, nil, nil)
	bufs := [][]byte{mapped(t, 4096), mapped(t, 4096)}
	r, err := s.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, bufs...)
	if most := s.info.Limits().RegionVectors; most < 2 {
		errorIs(t, err, fabric.ErrInvalid)
		errorSays(t, err, fmt.Sprintf("at most %d buffers", most))
		t.need("several buffers in a region", err)
	}
	noError(t, err)
	closeAtEnd(t, r)
	equal(t, 8192, r.Len())
	for i, name := range []string{"first", "second"} {
		t.sub(name, func(t *trial) {
			where, err := r.RemoteOf(bufs[i][10:110])
			noError(t, err)
			if s.info.MemoryMode()&fabric.VirtualAddresses != 0 {
				equal(t, uint64(uintptr(unsafe.Pointer(&bufs[i][10]))), where.Address)
			} else {
				equal(t, uint64(4096*i+10), where.Address)
			}
			a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: counting(100), Remote: where, Flags: fabric.DeliveryComplete})
			a.done(t)
			equal(t, counting(100), bufs[i][10:110])
		})
	}
}

// Go memory stays where it is while it is registered.
func goMemory(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess))
	a, b := s.pair(t, nil, nil)
	memory := make([]byte, 1<<16)
	r := s.register(t, fabric.AccessAll, memory)
	runtime.GC()
	a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: counting(len(memory)), Remote: at(t, r, 0, len(memory)), Flags: fabric.DeliveryComplete})
	a.done(t)
	isTrue(t, bytes.Equal(counting(len(memory)), memory), "the bytes")
	idle(t, a, b)
}

// A counter of a region counts what peers write there.
func regionCounter(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess|fabric.RemoteMemoryEvents))
	a, b := s.pair(t, nil, nil)
	c := s.counter(t)
	r, err := s.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll, Flags: fabric.RegionEvents}, mapped(t, 4096))
	noError(t, err)
	closeAtEnd(t, r)
	t.need("counters of regions", r.BindCounter(c))
	noError(t, r.Enable())
	errorIs(t, c.Close(), fabric.ErrBusy)
	for range 3 {
		a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: counting(8), Remote: at(t, r, 0, 8), Flags: fabric.DeliveryComplete})
		a.done(t)
	}
	noError(t, c.Wait(t.soon(), 3))
	idle(t, a, b)
}

// What is said of memory that is not so is refused, or makes no difference: the region
// carries what any other does.
func flaggedRegions(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess))
	a, b := s.pair(t, nil, nil)
	for name, flags := range map[string]fabric.RegionFlags{
		"persistent": fabric.RegionPersistent, "device only": fabric.RegionDeviceOnly, "host mapped": fabric.RegionHostMapped,
		"unknown": 1 << 62,
	} {
		t.sub(name, func(t *trial) {
			memory := mapped(t, 4096)
			r, err := s.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll, Flags: flags}, memory)
			if err != nil {
				isTrue(t, errors.Is(err, fabric.ErrInvalid) || errors.Is(err, fabric.ErrNotSupported), "%v", err)
				return
			}
			closeAtEnd(t, r)
			isTrue(t, name != "unknown", "it was taken")
			a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: counting(64), Remote: at(t, r, 0, 64), Flags: fabric.DeliveryComplete})
			a.done(t)
			equal(t, counting(64), memory[:64])
		})
	}
	idle(t, a, b)
}

// Regions belong to endpoints on special hardware only.
func regionOfEndpoint(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess))
	a, _ := s.pair(t, nil, nil)
	r, err := s.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, mapped(t, 4096))
	noError(t, err)
	// Before the endpoint, which it may be bound to.
	closeAtEnd(t, r)
	errorIs(t, r.BindEndpoint(nil), fabric.ErrInvalid)
	t.need("regions of endpoints", r.BindEndpoint(a.e))
	noError(t, r.Enable())
}

// With the capability for devices, memory of the host is one more kind of
// memory.
func hostAsDevice(t *trial) {
	h := t.hints(fabric.ReliableDatagram, remoteAccess|fabric.DeviceBuffers)
	h.MemoryMode |= fabric.DeviceRegistration
	s := openSite(t, h)
	a, b := s.pair(t, nil, nil)
	memory := mapped(t, 4096)
	r, err := s.domain.RegisterDevice(fabric.DeviceMemory{Address: uintptr(unsafe.Pointer(&memory[0])), Length: 4096}, fabric.RegionConfig{Access: fabric.AccessAll})
	noError(t, err)
	closeAtEnd(t, r)
	a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: counting(64), Remote: at(t, r, 0, 64), Flags: fabric.DeliveryComplete})
	a.done(t)
	equal(t, counting(64), memory[:64])
	idle(t, a, b)
}
