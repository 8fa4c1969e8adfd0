package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/cmd/weft/internal/chart"
	"github.com/weft-go/weft/cmd/weft/internal/survey"
	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/bench"
)

type benchCommand struct {
	All        suiteCommand      `cmd:"" default:"withargs" help:"Measure all of weft's targets beside their baselines: what weft bench does without a command, with these flags."`
	Collective collectiveCommand `cmd:"" help:"Measure the collectives beside Open MPI's, and beside what the network allows."`
}

type collectiveCommand struct {
	Provider    string        `default:"shm" placeholder:"NAME" help:"The provider to measure (shm)."`
	Ranks       []int         `default:"2,4,8" placeholder:"N" help:"Numbers of ranks (2,4,8)."`
	Sizes       []string      `default:"8,4K,1M,16M" placeholder:"BYTES" help:"What one rank gives to another (8,4K,1M,16M)."`
	Collectives []string      `placeholder:"NAME" help:"Which collectives; without it all."`
	Rounds      int           `default:"5" placeholder:"N" help:"How often all is measured in turn, at least 5 times."`
	Time        time.Duration `default:"100ms" help:"How long each case is measured in each round, about."`
	Tune        bool          `help:"Measure each algorithm, and print a table of which is the fastest where."`
	Simulate    string        `placeholder:"WHERE" help:"here: say beside each algorithm what the simulator makes of it. efa: only reckon what each would cost there."`
	Network     string        `placeholder:"SETTINGS" help:"With --simulate efa: what is other than there, such as latency=13us,bandwidth=12.5e9,ranks=8,links=32 (ranks and links per node)."`
	Arena       bool          `help:"Have weft's ranks keep their data in an arena, from which and to which much data is not copied."`
	JSON        string        `placeholder:"FILE" help:"Write the results to a file, too."`
	Plot        []string      `sep:"none" placeholder:"FILE" help:"Draw the results to a .svg or .png; may be repeated."`
}

const (
	simulateHere = "here"
	simulateEFA  = "efa"
	// mostMeasured is how many ranks a machine may have to bear.
	mostMeasured = 256
	// mostWhole is the most for which the simulator looks at all ranks, and not at one node.
	mostWhole = 256
)

// config looks at all that was asked for before anything is started.
func (c *collectiveCommand) config() (survey.Config, error) {
	config := survey.Config{
		Provider: c.Provider, Rounds: c.Rounds, Time: c.Time, Simulate: c.Simulate == simulateHere,
		Arena: c.Arena, Algorithms: c.Tune || c.Simulate != "", Command: []string{"weft", "rank"},
	}
	fail := func(format string, args ...any) (survey.Config, error) {
		return config, &usageError{fmt.Sprintf(format, args...)}
	}
	mostRanks, reckoned := mostMeasured, c.Simulate == simulateEFA
	perNode := 1
	if reckoned {
		network, err := survey.ParseNetwork(c.Simulate, c.Network)
		if err != nil {
			return fail("--network: %v", err)
		}
		mostRanks, perNode = schedule.MaxSize, max(network.RanksPerNode, 1)
	}
	switch {
	case c.Simulate != "" && c.Simulate != simulateHere && c.Simulate != simulateEFA:
		return fail("--simulate is %q, it must be here or efa", c.Simulate)
	case len(c.Ranks) == 0:
		return fail("--ranks has no number")
	case len(c.Sizes) == 0:
		return fail("--sizes has no size")
	case c.Network != "" && !reckoned:
		return fail("--network is for --simulate efa")
	case c.Rounds < bench.LeastRounds:
		return fail("--rounds is %d, it must be at least %d, for a median", c.Rounds, bench.LeastRounds)
	case c.Time <= 0 || c.Time > time.Minute:
		return fail("--time is %v, it must be from above 0 to 1m", c.Time)
	}
	for _, n := range c.Ranks {
		if n < 2 || n > mostRanks {
			return fail("--ranks is %d, it must be from 2 to %d", n, mostRanks)
		}
		switch {
		case !reckoned || n <= mostWhole:
		case n%perNode != 0:
			return fail("--ranks is %d, above %d it must be a multiple of %d, the ranks of a node", n, mostWhole, perNode)
		case perNode > mostWhole:
			return fail("--network has %d ranks in a node, it must be up to %d where --ranks is more than that", perNode, mostWhole)
		}
	}
	for _, text := range c.Sizes {
		bytes, err := survey.ParseSize(text)
		if err != nil {
			return fail("--sizes is %q, %v", text, err)
		}
		config.Sizes = append(config.Sizes, bytes)
	}
	for _, name := range c.Collectives {
		kind, err := schedule.ParseCollective(name)
		if err != nil {
			return fail("--collectives is %q, there are %s", name, collectiveNames())
		}
		config.Collectives = append(config.Collectives, kind)
	}
	if len(config.Collectives) == 0 {
		config.Collectives = schedule.Collectives()
	}
	for _, file := range c.Plot {
		if err := chart.Check(file); err != nil {
			return fail("--plot: %v", err)
		}
	}
	config.Ranks = ascending(c.Ranks)
	config.Sizes = ascending(config.Sizes)
	config.Collectives = ascending(config.Collectives)
	config.Memory = availableMemory() / 2 >> 20 << 20 // as it is printed
	return config, nil
}

