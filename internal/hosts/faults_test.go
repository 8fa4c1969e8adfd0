//go:build linux

package hosts_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/hosts"
	"github.com/weft-go/weft/internal/testenv"
)

// Ports of the hosts, and two for stores of jobs.
const (
	portListener = 7000
	portRank     = 7001
	portStore    = 7002
	portAgain    = 7003
)

// fault is something that happens to host 1 of three.
type fault struct {
	name    string
	network hosts.Config
	// make makes it happen, and mend ends it, if it does not by itself.
	make, mend func(s *site) error
	// breaks says that connections with the host end, on efa that is if it is only where
	// they are cut; otherwise everything goes on.
	breaks, breaksOnEFA bool
	// gone says that the processes of the host are, too.
	gone bool
}

var faults = []fault{
	{name: "MTU 1500, and an interface that leads nowhere", network: hosts.Config{Decoy: true}, make: nothing},
	{name: "MTU 9001", network: hosts.Config{MTUs: []int{9001, 9001, 9001}}, make: nothing},
	{name: "MTU 1500 there, 9001 elsewhere", network: hosts.Config{MTUs: []int{9001, 1500, 9001}}, make: nothing, breaksOnEFA: true},
	{name: "cut off", make: (*site).cut, mend: (*site).heal, breaks: true},
	{name: "hears nothing", make: func(s *site) error { return s.victim().Deafen() }, mend: (*site).heal, breaks: true},
	{
		name: "hears nothing on control connections", breaks: true, mend: (*site).heal,
		make: func(s *site) error { return s.victim().DeafenPorts(portListener, portRank, portStore) },
	},
	{
		name: "gone", breaks: true, gone: true,
		make: func(s *site) error {
			err := s.victim().Unplug()
			s.killVictim()
			return err
		},
	},
	{
		name: "has another address after a restart", breaks: true, gone: true,
		make: func(s *site) error {
			err := s.victim().Move(20)
			s.killVictim()
			return err
		},
		mend: nothing,
	},
	{
		name: "cut off for a second",
		make: func(s *site) error {
			err := s.victim().CutFor(time.Second)
			time.Sleep(time.Second) // that is the fault
			return err
		},
	},
	{name: "loses 2 % of packets", make: func(s *site) error { return s.victim().Lose(2) }, mend: (*site).heal},
	{name: "slow link", make: func(s *site) error { return s.victim().Slow(s.slow()) }},
}

// site is three hosts with processes.
type site struct {
	t        *testing.T
	provider string
	fault    fault
	network  *hosts.Network

	listeners [2]*watched // on hosts 1 and 2
	dialer    *watched    // on host 0
	ranks     [3]*watched
	begin     int64 // of the fault
}

// slow is how many kilobits a second are slow. The emulated device has up to a mebibyte on
// its way to each peer, and knows nothing of congestion: what lets less through in the time
// of its patience lets nothing else through beside it, keep-alives included.
func (s *site) slow() int {
	if s.provider == "efa" {
		return 200_000
	}
	return 20_000
}

func nothing(*site) error { return nil }

func (s *site) victim() *hosts.Host { return s.network.Hosts[1] }
func (s *site) cut() error          { return s.victim().Cut() }
func (s *site) heal() error         { return s.victim().Heal() }

func (s *site) killVictim() {
	s.listeners[0].Kill()
	s.ranks[1].Kill()
	s.listeners[0], s.ranks[1] = nil, nil
}

// watched is a process whose events are gathered.
type watched struct {
	*hosts.Process
	t     *testing.T
	begin *int64 // of the fault
	seen  []event
}

// until returns the first event from here on that is wanted.
func (w *watched) until(what string, wanted func(e event) bool) event {
	w.t.Helper()
	for end := time.Now().Add(patience); ; {
		var e event
		require.NoError(w.t, w.Hear(&e, time.Until(end)), "waiting for %q", what)
		w.seen = append(w.seen, e)
		if testing.Verbose() && w.begin != nil {
			w.t.Logf("%.1f s: %s: %s: %s %s, %d: %s", time.Duration(e.At-*w.begin).Seconds(), w.Name, e.What, e.Layer, e.Call, e.Count, e.Error)
		}
		if wanted(e) {
			return e
		}
	}
}

