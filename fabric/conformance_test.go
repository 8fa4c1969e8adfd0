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
	}
	if !testing.Short() {
		providers = append(providers, fabrictest.Provider{Name: "net", Source: "127.0.0.1"})
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

// What is posted together may say that more follows: the same comes of it, refused
// operations among others included, and nothing is left hanging. efa is left out, which
// before 2.7 forgets some, and has it on by itself from then on.
func TestBatchingConforms(t *testing.T) {
	for _, name := range testenv.Providers() {
		if name == "efa" || name == "sockets" && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			fabrictest.Conformance(t, fabrictest.Provider{
				Name: name, Source: sourceOn(name), Batching: true,
				Areas: []string{"rdm", "tagged", "cancel", "inject", "rma", "atomics", "resource-management"},
			})
		})
	}
}
