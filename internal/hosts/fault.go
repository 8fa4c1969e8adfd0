//go:build linux

package hosts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The faults are made in the switch, so that hosts notice as much as they would notice of
// a switch: packets get lost without a word.

// Cut has nothing go from the host any more, and nothing to it, until Heal.
func (h *Host) Cut() error {
	return h.network.rule(h.port, fmt.Sprintf("iifname %q drop\noifname %q drop", h.port, h.port))
}

// CutFor is Cut for so long, and ends by itself: the kernel has the time of it, so it is no
// longer where the machine is busy.
func (h *Host) CutFor(d time.Duration) error {
	return h.network.inner.run(fmt.Sprintf(`table bridge moment
delete table bridge moment
table bridge moment {
set ports { type ifname; flags timeout; elements = { %q timeout %dms } }
chain forward {
type filter hook forward priority 0; policy accept;
iifname @ports drop
oifname @ports drop
}
}
`, h.port, d.Milliseconds()), "nft", "-f", "-")
}

// Deafen has nothing reach the host any more, while what it sends arrives, until Heal.
func (h *Host) Deafen() error {
	return h.network.rule(h.port, fmt.Sprintf("oifname %q drop", h.port))
}

// DeafenPorts is Deafen for what has one of these TCP ports at either end.
func (h *Host) DeafenPorts(ports ...int) error {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ", "), "[]")
	return h.network.rule(h.port, fmt.Sprintf(
		"oifname %q tcp sport { %s } drop\noifname %q tcp dport { %s } drop", h.port, list, h.port, list))
}

// Lose has so many per cent of the packets get lost, 1 to 100, of those to the host and of those
// from it, until Heal.
func (h *Host) Lose(percent int) error {
	return h.network.rule(h.port, fmt.Sprintf(
		"iifname %q numgen random mod 100 <= %d drop\noifname %q numgen random mod 100 <= %d drop",
		h.port, percent-1, h.port, percent-1))
}

// Heal ends what the methods above have begun.
func (h *Host) Heal() error { return h.network.rule(h.port, "") }

// rule replaces the rules of a port of the switch.
func (n *Network) rule(port, rules string) error {
	n.rules[port] = rules
	var table strings.Builder
	table.WriteString("table bridge weft\ndelete table bridge weft\ntable bridge weft {\nchain forward {\ntype filter hook forward priority 0; policy accept;\n")
	for _, port := range slices.Sorted(maps.Keys(n.rules)) {
		table.WriteString(n.rules[port] + "\n")
	}
	table.WriteString("}\n}\n")
	return n.inner.run(table.String(), "nft", "-f", "-")
}

// Unplug takes the host's link down for good, as if it had lost its power; its processes
// are for the caller to kill.
func (h *Host) Unplug() error { return h.network.inner.batch("link set " + h.port + " down") }

// Slow bounds what goes to the host, and what comes from it, to so many kilobits a
// second each. What does not fit waits for up to 400 ms, and is lost beyond that.
func (h *Host) Slow(kilobits int) error {
	args := strings.Fields(fmt.Sprintf("qdisc replace dev %s root tbf rate %dkbit burst 64kb latency 400ms", h.port, kilobits))
	if err := h.network.inner.run("", "tc", args...); err != nil {
		return err
	}
	args[3] = "eth0"
	return h.inside.run("", "tc", args...)
}

// Move gives the host the address number of the network instead of its own, at once:
// those who had it are told nothing.
func (h *Host) Move(number int) error {
	before := h.Address
	h.Address = fmt.Sprint(prefix, number)
	return h.inside.batch("address delete "+before+"/24 dev eth0", "address add "+h.Address+"/24 dev eth0")
}

// LoseDecoy takes the host's other interface away (Config.Decoy), and its address with it.
func (h *Host) LoseDecoy() error { return h.inside.batch("link delete " + decoyName) }
