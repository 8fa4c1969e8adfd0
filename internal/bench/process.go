package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Complaint keeps the beginning of what a process writes to stderr: the first
// complaint says what went wrong.
type Complaint struct{ bytes.Buffer }

func (c *Complaint) Write(b []byte) (int, error) {
	const most = 4096
	if room := most - c.Len(); room > 0 {
		c.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// Output runs a command that takes no time worth mentioning.
func Output(ctx context.Context, command []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var said Complaint
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command[0], err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// Settings is the environment of every process that loads libfabric.
func Settings() []string {
	// A dependency of Debian's libfabric catches SIGSEGV and hides traces.
	return append(os.Environ(), "IPATH_NO_BACKTRACE=1")
}
