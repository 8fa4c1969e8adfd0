package weft_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/bootstrap"
)

// goBlock is a block of Go in a package of its own, or a fragment in that of all fragments.
type goBlock struct {
	block
	pkg  string // in the overlay
	name string // of the package, empty for a fragment
}

// Every block of Go in the documents is formatted, compiled and run.
func TestDocPrograms(t *testing.T) {
	dir := t.TempDir()
	overlay := map[string]string{}
	here, err := os.Getwd()
	require.NoError(t, err)
	add := func(pkg, file, source string) {
		// An overlay puts it into the module without touching the tree.
		path := filepath.Join(dir, pkg+"-"+file)
		require.NoError(t, os.WriteFile(path, []byte(source), 0o600))
		overlay[filepath.Join(here, "docblocks", pkg, file)] = path
	}

	var programs []goBlock
	var mains, tests, calls []string
	packageLine := regexp.MustCompile(`(?m)^package (\w+)$`)
	for _, b := range blocks(t) {
		if b.kind != "go" {
			continue
		}
		formatted, err := format.Source([]byte(b.text))
		require.NoError(t, err, b.where())
		require.Equal(t, string(formatted), b.text, "%s is not formatted", b.where())
		g := goBlock{block: b, pkg: fmt.Sprintf("block%d", len(overlay))}
		name := packageLine.FindStringSubmatch(b.text)
		switch {
		case name == nil:
			source, call, err := fragment(b, len(calls))
			require.NoError(t, err, b.where())
			add("fragments", fmt.Sprintf("fragment%d.go", len(calls)), source)
			calls = append(calls, call)
			continue
		case name[1] == "main":
			require.NotEmpty(t, b.notes["output"], "%s: say what it prints: <!-- output: ... -->", b.where())
			add(g.pkg, "main.go", b.text)
			mains = append(mains, "./docblocks/"+g.pkg)
		default:
			add(g.pkg, "block_test.go", b.text)
			tests = append(tests, "./docblocks/"+g.pkg)
		}
		g.name = name[1]
		programs = append(programs, g)
	}
	add("fragments", "main.go", "package main\n\nimport \"github.com/weft-go/weft/internal/doctest\"\n\nfunc main() { doctest.Main(\n"+strings.Join(calls, ",\n")+",\n) }\n")
	mains = append(mains, "./docblocks/fragments")

	text, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, text, 0o600))
	binaries := filepath.Join(dir, "bin") + "/"
	goCommand(t, append([]string{"build", "-overlay", overlayFile, "-o", binaries}, mains...)...)
	goCommand(t, append([]string{"test", "-c", "-overlay", overlayFile, "-vet=off", "-o", binaries}, tests...)...)

	t.Run("fragments", func(t *testing.T) {
		t.Parallel()
		printed, logged, err := runDocs(t, ofProgram, binaries+"fragments")
		require.NoError(t, err, "%s", logged)
		require.Contains(t, printed, fmt.Sprintf("%d fragments", len(calls)))
	})
	for _, g := range programs {
		t.Run(g.where(), func(t *testing.T) {
			t.Parallel()
			if g.name != "main" {
				printed, logged, err := runDocs(t, ofProgram, binaries+g.pkg+".test", "-test.v")
				require.NoError(t, err, "%s%s", printed, logged)
				require.Contains(t, printed, "\n--- PASS: ", "it has no test")
				require.NotContains(t, printed, "\n--- SKIP: ")
				return
			}
			require.Regexp(t, g.notes["output"], strings.TrimSuffix(runProgram(t, binaries+g.pkg, g.notes["ranks"]), "\n"))
		})
	}
}

// ofProgram is far more than a program in the documents needs.
const ofProgram = 3 * time.Minute

// runProgram returns what a program prints: as so many ranks of a job, if it is to be.
func runProgram(t *testing.T, command, ranks string) string {
	t.Helper()
	if ranks == "" {
		printed, logged, err := runDocs(t, ofProgram, command)
		require.NoError(t, err, "%s%s", printed, logged)
		return printed
	}
	size, err := strconv.Atoi(ranks)
	require.NoError(t, err)
	outputs := make([]struct {
		printed, logged string
		err             error
	}, size)
	var all sync.WaitGroup
	store := "file://" + t.TempDir()
	for rank := range outputs {
		all.Go(func() {
			o := &outputs[rank]
			member := bootstrap.Member{Rank: rank, Size: size, LocalRank: rank, LocalSize: size}
			o.printed, o.logged, o.err = runDocs(t, ofProgram, "env", append(member.Environment(store, nil), command)...)
		})
	}
	all.Wait()
	printed := ""
	for rank, o := range outputs {
		require.NoError(t, o.err, "rank %d: %s%s", rank, o.printed, o.logged)
		printed += o.printed
	}
	return printed
}

