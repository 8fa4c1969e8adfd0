package main

import (
	"fmt"
	"runtime/debug"

	"github.com/weft-go/weft/fabric"
)

// version is what --version prints. The version of weft is the one that the go
// command put in: of the module, or of the commit that was built.
func version() string {
	own := "(unknown)"
	if build, ok := debug.ReadBuildInfo(); ok {
		own = build.Main.Version
	}
	return fmt.Sprintf("weft %s, libfabric %s (headers %s)", own, fabric.LibraryVersion(), fabric.HeaderVersion())
}
