package fabric_test

import (
	"testing"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// What machines have without special hardware. Of udp, weft uses datagrams only.
func TestConformance(t *testing.T) {
	for _, p := range []fabrictest.Provider{
		{Name: "sockets", Source: "127.0.0.1"},
		{Name: "tcp", Source: "127.0.0.1"},
		// With a source, shm takes it for the endpoint's name.
		{Name: "shm"},
		{Name: "udp", Source: "127.0.0.1", Areas: []string{"eq", "dgram"}},
		{Name: "net", Source: "127.0.0.1"},
	} {
		t.Run(p.Name, func(t *testing.T) { fabrictest.Conformance(t, p) })
	}
}
