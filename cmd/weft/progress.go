package main

import (
	"os"
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
