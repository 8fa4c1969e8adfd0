//go:build linux

// Package hosts gives tests several hosts: network namespaces of Linux with addresses of
// their own, connected by a switch in which the network can be made to fail. What goes on
// there touches no other network, and leaves nothing behind, even if the test is killed.
//
// It needs root, and ip, tc and nft: scripts/setup hosts.
package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/weft-go/weft/internal/testenv"
)

// Config says what a network is like.
type Config struct {
	// Hosts is how many there are.
	Hosts int
	// MTUs are those of the hosts, on both ends of their links. Those that are missing
	// or 0 are 1500.
	MTUs []int
	// Decoy gives each host another interface, the newest one, which is the one that
	// libfabric prefers. It leads nowhere, and has the same address on all of them, as docker0 is.
	Decoy bool
	// Route gives each host a default route, over eth0.
	Route bool
}

// Network is some hosts at a switch. Its methods are for one goroutine at a time.
type Network struct {
	Hosts []*Host
	inner *namespace // of the switch
	rules map[string]string
}

// Host is one of them: a network namespace with one interface, eth0.
type Host struct {
	// Address is where the others reach it, an IPv4 address.
	Address string

	network *Network
	inside  *namespace
	port    string // of the switch
}

// The addresses are of blocks for documentation, which are nobody's.
const (
	prefix    = "198.51.100."
	decoy     = "203.0.113.1"
	decoyName = "decoy0"
)

// New makes a network, which is removed at the end of the test. Where that is not
// possible, it is as if "hosts" were missing.
func New(t testing.TB, config Config) *Network {
	t.Helper()
	testenv.Need(t, "hosts", possible())
	n := &Network{rules: make(map[string]string)}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	testenv.Need(t, "hosts", n.open(config))
	return n
}

func possible() error {
	if os.Geteuid() != 0 {
		return errors.New("only root makes networks")
	}
	for _, tool := range []string{"ip", "tc", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: scripts/setup hosts installs it", err)
		}
	}
	return nil
}

func (n *Network) open(config Config) error {
	var err error
	if n.inner, err = newNamespace(); err != nil {
		return err
	}
	// The bridge's own interface has the largest MTU, so that ports keep theirs.
	lines := []string{"link add switch mtu 9001 type bridge", "link set switch up"}
	for i := range config.Hosts {
		h := &Host{Address: fmt.Sprint(prefix, i+1), network: n, port: fmt.Sprint("port", i+1)}
		if h.inside, err = newNamespace(); err != nil {
			return err
		}
		n.Hosts = append(n.Hosts, h)
		mtu := 1500
		if i < len(config.MTUs) && config.MTUs[i] != 0 {
			mtu = config.MTUs[i]
		}
		lines = append(lines,
			fmt.Sprintf("link add %s mtu %d type veth peer name eth0 mtu %d netns %s", h.port, mtu, mtu, h.inside.path()),
			fmt.Sprintf("link set %s master switch up", h.port))
		if config.Decoy {
			// Its other end is in the switch, and no port of it.
			lines = append(lines, fmt.Sprintf("link add blind%d up type veth peer name %s netns %s", i+1, decoyName, h.inside.path()))
		}
	}
	if err := n.inner.batch(lines...); err != nil {
		return err
	}
	for _, h := range n.Hosts {
		lines := []string{"link set lo up", "address add " + h.Address + "/24 dev eth0", "link set eth0 up"}
		if config.Decoy {
			lines = append(lines, "address add "+decoy+"/24 dev "+decoyName, "link set "+decoyName+" up")
		}
		if config.Route {
			lines = append(lines, "route add default dev eth0")
		}
		if err := h.inside.batch(lines...); err != nil {
			return err
		}
	}
	// Not every kernel has what the faults are made of.
	return n.Hosts[0].Heal()
}

func (n *Network) close() error {
	var all error
	for _, h := range n.Hosts {
		all = errors.Join(all, h.inside.close())
	}
	if n.inner != nil {
		all = errors.Join(all, n.inner.close())
	}
	return all
}
