package cgo_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-go/weft/internal/testprocess"
)

// TestBatching takes turns with an endpoint in C that holds back what carries
// FI_MORE: nothing may stay there after a turn.
func TestBatching(t *testing.T) {
	program := compileWithTurns(t, "batching")
	for _, seed := range []string{"1", "2", "3"} {
		requireOK(t, program, seed, "20000")
	}
}

// compileWithTurns compiles a program of testdata, with the memory checks of the C
// compiler on.
func compileWithTurns(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	compile := exec.Command("gcc", "-std=gnu11", "-Wall", "-Werror", "-g", "-fsanitize=address,undefined",
		"-fno-sanitize-recover", "-o", program, filepath.Join("../testdata", name, name+".c"), "turn.c", "post.c", "fetch.c", "marks.c", "forgotten.c", "segments.c", "replacement.c", "lastingconnection.c", "counted.c", "mapped.c", "nooperation.c", "afterend.c", "pause.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func requireOK(t *testing.T, program string, arguments ...string) {
	t.Helper()
	out, err := testprocess.Command(t, program, arguments...).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("%v: %v\n%s", arguments, err, out)
	}
}
