package transfer

import (
	"crypto/rand"
	"strings"
)

// checkName admits what can be one component of a path below the receiver's
// folder. A name need not be UTF-8.
func checkName(name string) error {
	switch {
	case name == "":
		return refused(name, "is empty")
	case name == "." || name == "..":
		return refused(name, "leads out of its folder")
	case len(name) > maxName:
		return refused(name[:32]+"...", "is a name of %d bytes, at most %d are allowed", len(name), maxName)
	case strings.Contains(name, "/"):
		return refused(name, "is a path where a plain name belongs")
	case strings.Contains(name, "\x00"):
		return refused(name, "has a NUL byte in it")
	case isPartial(name):
		return refused(name, "is what weft calls files that are not whole yet")
	}
	return nil
}

const (
	partialPrefix = ".weft-"
	partialSuffix = ".part"
)

// partialName makes a name for a file that is not whole yet.
func partialName() string {
	return partialPrefix + strings.ToLower(rand.Text()) + partialSuffix
}

// isPartial recognises what partialName made, here or in a receiver that was
// killed.
func isPartial(name string) bool {
	return strings.HasPrefix(name, partialPrefix) && strings.HasSuffix(name, partialSuffix)
}
