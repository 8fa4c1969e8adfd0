package fabrictest

import (
	"path"
	"slices"
	"testing"
	"time"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// Provider says what Conformance is to run on. Only Name is needed where the
// provider finds its device by itself.
type Provider struct {
	// Name is the provider's, as fi_info has it. Its utility layers are meant
	// too: "tcp" stands for "tcp;ofi_rxm" where that is what there is.
	Name string
	// Source is the host name or address that endpoints are bound to, such as
	// 127.0.0.1; empty leaves it to the provider.
	Source string
	// Fabric and Domain name one network and one device of several, as fi_info
	// has them: Fabric "efa" keeps "efa-direct" away.
	Fabric, Domain string
	// Areas are those to run, such as "rma"; none stands for all.
	Areas []string
	// Deviations are what the provider is known to do otherwise. They come
	// before those that the suite knows already; see [KnownDeviations].
	Deviations []Deviation
	// Batching has operations that are posted together carry FI_MORE
	// ([fabric.Endpoint.SetBatching]), all but the last of them. Some providers
	// forget them; those where it is on by itself do not need this.
	Batching bool
	// Patience is how long a case waits for what must come; zero stands for
	// 30 s. A deviation is waited for half a second at most.
	Patience time.Duration
}

// area is a group of cases about one thing, named after the program of
// libfabric's fabtests that is about it.
type area struct {
	name  string
	cases []named
}

type named struct {
	name string
	run  func(t *trial)
}

var areas = []area{
	{"getinfo", discoveryCases},
	{"av", addressCases},
	{"cq", completionCases},
	{"eq", eventCases},
	{"mr", regionCases},
	{"cntr", counterCases},
	{"dom", domainCases},
	{"rdm", messageCases},
	{"msg", connectionCases},
	{"dgram", datagramCases},
	{"tagged", peekCases},
	{"unexpected", unexpectedCases},
	{"cancel", cancelCases},
	{"multi-recv", multiReceiveCases},
	{"inject", injectCases},
	{"rma", remoteMemoryCases},
	{"atomics", atomicCases},
	{"shared-ctx", sharedContextCases},
	{"scalable-ep", scalableCases},
	{"resource-management", resourceCases},
	{"cm-data", connectionDataCases},
	{"poll", pollCases},
}

// Conformance runs the functional cases of libfabric's fabtests on a provider,
// through package fabric: what a program may rely on there has a case here. Each
// is a subtest, named by its area: "rma/read and write". A test of a provider is
//
//	func TestMain(m *testing.M) { fabrictest.Main(m) }
//
//	func TestEFA(t *testing.T) {
//		fabrictest.Conformance(t, fabrictest.Provider{Name: "efa", Fabric: "efa"})
//	}
//
// A case that the provider cannot run is skipped, with the provider's own answer
// for a reason. That the provider is missing altogether is a skip too, and a
// failure where the environment variable WEFT_REQUIRE names it. A case that is a
// known deviation is run too, unless that is not safe, and skipped if it fails as
// it is known to; one that passes is a failure, for then the deviation is no
// longer one, and so is one that fails otherwise.
//
// All endpoints are in this process and on one device, and what they post is
// registered where the provider asks for that. The package's TestMain should call
// [Main], which fails on what is left open.
func Conformance(t *testing.T, p Provider) {
	t.Helper()
	if fault := p.check(); fault != "" {
		t.Fatal("fabrictest.Provider: " + fault)
	}
	_, err := fabric.Discover(fabric.Hints{
		Provider: p.Name, Fabric: p.Fabric, Domain: p.Domain, Source: p.Source, MemoryMode: everyMemoryMode,
	})
	testenv.Need(t, p.Name, err)
	newTrial(t, p).runAreas()
}

func newTrial(tb testing.TB, p Provider) *trial {
	if p.Patience == 0 {
		p.Patience = 30 * time.Second
	}
	return &trial{TB: tb, provider: p, deviations: append(slices.Clip(p.Deviations), KnownDeviations(p.Name)...)}
}

func (t *trial) runAreas() {
	for _, a := range areas {
		if len(t.provider.Areas) > 0 && !slices.Contains(t.provider.Areas, a.name) {
			continue
		}
		t.sub(a.name, func(t *trial) {
			for _, c := range a.cases {
				t.sub(c.name, c.run)
			}
		})
	}
}

// check says what is wrong with a provider's description.
func (p *Provider) check() string {
	if p.Name == "" {
		return "it has no Name; fi_info -l lists those of libfabric"
	}
	for _, name := range p.Areas {
		if !slices.ContainsFunc(areas, func(a area) bool { return a.name == name }) {
			return "there is no area " + name
		}
	}
	for _, d := range p.Deviations {
		if _, err := path.Match(d.Case, ""); err != nil || d.Case == "" || d.Reason == "" {
			return "a deviation needs a Case, which may be a pattern, and a Reason"
		}
	}
	return ""
}
