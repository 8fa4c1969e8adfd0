package weft_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/weft-go/weft"

// room says what a package may import. The table is the one of ARCHITECTURE.md;
// a new package gets a line in both.
type room struct {
	// imports lists the packages of this module that it may import.
	imports string
	// plain keeps it to the standard library, golang.org/x and this module.
	plain bool
	// pure keeps it from clocks, devices and the network.
	pure bool
}

// A name that ends in /... covers the folder and everything below it.
var rooms = map[string]room{
	".":                   {plain: true},
	"cgo":                 {plain: true},
	"fabric":              {imports: "cgo", plain: true},
	"fabric/fabrictest":   {imports: "fabric internal/testenv", plain: true},
	"tagged":              {plain: true, pure: true},
	"efa":                 {imports: "tagged fabric internal/cacheline internal/frame internal/hostmemory internal/keepalive internal/proof", plain: true},
	"comm":                {imports: "efa tagged fabric", plain: true},
	"collective":          {imports: "comm efa fabric collective/schedule collective/operator internal/cachedcopy internal/cacheline internal/hostmemory internal/kernelcopy", plain: true},
	"collective/schedule": {plain: true, pure: true},
	// Pure too, but for the durations that it is asked for.
	"collective/schedule/cost": {imports: "collective/schedule", plain: true},
	"collective/operator":      {plain: true, pure: true},
	"bootstrap":                {imports: "internal/frame internal/keepalive internal/proof", plain: true},
	"bootstrap/storetest":      {imports: "bootstrap", plain: true},
	"metrics":                  {imports: "collective collective/schedule comm efa fabric"},
	"cmd/weft/...":             {imports: "*"},
	"examples/copy":            {imports: "efa", plain: true},
	"examples/echo":            {imports: "efa", plain: true},
	"examples/http":            {imports: "efa", plain: true},
	"examples/parameterserver": {imports: "bootstrap fabric", plain: true},
	"examples/sgd":             {imports: "bootstrap collective collective/operator comm efa", plain: true},
	"emulator":                 {plain: true},
	"internal/bench":           {imports: "fabric", plain: true},
	"internal/bench/report":    {imports: "internal/bench", plain: true},
	"internal/bench/suite":     {imports: "collective/schedule comm efa fabric internal/bench internal/bench/job internal/bench/report internal/sharedmemory tagged", plain: true},
	"internal/bench/job":       {imports: "internal/bench bootstrap collective collective/operator collective/schedule comm efa fabric internal/cachedcopy internal/sharedmemory", plain: true},
	"internal/cachedcopy":      {plain: true, pure: true},
	"internal/cacheline":       {plain: true, pure: true},
	"internal/doctest":         {imports: "bootstrap comm efa", plain: true},
	"internal/exampletest":     {imports: "fabric/fabrictest internal/testprocess", plain: true},
	"internal/frame":           {plain: true},
	"internal/hostmemory":      {plain: true},
	"internal/hosts":           {imports: "bootstrap collective collective/operator comm efa fabric internal/testenv", plain: true},
	"internal/jobtest":         {imports: "internal/sharedmemory internal/testprocess", plain: true},
	"internal/keepalive":       {plain: true},
	"internal/kernelcopy":      {plain: true},
	"internal/proof":           {plain: true},
	"internal/sharedmemory":    {plain: true},
	"internal/testenv":         {plain: true},
	"internal/testprocess":     {plain: true},
	"scripts/coverage":         {plain: true},
	"scripts/matrix":           {imports: "fabric", plain: true},
	"scripts/stub":             {plain: true},
	"scripts/testreport":       {plain: true},
	"testdata/optional":        {imports: "collective comm efa fabric", plain: true},
}

// testSupport may be imported by the tests of every package: bootstrap, since tests have
// jobs too, and the simulator, since what it has of a package is held to that by its tests.
const testSupport = "collective/schedule/cost fabric/fabrictest bootstrap bootstrap/storetest internal/exampletest internal/jobtest internal/sharedmemory internal/testenv internal/testprocess"

// impure is what a pure package must not import.
const impure = "net os syscall time golang.org/x/sys/unix"

