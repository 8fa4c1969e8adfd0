// What is tested is C, under sanitizers of its own: the race detector has nothing to
// see in it.
//go:build !race

package emulator_test

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// orders is a connection to the control socket of a device.
type orders struct {
	t    *testing.T
	conn net.Conn
	from *bufio.Reader
}

// control connects to a process that was started with the path as
// WEFT_EFA_CONTROL, once it has a queue pair.
func control(t *testing.T, p *process, path string) *orders {
	t.Helper()
	path = strings.ReplaceAll(path, "%p", strconv.Itoa(p.Process.Pid))
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(limit)
	for {
		conn, err := net.Dial("unix", path)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			require.NoError(t, conn.SetDeadline(time.Now().Add(limit)))
			return &orders{t, conn, bufio.NewReader(conn)}
		}
		select {
		case <-p.ended:
			t.Fatalf("%s ended:\n%s", p, &p.output)
		case <-deadline:
			t.Fatal(err)
		case <-again.C:
		}
	}
}

func (o *orders) say(format string, args ...any) string {
	o.t.Helper()
	_, err := fmt.Fprintf(o.conn, format+"\n", args...)
	require.NoError(o.t, err)
	answer, err := o.from.ReadString('\n')
	require.NoError(o.t, err)
	return strings.TrimSuffix(answer, "\n")
}

func TestOrders(t *testing.T) {
	port := freePort(t)
	env := []string{"WEFT_EFA_CONTROL=" + filepath.Join(t.TempDir(), "%p")}
	args := []string{"-p", "efa", "-e", "rdm", "-m", "tagged", "-I", "300", "-S", "64"}
	server := start(t, env, "fi_pingpong", append(args, "-B", strconv.Itoa(port))...)
	server.listening(t, port)
	client := start(t, env, "fi_pingpong", append(args, "-P", strconv.Itoa(port), "127.0.0.1")...)

	path := strings.TrimPrefix(env[0], "WEFT_EFA_CONTROL=")
	o := control(t, client, path)
	require.Equal(t, "ok", o.say("hold"))
	require.Equal(t, "ok", o.say("rnr 50"))
	for _, wrong := range []string{"rnr", "rnr many", "rnr -1", "hold some", "hold -1", "drop nobody", "drop 127.0.0.1:0", "dance", ""} {
		require.Contains(t, o.say("%s", wrong), "error: want ", wrong)
	}
	// Several orders at once, and one in pieces.
	_, err := o.conn.Write([]byte("counters\nrel"))
	require.NoError(t, err)
	line, err := o.from.ReadString('\n')
	require.NoError(t, err)
	require.NotEmpty(t, counters(t, line))
	require.Equal(t, "ok", o.say("ease"))

	both := counters(t, client.finish(t))
	require.Equal(t, 50, both["refused"])
	counters(t, server.finish(t))
}

// A peer that is cut off for good: what is sent to it fails, in time. fi_pingpong
// goes on waiting for an answer, but the provider knows.
func TestCutOffPeer(t *testing.T) {
	port := freePort(t)
	env := []string{"WEFT_EFA_TIMEOUT_MS=500", "FI_LOG_LEVEL=warn", "WEFT_EFA_CONTROL=" + filepath.Join(t.TempDir(), "%p")}
	args := []string{"-p", "efa", "-e", "rdm", "-m", "tagged", "-I", "1000000", "-S", "64"}
	server := start(t, env, "fi_pingpong", append(args, "-B", strconv.Itoa(port))...)
	server.listening(t, port)
	client := start(t, env, "fi_pingpong", append(args, "-P", strconv.Itoa(port), "127.0.0.1")...)
	path := strings.TrimPrefix(env[2], "WEFT_EFA_CONTROL=")
	both := []*orders{control(t, client, path), control(t, server, path)}
	errors := func() (sum int) {
		for _, o := range both {
			sum += counters(t, o.say("counters")+"\n")["errors"]
		}
		return sum
	}
	// A receiver that was not ready in the beginning may have been one.
	before := errors()
	require.Equal(t, "ok", both[0].say("drop 127.0.0.1"))
	require.Eventually(t, func() bool { return errors() > before }, limit, 50*time.Millisecond)
}
