package fabrictest

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/fabric"
)

// Main is for the TestMain of each package that uses libfabric: it runs the
// tests and exits, with a failure also where they passed but left handles open
// or C memory allocated. It prints where each of these handles was opened.
// Goroutines are not its concern; packages that start some check for them in
// their tests.
func Main(m *testing.M) {
	os.Exit(exitCode(m.Run(), leaks(fabric.OpenHandles(), fabric.MemoryInUse()), os.Stderr))
}

// exitCode turns leftovers into a failure and reports them.
func exitCode(code int, leaks string, report io.Writer) int {
	if leaks == "" {
		return code
	}
	fmt.Fprintf(report, "FAIL: the tests left something behind\n%s", leaks)
	return max(code, 1)
}

// leaks describes what is left, or is empty.
func leaks(handles []fabric.HandleInfo, memory map[string]int64) string {
	var b strings.Builder
	for _, handle := range handles {
		fmt.Fprintf(&b, "open %s of provider %q, created at:\n%s\n",
			handle.Kind, handle.Provider, strings.TrimRight(handle.Stack, "\n"))
	}
	for _, purpose := range slices.Sorted(maps.Keys(memory)) {
		if memory[purpose] != 0 {
			fmt.Fprintf(&b, "%d bytes of C memory for %s\n", memory[purpose], purpose)
		}
	}
	return b.String()
}
