package weft_test

import (
	"fmt"
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
	noteLine = regexp.MustCompile(`^\s*<!-- (with|before|output|ranks|in|where|takes|not run): (.*) -->$`)
	listItem = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
)

// documents are those whose code is tried.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	require.Greater(t, len(pages), 5)
	return append([]string{"README.md"}, pages...)
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
	inList := false
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
		case strings.HasPrefix(line, "    ") && !inList && i > 0 && lines[i-1] == "":
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
			inList = listItem.MatchString(line) || inList && strings.HasPrefix(line, " ")
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
		case b.kind != "text":
			t.Errorf("%s: a block of %q: go, sh or text", b.where(), b.kind)
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
}
