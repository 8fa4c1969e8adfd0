package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-go/weft/internal/bench"
)

//go:embed c/*.c c/*.h
var twinSource embed.FS

// tools are the programs that benchmarks run.
type tools struct {
	folder string
	twin   []string // the C sides
	weft   []string // the Go sides: this program
	// profile is the beginning of the names of profiles that weft is to write,
	// empty for none.
	profile string
}

// newTools builds the C twins, with the compiler and pkg-config that cgo uses.
// close removes them.
func newTools(ctx context.Context) (t *tools, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t = &tools{weft: []string{self, sideCommand}}
	if t.folder, err = os.MkdirTemp("", "weft-bench-"); err != nil {
		return nil, err
	}
	program := filepath.Join(t.folder, "twin")
	if err := buildTwin(ctx, t.folder, program); err != nil {
		t.close()
		return nil, fmt.Errorf("building the C twins: %w", err)
	}
	t.twin = []string{program}
	return t, nil
}

func (t *tools) close() { os.RemoveAll(t.folder) }

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
		cflags, sources, []string{"-o", program}, libs,
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
