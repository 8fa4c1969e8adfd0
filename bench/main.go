// Command bench measures weft against the same work done in C, on this machine,
// and prints the ratios that weft's targets are about.
//
// Each benchmark runs as rounds that alternate with its baselines, because only
// what runs under the same load can be compared. A target that is missed is
// reported and no failure; a benchmark that cannot run is one.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/weft-go/weft/internal/bench"
)

func main() {
	playPart()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runBenchmarks(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// playPart does not return in a process that has a part in a benchmark: a Go side, or a
// rank, is this program, started by itself.
func playPart() {
	switch {
	case len(os.Args) < 2:
	case os.Args[1] == rankCommand:
		os.Exit(rankMain(os.Args[2:], os.Stdout, os.Stderr))
	case os.Args[1] == sideCommand:
		os.Exit(sideMain(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
}

// runBenchmarks is the program without the process around it.
func runBenchmarks(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	pattern := flags.String("run", "", "only the benchmarks whose name matches this `regexp`")
	rounds := flags.Int("rounds", 7, fmt.Sprintf("`number` of rounds, at least %d", bench.LeastRounds))
	folder := flags.String("profile", "", "after the rounds, run weft once more and write profiles of both sides to this `folder`")
	file := flags.String("json", "", "write the results to this `file` too")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	match, err := regexp.Compile(*pattern)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "bench: -run: %v\n", err)
		return 2
	case *rounds < bench.LeastRounds:
		fmt.Fprintf(stderr, "bench: -rounds %d: a median needs at least %d\n", *rounds, bench.LeastRounds)
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "bench: %q is not a flag\n", flags.Arg(0))
		return 2
	}
	chosen := matching(benchmarks(), match)
	if len(chosen) == 0 {
		fmt.Fprintf(stderr, "bench: no benchmark matches %q; there are:\n", *pattern)
		for _, b := range benchmarks() {
			fmt.Fprintf(stderr, "  %s\n", b.name())
		}
		return 2
	}

	tools, err := newTools(ctx)
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	defer tools.close()
	if *folder != "" {
		if err := os.MkdirAll(*folder, 0o755); err != nil {
			fmt.Fprintf(stderr, "bench: -profile: %v\n", err)
			return 1
		}
	}
	document := report{Environment: bench.Describe(ctx), Rounds: *rounds}
	document.Environment.Print(stdout)
	code := 0
	for _, b := range chosen {
		result := b.run(ctx, tools, *rounds)
		result.print(stdout)
		if result.failed() {
			code = 1
		} else if *folder != "" {
			files, err := b.profile(ctx, tools, *folder)
			if err != nil {
				fmt.Fprintf(stderr, "bench: profile of %s: %v\n", b.name(), err)
				code = 1
			} else {
				fmt.Fprintf(stdout, "%s: profiles in %s\n", b.name(), files)
			}
		}
		document.Results = append(document.Results, result)
	}
	if *file != "" {
		if err := document.write(*file); err != nil {
			fmt.Fprintf(stderr, "bench: %v\n", err)
			return 1
		}
	}
	return code
}
