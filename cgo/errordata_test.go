package cgo_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testprocess"
)

// No provider here gives data with an error, so that the shim is linked to a queue
// that does.
func TestErrorDataIsCopied(t *testing.T) {
	program := filepath.Join(t.TempDir(), "errordata")
	out, err := exec.Command("gcc", "-std=gnu11", "-Wall", "-Werror", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover",
		"-I.", "-o", program, "../testdata/errordata/errordata.c", "turn.c", "post.c", "fetch.c", "marks.c", "forgotten.c", "segments.c", "replacement.c", "lastingconnection.c", "counted.c", "mapped.c", "nooperation.c", "afterend.c", "pause.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = testprocess.Command(t, program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	const what = "1 completion, token 7, error 99, 5 bytes, who is that: "
	require.Equal(t, []string{what + "0 of 0", what + "16 of 16", what + "256 of 256", what + "256 of 256"},
		strings.Split(strings.TrimSpace(string(out)), "\n"))
}
