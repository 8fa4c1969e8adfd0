//go:build linux

package fabric_test

import (
	"os/signal"
	"strconv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
)

// signalActions are what the kernel has for each signal: the handler, flags and mask.
func signalActions(t *testing.T) map[string][4]uintptr {
	t.Helper()
	const most = 64
	actions := make(map[string][4]uintptr)
	for s := 1; s <= most; s++ {
		var action [4]uintptr
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(&action)), most/8, 0, 0)
		require.Zero(t, errno)
		actions[unix.SignalName(unix.Signal(s))+" "+strconv.Itoa(s)] = action
	}
	return actions
}

// Whatever a provider installs when it is loaded, opened or started, each signal has what
// it had, also where the program ignores it, as one that nohup has started.
func TestSignalsStayAsTheyAre(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm"} {
		for _, ignored := range []bool{false, true} {
			name := provider + "/handled"
			if ignored {
				name = provider + "/ignored"
			}
			t.Run(name, func(t *testing.T) {
				inProcess(t, func(t *testing.T) {
					if ignored {
						signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGPIPE, unix.SIGHUP)
					}
					before := signalActions(t)
					same := func(after string, err error) {
						t.Helper()
						require.NoError(t, err)
						require.Equal(t, before, signalActions(t), "after %s", after)
					}
					infos, err := fabric.Discover(fabric.Hints{
						Provider: provider, Endpoint: fabric.ReliableDatagram, MemoryMode: everyMemoryMode, Source: sourceOn(provider),
					})
					same("fi_getinfo", err)
					f, err := infos[0].OpenFabric()
					same("fi_fabric", err)
					ev, err := f.OpenEventQueue()
					same("fi_eq_open", err)
					d, err := f.OpenDomain(infos[0])
					same("fi_domain", err)
					v, err := d.OpenAddressVector()
					same("fi_av_open", err)
					q, err := d.OpenCompletionQueue(16)
					same("fi_cq_open", err)
					e, err := d.OpenEndpoint()
					same("fi_endpoint", err)
					same("fi_enable", e.Enable(v, q, ev))
					own, err := e.Name()
					require.NoError(t, err)
					_, err = v.Insert(own)
					same("fi_av_insert", err)
					for _, c := range []interface{ Close() error }{e, q, v, d, ev, f} {
						same("fi_close", c.Close())
					}
				})
			})
		}
	}
}
