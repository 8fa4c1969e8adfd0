package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/fabric"
)

// memory is in bytes, by purpose.
type memory = map[string]int64

var memoryMetrics = []metric[memory]{{
	"weft_memory_bytes", "Memory outside the Go heap that weft has allocated, by purpose.",
	prometheus.GaugeValue,
	[]string{"purpose"},
	func(m *memory, tell func(float64, ...string)) {
		for purpose, bytes := range *m {
			tell(float64(bytes), purpose)
		}
	},
}}

// NewMemoryCollector collects what the process has allocated outside the Go heap
// (fabric.MemoryInUse), and, as shared caches, what other ranks map (collective.SharedMemory).
func NewMemoryCollector() prometheus.Collector {
	return newCollector(memoryMetrics, nil, func() memory {
		m := fabric.MemoryInUse()
		if n := collective.SharedMemory(); n > 0 {
			m["shared caches"] = n
		}
		return m
	})
}
