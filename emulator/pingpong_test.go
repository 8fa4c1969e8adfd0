// What is tested is C, under sanitizers of its own: the race detector has nothing to
// see in it.
//go:build !race

package emulator_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInfoListsTheDevice(t *testing.T) {
	temporary := t.TempDir()
	out := start(t, []string{"TMPDIR=" + temporary}, "fi_info", "-p", "efa").finish(t)
	require.Contains(t, out, "provider: efa")
	require.Contains(t, out, "domain: rdmap0s0-rdm")
	require.Contains(t, out, "domain: rdmap0s0-dgrm")
	requireEmpty(t, temporary)
}

func TestSeveralDevices(t *testing.T) {
	out := start(t, []string{"WEFT_EFA_DEVICES=3"}, "fi_info", "-v", "-p", "efa").finish(t)
	for _, want := range []string{
		"name: rdmap0s0-rdm", "name: rdmap1s0-rdm", "name: rdmap2s0-rdm",
		"EFA-::ffff:127.0.0.1", "EFA-::ffff:127.0.0.3",
		"vendor_id: 0x1d0f", "device_id: 0xefa2", "driver: efa",
	} {
		require.Contains(t, out, want)
	}
}

// pingPong runs fi_pingpong in two processes and returns what the device counted
// in both. before is put before each side's command line, address is the server's.
func pingPong(t *testing.T, env []string, before [2][]string, address string, args ...string) map[string]int {
	t.Helper()
	temporary := t.TempDir()
	port := freePort(t)
	env = append([]string{"TMPDIR=" + temporary}, env...)
	args = append([]string{"-p", "efa", "-c"}, args...)
	command := func(before []string, more ...string) []string {
		line := append(append([]string{}, before...), "fi_pingpong")
		return append(append(line, args...), more...)
	}
	line := command(before[0], "-B", strconv.Itoa(port))
	server := start(t, env, line[0], line[1:]...)
	server.listening(t, port)
	line = command(before[1], "-P", strconv.Itoa(port), address)
	client := start(t, env, line[0], line[1:]...)
	out := client.finish(t)
	both := counters(t, out)
	for name, value := range counters(t, server.finish(t)) {
		both[name] += value
	}
	t.Logf("%s\nboth: %d packets, %d reordered, %d refused, %d lost, %d repeated", out,
		both["packets_sent"], both["reordered"], both["refused"], both["dropped"], both["repeated"])
	requireEmpty(t, temporary)
	return both
}

func TestPingPong(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"rdm tagged", []string{"-e", "rdm", "-m", "tagged", "-I", "100"}},
		{"rdm msg", []string{"-e", "rdm", "-m", "msg", "-I", "100"}},
		{"dgram", []string{"-e", "dgram", "-I", "100"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			both := pingPong(t, nil, [2][]string{}, "127.0.0.1", c.args...)
			require.GreaterOrEqual(t, both["sends"], 800)
			require.Zero(t, both["overruns"]+both["strange"])
		})
	}
}

// What the provider makes of packets that come in any order, or are refused, or
// come only when they are sent again.
func TestPingPongUnderFaults(t *testing.T) {
	for _, mode := range []string{"tagged", "msg"} {
		t.Run(mode, func(t *testing.T) {
			both := pingPong(t, seeded(faulty), [2][]string{}, "127.0.0.1", "-e", "rdm", "-m", mode, "-I", "50")
			for _, fault := range []string{"reordered", "refused", "dropped", "repeated"} {
				require.NotZero(t, both[fault], fault)
			}
			require.Zero(t, both["overruns"]+both["strange"])
		})
	}
}

// What each of several devices carried is counted by itself.
func TestDevicesAreCounted(t *testing.T) {
	both := pingPong(t, []string{"WEFT_EFA_DEVICES=2"}, [2][]string{}, "127.0.0.1", "-e", "rdm", "-m", "tagged", "-I", "10")
	require.Positive(t, both["device0_sent"])
	for _, way := range []string{"sent", "received"} {
		require.Equal(t, both["bytes_"+way], both["device0_"+way]+both["device1_"+way], way)
	}
	require.Zero(t, both["device1_sent"], "the program opened the first one only")
}

// Two devices, each with an address of its own.
func TestPingPongBetweenAddresses(t *testing.T) {
	other := [2][]string{nil, {"env", "WEFT_EFA_ADDRESSES=127.0.0.2"}}
	pingPong(t, nil, other, "127.0.0.1", "-e", "rdm", "-m", "tagged", "-I", "20")
}
