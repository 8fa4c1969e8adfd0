package cgo_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLooks looks at memory that may not be there, as the kernel allows it, and as it does where a
// container forbids that.
func TestLooks(t *testing.T) {
	for name, flag := range map[string]string{
		"allowed": "-DALLOWED", "forbidden": "-Dprocess_vm_readv=refused",
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "looks")
			compile := exec.Command("gcc", "-std=gnu11", "-Wall", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover",
				"-I.", flag, "-o", program, "../testdata/looks/looks.c", "mapped.c")
			if out, err := compile.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			requireOK(t, program)
		})
	}
}
