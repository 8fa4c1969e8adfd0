// Package suite measures weft beside the same work done in C, by Open MPI and by package
// net, on this machine.
//
// Each benchmark runs as rounds that alternate with its baselines, because only what runs
// under the same load can be compared. A target that is missed is reported and no failure; a
// benchmark that cannot run is one, unless this machine lacks what it needs.
package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/report"
)

// Config says what to measure.
type Config struct {
	// Match is for the names of benchmarks; nil is all.
	Match *regexp.Regexp
	// Rounds is how often each is measured, bench.LeastRounds at least.
	Rounds int
	// Quick takes fewer benchmarks, each with fewer messages.
	Quick bool
	// Profile is a folder to which weft writes profiles of both sides, in a run after the
	// rounds; empty for none.
	Profile string
	// Command is the command line, for the report.
	Command string
	// Progress hears of each round that begins how many there are and what is measured, and
	// Finished of each benchmark. Both may be nil.
	Progress func(rounds, done int, what string)
	Finished func(benchmarks, done int, result *report.Result)
}

// NoMatchError says that no benchmark has a name that matches.
type NoMatchError struct {
	Pattern string
	Example string // a name that there is
}

func (e *NoMatchError) Error() string {
	return fmt.Sprintf("no benchmark matches %q, such as %q does", e.Pattern, e.Example)
}

// Names are those of all benchmarks.
func Names(quick bool) (names []string) {
	for _, b := range benchmarks(quick) {
		names = append(names, b.name())
	}
	return names
}

// Run measures until it is done or the context ends, which the report says. Without a report
// the error is a *NoMatchError, or about the folders that it needs; with one it is about
// profiles that could not be written.
func Run(ctx context.Context, c Config) (*report.Report, error) {
	chosen := benchmarks(c.Quick)
	if c.Match != nil {
		chosen = slices.DeleteFunc(chosen, func(b benchmark) bool { return !c.Match.MatchString(b.name()) })
	}
	if len(chosen) == 0 {
		return nil, &NoMatchError{c.Match.String(), Names(c.Quick)[0]}
	}
	document := &report.Report{
		Environment: bench.Describe(ctx), Command: c.Command, Start: time.Now(), Rounds: c.Rounds, Quick: c.Quick,
	}
	t, err := newTools(ctx)
	if err != nil {
		return nil, err
	}
	defer t.close()
	document.Tools = t.describe(ctx)
	if c.Profile != "" {
		if err := os.MkdirAll(c.Profile, 0o755); err != nil {
			return nil, err
		}
	}
	var failures []error
	for i, b := range chosen {
		result := b.run(ctx, t, c.Rounds, func(round int) {
			if c.Progress != nil {
				c.Progress(len(chosen)*c.Rounds, i*c.Rounds+round, b.name())
			}
		})
		if result != nil {
			document.Results = append(document.Results, *result)
			if c.Finished != nil {
				c.Finished(len(chosen), i+1, result)
			}
		}
		if ctx.Err() != nil {
			document.Interrupted = true
			break
		}
		if c.Profile != "" && result.Failure == "" && result.NotHere == "" {
			if err := b.profile(ctx, t, c.Profile); err != nil {
				failures = append(failures, fmt.Errorf("profile of %s: %w", b.name(), err))
			}
		}
	}
	document.Seconds = time.Since(document.Start).Seconds()
	return document, errors.Join(failures...)
}
