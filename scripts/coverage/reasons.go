package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// The kinds of reasons why a function, or a number, is not bound.
const (
	deprecated = "deprecated" // by libfabric
	internal   = "internal"   // to providers
	leftOut    = "left out"   // by weft, which counts against it
	otherwise  = "otherwise"  // bound, but not by its name: of numbers only
)

// reason is why functions are not bound.
type reason struct {
	// pattern is a function's name or a header's path, with stars.
	pattern, kind, text string
	used                bool
}

// readReasons reads lines of "pattern: kind: text".
func readReasons(name string) ([]*reason, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var reasons []*reason
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, ": ", 3)
		if len(parts) != 3 || !slices.Contains([]string{deprecated, internal, leftOut, otherwise}, parts[1]) {
			return nil, fmt.Errorf("%s:%d: a line is a pattern, a kind (%s, %s, %s or %s) and a text, separated by colons",
				name, number, deprecated, internal, leftOut, otherwise)
		}
		if _, err := path.Match(parts[0], ""); err != nil {
			return nil, fmt.Errorf("%s:%d: %q: %w", name, number, parts[0], err)
		}
		reasons = append(reasons, &reason{pattern: parts[0], kind: parts[1], text: parts[2]})
	}
	return reasons, nil
}

// reasonFor is the first reason that fits the function, or its header.
func reasonFor(f function, reasons []*reason) *reason {
	for _, r := range reasons {
		for _, name := range []string{f.Name, f.Header} {
			if fits, err := path.Match(r.pattern, name); err == nil && fits {
				r.used = true
				return r
			}
		}
	}
	if f.Deprecated {
		return &reason{pattern: f.Name, kind: deprecated, text: "marked so in the header"}
	}
	return nil
}