func (w *watched) ready() {
	w.t.Helper()
	w.until("ready", func(e event) bool { return e.What == "ready" })
}

// done waits until something is done that the process was ordered to do.
func (w *watched) done(call string) event {
	w.t.Helper()
	return w.until(call, func(e event) bool { return e.What == "done" && e.Call == call })
}

// ended returns the end of a call, and waits for it if need be.
func (w *watched) ended(call string) event {
	w.t.Helper()
	return w.ever(call, func(e event) bool { return e.What == "ended" && e.Call == call })
}

// endedWith returns the end of a call whose name ends so, the first, the second and so on.
func (w *watched) endedWith(suffix string, nth int) event {
	w.t.Helper()
	wanted := func(e event) bool { return e.What == "ended" && strings.HasSuffix(e.Call, suffix) }
	for {
		n := 0
		for _, e := range w.seen {
			if wanted(e) {
				if n == nth {
					return e
				}
				n++
			}
		}
		w.until("another end"+suffix, wanted)
	}
}

// ever returns the first event of all that is wanted, and waits for it if need be.
func (w *watched) ever(what string, wanted func(e event) bool) event {
	w.t.Helper()
	if i := slices.IndexFunc(w.seen, wanted); i >= 0 {
		return w.seen[i]
	}
	return w.until(what, wanted)
}

// finish has the process end, having left nothing.
func (w *watched) finish() {
	w.t.Helper()
	w.order("finish")
	e := w.until("finished", func(e event) bool { return e.What == "finished" })
	require.Empty(w.t, e.Error, w.Name)
	require.NoError(w.t, w.End(patience))
}

func (w *watched) order(format string, args ...any) {
	w.t.Helper()
	require.NoError(w.t, w.Order(format, args...))
}

func (s *site) start(host int, role string, arguments ...string) *watched {
	s.t.Helper()
	h := s.network.Hosts[host]
	var env []string
	switch s.provider {
	case "efa":
		// How long a peer may be silent, and that nobody else's orders are for this device.
		env = []string{"WEFT_EFA_ADDRESSES=eth0", "WEFT_EFA_TIMEOUT_MS=6000", "WEFT_EFA_CONTROL="}
	case "sockets":
		// Its thread spins for so many milliseconds after every message.
		env = []string{"LD_PRELOAD=", "FI_SOCKETS_PE_WAITTIME=1"}
	default:
		env = []string{"LD_PRELOAD="}
	}
	name := fmt.Sprintf("%s on host %d", role, host)
	return &watched{Process: h.Start(s.t, name, env, role, append([]string{s.provider}, arguments...)...), t: s.t, begin: &s.begin}
}

func (s *site) at(host, port int) string {
	return fmt.Sprintf("%s:%d", s.network.Hosts[host].Address, port)
}

func (s *site) startListener(host int) *watched {
	return s.start(host, "listener", s.at(host, portListener))
}

func (s *site) startRank(host int) *watched {
	return s.start(host, "rank", fmt.Sprint(host), s.at(host, portRank))
}

func (s *site) join(port int) {
	for _, r := range s.ranks {
		r.order("join tcp://%s", s.at(0, port))
	}
	for _, r := range s.ranks {
		r.ready()
	}
}

// open starts everything, and waits until it is at work.
func (s *site) open() {
	s.listeners = [2]*watched{s.startListener(1), s.startListener(2)}
	for i := range s.ranks {
		s.ranks[i] = s.startRank(i)
	}
	for _, l := range s.listeners {
		l.ready()
	}
	s.dialer = s.start(0, "dialer", s.at(1, portListener), s.at(2, portListener), s.network.Hosts[0].Address)
	s.dialer.ready()
	if s.carries() {
		for _, w := range []*watched{s.dialer, s.listeners[0]} {
			w.ever("arrived", func(e event) bool { return e.What == "arrived" })
		}
	}
	s.join(portStore)
}

