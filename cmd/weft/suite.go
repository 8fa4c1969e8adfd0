package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/report"
	"github.com/weft-go/weft/internal/bench/suite"
)

type suiteCommand struct {
	Match   string `name:"run" placeholder:"REGEXP" help:"Only the benchmarks whose name matches."`
	Rounds  *int   `placeholder:"N" help:"How often each is measured in turn with its baselines, at least 5 times (7; 5 with --quick)."`
	Quick   bool   `help:"Fewer benchmarks with fewer messages, for a look of some minutes; the report says so."`
	Names   bool   `help:"Only print the names of the benchmarks."`
	JSON    string `placeholder:"FILE" help:"Write the results to a file, too."`
	HTML    string `placeholder:"FILE" help:"Write a page with tables and plots, which needs nothing else."`
	Profile string `placeholder:"FOLDER" help:"After the rounds have weft run once more, and write profiles; not of P7, which is work of one process."`
	Compare string `placeholder:"OLD" help:"Say what has changed since the run in this JSON file."`
	File    string `arg:"" optional:"" placeholder:"NEW.json" help:"A run that was written, to be printed or compared; then nothing is measured."`
}

// Run measures, or compares what was measured.
func (c *suiteCommand) Run(t *terminal) error {
	match, err := regexp.Compile(c.Match)
	rounds := 7
	switch {
	case c.Rounds != nil:
		rounds = *c.Rounds
	case c.Quick:
		rounds = bench.LeastRounds
	}
	var ignored error
	switch {
	case c.File != "":
		ignored = t.refuse(fmt.Sprintf("is for what is measured, and %q has been", c.File), "run", "rounds", "quick", "names", "profile", "json")
	case c.Names:
		ignored = t.refuse("is for what is measured, and --names measures nothing", "rounds", "json", "html", "compare", "profile")
	}
	switch {
	case ignored != nil:
		return ignored
	case err != nil:
		return &usageError{fmt.Sprintf("--run: %v", err)}
	case rounds < bench.LeastRounds:
		return &usageError{fmt.Sprintf("--rounds is %d, it must be at least %d, for a median", rounds, bench.LeastRounds)}
	}
	if err := checkOutputs(
		[]namedFile{{"--json", c.JSON}, {"--html", c.HTML}},
		namedFile{"--compare", c.Compare}, namedFile{"NEW.json", c.File},
	); err != nil {
		return err
	}
	var before *report.Report
	if c.Compare != "" {
		if before, err = report.Read(c.Compare); err != nil {
			return fmt.Errorf("cannot compare: %w", err)
		}
	}
	if c.File != "" {
		after, err := report.Read(c.File)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return &usageError{fmt.Sprintf("%q is neither collective nor the file of a run; see weft bench --help", c.File)}
		case err != nil:
			return err
		}
		return c.tell(t, after, before)
	}
	if c.Names {
		names, err := suite.Names(match, c.Quick)
		if err != nil {
			return noMatch(err)
		}
		_, err = fmt.Fprintln(t.stdout, strings.Join(names, "\n"))
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	var b steps
	after, err := suite.Run(ctx, suite.Config{
		Match: match, Rounds: rounds, Quick: c.Quick, Profile: c.Profile, Command: commandText(os.Args),
		Progress: b.show,
		Finished: func(all, done int, r *report.Result) {
			if !onTerminal() {
				fmt.Fprintf(t.stderr, "[%d/%d] %s\n", done, all, r.Brief())
			}
		},
	})
	b.finish()
	if after == nil {
		return noMatch(err)
	}
	err = errors.Join(err, c.tell(t, after, before))
	switch n := after.Failures(); {
	case after.Interrupted:
		return errors.Join(errInterrupted, err)
	case n > 0:
		return errors.Join(fmt.Errorf("%d of %d benchmarks failed; the table says why", n, len(after.Results)), err)
	}
	return err
}

// noMatch has what is wrong with --run told as that, and leaves other errors alone.
func noMatch(err error) error {
	var none *suite.NoMatchError
	if errors.As(err, &none) {
		return &usageError{fmt.Sprintf("--run: %v; --names prints all", err)}
	}
	return err
}

// commandText is a command line as a shell takes it.
func commandText(args []string) string {
	var words []string
	for _, a := range args {
		if strings.ContainsFunc(a, func(r rune) bool { return strings.ContainsRune(" \t\n|&;<>()$`\\\"'*?[]#~!{}", r) }) || a == "" {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// tell writes and prints a run, and what has changed since the one before, if there is
// one. The files are first: whoever reads what is printed may go away.
func (c *suiteCommand) tell(t *terminal, after, before *report.Report) error {
	var changes *report.Changes
	if before != nil {
		compared := report.Compare(before, after)
		changes = &compared
	}
	var err error
	if c.JSON != "" {
		if failed := after.Write(c.JSON); failed != nil {
			err = fmt.Errorf("cannot write --json: %w", failed)
		}
	}
	if c.HTML != "" {
		if failed := after.WriteHTML(c.HTML, changes); failed != nil {
			err = errors.Join(err, fmt.Errorf("cannot write --html: %w", failed))
		}
	}
	if c.File == "" || before == nil {
		err = errors.Join(err, after.Print(t.stdout))
	}
	if changes != nil {
		err = errors.Join(err, changes.Print(t.stdout))
	}
	return err
}
