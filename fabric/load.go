package fabric

import (
	"os"
	"sync"

	"github.com/weft-go/weft/cgo"
)

// load loads the providers, with what weft has them do otherwise in the environment. They
// read it then, and never again: processes that this one starts do not inherit it, nor the
// descriptors of the providers.
var load = sync.OnceFunc(func() {
	for _, settings := range [][]string{cacheNothing(), saveNothing()} {
		for _, name := range settings {
			loaded[name] = "0"
			// An error would be one of the name.
			_ = os.Setenv(name, "0")
			defer func() { _ = os.Unsetenv(name) }()
		}
	}
	_, cleansUp = os.LookupEnv("FI_AV_REMOVE_CLEANUP")
	readEnvironment()
	cgo.KeepDescriptors() // or not: they are as libfabric makes them then
	cgo.ReserveShared()   // or not: libfabric has no shm then
	if LibraryVersion().Major >= 2 {
		cgo.EmptyLists() // or not: libfabric has no efa then
	}
	// What it finds is of no interest here, and that it fails is seen by who asks again.
	_, _ = cgo.Params()
	hints := Hints{Provider: "shm", Endpoint: ReliableDatagram}
	shm, _ := cgo.GetInfo(hints.raw())
	for _, i := range shm {
		i.Free()
	}
	hasShm = len(shm) > 0
})

// loaded are the variables that were set while the providers were loaded. It is not changed
// afterwards.
var loaded = map[string]string{}

// cleansUp says that the environment may have had libfabric end the connection of a peer
// that is removed, however often it was inserted.
var cleansUp bool

// saveNothing has the endpoints that tcp has of its own, from libfabric 1.18 on, leave a
// tagged message without a receive in its connection. They would put it into a list while
// the rest of it is on its way. If the connection ends there, as a peer can have it, the
// message is freed and stays in the list: the next look, or fi_close, ends the process.
// In exchange it holds up all later ones of its peer until it is received, as the 65th does
// anyway. Whoever sets the variable decides otherwise. ofi_rxm has lists of its own. An
// older library has no such endpoints, and no such variable.
func saveNothing() []string {
	const saved = "FI_TCP_MAX_SAVED"
	v := LibraryVersion()
	if _, set := os.LookupEnv(saved); set || v.Major == 1 && v.Minor < 18 {
		return nil
	}
	return []string{saved}
}
