package suite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/job"
	"github.com/weft-go/weft/internal/bench/report"
)

//go:embed c/*.c c/*.h
var twinSource embed.FS

// tools are the programs that benchmarks run.
type tools struct {
	folder string
	twin   []string // the C sides; nil where they cannot be built, for this reason
	noTwin error
	weft   []string // the Go sides: this program
	// profile is the beginning of the names of profiles that weft is to write,
	// empty for none.
	profile string
	// lacking is what was found out about providers: why one cannot be used.
	lacking map[string]error
}

// newTools builds the C twins, with the compiler and pkg-config that cgo uses, where there
// are these. close removes them.
func newTools(ctx context.Context) (t *tools, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t = &tools{weft: []string{self, sideCommand}, lacking: map[string]error{}}
	if t.folder, err = os.MkdirTemp("", "weft-bench-"); err != nil {
		return nil, err
	}
	program := filepath.Join(t.folder, "twin")
	if err := buildTwin(ctx, t.folder, program); err != nil {
		t.noTwin = bench.NotHereError{Err: fmt.Errorf("the C twins cannot be built: %w", err)}
	} else {
		t.twin = []string{program}
	}
	return t, nil
}

func (t *tools) close() { os.RemoveAll(t.folder) }

// usable says why a provider cannot be measured here, if so. Work of this process alone has
// none.
func (t *tools) usable(ctx context.Context, provider string) error {
	if provider == "" {
		return nil
	}
	why, known := t.lacking[provider]
	if !known {
		why = tryProvider(ctx, provider)
		t.lacking[provider] = why
	}
	return why
}

func tryProvider(ctx context.Context, provider string) error {
	if provider == "efa" {
		launcher, err := withEFA()
		if err == nil {
			_, err = bench.Output(ctx, append(launcher, "true"))
		}
		return err
	}
	_, err := fabric.Choose(fabric.Preference{
		Providers: []string{provider}, Require: true, Source: ipSource(provider), Logger: slog.New(slog.DiscardHandler),
	})
	return err
}

// describe says of the programs of the baselines which they are, or why they are absent.
func (t *tools) describe(ctx context.Context) []report.Tool {
	tool := func(name string, missing error, version ...string) report.Tool {
		if missing != nil {
			return report.Tool{Name: name, NotHere: missing.Error()}
		}
		text, err := bench.Output(ctx, version)
		if err != nil {
			return report.Tool{Name: name, Version: bench.Unknown}
		}
		text, _, _ = strings.Cut(text, "\n")
		return report.Tool{Name: name, Version: text}
	}
	_, noPingPong := exec.LookPath(fiPingpongProgram)
	pingPong := report.Tool{Name: fiPingpongProgram, Version: "of libfabric " + fabric.LibraryVersion().String()}
	if noPingPong != nil {
		pingPong = report.Tool{Name: fiPingpongProgram, NotHere: noPingPong.Error()}
	}
	return []report.Tool{
		tool("C", t.noTwin, append(words("CC", "cc"), "--version")...),
		pingPong,
		tool("Open MPI", job.MissingMPI(), "mpirun", "--allow-run-as-root", "--version"),
		{Name: "Go net TCP", Version: "of " + runtime.Version()},
	}
}

func buildTwin(ctx context.Context, folder, program string) error {
	if err := os.CopyFS(folder, twinSource); err != nil {
		return err
	}
	sources, err := fs.Glob(twinSource, "c/*.c")
	if err != nil {
		return err
	}
	for i := range sources {
		sources[i] = filepath.Join(folder, filepath.FromSlash(sources[i]))
	}
	cflags, err := libfabricFlags(ctx, "--cflags")
	if err != nil {
		return err
	}
	libs, err := libfabricFlags(ctx, "--libs")
	if err != nil {
		return err
	}
	compile := slices.Concat(
		words("CC", "cc"), []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"},
		cflags, sources, []string{"-o", program}, libs, []string{"-lm"},
	)
	_, err = bench.Output(ctx, compile)
	return err
}

func libfabricFlags(ctx context.Context, which string) ([]string, error) {
	text, err := bench.Output(ctx, append(words("PKG_CONFIG", "pkg-config"), which, "libfabric"))
	return strings.Fields(text), err
}

// words is a command from the environment, which may hold flags, or its default.
func words(variable, otherwise string) []string {
	if w := strings.Fields(os.Getenv(variable)); len(w) > 0 {
		return w
	}
	return []string{otherwise}
}
