// What is tested is C, under sanitizers of its own: the race detector has nothing to
// see in it.
//go:build !race

package emulator_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// The addresses are of the block for documentation, and reach nothing else.
const (
	left  = "198.51.100.1"
	right = "198.51.100.2"
)

// namespaces makes two networks that are connected with each other, and returns
// what runs a command in each.
func namespaces(t *testing.T) [2][]string {
	t.Helper()
	var in [2][]string
	var names [2]string
	for i, side := range []string{"left", "right"} {
		names[i] = fmt.Sprintf("weft-efa-%d-%s", os.Getpid(), side)
		testenv.Need(t, "netns", ip("netns", "add", names[i]))
		t.Cleanup(func() {
			if err := ip("netns", "del", names[i]); err != nil {
				t.Error(err)
			}
		})
		in[i] = []string{"ip", "netns", "exec", names[i]}
	}
	testenv.Need(t, "netns", ip("link", "add", "weft0", "netns", names[0], "type", "veth",
		"peer", "name", "weft0", "netns", names[1]))
	for i, address := range []string{left, right} {
		require.NoError(t, ip("-n", names[i], "address", "add", address+"/30", "dev", "weft0"))
		require.NoError(t, ip("-n", names[i], "link", "set", "weft0", "up"))
		require.NoError(t, ip("-n", names[i], "link", "set", "lo", "up"))
	}
	return in
}

func TestPingPongBetweenNetworks(t *testing.T) {
	in := namespaces(t)
	for _, c := range []struct {
		name string
		env  []string
		args []string
	}{
		{"rdm", nil, []string{"-e", "rdm", "-m", "tagged", "-I", "50"}},
		{"dgram", nil, []string{"-e", "dgram", "-I", "50"}},
		{"rdm under faults", seeded(faulty), []string{"-e", "rdm", "-m", "tagged", "-I", "20"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pingPong(t, append([]string{"WEFT_EFA_ADDRESSES=weft0"}, c.env...), in, left, c.args...)
		})
	}
}
