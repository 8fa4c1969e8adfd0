// Command weft carries files and folders between machines over libfabric, and
// says what a machine can use and how long messages take.
//
//	weft recv --dir DIR              receive into DIR
//	weft send FILE... HOST:PORT      send to a weft recv
//	weft ping --serve                answer pings
//	weft ping HOST:PORT              measure the latency to a weft ping --serve
//	weft info                        what this machine can use, and why
//	weft doctor                      what keeps this machine from using EFA
//	weft run -n N -- COMMAND         run a job of N processes on this machine
//	weft bench                       measure weft beside C, Open MPI and Go's TCP
//	weft bench collective            measure what ranks do together on this machine
//
// Without --listen, recv and ping --serve listen on 127.0.0.1:7465, which
// only programs on the same machine can reach. Port 0 takes a free port; the
// first line on stdout says which.
//
// Whoever can connect can send. With --key-file, only who has the same secret
// can; with --tls-cert, --tls-key and --tls-ca, the two sides know each other by
// certificates. The files themselves are not encrypted on their way.
//
// With --metrics, recv and ping --serve have their counts at http://HOST:PORT/metrics, for
// Prometheus, until they end; docs/metrics.md says what they mean.
//
// Results go to stdout, as text or with --json as one JSON object a line;
// everything else goes to stderr. An error is one line that begins with
// "weft:". The exit codes are
//
//	0    all is done
//	1    the work failed; the message says which part
//	2    wrong usage
//	3    no usable provider; for weft doctor, EFA cannot be used
//	4    the peer cannot be reached, was lost, or is not a fitting weft
//	5    verification failed: what arrived is not what was sent
//	6    weft doctor has warnings, and nothing that keeps EFA from being used
//	130  interrupted before the work was done
//
// but weft run has that of the rank that failed first (128 and its number for a
// signal), 124 where --timeout has passed, and 126 or 127 for a command that cannot
// be started or is not there.
//
// The processes of weft run are told by WEFT_RANK, WEFT_SIZE, WEFT_LOCAL_RANK and
// WEFT_STORE who they are and where they find each other, as package bootstrap
// reads it, and by RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT in
// the way of torchrun. What they print is printed by whole lines with the rank in
// front; lines longer than 64 KiB in pieces, with a + there. They read nothing.
// Signals are passed on to them; a second one that ends programs kills them. When
// one fails, or weft run ends in any way, the others end, with all that is in their
// process groups.
//
// weft bench runs weft and its baselines in turn, in processes of their own: the same calls in
// C, which it compiles with cc and pkg-config, libfabric's fi_pingpong, Open MPI and Go's TCP.
// What is not on this machine is told as absent. It prints a table, writes JSON and a page of
// HTML with plots if asked to, and with --compare says what has changed significantly since an
// earlier run, or between two. What it has measured when it is interrupted, it still writes;
// and so does weft bench collective.
//
// weft bench collective starts jobs of ranks on this machine, in rounds, beside the same
// calls of Open MPI where there is one, and beside what a message and a byte take two of the
// ranks: its table has medians, and ratios with those of the single rounds behind them.
// Calls follow each other; where ranks can leave one before all have begun, they meet before
// each, and what counts is the rank that is in it for the longest. The --sizes of a gather,
// scatter, allgather, reduce-scatter or alltoall are those of the block of one rank.
//
// A receiver replaces files of the same name when the new one is whole and
// verified, and writes nowhere but below DIR. Names, permission bits and
// modification times are kept; owners, set-user-ID and the like are not. Links
// and special files within a folder are left out, and counted. A file that is
// not whole yet is called .weft-*.part; a receiver that is killed leaves that,
// and it can be removed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/weft-go/weft/internal/bench/suite"
)

const description = `Carry files between machines over libfabric, and see what a machine can use.

The exit codes are

  0    all is done
  1    the work failed; the message says which part
  2    wrong usage
  3    no usable provider; for weft doctor, EFA cannot be used
  4    the peer cannot be reached, was lost, or is not a fitting weft
  5    verification failed: what arrived is not what was sent
  6    weft doctor has warnings, and nothing that keeps EFA from being used
  130  interrupted before the work was done

but weft run has that of the rank that failed first (128 and its number for a
signal), 124 where --timeout has passed, and 126 or 127 for a command that
cannot be started or is not there.`

