package weft_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

// Blocks of sh are run as they stand, but for where bin is and which ports are used. Those
// of console are for other machines, or go on until somebody ends them, and so may be
// indented ones: their syntax is checked.
func TestDocShell(t *testing.T) {
	bin := t.TempDir()
	goCommand(t, "build", "-o", bin+"/", "./cmd/weft")
	run := 0
	t.Run("blocks", func(t *testing.T) {
		for _, b := range blocks(t) {
			switch b.kind {
			case "sh":
				run++
				t.Run(b.where(), func(t *testing.T) {
					t.Parallel()
					needsOf(t, b)
					// Some build the command, and others send it.
					own := t.TempDir()
					require.NoError(t, os.CopyFS(own, os.DirFS(bin)))
					printed, logged, err := runDocs(t, "bash", "-euo", "pipefail", "-c", script(t, b, own))
					require.NoError(t, err, "%s%s", printed, logged)
				})
			case "console", "indented":
				check := exec.CommandContext(t.Context(), "bash", "-n")
				check.Stdin = strings.NewReader(b.text)
				out, err := check.CombinedOutput()
				require.NoError(t, err, "%s: %s", b.where(), out)
			}
		}
	})
	require.Greater(t, run, 5)
}

// needsOf skips the test of a block where what it calls is not there.
func needsOf(t *testing.T, b block) {
	t.Helper()
	if strings.Contains(b.text, "scripts/with-efa") {
		// Or it would be installed.
		check := exec.CommandContext(t.Context(), "gcc", "-E", "-x", "c", "-")
		check.Stdin = strings.NewReader("#include <infiniband/efadv.h>\n")
		_, err := exec.LookPath("fi_info")
		_, makeErr := exec.LookPath("make")
		testenv.Need(t, "efa", errors.Join(check.Run(), err, makeErr))
	}
	if strings.Contains(b.text, "curl ") {
		_, err := exec.LookPath("curl")
		testenv.Need(t, "curl", err)
	}
}

var (
	binFolder  = regexp.MustCompile(`(^|\s)bin/`)
	port       = regexp.MustCompile(`:(\d{4,5})\b`)
	background = regexp.MustCompile(`(?m)^.* --listen \S+:(\d+) .*&( +#.*)?$`)
)

// script is what a block is run as. The tree keeps the programs that it has, ports are those
// that are free, and what runs beside the rest has its port before that goes on, and ends
// with it.
func script(t *testing.T, b block, bin string) string {
	t.Helper()
	text := "trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT\n"
	if b.notes["in"] == "" {
		b.text = binFolder.ReplaceAllString(b.text, "${1}"+bin+"/")
	} else {
		require.Equal(t, "a folder of its own", b.notes["in"], b.where())
		dir := t.TempDir()
		require.NoError(t, os.Symlink(bin, filepath.Join(dir, "bin")))
		text += "cd '" + dir + "'\n"
	}
	for _, documented := range port.FindAllString(b.text, -1) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close() // when all have one
		b.text = strings.ReplaceAll(b.text, documented, fmt.Sprint(":", l.Addr().(*net.TCPAddr).Port))
	}
	text += b.text
	return background.ReplaceAllString(text, "$0\nuntil (exec 3<>/dev/tcp/127.0.0.1/$1) 2>/dev/null; do kill -0 $$!; sleep 0.05; done")
}
