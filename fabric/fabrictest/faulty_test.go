package fabrictest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// try runs one case of the suite on sockets, on endpoints with a fault.
func try(t *testing.T, name string, fault func(turner) turner, more ...func(*trial)) *recorder {
	t.Helper()
	run := caseOf(t, name)
	return record(t, func(tb testing.TB) {
		x := newTrial(tb, Provider{Name: "sockets", Source: "127.0.0.1", Patience: 50 * time.Millisecond})
		x.fault = fault
		for _, change := range more {
			change(x)
		}
		x.sub(name, run)
	})
}

func caseOf(t *testing.T, name string) func(*trial) {
	t.Helper()
	of, rest, _ := strings.Cut(name, "/")
	for _, a := range areas {
		for _, c := range a.cases {
			if a.name == of && c.name == rest {
				return c.run
			}
		}
	}
	t.Fatalf("there is no case %q", name)
	return nil
}

func needSockets(t *testing.T) {
	t.Helper()
	_, err := fabric.Discover(fabric.Hints{Provider: "sockets", Source: "127.0.0.1"})
	testenv.Need(t, "sockets", err)
}

// faulty is an endpoint that changes what is posted, or what has become of it.
type faulty struct {
	turner
	posts       func(op *fabric.Op)
	posted      func(op *fabric.Op)
	completions func(c *fabric.Completion)
	twice       bool
}

func (f faulty) Turn(posts []fabric.Op, completions []fabric.Completion, spins int) (int, error) {
	return f.take(posts, completions, func(p []fabric.Op, c []fabric.Completion) (int, error) { return f.turner.Turn(p, c, spins) })
}

func (f faulty) TurnWait(posts []fabric.Op, completions []fabric.Completion, waitMS int) (int, error) {
	return f.take(posts, completions, func(p []fabric.Op, c []fabric.Completion) (int, error) { return f.turner.TurnWait(p, c, waitMS) })
}

func (f faulty) take(posts []fabric.Op, completions []fabric.Completion, turn func([]fabric.Op, []fabric.Completion) (int, error)) (int, error) {
	changed := slices.Clone(posts)
	for i := range changed {
		if f.posts != nil {
			f.posts(&changed[i])
		}
	}
	n, err := turn(changed, completions)
	for i := range posts {
		posts[i].Result, posts[i].Token, posts[i].Err = changed[i].Result, changed[i].Token, changed[i].Err
		if f.posted != nil {
			f.posted(&posts[i])
		}
	}
	for i := range n {
		if f.completions != nil {
			f.completions(&completions[i])
		}
	}
	if f.twice && n > 0 && n < len(completions) {
		completions[n] = completions[n-1]
		n++
	}
	return n, err
}

// spoil flips a bit of what is sent or written.
func spoil(op *fabric.Op) {
	switch op.Kind {
	case fabric.OpReceive, fabric.OpTaggedReceive, fabric.OpRead:
		return
	}
	switch {
	case len(op.Buf) > 0:
		op.Buf, op.Fixed = slices.Clone(op.Buf), false
		op.Buf[0] ^= 0x40
	case len(op.Vector) > 0:
		op.Vector = slices.Clone(op.Vector)
		op.Vector[0] = slices.Clone(op.Vector[0])
		op.Vector[0][0] ^= 0x40
	}
}

