package weft_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is a piece of code in a document; docs/README.md says what becomes of which.
type block struct {
	page string // such as docs/efa.md
	line int    // its first one
	kind string // what its fence says; "indented" where it has none
	text string
	// notes are what comments right before it say: <!-- output: ^hello$ -->. A note that is
	// there twice is one of two lines.
	notes map[string]string
}

func (b block) where() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var (
	noteLine = regexp.MustCompile(`^\s*<!-- (with|before|output|ranks|in|where|takes|not run|tried by): (.*) -->$`)
	listItem = regexp.MustCompile(`^\s*([-*+]|\d+[.)])( +|$)`)
	// hidden is what Markdown shows as code and blocksOf would not see: other fences, a fence
	// in a quote or right behind the mark of an item, tabs, and code in HTML.
	hidden = regexp.MustCompile("^\\s*(>.*```|([-*+]|\\d+[.)]) +```|~~~)|^ *\t|(?i)<(pre|code|script)\\b")
)

// documents are those whose code is tried.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md"}
	err := filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(pages), 6)
	return pages
}

// blocks are those of all documents.
func blocks(t *testing.T) (all []block) {
	t.Helper()
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		found, err := blocksOf(page, string(text))
		require.NoError(t, err)
		all = append(all, found...)
	}
	return all
}

func blocksOf(page, text string) (all []block, err error) {
	lines := strings.Split(text, "\n")
	notes := map[string]string{}
	inList, inItem := false, 0 // where the text of the last item begins
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		unindented := strings.TrimLeft(line, " ")
		switch {
		case strings.HasPrefix(unindented, "```"):
			indent := len(line) - len(unindented)
			b := block{page: page, line: i + 2, kind: strings.TrimPrefix(unindented, "```"), notes: notes}
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
				b.text += lines[i][min(indent, len(lines[i])):] + "\n"
			}
			if i == len(lines) {
				return nil, fmt.Errorf("%s: the block has no end", b.where())
			}
			all = append(all, b)
			notes = map[string]string{}
		case hidden.MatchString(line):
			return nil, fmt.Errorf("%s:%d: code that would not be tried: a block has a fence of ``` on a line of its own, or four blanks", page, i+1)
		case strings.HasPrefix(line, strings.Repeat(" ", inItem+4)) && inList && lines[i-1] == "":
			return nil, fmt.Errorf("%s:%d: code in a list would not be tried without a fence", page, i+1)
		case strings.HasPrefix(line, "    ") && !inList && i > 0 && lines[i-1] != "":
			return nil, fmt.Errorf("%s:%d: indented code would not be tried without an empty line before it", page, i+1)
		case strings.HasPrefix(line, "    ") && !inList:
			b := block{page: page, line: i + 1, kind: "indented", notes: notes}
			for ; i < len(lines) && (strings.HasPrefix(lines[i], "    ") || lines[i] == ""); i++ {
				b.text += strings.TrimPrefix(lines[i], "    ") + "\n"
			}
			i--
			all = append(all, b)
			notes = map[string]string{}
		case line == "":
		default:
			if note := noteLine.FindStringSubmatch(line); note != nil {
				if had := notes[note[1]]; had != "" {
					note[2] = had + "\n" + note[2]
				}
				notes[note[1]] = note[2]
				continue
			}
			if len(notes) > 0 {
				return nil, fmt.Errorf("%s:%d: a note is not followed by its block", page, i+1)
			}
			inList = inList && strings.HasPrefix(line, " ")
			if item := listItem.FindString(line); item != "" {
				inList, inItem = true, len(item)
			}
		}
	}
	return all, nil
}

// shell is whether a block is one of commands.
func (b block) shell() bool { return b.kind == "sh" || b.kind == "indented" }

// What a block is has to be said, so that none goes untried by mistake.
func TestDocBlocksAreKnown(t *testing.T) {
	ofShell := []string{"before", "in", "where", "takes", "not run"}
	ofGo := []string{"with", "before", "output", "ranks"}
	for _, b := range blocks(t) {
		var allowed []string
		switch {
		case b.shell():
			allowed = ofShell
		case b.kind == "go":
			allowed = ofGo
		case b.kind == "yaml":
			// It is nothing that runs, so a test of its own has to try it.
			allowed = []string{"tried by"}
			require.True(t, reads(t, b.notes["tried by"], b.page), "%s: which test tries it? <!-- tried by: TestName --> names one that reads the page", b.where())
		default:
			t.Errorf("%s: a block of %q: go, sh or yaml", b.where(), b.kind)
		}
		for note := range b.notes {
			if !slices.Contains(allowed, note) {
				t.Errorf("%s: a block of %s has the note %q", b.where(), b.kind, note)
			}
		}
		if len(b.notes) > 1 && b.notes["not run"] != "" {
			t.Errorf("%s is not run, and yet it is said how", b.where())
		}
	}
}

// reads says whether there is a test of this name, in a file that names the page.
func reads(t *testing.T, test, page string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || found || test == "" || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		found = strings.Contains(string(text), "\nfunc "+test+"(t *testing.T)") && strings.Contains(string(text), page+`"`)
		return err
	})
	require.NoError(t, err)
	return found
}

func TestBlocksOf(t *testing.T) {
	found, err := blocksOf("p", "text\n\n    ls\n\n    ls -l\n\n<!-- with: world -->\n\n```go\na\n```\n- item\n\n    more of it\n\n  ```sh\n  b\n  ```\n")
	require.NoError(t, err)
	require.Equal(t, []block{
		{"p", 3, "indented", "ls\n\nls -l\n\n", map[string]string{}},
		{"p", 10, "go", "a\n", map[string]string{"with": "world"}},
		{"p", 17, "sh", "b\n", map[string]string{}},
	}, found)
	_, err = blocksOf("p", "```go\n")
	require.ErrorContains(t, err, "p:2: the block has no end")
	_, err = blocksOf("p", "<!-- output: x -->\ntext\n")
	require.ErrorContains(t, err, "p:2: a note is not followed by its block")

	// What would go untried.
	for _, text := range []string{
		"~~~\nls\n~~~\n",
		"text\n\n\tls\n",
		"# Head\n    ls\n",
		"```go\na\n```\n    ls\n",
		"- item\n\n      ls\n",
		"1. item\n\n   - inner\n\n         ls\n",
		"- ```sh\n  ls\n  ```\n",
		"> ```sh\n> ls\n> ```\n",
		"<pre>\nls\n</pre>\n",
	} {
		_, err := blocksOf("p", text)
		require.ErrorContains(t, err, "not be tried", "%s", text)
	}
}
