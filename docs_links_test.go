package weft_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// Links between the documents of the tree lead to files and headings that are there.
func TestDocLinks(t *testing.T) {
	links := 0
	for _, page := range sourceFiles(t) {
		if path.Ext(page) != ".md" {
			continue
		}
		for _, match := range link.FindAllStringSubmatch(prose(t, page), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s: there is no %s", page, match[1], file)
				continue
			}
			if anchor != "" && !anchors(t, file)[anchor] {
				t.Errorf("%s: %s: %s has no such heading", page, match[1], file)
			}
		}
	}
	require.Greater(t, links, 20)
}

// Every document is to be found in the index.
func TestDocIndex(t *testing.T) {
	index := prose(t, "docs/README.md")
	for _, page := range documents(t) {
		if name, inDocs := strings.CutPrefix(page, "docs/"); inDocs && name != "README.md" {
			require.Contains(t, index, "]("+name+")")
		}
	}
	examples, err := os.ReadDir("examples")
	require.NoError(t, err)
	for _, example := range examples {
		require.Contains(t, index, "](../examples/"+example.Name()+")")
	}
}

// prose is a page without its blocks of code.
func prose(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	return fenced.ReplaceAllString(string(text), "")
}

// anchors are those that GitHub gives to the headings of a page.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(prose(t, page), -1) {
		var name strings.Builder
		for _, r := range strings.ToLower(link.ReplaceAllString(match[1], "]")) {
			switch {
			case r == ' ':
				name.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				name.WriteRune(r)
			}
		}
		anchor := name.String()
		for n := 1; all[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", name.String(), n)
		}
		all[anchor] = true
	}
	return all
}
