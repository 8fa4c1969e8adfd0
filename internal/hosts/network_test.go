//go:build linux

package hosts_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/hosts"
)

func TestMain(m *testing.M) {
	hosts.Play(map[string]hosts.Role{
		"listener": playListener, "dialer": playDialer, "rank": playRank, "localJob": playLocalJob, "caller": playCaller,
		"echo": playEcho, "ask": playAsk,
	})
	fabrictest.Main(m)
}

// playEcho sends back each datagram, with where it came from.
func playEcho(arguments []string, orders <-chan string, say func(any)) error {
	at, err := net.ListenPacket("udp4", arguments[0])
	if err != nil {
		return err
	}
	say("ready")
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := at.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = at.WriteTo(fmt.Appendf(nil, "%d of %v", n, from.(*net.UDPAddr).IP), from)
		}
	}()
	<-orders
	return at.Close()
}

// playAsk sends datagrams of a length for each order, so many at most, and says what comes
// back.
func playAsk(arguments []string, orders <-chan string, say func(any)) error {
	say("ready")
	for order := range orders {
		var size, tries int
		if _, err := fmt.Sscan(order, &size, &tries); err != nil {
			return nil
		}
		answer, err := askOnce(arguments[0], size, tries)
		if err != nil {
			answer = "nothing"
		}
		say(answer)
	}
	return nil
}

// askOnce asks until there is an answer, from a port of its own: what comes late to an
// earlier question is none.
func askOnce(address string, size, tries int) (answer string, err error) {
	conn, err := net.Dial("udp4", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	buf := make([]byte, 100)
	for range tries {
		if _, err = conn.Write(make([]byte, size)); err == nil {
			_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			var n int
			if n, err = conn.Read(buf); err == nil {
				return string(buf[:n]), nil
			}
		}
	}
	return "", err
}

// The faults are those that their names say, and end.
func TestNetwork(t *testing.T) {
	n := hosts.New(t, hosts.Config{Hosts: 3, MTUs: []int{9001, 9001, 1500}})
	here := fmt.Sprint(interfaces(t))
	hear := func(p *hosts.Process) (said string) {
		t.Helper()
		require.NoError(t, p.Hear(&said, patience))
		return said
	}
	victim, other := n.Hosts[1], n.Hosts[2]
	asks := make(map[*hosts.Host]*hosts.Process)
	for _, h := range []*hosts.Host{victim, other} {
		echo := h.Start(t, "echo", nil, "echo", h.Address+":7000")
		hear(echo)
		asks[h] = n.Hosts[0].Start(t, "ask", nil, "ask", h.Address+":7000")
		hear(asks[h])
	}
	// On a busy machine an answer may take long. That there is none is seen after a few.
	const few, many = 5, 300
	askFor := func(h *hosts.Host, size, tries int) string {
		t.Helper()
		require.NoError(t, asks[h].Order("%d %d", size, tries))
		return hear(asks[h])
	}
	ask := func(h *hosts.Host, size int) string {
		t.Helper()
		return askFor(h, size, many)
	}
	answer := fmt.Sprintf("10 of %s", n.Hosts[0].Address)
	for name, fault := range map[string]func() error{
		"cut": victim.Cut, "deafen": victim.Deafen, "lose": func() error { return victim.Lose(100) },
	} {
		require.Equal(t, answer, ask(victim, 10), name)
		require.NoError(t, fault())
		require.Equal(t, "nothing", askFor(victim, 10, few), name)
		require.Equal(t, answer, ask(other, 10), name)
		require.NoError(t, victim.Heal())
	}
	require.NoError(t, victim.CutFor(time.Hour))
	require.Equal(t, "nothing", askFor(victim, 10, few))
	require.Equal(t, answer, ask(other, 10))
	require.NoError(t, victim.CutFor(time.Millisecond)) // instead of that
	require.Equal(t, answer, ask(victim, 10))
	// A packet of 8,000 bytes goes where all have room for it, and nowhere else.
	require.Equal(t, fmt.Sprintf("8000 of %s", n.Hosts[0].Address), ask(victim, 8000))
	require.Equal(t, "nothing", askFor(other, 8000, few))
	require.NoError(t, victim.Slow(1000))
	begin := time.Now()
	for range 5 {
		require.NotEqual(t, "nothing", ask(victim, 9000))
	}
	t.Logf("45,000 bytes at a megabit a second, of which half a megabit at once: %v", time.Since(begin))
	require.NoError(t, victim.Unplug())
	require.Equal(t, "nothing", askFor(victim, 10, few))
	require.Equal(t, answer, ask(other, 10))
	// Nothing of all this is on this machine's own network.
	require.Equal(t, here, fmt.Sprint(interfaces(t)))
	for _, p := range asks {
		require.NoError(t, p.Order("enough"))
		require.NoError(t, p.End(patience))
	}
}

func interfaces(t *testing.T) (names []string) {
	t.Helper()
	all, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}
