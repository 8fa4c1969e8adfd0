package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of go test -json; see go doc test2json and go help
// buildjson.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events, which have no Package
	Test       string
	Elapsed    float64
	Output     string
}

// report reads the events of a run from what is written to it.
type report struct {
	out      io.Writer
	line     []byte // the beginning of a line whose end was not written yet
	packages map[string]*packageRun

	// only, if it is set, is what a test that passed must have in its name to count,
	// as a part between slashes: -run=/^efa$ also runs tests that have no such subtest.
	only   string
	others []others

	passed, failed int
	skips          []skip
}

// packageRun is a package whose tests are running.
type packageRun struct {
	output []string
	tests  map[string]*testRun
	order  []string
}

type testRun struct {
	action string // pass, fail, skip; empty while it runs
	output []string
}

// verdict of a test that has not ended is a failure, for it is only asked when
// its package has: a panic, a timeout or an exit cut it off.
func (t *testRun) verdict() string {
	if t.action == "" {
		return "fail"
	}
	return t.action
}

// skip stands for the tests of a package that were skipped for one reason.
type skip struct {
	where, first, reason string
	count                int
}

// others are the tests of a package that passed, and none of them with report.only.
type others struct {
	where string
	tests []string
}

func newReport(out io.Writer) *report {
	return &report{out: out, packages: map[string]*packageRun{}}
}

// Write takes any piece of the event stream.
func (r *report) Write(p []byte) (int, error) {
	r.line = append(r.line, p...)
	for {
		line, rest, found := bytes.Cut(r.line, []byte("\n"))
		if !found {
			return len(p), nil
		}
		r.read(line)
		r.line = rest
	}
}

// read takes one line. What is no event, a crash of go test itself for one, is
// shown as it is.
func (r *report) read(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		fmt.Fprintf(r.out, "%s\n", line)
		return
	}
	if e.Package == "" {
		fmt.Fprint(r.out, e.Output) // of the compiler
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &packageRun{tests: map[string]*testRun{}}
		r.packages[e.Package] = p
	}
	if e.Test == "" {
		switch e.Action {
		case "output":
			p.output = append(p.output, e.Output)
		case "pass", "fail", "skip":
			delete(r.packages, e.Package)
			r.end(e.Package, e.Action, e.Elapsed, p)
		}
		return
	}
	t := p.tests[e.Test]
	if t == nil {
		t = &testRun{}
		p.tests[e.Test] = t
		p.order = append(p.order, e.Test)
	}
	switch e.Action {
	case "output":
		t.output = append(t.output, e.Output)
	case "pass":
		t.action, t.output = e.Action, nil
	case "fail", "skip":
		t.action = e.Action
	}
}

// end counts and shows a package that is done. A test with subtests counts only
// as these, unless it has a verdict of its own that none of them has.
func (r *report) end(name, action string, elapsed float64, p *packageRun) {
	below := map[string]map[string]bool{} // the verdicts of a test's subtests
	for _, test := range p.order {
		for i := range test {
			if test[i] != '/' {
				continue
			}
			if below[test[:i]] == nil {
				below[test[:i]] = map[string]bool{}
			}
			below[test[:i]][p.tests[test].verdict()] = true
		}
	}
	var without []string
	for _, test := range p.order {
		t := p.tests[test]
		verdict := t.verdict()
		if subtests := below[test]; subtests[verdict] || subtests != nil && verdict == "pass" {
			continue
		}
		switch verdict {
		case "pass":
			if r.only == "" || slices.Contains(strings.Split(test, "/"), r.only) {
				r.passed++
			} else {
				without = append(without, test)
			}
		case "fail":
			r.failed++
		case "skip":
			r.skip(name, test, reason(t.output))
		}
	}

	if len(without) > 0 {
		r.others = append(r.others, others{name, without})
	}

	switch action {
	case "pass":
		fmt.Fprintf(r.out, "ok    %s %.1fs\n", name, elapsed)
	case "skip":
		fmt.Fprintf(r.out, "-     %s has no tests\n", name)
	case "fail":
		r.showFailure(name, elapsed, p)
	}
}

func (r *report) showFailure(name string, elapsed float64, p *packageRun) {
	failures := 0
	for _, test := range p.order {
		t := p.tests[test]
		if t.verdict() != "fail" {
			continue
		}
		failures++
		for _, line := range t.output {
			if !strings.HasPrefix(line, "=== ") {
				fmt.Fprint(r.out, line)
			}
		}
		if t.action == "" {
			fmt.Fprintf(r.out, "--- FAIL: %s did not finish\n", test)
		}
	}
	if failures == 0 {
		r.failed++ // the package did not build, or failed outside its tests
	}
	for _, line := range p.output {
		if line != "FAIL\n" && line != "PASS\n" && !strings.HasPrefix(line, "FAIL\t") {
			fmt.Fprint(r.out, line)
		}
	}
	fmt.Fprintf(r.out, "FAIL  %s %.1fs\n", name, elapsed)
}

func (r *report) skip(where, test, reason string) {
	for i := range r.skips {
		if s := &r.skips[i]; s.where == where && s.reason == reason {
			s.count++
			return
		}
	}
	r.skips = append(r.skips, skip{where: where, first: test, reason: reason, count: 1})
}

// reason is what a skipped test said, in one line.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

// finish says how the run ended and whether it passed: nothing failed, and
// something ran. runFailed is the verdict of go test.
func (r *report) finish(runFailed bool) bool {
	if len(r.line) > 0 {
		r.read(r.line)
	}
	for _, name := range slices.Sorted(maps.Keys(r.packages)) {
		r.end(name, "fail", 0, r.packages[name])
	}
	skipped := 0
	for _, s := range r.skips {
		skipped += s.count
	}
	if skipped > 0 {
		fmt.Fprintf(r.out, "skipped %d:\n", skipped)
	}
	for _, s := range r.skips {
		more := ""
		if s.count > 1 {
			more = fmt.Sprintf(" and %d more", s.count-1)
		}
		fmt.Fprintf(r.out, "  %s: %s%s: %s\n", s.where, s.first, more, s.reason)
	}
	if len(r.others) > 0 {
		fmt.Fprintf(r.out, "not counted, for they have no test of %s:\n", r.only)
	}
	for _, o := range r.others {
		fmt.Fprintf(r.out, "  %s: %s\n", o.where, strings.Join(o.tests, ", "))
	}
	if r.passed+r.failed+skipped == 0 {
		fmt.Fprintln(r.out, "no test ran")
		runFailed = true
	}
	if runFailed && r.failed == 0 {
		r.failed++ // go test failed before or after all packages
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, skipped)
	return r.failed == 0
}