// commandLine is the whole of it.
type commandLine struct {
	Recv    recvCommand   `cmd:"" help:"Receive files and folders."`
	Send    sendCommand   `cmd:"" help:"Send files and folders to a weft recv."`
	Ping    pingCommand   `cmd:"" help:"Measure the latency of messages."`
	Info    infoCommand   `cmd:"" help:"Show what this machine can use, what would be chosen, and why."`
	Doctor  doctorCommand `cmd:"" help:"Say what keeps this machine from using EFA, and what to do about it."`
	Ask     askCommand    `cmd:"" hidden:"" help:"Ask libfabric what it has, for weft doctor."`
	Run     runCommand    `cmd:"" help:"Run a command as the ranks of a job on this machine."`
	Bench   benchCommand  `cmd:"" help:"Measure weft beside C, Open MPI and Go's TCP on this machine."`
	Keep    keepCommand   `cmd:"" hidden:"" help:"End the job of a weft run that is gone."`
	Verbose bool          `short:"v" help:"Log what is chosen and done to stderr."`

	Version kong.VersionFlag `help:"Print the versions of weft and of libfabric."`
}

// terminal is what a command works with beside its flags.
type terminal struct {
	stdout, stderr io.Writer
	logger         *slog.Logger
	level          slog.LevelVar
	// given are the names of the flags on the command line.
	given []string
}

// warn lets warnings through. They are for servers: where there is one peer,
// the error that ends the command says it all.
func (t *terminal) warn() { t.level.Set(min(t.level.Level(), slog.LevelWarn)) }

// refuse is a usage error if one of these flags was given, which would be ignored.
func (t *terminal) refuse(why string, flags ...string) error {
	for _, name := range flags {
		if slices.Contains(t.given, name) {
			return &usageError{fmt.Sprintf("--%s %s", name, why)}
		}
	}
	return nil
}

func main() {
	suite.PlayPart()
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	t := &terminal{stdout: os.Stdout, stderr: os.Stderr}
	err := t.run(args)
	if err != nil {
		fmt.Fprintln(t.stderr, "weft: "+err.Error())
	}
	return exitCode(err)
}

func newParser(line *commandLine, stdout, stderr io.Writer) (*kong.Kong, error) {
	return kong.New(line, kong.Name("weft"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Help(help), kong.Vars{"version": version()})
}

func (t *terminal) run(args []string) error {
	var line commandLine
	parser, err := newParser(&line, t.stdout, t.stderr)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return usageOf(err)
	}
	for _, p := range parsed.Path {
		if p.Flag != nil {
			t.given = append(t.given, p.Flag.Name)
		}
	}
	t.level.Set(slog.LevelError)
	if line.Verbose {
		t.level.Set(slog.LevelDebug)
	}
	t.logger = slog.New(slog.NewTextHandler(t.stderr, &slog.HandlerOptions{Level: &t.level}))
	// Also for what does not take a logger.
	slog.SetDefault(t.logger)
	return parsed.Run(t)
}

// help is kong's, but for the arguments of send: kong has no name for a list
// that ends in something else.
func help(options kong.HelpOptions, parsed *kong.Context) error {
	var text strings.Builder
	stdout := parsed.Stdout
	parsed.Stdout = &text
	options.Compact = true
	err := kong.DefaultHelpPrinter(options, parsed)
	parsed.Stdout = stdout
	// Both are equally long, or the columns would shift.
	fixed := strings.ReplaceAll(text.String(), "[<file-host-port> ...]", "<file> ... <host:port>")
	_, writeErr := io.WriteString(stdout, fixed)
	return errors.Join(err, writeErr)
}

// usageOf says which part of the command's help to look at.
func usageOf(err error) error {
	help := "weft --help"
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		if node := parse.Context.Selected(); node != nil {
			help = node.FullPath() + " --help"
		}
	}
	return &usageError{fmt.Sprintf("%v; see %s", err, help)}
}

// stopSignals end a command in order. SIGHUP is one of them, or the end of a
// login session would leave half a file and names in /dev/shm; where it is
// ignored, as under nohup, it stays so.
func stopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// interruptible returns a context that one of stopSignals ends with
// errInterrupted. A second signal kills, as it would by default.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, stopSignals()...)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(context.Canceled)
	}
}
