package doctor

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

func (x *examination) lookAtLibrary() {
	l := &x.Library
	x.whichLibrary()
	if l.Died != "" {
		x.find(LibraryDied, "a process that asked libfabric", strings.TrimSpace(l.Died+"; it said: "+l.Said))
		return
	}
	const looked = "fi_version"
	version := fmt.Sprintf("libfabric %d.%d", l.Version.Major, l.Version.Minor)
	switch {
	case l.Version.before(1, 17):
		x.find(OldLibrary, looked, version)
	case l.Version.before(1, 18) && slices.ContainsFunc(x.functions, func(f function) bool { return f.id != "0xefa0" }):
		x.find(LibraryAge, looked, version)
	default:
		x.fine(looked, version)
	}
	x.hasProvider()
	if l.Chosen == "sockets" {
		x.find(DeprecatedProvider, "what weft would choose", "sockets")
	}
}

// whichLibrary looks at what the process has loaded.
func (x *examination) whichLibrary() {
	looked := "/" + x.ofProcess("maps")
	loaded, ok := x.libraries("libfabric.so")
	switch {
	case !ok:
		x.find(Unseen, looked, "what the process has loaded cannot be read")
		return
	case len(loaded) > 1:
		x.find(TwoLibraries, looked, strings.Join(loaded, " and "))
	case len(loaded) == 1:
		x.fine(looked, "libfabric is "+loaded[0])
	}
	const ofAWS = "opt/amazon/efa"
	theirs, _ := fs.Glob(x.Root, ofAWS+"/lib*/libfabric.so.1")
	if len(theirs) > 0 && len(loaded) > 0 && !slices.ContainsFunc(loaded, func(p string) bool { return strings.HasPrefix(p, "/"+ofAWS) }) {
		x.find(OtherLibrary, looked+" and /"+ofAWS, "the process has "+loaded[0]+", and there is /"+theirs[0])
	}
	if infinipath, _ := x.libraries("libinfinipath.so"); len(infinipath) > 0 && x.environ["IPATH_NO_BACKTRACE"] == "" {
		x.find(HiddenTraces, looked, infinipath[0]+" is loaded, and IPATH_NO_BACKTRACE is not set")
	}
}

// hasProvider says whether the library has the efa provider at all. One before 2.1 does
// not list it without a device, so what it needs has to tell.
func (x *examination) hasProvider() {
	l := &x.Library
	const looked = "the providers of libfabric, and what it was linked with"
	needs := slices.ContainsFunc(l.Needs, func(name string) bool { return strings.HasPrefix(name, "libefa.so") })
	switch {
	case slices.Contains(l.Providers, "efa") || len(l.Devices) > 0:
		x.fine(looked, "it has the efa provider")
	case x.filters("efa"):
		// It may have it: while it is kept from it, it does not say.
	case needs && l.Version.before(2, 1):
		x.fine(looked, "it was linked with libefa, for the efa provider")
	case x.hasPluginOfProvider():
		x.fine(looked, "there is a plugin of the efa provider")
	default:
		x.find(NoProvider, looked, "it has "+strings.Join(l.Providers, ", ")+", and no efa")
	}
}

func (x *examination) hasPluginOfProvider() bool {
	for _, pattern := range []string{"usr/lib*/libfabric/libefa-fi.so", "usr/lib/*/libfabric/libefa-fi.so", "usr/local/lib/libfabric/libefa-fi.so", "opt/amazon/efa/lib*/libfabric/libefa-fi.so"} {
		if found, _ := fs.Glob(x.Root, pattern); len(found) > 0 {
			return true
		}
	}
	return false
}
