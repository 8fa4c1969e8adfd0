package fabrictest

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// everyMemoryMode is what the cases can live with: stations register what they
// post where that is asked for, and nothing here guesses addresses or keys.
const everyMemoryMode = fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys

// deviationPatience is how long something is waited for that is known not to
// come.
const deviationPatience = 500 * time.Millisecond

// trial is one run of a case on a provider.
type trial struct {
	testing.TB
	provider   Provider
	deviations []Deviation
	name       string
	// fault, in tests of the suite, makes what an endpoint does wrong.
	fault func(turner) turner
	// registers has stations register what they post even where the provider
	// does not ask for it.
	registers bool
}

// sub runs a case within this one.
func (t *trial) sub(name string, run func(t *trial)) {
	t.Helper()
	child := *t
	child.name = path.Join(t.name, name)
	begin := func(tb testing.TB) {
		child.TB = tb
		child.begin(run)
	}
	switch parent := t.TB.(type) {
	case *testing.T:
		parent.Run(name, func(t *testing.T) { begin(t) })
	case *recorder:
		parent.run(name, begin)
	default:
		t.Fatalf("a case cannot run within a %T", parent)
	}
}

// begin runs the case, if it is no deviation. A deviation must fail, and as it
// is known to.
func (t *trial) begin(run func(t *trial)) {
	d := t.deviation()
	if d == nil {
		run(t)
		return
	}
	what, reason := t.provider.Name+" deviates", errors.New(d.Reason+" (libfabric "+fabric.LibraryVersion().String()+")")
	if d.Untried {
		testenv.Need(t, what, reason)
		return
	}
	attempt := *t
	attempt.deviations, attempt.provider.Patience = nil, min(t.provider.Patience, deviationPatience)
	r := record(t, func(tb testing.TB) {
		attempt.TB = tb
		run(&attempt)
	})
	for _, line := range r.said() {
		t.Log(line)
	}
	switch {
	case r.Failed() && !d.explains(r.failures()):
		t.Errorf("%s fails with libfabric %s, but not as a deviation that says %q: %s", t.name, fabric.LibraryVersion(), d.Says, d.Reason)
	case r.Failed():
		testenv.Need(t, what, reason)
	case r.allSkipped():
		what, answer, _ := strings.Cut(strings.Join(r.said(), "; "), ": ")
		testenv.Need(t, what, errors.New(answer))
	default:
		t.Errorf("%s passes with libfabric %s, so this is no deviation any more: %s", t.name, fabric.LibraryVersion(), d.Reason)
	}
}

func (t *trial) deviation() *Deviation {
	for i := range t.deviations {
		if d := &t.deviations[i]; d.covers(t.name, fabric.LibraryVersion()) {
			return d
		}
	}
	return nil
}

// need goes on if the provider can do something, and otherwise ends the case
// with the provider's answer.
func (t *trial) need(what string, err error) {
	t.Helper()
	testenv.Need(t, t.provider.Name+" with "+what, err)
}

// hints are the wishes for endpoints of a type on the provider.
func (t *trial) hints(endpoint fabric.EndpointType, caps fabric.Capabilities) fabric.Hints {
	return fabric.Hints{
		Provider: t.provider.Name, Fabric: t.provider.Fabric, Domain: t.provider.Domain, Source: t.provider.Source,
		Endpoint: endpoint, Capabilities: caps, MemoryMode: everyMemoryMode,
		OrderedSends: endpoint == fabric.ReliableDatagram, OneThread: true,
	}
}

// discover returns what answers the hints first; where nothing does, the
// provider cannot run the case.
func (t *trial) discover(h fabric.Hints) *fabric.Info {
	t.Helper()
	infos, err := fabric.Discover(h)
	what := h.Capabilities.String()
	if h.Endpoint != 0 {
		what = h.Endpoint.String() + ", " + what
	}
	if h.MemoryMode != everyMemoryMode {
		what += ", memory mode " + h.MemoryMode.String()
	}
	t.need(what, err)
	return infos[0]
}

// What most cases ask for.
const (
	bothMessages = fabric.Messages | fabric.TaggedMessages
	remoteAccess = bothMessages | fabric.RemoteMemory
)

// soon is a context for as long as the case has patience.
func (t *trial) soon() context.Context {
	t.Helper()
	return within(t, t.provider.Patience)
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// until tries something again and again, with the number of the try, until it is
// done. Time alone is no measure on a machine that is busy with other things, so
// it is tried a good many times in any case.
func (t *trial) until(what string, done func(try int) bool) {
	t.Helper()
	const enough = 100
	deadline := time.Now().Add(t.provider.Patience)
	for try := 0; !done(try); try++ {
		if try > enough && time.Now().After(deadline) {
			t.Fatalf("no %s in %v", what, t.provider.Patience)
		}
	}
}
