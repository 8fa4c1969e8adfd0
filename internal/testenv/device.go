package testenv

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// orders is where emulated EFA devices take them: emulator/README.md.
const orders = "WEFT_EFA_CONTROL"

// A device looks at the variable when libfabric asks for devices, once.
func init() {
	if _, set := os.LookupEnv(orders); !set && emulated() {
		_ = os.Setenv(orders, filepath.Join(os.TempDir(), "weft-efa-orders-%p"))
	}
}

func emulated() bool { return strings.Contains(os.Getenv("LD_PRELOAD"), "libweft-efa-emulator") }

// Order gives an order to the emulated EFA device of a process, which must have an
// open endpoint on it, and returns the answer. Without such a device it is as if
// efa was missing.
func Order(t testing.TB, process int, format string, args ...any) string {
	t.Helper()
	if !emulated() {
		Need(t, "efa", errors.New("orders are for an emulated device: scripts/with-efa"))
	}
	path := strings.ReplaceAll(os.Getenv(orders), "%p", strconv.Itoa(process))
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || strings.HasPrefix(answer, "error") {
		t.Fatalf("%s: %q, %v", fmt.Sprintf(format, args...), answer, err)
	}
	return strings.TrimSuffix(answer, "\n")
}
