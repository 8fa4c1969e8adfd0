// Package testenv keeps skipped tests honest: a test that needs something the
// machine may lack is skipped with the reason, unless the run requires it.
package testenv

import (
	"os"
	"strings"
	"testing"
)

// Require is the environment variable that names, separated by commas, what
// must not be missing: WEFT_REQUIRE=sockets,tcp,shm.
const Require = "WEFT_REQUIRE"

// Only is the environment variable that names the providers to test on, where it
// is not those that every machine should have: WEFT_TEST_PROVIDERS=efa.
const Only = "WEFT_TEST_PROVIDERS"

// Providers are those to test on.
func Providers() []string {
	var names []string
	for name := range strings.SplitSeq(os.Getenv(Only), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{"sockets", "tcp", "shm"}
	}
	return names
}

// Need goes on if err is nil. Otherwise the test cannot have what it needs, and
// err says why: the test is skipped, or fails if what is named in Require.
//
// For a provider, what is its name; a layered one such as "tcp;ofi_rxm" is also
// meant by the name of its core, "tcp". For something that a provider does, it is "tcp with
// aliases" or "an alias on tcp": that a required provider cannot do it is a failure too,
// unless it is known (lacks.go). Call it on the test's own goroutine.
func Need(t testing.TB, what string, err error) {
	t.Helper()
	list := os.Getenv(Require)
	provider, capability := ofProvider(what)
	switch {
	case err == nil:
	case provider == "" && required(what, list):
		t.Fatalf("%s is missing, but %s requires it: %v", what, Require, err)
	case provider != "" && required(provider, list) && !knownLack(provider, capability):
		t.Fatalf("%s is missing, which is not known of this provider (internal/testenv/lacks.go): %v", what, err)
	default:
		t.Skipf("%s: %v", what, err)
	}
}

func required(what, list string) bool {
	core, _, _ := strings.Cut(what, ";")
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name != "" && (name == what || name == core) {
			return true
		}
	}
	return false
}