func ascending[T int | schedule.Collective](values []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

func collectiveNames() string {
	var names []string
	for _, kind := range schedule.Collectives() {
		names = append(names, kind.String())
	}
	return strings.Join(names, ", ")
}

// Run measures, or reckons.
func (c *collectiveCommand) Run(t *terminal) error {
	if c.Simulate == simulateEFA {
		if err := t.refuse("is for what is measured, and --simulate efa measures nothing", "provider", "rounds", "time", "tune", "arena"); err != nil {
			return err
		}
	}
	config, err := c.config()
	if err != nil {
		return err
	}
	outputs := []namedFile{{"--json", c.JSON}}
	for _, file := range c.Plot {
		outputs = append(outputs, namedFile{"--plot", file})
	}
	if err := checkOutputs(outputs); err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	var b steps
	config.Progress = b.show
	var report *survey.Report
	if c.Simulate == simulateEFA {
		report, err = survey.Reckon(ctx, config, c.Simulate, c.Network)
	} else {
		// Rather than by a rank that fails.
		if _, err := fabric.Choose(fabric.Preference{Providers: []string{c.Provider}, Require: true, Logger: t.logger}); err != nil {
			return err
		}
		report, err = survey.Run(ctx, config)
	}
	b.finish()
	if report == nil {
		return err
	}
	return errors.Join(err, c.tell(t, report))
}

// tell writes and prints what came of it. The files are first: whoever reads what is
// printed may go away.
func (c *collectiveCommand) tell(t *terminal, report *survey.Report) error {
	var err error
	var choices []collective.Choice
	if c.Tune {
		choices, err = report.Choices()
		for _, line := range choices {
			report.Table = append(report.Table, line.String())
		}
	}
	if c.JSON != "" {
		if failed := report.Write(c.JSON); failed != nil {
			err = fmt.Errorf("cannot write --json: %w", failed)
		}
	}
	for _, file := range c.Plot {
		if failed := report.Sheet().Write(file); failed != nil {
			err = errors.Join(err, fmt.Errorf("cannot draw --plot %q: %w", file, failed))
		}
	}
	err = errors.Join(err, report.Print(t.stdout))
	if c.Tune {
		fmt.Fprintln(t.stdout)
		err = errors.Join(err, survey.PrintChoices(t.stdout, choices))
	}
	if n := report.Failures(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d measurements failed; the table says why", n, len(report.Results)))
	}
	return err
}

// availableMemory is what programs may have on this machine, in bytes, or 0 if it does not
// say.
func availableMemory() int {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) >= 2 && string(fields[0]) == "MemAvailable:" {
			kilobytes, _ := strconv.Atoi(string(fields[1]))
			return kilobytes << 10
		}
	}
	return 0
}
