package cgo_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-go/weft/internal/testprocess"
)

// TestBatching takes turns with an endpoint in C that holds back what carries
// FI_MORE: nothing may stay there after a turn. The memory checks of the C
// compiler are on.
func TestBatching(t *testing.T) {
	program := filepath.Join(t.TempDir(), "batching")
	compile := exec.Command("gcc", "-std=gnu11", "-Wall", "-Werror", "-g", "-fsanitize=address,undefined",
		"-fno-sanitize-recover", "-o", program, "../testdata/batching/batching.c", "turn.c", "post.c", "pause.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, seed := range []string{"1", "2", "3"} {
		out, err := testprocess.Command(t, program, seed, "20000").CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "ok" {
			t.Errorf("seed %s: %v\n%s", seed, err, out)
		}
	}
}
