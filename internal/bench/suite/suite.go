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

// NoMatchError says that no benchmark has a name that matches, or that none that has writes
// profiles.
type NoMatchError struct {
	Pattern string
	Example string // a name that there is
	// Profiles are what was asked for, and are not written by what matches.
	Profiles bool
}

func (e *NoMatchError) Error() string {
	if e.Profiles {
		return fmt.Sprintf("no benchmark that matches %q writes profiles, such as %q does", e.Pattern, e.Example)
	}
	return fmt.Sprintf("no benchmark matches %q, such as %q does", e.Pattern, e.Example)
}

// Names are those of the benchmarks that match; nil is all. The error is a *NoMatchError.
func Names(match *regexp.Regexp, quick bool) (names []string, err error) {
	chosen, err := Config{Match: match, Quick: quick}.choose()
	for _, b := range chosen {
		names = append(names, b.name())
	}
	return names, err
}

// choose returns what to measure, or a *NoMatchError.
func (c Config) choose() ([]benchmark, error) {
	all := benchmarks(c.Quick)
	if c.Match == nil {
		return all, nil
	}
	none := &NoMatchError{Pattern: c.Match.String(), Example: all[0].name()}
	all = slices.DeleteFunc(all, func(b benchmark) bool { return !c.Match.MatchString(b.name()) })
	none.Profiles = len(all) > 0
	if len(all) == 0 || c.Profile != "" && !slices.ContainsFunc(all, benchmark.hasProfile) {
		return nil, none
	}
	return all, nil
}

// Run measures until it is done or the context ends, which the report says. Without a report
// the error is a *NoMatchError, or about the folders that it needs, or the cause of a context
// that ended before anything was measured; with one it is about profiles that could not be
// written.
func Run(ctx context.Context, c Config) (*report.Report, error) {
	chosen, err := c.choose()
	if err != nil {
		return nil, err
	}
	if c.Profile != "" {
		if err := tryFolder(c.Profile); err != nil {
			return nil, fmt.Errorf("cannot write profiles: %w", err)
		}
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
	err = c.measure(ctx, t, chosen, document)
	if document.Interrupted && !slices.ContainsFunc(document.Results, wasTried) {
		return nil, context.Cause(ctx)
	}
	document.Seconds = time.Since(document.Start).Seconds()
	return document, err
}

// wasTried says whether a result tells something about this run, and not only about the
// machine.
func wasTried(r report.Result) bool { return r.NotHere == "" }

// tryFolder makes a folder that is not there, and says whether files can be made in it.
func tryFolder(name string) error {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(name, "")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// measure fills in the results of what was chosen. The error is about profiles.
func (c Config) measure(ctx context.Context, t *tools, chosen []benchmark, document *report.Report) error {
	var failures []error
	for i, b := range chosen {
		if c.Profile != "" && !b.hasProfile() {
			document.Unprofiled = append(document.Unprofiled, b.name())
		}
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
		if ctx.Err() == nil && c.Profile != "" && b.hasProfile() && result.Failure == "" && result.NotHere == "" {
			// A profile that an interrupt has ended did not fail.
			if err := b.profile(ctx, t, c.Profile); err != nil && ctx.Err() == nil {
				failures = append(failures, fmt.Errorf("profile of %s: %w", b.name(), err))
			}
		}
		if ctx.Err() != nil {
			document.Interrupted = true
			break
		}
	}
	return errors.Join(failures...)
}
