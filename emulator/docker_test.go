// What is tested is C, under sanitizers of its own: the race detector has nothing to
// see in it.
//go:build !race

package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

// docker runs a command of the Docker engine's, and returns what it prints.
func docker(stdin io.Reader, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, said)
	}
	return said, nil
}

// containers makes an image of fi_pingpong and the device, and a network for
// containers of it. Nothing is fetched: the files are this machine's. It returns the
// beginning of a command that runs a container in the network.
func containers(t *testing.T) (name string, run []string) {
	t.Helper()
	_, err := docker(nil, "version")
	testenv.Need(t, "docker", err)
	name = fmt.Sprintf("weft-efa-%d", os.Getpid())
	root := t.TempDir()
	pingPong, err := exec.LookPath("fi_pingpong")
	require.NoError(t, err)
	library := device(t)
	for inside, file := range needed(t, pingPong, library) {
		copyFile(t, file, filepath.Join(root, inside))
	}
	copyFile(t, pingPong, filepath.Join(root, "fi_pingpong"))
	copyFile(t, library, filepath.Join(root, "device.so"))
	require.NoError(t, os.Mkdir(filepath.Join(root, "tmp"), 0o777))

	pack := exec.Command("tar", "-C", root, "-c", ".")
	files, err := pack.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, pack.Start())
	_, err = docker(files, "import", "-", name)
	require.NoError(t, errors.Join(err, pack.Wait()))
	removed(t, "image", "rm", name)
	_, err = docker(nil, "network", "create", name)
	testenv.Need(t, "docker", err)
	removed(t, "network", "rm", name)
	return name, []string{"docker", "run", "--rm", "--network", name}
}

// removed has something of the engine's removed at the end of the test.
func removed(t *testing.T, args ...string) {
	t.Cleanup(func() {
		if _, err := docker(nil, args...); err != nil {
			t.Error(err)
		}
	})
}

// loaded is a line of ldd: where it found a library, or the loader.
var loaded = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// needed are the libraries of programs, by where they are to be.
func needed(t *testing.T, programs ...string) map[string]string {
	t.Helper()
	out, err := exec.Command("ldd", programs...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	files := make(map[string]string)
	for _, match := range loaded.FindAllStringSubmatch(string(out), -1) {
		files[match[1]] = match[1]
	}
	require.NotEmpty(t, files, "%s", out)
	return files
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, content, 0o755))
}

// pingPongPort is where fi_pingpong listens if it is not told.
const pingPongPort = 47592

// awaitContainer waits until fi_pingpong listens in a container.
func awaitContainer(t *testing.T, p *process, name string) {
	t.Helper()
	begin := time.Now()
	for {
		pid, err := docker(nil, "inspect", "--format", "{{.State.Pid}}", name)
		if n, wrong := strconv.Atoi(pid); err == nil && wrong == nil && n > 0 {
			p.listeningIn(t, n, pingPongPort)
			return
		}
		select {
		case <-p.ended:
			t.Fatalf("%s ended:\n%s", p, &p.output)
		case <-time.After(20 * time.Millisecond):
			require.Less(t, time.Since(begin), limit, "%s does not run: %v", name, err)
		}
	}
}

// The device works between two containers in a network of the engine's, where each
// has an address and a host name of its own.
func TestPingPongBetweenContainers(t *testing.T) {
	const rounds = 100
	name, run := containers(t)
	line := func(own []string, args ...string) []string {
		all := append(append([]string{}, run...), own...)
		for _, setting := range []string{
			"LD_PRELOAD=/device.so", "WEFT_EFA_ADDRESSES=eth0", "WEFT_EFA_COUNTERS=1",
			"FI_EFA_ENABLE_SHM_TRANSFER=0", "IPATH_NO_BACKTRACE=1",
		} {
			all = append(all, "--env", setting)
		}
		all = append(all, name, "/fi_pingpong", "-p", "efa", "-c", "-e", "rdm", "-m", "tagged", "-I", strconv.Itoa(rounds))
		return append(all, args...)
	}
	server := name + "-server"
	serving := startCommand(t, line([]string{"--name", server, "--hostname", server}))
	t.Cleanup(func() {
		// It is gone, unless the test has failed.
		_, _ = docker(nil, "rm", "--force", server)
	})
	awaitContainer(t, serving, server)
	for _, out := range []string{startCommand(t, line(nil, server)).finish(t), serving.finish(t)} {
		counted := counters(t, out)
		require.GreaterOrEqual(t, counted["sends"], rounds)
		require.GreaterOrEqual(t, counted["receives"], rounds)
		require.Zero(t, counted["strange"])
	}
}
