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
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

// Blocks of commands are run as they stand, but for what the notes before them say, where
// bin is and which ports are used. Those that take minutes are for WEFT_DOCS=all.
func TestDocShell(t *testing.T) {
	all := os.Getenv("WEFT_DOCS") == "all"
	require.NoError(t, os.Unsetenv("WEFT_DOCS"))
	bin := t.TempDir()
	goCommand(t, "build", "-o", bin+"/", "./cmd/weft")
	run := 0
	t.Run("blocks", func(t *testing.T) {
		for _, b := range blocks(t) {
			if !b.shell() {
				continue
			}
			check := exec.CommandContext(t.Context(), "bash", "-n")
			check.Stdin = strings.NewReader(b.text)
			out, err := check.CombinedOutput()
			require.NoError(t, err, "%s: %s", b.where(), out)
			if b.notes["not run"] != "" {
				t.Logf("%s is not run: %s", b.where(), b.notes["not run"])
				continue
			}
			run++
			t.Run(b.where(), func(t *testing.T) {
				patience := ofProgram
				if takes := b.notes["takes"]; takes != "" {
					if !all {
						testenv.Need(t, "time", fmt.Errorf("it takes %s: make test-docs runs it", takes))
					}
					patience = time.Hour
				} else {
					t.Parallel()
				}
				needsOf(t, b)
				// Some build the command, and others send it.
				own := t.TempDir()
				copyPrograms(t, "-RT", bin, own)
				printed, logged, err := runDocs(t, patience, "bash", "-euo", "pipefail", "-c", script(t, b, own))
				require.NoError(t, err, "%s%s", printed, logged)
			})
		}
	})
	require.Greater(t, run, 25)
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
	for _, command := range []string{"curl", "docker", "mpirun"} {
		if regexp.MustCompile(`\b` + command + `\b`).MatchString(b.text) {
			_, err := exec.LookPath(command)
			testenv.Need(t, command, err)
		}
	}
}

var (
	binFolder = regexp.MustCompile(`(^|\s)bin/`)
	port      = regexp.MustCompile(`:(\d{4,5})\b`)
	remark    = regexp.MustCompile(` +#.*$`)
	listens   = regexp.MustCompile(`-listen \S*:(\d+)`)
)

// script is what a block is run as. The tree keeps the programs that it has, and ports are
// those that are free.
func script(t *testing.T, b block, bin string) string {
	t.Helper()
	// All that it has started is in its group.
	text := "trap 'trap : TERM; kill 0; wait || true' EXIT\n"
	switch in := b.notes["in"]; in {
	case "":
	case "a folder of its own":
		dir := t.TempDir()
		require.NoError(t, os.Symlink(bin, filepath.Join(dir, "bin")))
		text += "cd '" + dir + "'\n"
	case "a copy of the tree":
		dir := t.TempDir()
		copyTree(t, dir)
		copyPrograms(t, "-R", bin, filepath.Join(dir, "bin"))
		text += "cd '" + dir + "'\n"
	default:
		t.Fatalf("%s: in %q", b.where(), in)
	}
	if before := b.notes["before"]; before != "" {
		b.text = before + "\n" + b.text
	}
	for _, line := range strings.Split(b.notes["where"], "\n") {
		said, meant, is := strings.Cut(line, " is ")
		require.Equal(t, is, line != "", b.where())
		if is {
			require.Contains(t, b.text, said, b.where())
			b.text = strings.ReplaceAll(b.text, said, meant)
		}
	}
	if b.notes["in"] == "" {
		b.text = binFolder.ReplaceAllString(b.text, "${1}"+bin+"/")
	}
	for _, documented := range port.FindAllString(b.text, -1) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close() // when all have one
		b.text = strings.ReplaceAll(b.text, documented, fmt.Sprint(":", l.Addr().(*net.TCPAddr).Port))
	}
	for line := range strings.Lines(b.text) {
		line = strings.TrimSuffix(line, "\n")
		if server := listens.FindStringSubmatch(line); server != nil {
			// It is in a terminal of its own: it has its port before the rest goes on, and
			// ends with it.
			line = strings.TrimSuffix(strings.TrimRight(remark.ReplaceAllString(line, ""), " "), "&") +
				" &\nuntil (exec 3<>/dev/tcp/127.0.0.1/" + server[1] + ") 2>/dev/null; do kill -0 $!; sleep 0.05; done"
		}
		text += line + "\n"
	}
	return text
}