func TestArrows(t *testing.T) {
	for _, name := range sourceFiles(t) {
		if path.Ext(name) != ".go" {
			continue
		}
		folder := path.Dir(name)
		room, known := roomOf(folder)
		if !known {
			t.Errorf("package %s has no line in the table of arrows_test.go: say what it may import, there and in ARCHITECTURE.md", folder)
			continue
		}
		for _, imported := range importsOf(t, name) {
			if why := room.refuses(folder, imported, strings.HasSuffix(name, "_test.go")); why != "" {
				t.Errorf("%s imports %s, but %s", name, imported, why)
			}
		}
	}
}

// refuses says why a file of the folder must not import a package; empty if it
// may.
func (r room) refuses(folder, imported string, test bool) string {
	if imported == "C" {
		if folder == "cgo" {
			return ""
		}
		return "only package cgo touches C"
	}
	inModule, ours := strings.CutPrefix(imported+"/", module+"/")
	inModule = strings.TrimSuffix(inModule, "/")
	switch {
	case ours:
		if inModule == folder || r.imports == "*" || strings.HasPrefix(inModule, folder+"/internal/") ||
			slices.Contains(strings.Fields(r.imports), inModule) ||
			test && slices.Contains(strings.Fields(testSupport), inModule) {
			return ""
		}
		return folder + " may import of this module: [" + r.imports + "]"
	case test:
		return ""
	case r.pure && slices.Contains(strings.Fields(impure), imported):
		return folder + " is pure logic"
	case r.plain && isThirdParty(imported) && !strings.HasPrefix(imported, "golang.org/x/"):
		return folder + " may import the standard library and golang.org/x only"
	}
	return ""
}

// Only cgo/ holds C that goes into programs; C elsewhere is a baseline to
// measure against, test data, or the emulated device. Go's own assembly is where a loop
// over numbers is worth it, and where an instruction is that Go has no words for.
func TestOneDoorToC(t *testing.T) {
	for _, name := range sourceFiles(t) {
		switch path.Ext(name) {
		case ".c", ".h", ".cc", ".cpp", ".s", ".S", ".syso":
		default:
			continue
		}
		elements := strings.Split(name, "/")
		if path.Ext(name) == ".s" && slices.Contains([]string{"collective/operator", "internal/cacheline"}, path.Dir(name)) {
			continue
		}
		if !slices.Contains([]string{"cgo", "emulator"}, elements[0]) && !slices.Contains(elements, "testdata") &&
			!strings.HasPrefix(name, "internal/bench/") {
			t.Errorf("%s: C belongs in cgo/, or in internal/bench/, emulator/ or a testdata folder", name)
		}
	}
}

// A name says what is in it. These say only that nobody knew.
func TestNames(t *testing.T) {
	vague := strings.Fields("util utils common helper helpers types misc")
	for _, name := range sourceFiles(t) {
		base, _, _ := strings.Cut(path.Base(name), ".")
		elements := append(strings.Split(path.Dir(name), "/"), strings.TrimSuffix(base, "_test"))
		for _, element := range elements {
			if slices.Contains(vague, element) {
				t.Errorf("%s: find a name that says what is in it", name)
			}
		}
	}
}

func roomOf(folder string) (room, bool) {
	if r, ok := rooms[folder]; ok {
		return r, true
	}
	for ; folder != "."; folder = path.Dir(folder) {
		if r, ok := rooms[folder+"/..."]; ok {
			return r, true
		}
	}
	return room{}, false
}

// sourceFiles lists the files of this module, with slashes. Unlike go list it
// sees those too that build constraints leave out.
func sourceFiles(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			names = append(names, filepath.ToSlash(name))
			return nil
		}
		if name == "." {
			return nil
		}
		if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil || strings.HasPrefix(entry.Name(), ".") || name == "bin" {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "arrows_test.go") {
		t.Fatal("this is not the root of the module")
	}
	return names
}

func importsOf(t *testing.T, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(name), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, imported)
	}
	return paths
}

// isThirdParty tells by the first element of the path, which is a host name
// with a dot for everything but the standard library.
func isThirdParty(imported string) bool {
	host, _, _ := strings.Cut(imported, "/")
	return strings.Contains(host, ".")
}
