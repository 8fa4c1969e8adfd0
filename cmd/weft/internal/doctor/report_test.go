package doctor

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestReports(t *testing.T) {
	root, library := instance(t)
	root["proc/self/environ"] = &fstest.MapFile{Data: []byte("RDMAV_FORK_SAFE=1\x00")}
	r := Examine(System{Root: root, Library: library, Open: func(string) error { return nil }})
	var short, long bytes.Buffer
	require.NoError(t, r.Print(&short, false))
	require.NoError(t, r.Print(&long, true))
	require.Regexp(t, `(?s)^EFA can be used\.\n\nwarning: fork-safe\n  looked at  /proc/self/environ\n  found      RDMAV_FORK_SAFE=1\n  do         Unset it.*\n\n\d+ other things are as they should be; --all lists them\.\n$`, short.String())
	require.Contains(t, long.String(), "found      1 EFA devices")

	text, err := json.Marshal(r)
	require.NoError(t, err)
	var again Report
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, r, &again)
}

var write = flag.Bool("write", false, "write docs/doctor.md instead of comparing it")

func TestPage(t *testing.T) {
	const page, mark = "../../../../docs/doctor.md", "<!-- What follows is made by the test of cmd/weft/internal/doctor: go test -run=TestPage -write -->\n"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	head, listed, ok := strings.Cut(string(text), mark)
	require.True(t, ok, "the page has lost its mark")
	if *write {
		require.NoError(t, os.WriteFile(page, []byte(head+mark+"\n"+Document()), 0o644))
		return
	}
	require.Equal(t, Document(), strings.TrimPrefix(listed, "\n"), "make it anew: go test ./cmd/weft/internal/doctor -run=TestPage -write")
}
