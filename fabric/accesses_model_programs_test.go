package fabric_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
)

// The programs of the model: steps, and when all is quiet.

// settle has everything come to its end, after which memories and counters are as they should be.
func (m *accessModel) settle(t *rapid.T) {
	for _, s := range m.sides {
		m.flush(t, s)
	}
	m.trigger(t)
	quiet := func() bool {
		for _, s := range m.sides {
			if len(s.flying)+len(s.arrivals) > 0 || !bytes.Equal(s.want, s.memory) || len(s.miscounts(t)) > 0 {
				return false
			}
		}
		return true
	}
	m.until(t, func() string { return m.unquiet(t) }, quiet)
	m.turn(t)
	if !quiet() {
		t.Fatalf("after the end: %s", m.unquiet(t))
	}
	for _, a := range m.flying {
		for _, r := range a.regions {
			r.uses = 0
		}
	}
	m.flying = nil
	clear(m.epochs)
	for _, s := range m.sides {
		s.ownUsed = 0
		if s.mayMiss > 0 {
			n, err := s.counters[fabric.CountWrites].Read()
			require.NoError(t, err)
			s.counts[fabric.CountWrites], s.mayMiss = n, 0
		}
		require.Zero(t, s.q.InFlight())
		require.Equal(t, s.strays, s.q.Strays())
	}
}

func (m *accessModel) unquiet(t *rapid.T) (all string) {
	for _, s := range m.sides {
		for _, a := range s.flying {
			all += fmt.Sprintf("\ncompletion of %v", a)
		}
		for _, a := range s.arrivals {
			all += fmt.Sprintf("\nimmediate of %v", a)
		}
		if d := difference(s.want, s.memory); d != "the same" {
			all += fmt.Sprintf("\nmemory of %d: %s", s.number, d)
		}
		all += s.miscounts(t)
	}
	return all
}

// miscounts says which counters are not as they should be.
func (s *accessSide) miscounts(t *rapid.T) (all string) {
	for what, c := range s.counters {
		n, err := c.Read()
		require.NoError(t, err)
		failures, err := c.Errors()
		require.NoError(t, err)
		missed := s.counts[what] - n
		if n > s.counts[what] || missed > 0 && (what != fabric.CountWrites || missed > s.mayMiss) || failures != s.failed[what] {
			all += fmt.Sprintf("\n%v of %d: %d and %d failures, not %d and %d", what, s.number, n, failures, s.counts[what], s.failed[what])
		}
	}
	return all
}

func accessProvider(provider string) accessLimits {
	limits := accessLimits{
		caps: fabric.Messages | fabric.RemoteMemory | fabric.Atomics, mode: everyMemoryMode,
		counted: fabric.CountReads | fabric.CountWrites,
	}
	limits.delivered = provider != "shm" && (provider != "efa" || os.Getenv("FI_EFA_ENABLE_SHM_TRANSFER") == "0")
	if provider == "sockets" {
		limits.caps |= fabric.FencedOperations | fabric.TriggeredOperations | fabric.RemoteMemoryEvents
		limits.counted |= fabric.CountRemoteReads | fabric.CountRemoteWrites
	}
	return limits
}

// accessesOn runs programs on a provider, with both ways to name memory where it has them.
func accessesOn(t *testing.T, provider string) {
	t.Helper()
	for name, mode := range map[string]fabric.MemoryMode{"addresses": everyMemoryMode, "offsets": everyMemoryMode &^ fabric.VirtualAddresses} {
		if provider == "efa" && name == "offsets" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			limits := accessProvider(provider)
			limits.mode = mode
			var m *accessModel
			rapid.Check(t, func(rt *rapid.T) {
				opened := m
				if opened == nil {
					opened = newAccessModel(t, provider, limits)
				}
				m = nil
				opened.run(rt)
				m = opened
			})
		})
	}
}

func TestAccessesModel(t *testing.T) { eachWithLayers(t, accessesOn) }

func TestAccessesModelWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		if withinHost(t, "accesses", "^TestAccessesModelWithinHost$") {
			accessesOn(t, "efa")
		}
	})
}

func (m *accessModel) run(t *rapid.T) {
	for _, s := range m.sides {
		m.openRegion(t, s, true)
	}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 21).Draw(t, "step") {
		case 0:
			m.settle(t)
		case 1:
			m.openRegion(t, m.side(t), false)
		case 2:
			m.closeRegion(t, m.side(t))
		case 3:
			m.tickets(t)
		case 4:
			m.impossible(t)
		case 5:
			m.flush(t, m.side(t))
		case 20:
			m.forbidden(t)
		case 21:
			m.later(t)
		case 6, 7, 8, 9, 10:
			m.atomic(t)
		default:
			m.access(t)
		}
	}
	m.settle(t)
	for _, s := range m.sides {
		for len(s.regions) > 0 {
			require.NoError(t, s.regions[0].Close())
			s.regions = s.regions[1:]
		}
	}
}
