package fabric_test

import (
	"testing"

	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
)

// Of udp, weft uses datagrams only.
func TestConformance(t *testing.T) {
	providers := []fabrictest.Provider{
		{Name: "udp", Source: "127.0.0.1", Areas: []string{"eq", "dgram"}},
		{Name: "net", Source: "127.0.0.1"},
	}
	for _, name := range testenv.Providers() {
		p := fabrictest.Provider{Name: name, Source: sourceOn(name)}
		if name == "efa" {
			p.Fabric = "efa"
		}
		providers = append(providers, p)
	}
	for _, p := range providers {
		t.Run(p.Name, func(t *testing.T) { fabrictest.Conformance(t, p) })
	}
}