func goCommand(t *testing.T, arguments ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", arguments...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// runDocs runs what the documents have, with a bound that only what hangs can reach.
func runDocs(t *testing.T, patience time.Duration, command string, arguments ...string) (printed, logged string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, complaints bytes.Buffer
	p := exec.CommandContext(ctx, command, arguments...)
	p.Env = append(os.Environ(), "IPATH_NO_BACKTRACE=1")
	p.Stdout, p.Stderr = &out, &complaints
	// What it runs beside itself ends with it.
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.Cancel = func() error { return syscall.Kill(-p.Process.Pid, syscall.SIGKILL) }
	p.WaitDelay = 10 * time.Second
	err = p.Run()
	return out.String(), complaints.String(), err
}

// imports has the packages that fragments use.
var imports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "log": "log", "net": "net", "http": "net/http",
	"io": "io", "os": "os", "time": "time", "slog": "log/slog", "bytes": "bytes", "rand": "crypto/rand",
	"efa": module + "/efa", "fabric": module + "/fabric", "comm": module + "/comm",
	"collective": module + "/collective", "operator": module + "/collective/operator",
	"schedule": module + "/collective/schedule", "bootstrap": module + "/bootstrap",
	"fabrictest": module + "/fabric/fabrictest",
}

// settings have what a fragment gets, by the name of the function of internal/doctest that
// it is called by.
var settings = map[string]string{
	"":         "",
	"Launched": "",
	"Job":      ", job *bootstrap.Job",
	"World":    ", world *comm.Comm",
	"Conn":     ", c *efa.Conn",
	"Stream":   ", s *efa.Stream",
}

// fragment makes a function of a block, and the call of doctest that runs it. The block may
// leave alone what it declares.
func fragment(b block, number int) (source, call string, err error) {
	parameters, known := settings[b.notes["with"]]
	if !known {
		return "", "", fmt.Errorf("no such setting: %q", b.notes["with"])
	}
	here, err := os.Getwd()
	if err != nil {
		return "", "", err
	}
	// What the compiler says is about the page.
	text := fmt.Sprintf("%s\n//line %s/%s\n%s", b.notes["before"], here, b.where(), b.text)
	name := fmt.Sprintf("fragment%d", number)
	head := fmt.Sprintf("func %s(ctx context.Context%s) error {\n", name, parameters)
	file, err := parser.ParseFile(token.NewFileSet(), "", "package main\n"+head+text+"}\n", parser.SkipObjectResolution)
	if err != nil {
		return "", "", err
	}
	end := "return nil"
	for _, declared := range declaredIn(file.Decls[0].(*ast.FuncDecl).Body) {
		text += "_ = " + declared + "\n"
		if declared == "err" {
			end = "return err"
		}
	}
	used := map[string]bool{"context": true}
	for word := range imports {
		if regexp.MustCompile(`\b` + word + `\.[A-Z]`).MatchString(parameters + text) {
			used[word] = true
		}
	}
	source = "package main\n\n"
	for _, word := range slices.Sorted(maps.Keys(used)) {
		source += fmt.Sprintf("import %q\n", imports[word])
	}
	source += head + text + end + "\n}\n"
	with := b.notes["with"]
	if with == "" {
		with = "Plain"
	}
	return source, fmt.Sprintf("doctest.Fragment{Where: %q, Run: doctest.%s(%s)}", b.where(), with, name), nil
}

// declaredIn are the variables that a block declares itself.
func declaredIn(body *ast.BlockStmt) (names []string) {
	add := func(e ast.Expr) {
		if name, ok := e.(*ast.Ident); ok && name.Name != "_" && !slices.Contains(names, name.Name) {
			names = append(names, name.Name)
		}
	}
	for _, statement := range body.List {
		switch s := statement.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				for _, left := range s.Lhs {
					add(left)
				}
			}
		case *ast.DeclStmt:
			for _, spec := range s.Decl.(*ast.GenDecl).Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						add(name)
					}
				}
			}
		}
	}
	return names
}
