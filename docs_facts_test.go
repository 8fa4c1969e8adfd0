package weft_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documented are the packages whose errors docs/errors.md has.
var documented = []string{
	"fabric", "tagged", "efa", "comm", "collective", "collective/operator", "collective/schedule", "bootstrap",
}

// docs/errors.md has every error that these packages export, and no other.
func TestDocErrors(t *testing.T) {
	want := map[string]bool{}
	for _, folder := range documented {
		for name := range errorsOf(t, folder) {
			want[name] = true
		}
	}
	require.Greater(t, len(want), 40)
	page, err := os.ReadFile("docs/errors.md")
	require.NoError(t, err)
	name := regexp.MustCompile("`(\\*?[a-z]+\\.[A-Z]\\w*)`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, match := range name.FindAllStringSubmatch(cells[1], -1) {
			require.True(t, want[match[1]], "docs/errors.md has %s, which is no error there is, or twice", match[1])
			delete(want, match[1])
			require.NotEmpty(t, strings.TrimSpace(cells[3]), "docs/errors.md: what to do about %s", match[1])
		}
	}
	require.Empty(t, want, "docs/errors.md has not got these")
}

// errorsOf are the errors that a package exports: `efa.ErrPeerLost`, `*efa.ConnError`.
func errorsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, file := range filesOf(t, folder) {
		name := file.Name.Name
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name != "Error" || d.Recv == nil {
					continue
				}
				receiver, star := d.Recv.List[0].Type, ""
				if p, ok := receiver.(*ast.StarExpr); ok {
					receiver, star = p.X, "*"
				}
				if id, ok := receiver.(*ast.Ident); ok && id.IsExported() {
					all[star+name+"."+id.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok || d.Tok != token.VAR {
						continue
					}
					for _, id := range v.Names {
						if strings.HasPrefix(id.Name, "Err") && id.IsExported() {
							all[name+"."+id.Name] = true
						}
					}
				}
			}
		}
	}
	return all
}

// What docs/tuning.md says that a setting is without being set is what its comment says.
func TestDocDefaults(t *testing.T) {
	page, err := os.ReadFile("docs/tuning.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `(\\w+)\\.(\\w+)\\.(\\w+)`[^|]*\\| ([^|]+) \\|")
	rows := row.FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(rows), 20)
	packages := map[string][]*ast.File{}
	for _, r := range rows {
		if packages[r[1]] == nil {
			packages[r[1]] = filesOf(t, r[1])
		}
		comment := fieldComment(packages[r[1]], r[2], r[3])
		require.Regexp(t, `\bmeans? `+regexp.QuoteMeta(r[4]), comment, "%s.%s.%s", r[1], r[2], r[3])
	}
}

// fieldComment is the comment of a field, in one line.
func fieldComment(files []*ast.File, structure, field string) (comment string) {
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != structure {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			// Fields that belong together have one comment.
			last := ""
			for _, f := range s.Fields.List {
				if f.Doc != nil {
					last = f.Doc.Text()
				}
				for _, id := range f.Names {
					if id.Name == field {
						comment = strings.Join(strings.Fields(last), " ")
					}
				}
			}
			return false
		})
	}
	return comment
}

// filesOf are those of a package but its tests.
func filesOf(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(folder + "/*.go")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	require.NotEmpty(t, files, folder)
	return files
}
