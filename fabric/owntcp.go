package fabric

import (
	"os"
	"sync"
)

// saveNothing has the endpoints that tcp has of its own, from libfabric 1.18 on, leave a
// tagged message without a receive in its connection. They would put it into a list while
// the rest of it is on its way. If the connection ends there, as a peer can have it, the
// message is freed and stays in the list: the next look, or fi_close, ends the process.
// In exchange it holds up all later ones of its peer until it is received, as the 65th does
// anyway. Whoever sets the variable decides otherwise. The provider reads it when it
// is loaded; ofi_rxm has lists of its own. An older library has no such endpoints, and weft
// doctor would not know the variable there.
var saveNothing = sync.OnceFunc(func() {
	const saved = "FI_TCP_MAX_SAVED"
	v := LibraryVersion()
	if v.Major == 1 && v.Minor < 18 {
		return
	}
	if _, set := os.LookupEnv(saved); !set {
		// An error would be one of the name.
		_ = os.Setenv(saved, "0")
	}
})
