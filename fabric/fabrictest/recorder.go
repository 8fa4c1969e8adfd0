package fabrictest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorder is a test whose end is written down, and does not become that of the
// test it is part of.
type recorder struct {
	testing.TB
	name string
	end  context.CancelFunc
	ctx  context.Context

	mu              sync.Mutex
	failed, skipped bool
	lines           []string
	faults          []string
	cleanups        []func()
	children        []*recorder
}

// record runs something as a test of its own, and returns when it has ended,
// cleanups included.
func record(tb testing.TB, run func(tb testing.TB)) *recorder {
	r := &recorder{TB: tb, name: tb.Name()}
	r.ctx, r.end = context.WithCancel(context.Background())
	r.finish(func() { run(r) })
	r.end()
	for cleanup := r.cleanup(); cleanup != nil; cleanup = r.cleanup() {
		r.finish(cleanup)
	}
	return r
}

// finish waits for what may end its goroutine.
func (r *recorder) finish(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	<-ended
}

func (r *recorder) cleanup() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cleanups) == 0 {
		return nil
	}
	last := r.cleanups[len(r.cleanups)-1]
	r.cleanups = r.cleanups[:len(r.cleanups)-1]
	return last
}

// run runs a test within this one.
func (r *recorder) run(name string, run func(tb testing.TB)) {
	child := record(r, run)
	child.name = r.name + "/" + name
	r.mu.Lock()
	defer r.mu.Unlock()
	r.children = append(r.children, child)
	r.failed = r.failed || child.Failed()
}

// said is what the test and those within it have said.
func (r *recorder) said() []string {
	return r.all(func(r *recorder) []string { return r.lines })
}

// failures is what the test and those within it have said as they failed.
func (r *recorder) failures() []string {
	return r.all(func(r *recorder) []string { return r.faults })
}

func (r *recorder) all(of func(*recorder) []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := slices.Clone(of(r))
	for _, c := range r.children {
		lines = append(lines, c.all(of)...)
	}
	return lines
}

// allSkipped says that nothing of the test has run to its end.
func (r *recorder) allSkipped() bool {
	return r.Skipped() || len(r.children) > 0 && !slices.ContainsFunc(r.children, func(c *recorder) bool { return !c.allSkipped() })
}

func (r *recorder) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, strings.TrimRight(line, "\n"))
}

func (r *recorder) fault(line string) {
	r.note(line)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.faults = append(r.faults, line)
}

func (r *recorder) Name() string             { return r.name }
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Helper()                  {}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Log(args ...any)                 { r.note(fmt.Sprintln(args...)) }
func (r *recorder) Logf(format string, args ...any) { r.note(fmt.Sprintf(format, args...)) }

func (r *recorder) Error(args ...any)                 { r.fault(fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.fault(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) {
	r.Log(args...)
	r.SkipNow()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.Logf(format, args...)
	r.SkipNow()
}
