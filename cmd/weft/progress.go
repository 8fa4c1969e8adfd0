package main

import (
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar is a progress bar, or nothing where stderr is not a terminal.
type bar struct{ b *progressbar.ProgressBar }

func onTerminal() bool { return term.IsTerminal(int(os.Stderr.Fd())) }

// newBar makes one for as many bytes; -1 where that is not known.
func newBar(bytes int64) bar {
	if !onTerminal() {
		return bar{}
	}
	return bar{progressbar.NewOptions64(bytes,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(),
	)}
}

func (b bar) add(bytes int) {
	if b.b != nil {
		_ = b.b.Add(bytes)
	}
}

// finish removes the bar.
func (b bar) finish() {
	if b.b != nil {
		_ = b.b.Finish()
		_ = b.b.Clear()
	}
}

// steps is a progress bar of steps that have names, or nothing where stderr is not a
// terminal.
type steps struct {
	mu sync.Mutex
	b  *progressbar.ProgressBar
}

// show is called as a step begins, by any goroutine.
func (s *steps) show(steps, done int, what string) {
	if !onTerminal() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.b == nil {
		s.b = progressbar.NewOptions(steps,
			progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionFullWidth(),
			progressbar.OptionClearOnFinish(),
		)
	}
	s.b.Describe(what)
	_ = s.b.Set(done)
}

// finish removes the bar.
func (s *steps) finish() { bar{s.b}.finish() }
