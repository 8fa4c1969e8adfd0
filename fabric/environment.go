package fabric

import (
	"os"
	"strings"
	"syscall"
)

// FI_HOOK puts objects of its own around those of the providers, in which nothing is found of what
// is kept from ending the process (files of cgo). FI_OFI_RXM_USE_RNDV_WRITE has long messages of
// ofi_rxm written by their sender: a receiver whose sender has ended dies of it, and memory that
// was registered for a message stays so if one of the two is closed meanwhile, and with it the
// domain. Both are read when the providers are loaded, and weft opens nothing with them.
const (
	hook         = "FI_HOOK"
	sendersWrite = "FI_OFI_RXM_USE_RNDV_WRITE"
)

// mayEnd are those of these variables that the providers were loaded with. It is not changed
// afterwards.
var mayEnd = map[string]string{}

// readEnvironment is for when the providers are loaded.
func readEnvironment() {
	if v := os.Getenv(hook); v != "" {
		mayEnd[hook] = v
	}
	switch v := os.Getenv(sendersWrite); strings.ToLower(v) {
	case "", "0", "no", "false", "off":
	default:
		mayEnd[sendersWrite] = v
	}
}

// fits says why nothing of the info is opened in the environment that the providers were loaded
// with, or nil.
func (i *Info) fits() error {
	load()
	for _, name := range []string{hook, sendersWrite} {
		value, set := mayEnd[name]
		if !set || name == sendersWrite && !fetchesOverConnections(i.Provider()) {
			continue
		}
		return &Error{
			Op: "fi_fabric", Provider: i.Provider(), Errno: Errno(syscall.ENOSYS),
			Detail: name + "=" + value + " was set when libfabric was loaded: with it, peers that end could end this process. " +
				"Start the process without",
		}
	}
	return nil
}
