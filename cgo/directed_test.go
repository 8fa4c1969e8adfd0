package cgo_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDirected takes receives back from an endpoint that refuses some of the others, and whose lock is where
// libfabric has it.
func TestDirected(t *testing.T) {
	program := filepath.Join(t.TempDir(), "directed")
	compile := exec.Command("gcc", "-std=gnu11", "-Wall", "-Werror", "-g", "-fsanitize=address,undefined",
		"-fno-sanitize-recover", "-o", program, "../testdata/directed/directed.c", "directed.c", "counted.c", "mapped.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	requireOK(t, program)
}
