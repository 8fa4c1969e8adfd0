package cgo_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-go/weft/internal/testprocess"
)

// TestHandlers has threads start a provider at the same time: the handlers that it
// installs are taken out by all of them, and put back by none.
func TestHandlers(t *testing.T) {
	program := filepath.Join(t.TempDir(), "handlers")
	compile := exec.Command("gcc", "-std=gnu11", "-Wall", "-Werror", "-g", "-fsanitize=address,undefined",
		"-fno-sanitize-recover", "-pthread", "-o", program,
		"../testdata/handlers/handlers.c", "handlers.c", "objects.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := testprocess.Command(t, program, "4", "2000").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("%v\n%s", err, out)
	}
}