// The suite fails where an endpoint does something wrong: each fault, the cases
// that must notice it, and what one of them says.
func TestFaultsAreNoticed(t *testing.T) {
	needSockets(t)
	for _, f := range []struct {
		name  string
		fault faulty
		says  string
		cases []string
	}{
		{"a wrong bit", faulty{posts: spoil}, "", []string{
			"rdm/untagged", "rdm/tagged", "rdm/vectors", "rdm/many in flight", "rdm/many peers", "msg/messages both ways",
			"dgram/messages", "cq/separate queues", "tagged/peek", "tagged/claim", "tagged/discard", "unexpected/1000 in order",
			"cancel/some of several", "multi-recv/many in one", "inject/messages", "inject/longest", "inject/buffer is free",
			"rma/read and write", "rma/with immediate", "rma/inject", "rma/memory modes", "mr/registered messages", "mr/go memory",
			"mr/several buffers", "atomics/int8", "atomics/uint64", "atomics/float32", "atomics/complex64", "shared-ctx/receive",
			"shared-ctx/receive of connections", "scalable-ep/contexts", "scalable-ep/alias", "dom/many domains", "dom/two at once",
			"resource-management/sends", "resource-management/tagged receives", "poll/wait descriptor", "poll/blocking read",
		}},
		{"errors are kept quiet", faulty{completions: func(c *fabric.Completion) { c.Err = nil }}, "the error is <nil>", []string{
			"cq/error of one", "cq/truncated", "cancel/receive", "cancel/some of several", "tagged/peek", "scalable-ep/contexts",
		}},
		{"a refused access looks like a success", faulty{completions: func(c *fabric.Completion) { c.Err = nil }}, "no error where one must be", []string{
			"rma/refused with an error", "cntr/failed operation",
		}},
		{"completions come twice", faulty{twice: true}, "", []string{
			"rdm/untagged", "rdm/many in flight", "cancel/receive", "rma/read and write", "inject/messages", "resource-management/sends",
		}},
		{"one byte too many", faulty{completions: func(c *fabric.Completion) { c.Len++ }}, "", []string{
			"rdm/untagged", "cq/immediate", "inject/longest", "dgram/messages", "unexpected/1000 in reverse", "mr/registered messages",
		}},
		{"another's context", faulty{completions: func(c *fabric.Completion) { c.Context++ }}, "it is", []string{
			"rdm/tagged", "cancel/receive", "rma/read and write", "msg/messages both ways", "resource-management/receives",
		}},
		{"another kind", faulty{completions: func(c *fabric.Completion) { c.Kind = fabric.OpAtomic }}, "it is atomic, and not", []string{
			"rdm/untagged", "rma/read and write", "rma/with immediate",
		}},
		{"another's message", faulty{completions: func(c *fabric.Completion) { c.Source++ }}, "it is", []string{"rdm/untagged", "rdm/tagged", "rdm/many peers"}},
		{"no tag", faulty{completions: func(c *fabric.Completion) { c.Tag = 0 }}, "", []string{"rdm/tagged", "unexpected/1000 in order"}},
		{"no immediate", faulty{completions: func(c *fabric.Completion) { c.HasImmediate = false }}, "without immediate data", []string{"cq/immediate", "rma/with immediate"}},
		{"half an immediate", faulty{completions: func(c *fabric.Completion) { c.Immediate &= 0xff }}, "", []string{"cq/immediate", "rma/with immediate"}},
		{"one byte beside it", faulty{posts: func(op *fabric.Op) { op.Remote.Address++ }}, "", []string{"rma/read and write", "rma/memory modes", "mr/go memory", "atomics/int32"}},
		{"refusals are lost", faulty{posted: func(op *fabric.Op) { op.Result = fabric.Posted }}, "more operations than the queue has entries", []string{
			"resource-management/sends", "resource-management/tagged sends", "resource-management/receives", "resource-management/tagged receives",
		}},
		{"another operation", faulty{posts: func(op *fabric.Op) {
			if op.Atomic != nil && op.Atomic.Operation == fabric.LogicalOr {
				other := *op.Atomic
				other.Operation = fabric.LogicalAnd
				op.Atomic = &other
			}
		}}, "it is [", []string{"atomics/int8", "atomics/uint64", "atomics/float64"}},
		{"swapped when it must not be", faulty{posts: func(op *fabric.Op) {
			if op.Kind == fabric.OpCompare && op.Atomic.Operation == fabric.CompareSwapBelow {
				other := *op.Atomic
				other.Operation = fabric.CompareSwapAtMost
				op.Atomic = &other
			}
		}}, "it is [9], and not [5]", []string{"atomics/uint16", "atomics/int64"}},
	} {
		t.Run(f.name, func(t *testing.T) {
			for _, name := range f.cases {
				r := try(t, name, func(on turner) turner {
					with := f.fault
					with.turner = on
					return with
				})
				require.True(t, r.Failed(), "%s passes: %q", name, r.said())
				said := strings.Join(r.said(), "\n")
				// On a busy machine, what is wrong may not come in time at all.
				if !strings.Contains(said, "no completion in") {
					require.Contains(t, said, f.says, name)
				}
			}
		})
	}
}

// dead takes everything, and nothing ever comes of it.
type dead struct{ turner }

func (dead) Turn(posts []fabric.Op, _ []fabric.Completion, _ int) (int, error) {
	for i := range posts {
		posts[i].Result = fabric.Posted
	}
	return 0, nil
}

func (d dead) TurnWait(posts []fabric.Op, completions []fabric.Completion, _ int) (int, error) {
	return d.Turn(posts, completions, 0)
}

// No case passes on endpoints that do nothing, but those that post nothing.
func TestNothingPassesOnDeadEndpoints(t *testing.T) {
	needSockets(t)
	posts := func(name string) bool {
		of, _, _ := strings.Cut(name, "/")
		return name == "eq/of the domain" || !slices.Contains([]string{"getinfo", "av", "eq", "cm-data"}, of) && !slices.Contains([]string{
			"dgram/set name", "mr/register and close", "mr/keys", "cntr/by hand", "msg/nothing is left", "multi-recv/minimum",
			"scalable-ep/operation flags",
			// These post past the turns of the endpoint.
			"cntr/deferred messages", "cntr/deferred rma", "cntr/deferred atomics",
		}, name)
	}
	for _, a := range areas {
		for _, c := range a.cases {
			name := a.name + "/" + c.name
			patience := 5 * time.Millisecond
			if !posts(name) {
				patience = 30 * time.Second
			}
			r := try(t, name, func(on turner) turner { return dead{on} }, func(x *trial) { x.provider.Patience = patience })
			switch {
			case !posts(name):
				require.False(t, r.Failed(), "%s: %q", name, r.said())
			case !r.allSkipped():
				require.True(t, r.Failed(), "%s passes on an endpoint that does nothing", name)
			}
		}
	}
}

// Where a provider asks for it, what stations post is registered: the cases run
// as they do without.
func TestRegisteredStations(t *testing.T) {
	needSockets(t)
	for _, name := range []string{
		"rdm/untagged", "rdm/vectors", "rdm/many in flight", "rdm/many peers", "rma/read and write", "atomics/uint64", "atomics/float64",
		"multi-recv/longer than the rest", "resource-management/tagged receives", "msg/messages both ways", "dom/many domains",
	} {
		var registered int
		r := try(t, name, func(on turner) turner {
			return faulty{turner: on, posts: func(op *fabric.Op) {
				if op.Descriptor != 0 || len(op.Descriptors) > 0 {
					registered++
				}
			}}
		}, func(x *trial) { x.registers, x.provider.Patience = true, 30*time.Second })
		require.False(t, r.Failed(), "%s: %q", name, r.said())
		require.False(t, r.allSkipped(), "%s: %q", name, r.said())
		require.Positive(t, registered, "%s registered nothing", name)
	}
}
