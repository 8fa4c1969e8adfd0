package doctor

import (
	"fmt"
	"path"
	"strconv"
)

// lookAtTraffic looks at what the hardware counts, to see whether anybody answers.
func (x *examination) lookAtTraffic() {
	for _, d := range x.devices {
		if !d.efa || !d.opens {
			continue // what it carries is that of others
		}
		folder := path.Join("sys/class/infiniband", d.name, "ports/1/hw_counters")
		count := func(name string) (n uint64, ok bool) {
			text, _ := x.read(path.Join(folder, name))
			n, err := strconv.ParseUint(text, 10, 64)
			return n, err == nil
		}
		sent, ok := count("tx_pkts")
		if !ok {
			x.find(Unseen, "/"+folder, "the device does not count its packets, so whether a security group blocks cannot be seen")
			continue
		}
		received, _ := count("rx_pkts")
		silent, _ := count("unresponsive_remote_events")
		found := fmt.Sprintf("%d packets sent, %d received, %d peers that did not answer", sent, received, silent)
		switch {
		case sent == 0:
			x.find(Untried, "/"+folder, found)
		case received == 0 || silent > 0:
			x.find(NoAnswers, "/"+folder, found)
		default:
			x.fine("/"+folder, found)
		}
	}
}
