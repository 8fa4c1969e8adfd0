// Command bench is weft bench with fewer flags, for work on weft: it compiles faster. See
// docs/PERFORMANCE.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/report"
	"github.com/weft-go/weft/internal/bench/suite"
)

func main() {
	suite.PlayPart()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	pattern := flag.String("run", "", "only the benchmarks whose name matches this `regexp`")
	rounds := flag.Int("rounds", suite.DefaultRounds, fmt.Sprintf("`number` of rounds, at least %d", bench.LeastRounds))
	folder := flag.String("profile", "", "after the rounds, run weft once more and write profiles of both sides to this `folder`")
	file := flag.String("json", "", "write the results to this `file` too")
	flag.Parse()
	match, err := regexp.Compile(*pattern)
	switch {
	case err != nil:
		return fmt.Errorf("-run: %w", err)
	case *rounds < bench.LeastRounds:
		return fmt.Errorf("-rounds is %d, it must be at least %d, for a median", *rounds, bench.LeastRounds)
	case flag.NArg() > 0:
		return fmt.Errorf("%q is not a flag", flag.Arg(0))
	}
	document, err := suite.Run(ctx, suite.Config{
		Match: match, Rounds: *rounds, Profile: *folder, Command: strings.Join(os.Args, " "),
		Finished: func(all, done int, r *report.Result) { fmt.Fprintf(os.Stderr, "[%d/%d] %s\n", done, all, r.Brief()) },
	})
	if document == nil {
		return err
	}
	errs := []error{err, document.Print(os.Stdout)}
	if *file != "" {
		errs = append(errs, document.Write(*file))
	}
	if n := document.Failures(); n > 0 {
		errs = append(errs, fmt.Errorf("%d benchmarks failed", n))
	}
	if document.Interrupted {
		errs = append(errs, errors.New("interrupted"))
	}
	return errors.Join(errs...)
}
