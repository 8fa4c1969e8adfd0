package operator_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

// What the compiler could not prove to be in bounds is checked before the loops of
// kernels and nowhere else: not in them, and not in what they call.
func TestKernelsHaveNoBoundsChecks(t *testing.T) {
	found := boundsChecks(t, ".")
	require.NotEmpty(t, found.before, "the compiler tells nothing")
	require.Empty(t, found.elsewhere)
}

// The test above sees what it is there for.
func TestBoundsChecksAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module checked\n\ngo 1.26\n",
		"kernel.go": `package checked

func Sum(dst, left, right []int) {
	left = left[:len(dst)]
	for i := range dst {
		dst[i] = left[i] + right[i]
	}
}

func first(list []int) int { return list[0] }
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	require.Equal(t, findings{before: []string{"kernel.go:4"}, elsewhere: []string{"kernel.go:6", "kernel.go:10"}}, boundsChecks(t, dir))
}

type findings struct {
	before    []string // in kernels, but not in a loop
	elsewhere []string
}

// boundsChecks compiles a package and says where its bounds checks are.
func boundsChecks(t *testing.T, dir string) (f findings) {
	t.Helper()
	_, err := exec.LookPath("go")
	testenv.Need(t, "go", err)
	build := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-d=ssa/check_bce", ".")
	build.Dir = dir
	// Without the experiments of the tests, but with their flags: all that this needs would be
	// built again without these.
	build.Env = append(os.Environ(), "GOEXPERIMENT=", "GOWORK=off")
	out, err := build.CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, err)

	// The compiler names files of other packages, whose code is inlined, by their paths.
	for _, line := range regexp.MustCompile(`(?m)^\./(\w+\.go):(\d+):\d+: Found Is`).FindAllStringSubmatch(string(out), -1) {
		number, err := strconv.Atoi(line[2])
		require.NoError(t, err)
		place := line[1] + ":" + line[2]
		list := &f.elsewhere
		if beforeLoops(t, filepath.Join(dir, line[1]), number) {
			list = &f.before
		}
		if !slices.Contains(*list, place) {
			*list = append(*list, place)
		}
	}
	return f
}

// beforeLoops says that a line is one of a kernel, a function of dst, left and right,
// but of no loop.
func beforeLoops(t *testing.T, file string, line int) bool {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, 0)
	require.NoError(t, err)
	kernel, loop := false, false
	ast.Inspect(parsed, func(node ast.Node) bool {
		if node == nil || line < files.Position(node.Pos()).Line || line > files.Position(node.End()).Line {
			return false
		}
		switch node := node.(type) {
		case *ast.FuncDecl:
			var names []string
			for _, field := range node.Type.Params.List {
				for _, name := range field.Names {
					names = append(names, name.Name)
				}
			}
			kernel = strings.HasPrefix(strings.Join(names, " "), "dst left right")
		case *ast.ForStmt, *ast.RangeStmt:
			loop = true
		}
		return true
	})
	return kernel && !loop
}
