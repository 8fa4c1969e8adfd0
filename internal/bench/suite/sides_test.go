//go:build !race

package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/sharedmemory"
	"github.com/weft-go/weft/internal/testenv"
)

// onShm runs a test with the twins built, beside others: most of it is processes that
// wait for libfabric to load. What a provider makes of the work is for
// TestBenchmarksRun, which runs each benchmark there is.
func onShm(t *testing.T, test func(t *testing.T, built *tools, provider string)) {
	const provider = "shm"
	_, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true})
	testenv.Need(t, provider, err)
	t.Parallel()
	built, err := newTools(context.Background())
	require.NoError(t, err)
	t.Cleanup(built.close)
	test(t, built, provider)
}

func tinyOrder(provider, work string) order {
	return order{
		work: work, provider: provider, source: ipSource(provider),
		warmup: 3, count: 500, window: 64, size: 8, deadline: 30 * time.Second,
	}
}

func TestOrderArguments(t *testing.T) {
	for _, first := range []bool{false, true} {
		want := tinyOrder("tcp", "flood")
		want.first, want.inject, want.two = first, !first, first
		got, err := parseOrder(want.args())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	args := tinyOrder("shm", "flood").args()
	_, err := parseOrder(args[1:])
	require.Error(t, err)
	for i := 5; i < len(args); i++ {
		for _, wrong := range []string{"", "0", "-1", "x", "99999999999999999999"} {
			changed := append([]string(nil), args...)
			changed[i] = wrong
			_, err := parseOrder(changed)
			require.Error(t, err, "%d: %q", i, wrong)
		}
	}
}

// Either language on either side: they agree on every message.
func TestSidesUnderstandEachOther(t *testing.T) {
	onShm(t, func(t *testing.T, built *tools, provider string) {
		pingPong, flood := tinyOrder(provider, "pingpong"), tinyOrder(provider, "flood")
		inject, two, narrow := pingPong, pingPong, flood
		inject.inject, two.two = true, true
		two.size = 40
		narrow.window, narrow.size = 3, 300
		for _, c := range []struct {
			order      order
			first      []string
			second     []string
			operations int
		}{
			{pingPong, built.twin, built.twin, 1000},
			{pingPong, built.weft, built.weft, 1000},
			{pingPong, built.twin, built.weft, 1000},
			{pingPong, built.weft, built.twin, 1000},
			{inject, built.twin, built.weft, 1000},
			{inject, built.weft, built.twin, 1000},
			{two, built.twin, built.twin, 1000},
			{flood, built.twin, built.twin, 500},
			{flood, built.weft, built.weft, 500},
			{flood, built.twin, built.weft, 500},
			{flood, built.weft, built.twin, 500},
			{narrow, built.twin, built.weft, 500},
			{narrow, built.weft, built.twin, 500},
		} {
			first, _ := c.order.sides(c.first)
			_, second := c.order.sides(c.second)
			m, err := runPair(context.Background(), first, second, c.order.deadline)
			require.NoError(t, err, "%q and %q", first, second)
			require.Equal(t, c.operations, m.operations)
			require.Positive(t, m.elapsed)
			require.Contains(t, m.device[1], provider)
		}
	})
}

// A receiver that is owed a message, or gets one of another length, says so.
func TestReceiversNotice(t *testing.T) {
	onShm(t, func(t *testing.T, built *tools, provider string) {
		for name, program := range map[string][]string{
			"C": built.twin, "weft": built.weft,
			"connection": overConnection(built, sideOptions{sender: senderWrite}),
		} {
			o := tinyOrder(provider, "flood")
			o.deadline = time.Second
			less, _ := o.sides(program)
			o.count++
			_, more := o.sides(program)
			_, err := runPair(context.Background(), less, more, o.deadline)
			require.Error(t, err, name)
			// The other side may have ended first, and taken its connection along.
			require.Regexp(t, "the deadline has passed|peer lost", err.Error(), name)

			o.deadline = 20 * time.Second
			_, long := o.sides(program)
			o.size = 16
			o.warmup, o.count = 1, 1
			short, _ := o.sides(program)
			_, err = runPair(context.Background(), short, long, o.deadline)
			require.ErrorContains(t, err, "side 2", name)
		}
	})
}

func TestKilledSideLeavesNothing(t *testing.T) {
	onShm(t, func(t *testing.T, built *tools, provider string) {
		for name, program := range map[string][]string{
			"C": built.twin, "weft": built.weft, "connection": overConnection(built, sideOptions{}),
		} {
			command, _ := tinyOrder(provider, "flood").sides(program)
			p, err := startProcess(context.Background(), command)
			require.NoError(t, err)
			_, err = p.expect("open")
			require.NoError(t, err)
			names := func() []string {
				found, err := filepath.Glob(fmt.Sprintf("/dev/shm/%d:*", p.cmd.Process.Pid))
				require.NoError(t, err)
				return found
			}
			require.Equal(t, provider == "shm", len(names()) > 0, name)
			require.NoError(t, p.cmd.Process.Kill())
			require.Error(t, p.wait(), name)
			require.Empty(t, names(), name)
		}
	})
}

// What a killed process with the same id has left keeps no side from its endpoint.
func TestNameOfASideIsTaken(t *testing.T) {
	onShm(t, func(t *testing.T, built *tools, provider string) {
		const takes = `echo $$ >"$0"; head -c 4096 /dev/zero >"/dev/shm/$$:$(id -u):0"; exec "$@"`
		taker := filepath.Join(t.TempDir(), "pid")
		for name, program := range map[string][]string{"C": built.twin, "weft": built.weft} {
			first, second := tinyOrder(provider, "flood").sides(program)
			first = append([]string{"sh", "-c", takes, taker}, first...)
			m, err := runPair(context.Background(), first, second, 30*time.Second)
			said, _ := os.ReadFile(taker)
			pid, _ := strconv.Atoi(strings.TrimSpace(string(said)))
			sharedmemory.Remove(pid)
			require.NoError(t, err, name)
			require.Equal(t, 500, m.operations, name)
		}
	})
}

func TestFiPingpong(t *testing.T) {
	_, err := exec.LookPath("fi_pingpong")
	testenv.Need(t, "fi_pingpong", err)
	o := tinyOrder("shm", "pingpong")
	_, err = fabric.Choose(fabric.Preference{Providers: []string{"shm"}, Require: true})
	testenv.Need(t, "shm", err)
	o.count = 10_000
	s, err := fiPingpong(context.Background(), nil, o)
	require.NoError(t, err)
	require.Positive(t, s.Mean)
	require.Zero(t, s.Typical)
}

func TestFiPingpongFigures(t *testing.T) {
	seconds, err := parseFiPingpong(`bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
8       10k     =10k     156k        0.01s     32.00       0.25       4.00
`)
	require.NoError(t, err)
	require.InDelta(t, 0.25e-6, seconds, 1e-12)
	for _, text := range []string{
		"", "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n",
		"8 10k =10k 156k 0.01s 0.00 0.25 4.00\n", "x 10k =10k 156k 0.01s 1.00 0.25 4.00\n",
	} {
		_, err := parseFiPingpong(text)
		require.Error(t, err, text)
	}
}
