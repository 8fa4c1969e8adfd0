package cgo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestAbandonedLock has processes in C hold a lock in shared memory, and end: another takes it
// once its holder is no more, and not before.
func TestAbandonedLock(t *testing.T) {
	program := filepath.Join(t.TempDir(), "abandonedlock")
	compile := exec.Command("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-fsanitize=address,undefined",
		"-fno-sanitize-recover", "-o", program, "../testdata/abandonedlock/abandonedlock.c", "calls.c", "mapped.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	memory, err := os.CreateTemp("/dev/shm", "weft-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(memory.Name())
	defer memory.Close()
	requireOK(t, program, memory.Name())
}
