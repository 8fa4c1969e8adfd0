package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// least is the share in percent that must be bound.
const least = 95

// coverage is which functions are bound, and why others are not.
type coverage struct {
	version string
	entries []entry
	// newer are functions that are bound, and not in these headers.
	newer []entry
	// constants are the numbers of the headers.
	constants []constant
}

// entry is one function.
type entry struct {
	function
	bound  []string
	called bool
	reason *reason
}

// cover puts everything together.
func cover(version string, functions []function, s *sources, reasons []*reason) *coverage {
	c := &coverage{version: version}
	known := make(map[string]bool)
	for _, f := range functions {
		known[f.Name] = true
		e := entry{function: f, bound: s.bound[f.Name], called: s.called[f.Name]}
		if len(e.bound) == 0 {
			e.reason = reasonFor(f, reasons)
		}
		c.entries = append(c.entries, e)
	}
	for name, bound := range s.bound {
		if !known[name] {
			c.newer = append(c.newer, entry{function: function{Name: name}, bound: bound, called: s.called[name]})
		}
	}
	slices.SortFunc(c.newer, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// totals are numbers of functions.
type totals struct{ all, bound, deprecated, internal, leftOut, unexplained int }

func (c *coverage) totals(header string) (t totals) {
	for _, e := range c.entries {
		if header != "" && e.Header != header {
			continue
		}
		t.all++
		switch {
		case len(e.bound) > 0:
			t.bound++
		case e.reason == nil:
			t.unexplained++
		case e.reason.kind == deprecated:
			t.deprecated++
		case e.reason.kind == internal:
			t.internal++
		default:
			t.leftOut++
		}
	}
	return t
}

// share is the percentage that is bound of what counts.
func (t totals) share() float64 {
	counts := t.bound + t.leftOut + t.unexplained
	if counts == 0 {
		return 100
	}
	return 100 * float64(t.bound) / float64(counts)
}

func (c *coverage) headers() []string {
	var headers []string
	for _, e := range c.entries {
		if !slices.Contains(headers, e.Header) {
			headers = append(headers, e.Header)
		}
	}
	return headers
}

// documented is where the manual says that a function is deprecated.
var documented = regexp.MustCompile(`^\w+\(\d\) of \d+\.\d+: `)

// problems are what must not be.
func (c *coverage) problems() error {
	var problems []error
	for _, e := range slices.Concat(c.entries, c.newer) {
		switch {
		case len(e.bound) > 0 && !e.called:
			problems = append(problems, fmt.Errorf("%s claims to implement %s, which package cgo does not call", e.bound[0], e.Name))
		case len(e.bound) == 0 && e.reason == nil:
			problems = append(problems, fmt.Errorf("%s (%s) is not bound, and reasons.txt does not say why", e.Name, e.Header))
		case e.reason != nil && e.reason.kind == deprecated && !e.Deprecated && !documented.MatchString(e.reason.text):
			problems = append(problems, fmt.Errorf("%s (%s) is not marked deprecated, and reasons.txt does not say where the manual says so", e.Name, e.Header))
		}
	}
	if t := c.totals(""); t.share() < least {
		problems = append(problems, fmt.Errorf("%.1f %% is bound, where it should be %d %%", t.share(), least))
	}
	return errors.Join(append(problems, unexplained(c.constants))...)
}

// markdown is the document.
func (c *coverage) markdown() string {
	var b strings.Builder
	t := c.totals("")
	fmt.Fprintf(&b, `# How much of libfabric is bound

Written by `+"`go run ./scripts/coverage`"+` from the headers of libfabric %s, the
"Implements:" lines of packages cgo and fabric, and scripts/coverage/reasons.txt.

**%d functions: %d bound, %d deprecated, %d internal to providers, %d left out. Bound
of what is neither deprecated nor internal: %.1f %%.**

| Header | Functions | Bound | Deprecated | Internal | Left out | Share |
|---|--:|--:|--:|--:|--:|--:|
`, c.version, t.all, t.bound, t.deprecated, t.internal, t.leftOut+t.unexplained, t.share())
	for _, header := range c.headers() {
		t := c.totals(header)
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %s |\n", header,
			t.all, t.bound, t.deprecated, t.internal, t.leftOut+t.unexplained, t.percent())
	}
	for _, header := range c.headers() {
		fmt.Fprintf(&b, "\n## %s\n\n| Function | Bound in, or why not |\n|---|---|\n", header)
		for _, e := range c.entries {
			if e.Header == header {
				b.WriteString("| " + e.Name + " | " + e.verdict() + " |\n")
			}
		}
	}
	if len(c.newer) > 0 {
		b.WriteString("\n## Not in these headers\n\nBound for other versions of libfabric; here the calls are ErrNotSupported.\n\n" +
			"| Function | Bound in |\n|---|---|\n")
		for _, e := range c.newer {
			b.WriteString("| " + e.Name + " | " + e.verdict() + " |\n")
		}
	}
	b.WriteString(constantsMarkdown(c.constants))
	return b.String()
}

func (t totals) percent() string {
	if t.bound+t.leftOut+t.unexplained == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", t.share())
}

func (e entry) verdict() string {
	switch {
	case len(e.bound) > 0:
		return strings.Join(e.bound, ", ")
	case e.reason == nil:
		return "**not bound**"
	}
	return e.reason.kind + ": " + e.reason.text
}
