package weft_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	versioned "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// A module of somebody else's gets weft as docs/start.md says, from a proxy that has this tree
// as a version of it, and the first program of the README compiles there, and runs.
func TestModuleCanBeHad(t *testing.T) {
	tree := t.TempDir()
	copyTree(t, tree)
	version := versioned.Version{Path: "github.com/weft-go/weft", Version: "v0.1.0"}
	proxy := t.TempDir()
	served := filepath.Join(proxy, version.Path, "@v")
	require.NoError(t, os.MkdirAll(served, 0o700))
	archive, err := os.Create(filepath.Join(served, version.Version+".zip"))
	require.NoError(t, err)
	require.NoError(t, zip.CreateFromDir(archive, version, tree))
	require.NoError(t, archive.Close())
	about, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version.Version, time.Now()})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(served, version.Version+".info"), about, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(served, "list"), []byte(version.Version+"\n"), 0o600))
	requirements, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(served, version.Version+".mod"), requirements, 0o600))

	mine := t.TempDir()
	// What weft needs is had from where it was had for this test.
	settings := goSettings(t, "GOMODCACHE", "GOPROXY", "GONOSUMDB")
	command := func(arguments ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), ofProgram)
		defer cancel()
		p := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
		p.Dir = mine
		p.Env = append(os.Environ(), "IPATH_NO_BACKTRACE=1",
			"GOMODCACHE="+filepath.Join(mine, "cache"), "GOFLAGS=-modcacherw", // or the test could not remove it
			"GOPROXY=file://"+proxy+",file://"+settings["GOMODCACHE"]+"/cache/download,"+settings["GOPROXY"],
			"GONOSUMDB="+strings.TrimPrefix(settings["GONOSUMDB"]+","+version.Path, ","))
		var complaints bytes.Buffer
		p.Stderr = &complaints
		out, err := p.Output()
		require.NoError(t, err, "%s: %s%s", arguments, out, &complaints)
		return string(out)
	}
	command("go", "mod", "init", "example.com/mine")
	program := firstProgram(t, "README.md")
	require.NoError(t, os.WriteFile(filepath.Join(mine, "main.go"), []byte(program.text), 0o600))
	command("bash", "-euc", commandsOf(t, "docs/start.md", "go get "))
	command("go", "build", "-o", "mine", ".")
	require.Regexp(t, program.notes["output"], strings.TrimSuffix(command("./mine"), "\n"))
}

// copyTree puts the files of this tree into a folder, but those that git ignores.
func copyTree(t *testing.T, to string) {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "git", "ls-files", "-co", "--exclude-standard", "-z").Output()
	require.NoError(t, err)
	var there []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		_, err := os.Stat(name)
		if os.IsNotExist(err) {
			continue // it is deleted, and that is not committed
		}
		require.NoError(t, err)
		there = append(there, name)
	}
	copyPrograms(t, append([]string{"--parents", "-t", to}, there...)...)
}

// copyPrograms is cp of programs and scripts. What is written by this process while another
// test starts one of its own is open there for a moment, and who runs it then is told "Text
// file busy".
func copyPrograms(t *testing.T, args ...string) {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "cp", args...).CombinedOutput()
	require.NoError(t, err, "%s", said)
}

// goSettings are those of the go command.
func goSettings(t *testing.T, names ...string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"env", "-json"}, names...)...).Output()
	require.NoError(t, err)
	var settings map[string]string
	require.NoError(t, json.Unmarshal(out, &settings))
	return settings
}

// commandsOf is a block of commands that begins so.
func commandsOf(t *testing.T, page, begin string) string {
	t.Helper()
	for _, b := range blocks(t) {
		if b.page == page && b.shell() && strings.HasPrefix(b.text, begin) {
			return b.text
		}
	}
	t.Fatalf("%s has no block that begins with %q", page, begin)
	return ""
}

// firstProgram is the first block of a page that is a program.
func firstProgram(t *testing.T, page string) block {
	t.Helper()
	for _, b := range blocks(t) {
		if b.page == page && b.kind == "go" && strings.Contains(b.text, "package main\n") {
			return b
		}
	}
	t.Fatalf("%s has no program", page)
	return block{}
}
