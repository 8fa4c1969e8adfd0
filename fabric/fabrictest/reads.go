package fabrictest

import (
	"os"

	"github.com/weft-go/weft/fabric"
)

// ReadsMemory says whether ports of a provider are to say that they read the memory of
// peers: on efa, where the emulated device does it.
func ReadsMemory(provider string) bool {
	switch provider {
	case "":
		return false
	case "efa":
		return fabric.LibraryVersion().Major >= 2 && os.Getenv("WEFT_EFA_RDMA") != "none"
	default:
		return true
	}
}
