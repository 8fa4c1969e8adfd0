package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fence   = regexp.MustCompile("^ *```")
	remark  = regexp.MustCompile(`(^| +)#.*`)
	weftRun = regexp.MustCompile(`^(?:\w+=\S+ |docker run .* |scripts/with-efa )*(?:bin/)?weft( .*)?$`)
	word    = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
	quote   = regexp.MustCompile(`['"]`)
	between = regexp.MustCompile(`'[^']*'|"[^"]*"|&&|;|\d?>+ ?[^\s&]+|[|&]+`)
)

// What the documents have people type is what the command takes.
func TestDocumentedCommandLines(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	lines := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, command := range commandsIn(string(text)) {
			run := weftRun.FindStringSubmatch(command)
			if run == nil {
				continue
			}
			lines++
			var args []string
			for _, quoted := range word.FindAllString(run[1], -1) {
				args = append(args, quote.ReplaceAllString(quoted, ""))
			}
			parser, err := newParser(new(commandLine), io.Discard, io.Discard)
			require.NoError(t, err)
			parser.Exit = func(int) {} // of --help and --version
			if _, err := parser.Parse(args); err != nil {
				t.Errorf("%s: %s: %v", page, command, usageOf(err))
			}
		}
	}
	require.Greater(t, lines, 40)
}

// commandsIn are the commands in the blocks of a page, but those of Go and of text.
func commandsIn(page string) (commands []string) {
	kind := "" // of the block
	for line := range strings.Lines(strings.ReplaceAll(page, "\\\n", "")) {
		switch {
		case fence.MatchString(line) && kind == "":
			kind = strings.TrimSpace(fence.ReplaceAllString(line, ""))
		case fence.MatchString(line):
			kind = ""
		case kind == "sh", kind == "" && strings.HasPrefix(line, "    "):
			line = between.ReplaceAllStringFunc(remark.ReplaceAllString(line, ""), func(s string) string {
				if strings.ContainsAny(s[:1], `'"`) {
					return s
				}
				return "\n" // what is left out ends the command: nothing follows a redirection
			})
			for command := range strings.SplitSeq(line, "\n") {
				commands = append(commands, strings.TrimSpace(command))
			}
		}
	}
	return commands
}
