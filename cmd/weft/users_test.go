package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// weftOf returns a weft that another user can run, and a folder for all.
func weftOf(t *testing.T, user uint32) (command func(args ...string) *exec.Cmd, dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		require.NoError(t, os.Chmod(d, 0o777))
	}
	path, err := exec.LookPath("weft")
	require.NoError(t, err)
	program, err := os.ReadFile(path)
	require.NoError(t, err)
	path = filepath.Join(dir, "weft")
	require.NoError(t, os.WriteFile(path, program, 0o755))
	return func(args ...string) *exec.Cmd {
		c := testprocess.Command(t, path, args...)
		c.Dir = dir
		// The user may not be allowed to read where the emulated device is, which none of this is about.
		c.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "LD_PRELOAD=") })
		c.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		return c
	}, dir
}

// Shared memory is its user's own. Whichever side it is that may not use the
// other's, the sender says why.
func TestSharedMemoryOfAnotherUser(t *testing.T) {
	needProvider(t, "shm")
	if os.Geteuid() != 0 {
		testenv.Need(t, "root", errors.New("only root can start a process of another user"))
	}
	const nobody = 65534
	command, dir := weftOf(t, nobody)
	testenv.Need(t, "another user", command("info").Run())
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o644))
	recv := []string{"recv", "--dir", dir, "--listen", "127.0.0.1:0", "--provider", "shm"}
	send := []string{"send", "--provider", "shm", file}
	for name, c := range map[string]struct{ receiver, sender func(...string) *exec.Cmd }{
		"receiver": {command, func(args ...string) *exec.Cmd { return testprocess.Command(t, "weft", args...) }},
		"sender":   {func(args ...string) *exec.Cmd { return testprocess.Command(t, "weft", args...) }, command},
	} {
		t.Run(name, func(t *testing.T) {
			receiver := startCommand(t, c.receiver(recv...))
			sender := startCommand(t, c.sender(append(send, receiver.address(t))...))
			sender.await(t, generous)
			sender.requireOneLine(t, exitPeer, "weft: ")
			require.Contains(t, sender.stderr.String(), "runs as another user")
			require.Contains(t, sender.stderr.String(), "or use another provider")
		})
	}
}
