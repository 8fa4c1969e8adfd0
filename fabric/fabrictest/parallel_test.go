package fabrictest

import (
	"sync"
	"testing"
	"time"

	"github.com/weft-go/weft/fabric"
)

// TestDevicesInParallel has the race detector look at buffers that two
// goroutines hand to each other.
func TestDevicesInParallel(t *testing.T) {
	n := NewNetwork(Faults{Reorder: 0.2, Refuse: 0.2, Delay: 3})
	d := open(t, n, 2, DeviceConfig{MaxOperations: 4})
	const rounds = 200
	var group sync.WaitGroup
	failures := make(chan string, 2)
	for self, peer := range []fabric.Address{1, 0} {
		group.Go(func() {
			if problem := exchange(d[self].Device, peer, rounds); problem != "" {
				failures <- problem
			}
		})
	}
	group.Wait()
	close(failures)
	for problem := range failures {
		t.Error(problem)
	}
}

// exchange sends and receives rounds messages, one after the other, and reuses
// one buffer for each direction.
func exchange(d *Device, peer fabric.Address, rounds int) string {
	out, in := make([]byte, 100), make([]byte, 100)
	completions := make([]fabric.Completion, 4)
	deadline := time.Now().Add(patience)
	for round := range rounds {
		for i := range out {
			out[i] = byte(round + i)
		}
		pending := []fabric.Op{
			{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(round), Buf: in},
			{Kind: fabric.OpTaggedSend, Peer: peer, Tag: uint64(round), Buf: out},
		}
		for done := 0; done < 2; {
			reaped, err := d.Turn(pending, completions, 2)
			if err != nil || time.Now().After(deadline) {
				return "no progress"
			}
			left := pending[:0]
			for _, op := range pending {
				if op.Result == fabric.Refused {
					left = append(left, op)
				}
			}
			pending = left
			for _, c := range completions[:reaped] {
				if c.Err != nil {
					return c.Err.Error()
				}
			}
			if done += reaped; done < 2 && len(pending) == 0 && d.Arm() {
				d.Wait(patience)
			}
		}
		for i := range in {
			if in[i] != byte(round+i) {
				return "wrong bytes"
			}
		}
	}
	return ""
}
