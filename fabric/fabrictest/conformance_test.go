package fabrictest

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A deviation is skipped with its reason, and one that passes is a failure.
func TestDeviations(t *testing.T) {
	needSockets(t)
	lie := func(on turner) turner {
		return faulty{turner: on, completions: func(c *fabric.Completion) { c.Len++ }}
	}
	with := func(d Deviation) func(*trial) {
		d.Reason = "it counts one byte too many"
		return func(x *trial) { x.deviations = []Deviation{d} }
	}
	next := fabric.LibraryVersion()
	next.Minor++

	r := try(t, "rdm/untagged", lie, with(Deviation{Case: "rdm/untagged"}))
	require.False(t, r.Failed(), "%q", r.said())
	require.True(t, r.allSkipped())
	require.Contains(t, strings.Join(r.said(), "\n"), "sockets deviates: it counts one byte too many (libfabric "+fabric.LibraryVersion().String()+")")

	// It must say what it is known to say.
	lines := strings.Join(r.said(), "\n")
	r = try(t, "rdm/untagged", lie, with(Deviation{Case: "rdm/untagged", Says: []string{"no such words", lines[:8]}}))
	require.False(t, r.Failed(), "%q", r.said())
	r = try(t, "rdm/untagged", lie, with(Deviation{Case: "rdm/untagged", Says: []string{"no such words"}}))
	require.True(t, r.Failed(), "%q", r.said())
	require.Contains(t, strings.Join(r.said(), "\n"), "but not as a deviation")

	r = try(t, "rdm/untagged", nil, with(Deviation{Case: "rdm/*"}))
	require.True(t, r.Failed())
	require.Contains(t, strings.Join(r.said(), "\n"), "rdm/untagged passes with libfabric")

	r = try(t, "rdm/untagged", lie, with(Deviation{Case: "rdm/untagged", From: next}))
	require.True(t, r.Failed(), "it is of a later version")

	ran := false
	r = try(t, "rdm/untagged", func(on turner) turner { ran = true; return on }, with(Deviation{Case: "rdm/untagged", Untried: true}))
	require.True(t, r.allSkipped())
	require.False(t, ran)

	// Only one case within a case.
	r = try(t, "cq/error of one", func(on turner) turner {
		return faulty{turner: on, completions: func(c *fabric.Completion) {
			if c.Err != nil && !errors.Is(c.Err, fabric.ErrCanceled) {
				c.Err = nil
			}
		}}
	}, with(Deviation{Case: "cq/error of one/truncated"}))
	require.False(t, r.Failed(), "%q", r.said())
	require.False(t, r.allSkipped(), "the other case has run")

	// What cannot run is not a deviation.
	r = try(t, "mr/host memory as a device's", nil, with(Deviation{Case: "mr/*"}))
	require.True(t, r.allSkipped())
	require.NotContains(t, strings.Join(r.said(), "\n"), "deviates")
}

func TestDeviationsOfVersions(t *testing.T) {
	v := func(major, minor int) fabric.Version { return fabric.Version{Major: major, Minor: minor} }
	for _, c := range []struct {
		d    Deviation
		name string
		at   fabric.Version
		want bool
	}{
		{Deviation{Case: "a/b"}, "a/b", v(1, 17), true},
		{Deviation{Case: "a/b"}, "a/b/c", v(1, 17), false},
		{Deviation{Case: "a/*"}, "a/b", v(2, 1), true},
		{Deviation{Case: "a/b", Before: v(2, 0)}, "a/b", v(1, 22), true},
		{Deviation{Case: "a/b", Before: v(2, 0)}, "a/b", v(2, 0), false},
		{Deviation{Case: "a/b", From: v(2, 0)}, "a/b", v(2, 0), true},
		{Deviation{Case: "a/b", From: v(2, 0)}, "a/b", v(1, 22), false},
		{Deviation{Case: "a/b", From: v(1, 18), Before: v(1, 20)}, "a/b", v(1, 19), true},
		{Deviation{Case: "a/b", From: v(1, 18), Before: v(1, 20)}, "a/b", v(1, 20), false},
	} {
		require.Equal(t, c.want, c.d.covers(c.name, c.at), "%+v at %v", c.d, c.at)
	}
}

// What the suite knows is about cases that exist.
func TestKnownDeviations(t *testing.T) {
	require.NotEmpty(t, KnownDeviations("tcp"))
	require.Equal(t, KnownDeviations("shm"), KnownDeviations("shm;ofi_rxm"))
	require.NotEqual(t, KnownDeviations("tcp"), KnownDeviations("tcp;ofi_rxm"), "it has a list of its own")
	require.Empty(t, KnownDeviations("nonesuch"))
	var names []string
	for _, a := range areas {
		for _, c := range a.cases {
			names = append(names, a.name+"/"+c.name, a.name+"/"+c.name+"/*", a.name+"/"+c.name+"/*/*")
		}
	}
	for provider, list := range known {
		for _, d := range list {
			require.NotEmpty(t, d.Reason, provider)
			require.True(t, d.Untried || len(d.Says) > 0, "%s: %s: any failure would do", provider, d.Case)
			found := false
			for _, name := range names {
				covered, err := path.Match(d.Case, name)
				require.NoError(t, err)
				part, err := path.Match(name, d.Case)
				require.NoError(t, err)
				found = found || covered || part
			}
			require.True(t, found, "%s: %s", provider, d.Case)
		}
	}
}

func TestProvidersThatCannotBe(t *testing.T) {
	for want, p := range map[string]Provider{
		"no Name":       {},
		"no area xyz":   {Name: "tcp", Areas: []string{"rma", "xyz"}},
		"and a Reason":  {Name: "tcp", Deviations: []Deviation{{Case: "rma/*"}}},
		"needs a Case":  {Name: "tcp", Deviations: []Deviation{{Reason: "slow"}}},
		"be a pattern,": {Name: "tcp", Deviations: []Deviation{{Case: "[x", Reason: "slow"}}},
	} {
		require.Contains(t, p.check(), want)
	}
	require.Empty(t, (&Provider{Name: "efa", Areas: []string{"rma", "cm-data"}}).check())
}

// Names are subtests' names, and what -run and the table of deviations go by.
func TestCaseNames(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range areas {
		require.Regexp(t, `^[a-z-]+$`, a.name)
		require.NotEmpty(t, a.cases)
		for _, c := range a.cases {
			name := a.name + "/" + c.name
			require.False(t, seen[name], name)
			require.Regexp(t, `^[a-z-]+/[a-z0-9' ]+$`, name)
			seen[name] = true
		}
	}
}