// carries says whether long messages reach the host before the fault: not where that is
// how the network was made.
func (s *site) carries() bool { return !s.fault.breaksOnEFA || s.provider != "efa" }

// TestFaults makes each fault on each provider, in networks of their own.
func TestFaults(t *testing.T) {
	chosen, all := os.LookupEnv("WEFT_HOSTS")
	providers := strings.Split(chosen, ",")
	if !all {
		// The others are make test-hosts.
		providers = []string{"tcp"}
	}
	results := new(table)
	t.Cleanup(func() { results.write(t) })
	for _, f := range faults {
		f.network.Hosts = 3
		for _, provider := range providers {
			if !all && f.name != "cut off" {
				continue
			}
			t.Run(f.name+"/"+provider, func(t *testing.T) {
				t.Parallel()
				s := &site{t: t, provider: provider, fault: f}
				if provider == "efa" && !slices.ContainsFunc(os.Environ(), func(v string) bool {
					return strings.HasPrefix(v, "LD_PRELOAD=") && strings.Contains(v, "weft-efa-emulator")
				}) {
					testenv.Need(t, "efa", errors.New("there is no emulated device: scripts/with-efa"))
				}
				s.network = hosts.New(t, f.network)
				s.open()
				s.begin = time.Now().UnixNano()
				require.NoError(t, f.make(s))
				if f.breaks || !s.carries() {
					s.broken(results)
				} else {
					s.goesOn(results)
				}
			})
		}
	}
}

// goesOn wants that nothing ends.
func (s *site) goesOn(results *table) {
	s.dialer.order("exchange %s", s.at(1, portListener))
	e := s.dialer.done("exchange")
	require.Empty(s.t, e.Error)
	require.False(s.t, slices.ContainsFunc(s.dialer.seen, func(e event) bool { return e.What == "ended" }))
	results.add(s, "efa", "messages of all sizes are whole", []event{e})
	for _, r := range s.ranks {
		r.order("stop")
	}
	var comm, collective []event
	for i, r := range s.ranks {
		for peer := range s.ranks {
			if peer != i {
				comm = append(comm, r.ended(fmt.Sprint("exchange with ", peer)))
			}
		}
		collective = append(collective, r.ended("allreduce"))
		s.closes(r)
	}
	for _, e := range slices.Concat(comm, collective) {
		require.Empty(s.t, e.Error, e.Call)
	}
	results.add(s, "comm", "messages of all sizes are whole", comm)
	results.add(s, "collective", "the sums are right", collective)
	s.finish()
}

// closes wants that a rank has all messages and closes in order.
func (s *site) closes(r *watched) {
	s.t.Helper()
	for _, call := range []string{"messages", "close", "close"} {
		e := r.done(call)
		require.Empty(s.t, e.Error, "%s: %s %s", r.Name, e.Layer, e.Call)
	}
}

func (s *site) finish() {
	s.t.Helper()
	s.finishEngines()
	for _, w := range s.ranks {
		w.finish()
	}
}

// finishEngines has the dialer and the listeners end, and wants of their last calls what
// every fault leaves as it is: what had arrived can be read, and nothing has ended between
// hosts without the fault.
func (s *site) finishEngines() {
	s.t.Helper()
	s.dialer.finish()
	e := s.dialer.ended("other host")
	require.Empty(s.t, e.Error, e.Call)
	require.Positive(s.t, e.Count, e.Call)
	unread := []event{s.dialer.ended("what had arrived")}
	for i, l := range s.listeners {
		if l == nil {
			continue
		}
		l.finish()
		for _, e := range l.seen {
			switch {
			case i == 1 && e.What == "ended":
				require.True(s.t, e.is("io.EOF"), "%s: %s: %q", l.Name, e.Call, e.Error)
			case e.Call == keepsOff+atListener:
				unread = append(unread, e)
			}
		}
	}
	if !s.fault.gone {
		require.Len(s.t, unread, 2)
	}
	for _, e := range unread {
		require.False(s.t, e.is("not whole"), "%s: %s", e.Call, e.Error)
		if s.carries() {
			require.GreaterOrEqual(s.t, e.Count, early, "%s: %s", e.Call, e.Error)
		}
	}
}
