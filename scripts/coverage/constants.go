package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// constant is a number that a header names: a flag, a mode, a member of an
// enumeration.
type constant struct {
	name, header string
	bound        bool
	reason       *reason
}

var (
	defined    = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*define[ \t]+(FI_[A-Z0-9_]+)(?:[ \t]|$)`)
	enumerated = regexp.MustCompile(`\benum\b[^;{]*\{([^}]*)\}`)
	numbered   = regexp.MustCompile(`\bFI_[A-Z0-9][A-Z0-9_]*\b`)
)

// readConstants lists the numbers of fabric.h and fi_*.h, each once, by header and in
// its order. Those for providers among themselves are not looked at.
func readConstants(folder string) ([]constant, error) {
	var names []string
	for _, pattern := range []string{"fabric.h", "fi_*.h"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	seen := make(map[string]bool)
	var constants []constant
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, c := range constantsOf(string(text)) {
			if !seen[c] {
				seen[c] = true
				constants = append(constants, constant{name: c, header: filepath.Base(name)})
			}
		}
	}
	return constants, nil
}

// constantsOf are the names that a header defines without arguments, and the members
// of its enumerations.
func constantsOf(text string) []string {
	text = comments.ReplaceAllString(text, " ")
	var names []string
	for _, m := range defined.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	for _, m := range enumerated.FindAllStringSubmatch(directives.ReplaceAllString(text, ""), -1) {
		for member := range strings.SplitSeq(m[1], ",") {
			if name := numbered.FindString(member); strings.HasPrefix(strings.TrimSpace(member), name) && name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// explain says of each number whether package cgo names it, or else why not.
func explain(constants []constant, named map[string]bool, reasons []*reason) {
	for i := range constants {
		c := &constants[i]
		if c.bound = named[c.name]; c.bound {
			continue
		}
		for _, r := range reasons {
			if fitsOne(r.pattern, c.name, c.header) {
				c.reason, r.used = r, true
				break
			}
		}
	}
}

func fitsOne(pattern string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		fits, err := path.Match(pattern, name)
		return err == nil && fits
	})
}

// unexplained are errors about numbers that are neither bound nor left out for a reason.
func unexplained(constants []constant) error {
	var problems []error
	for _, c := range constants {
		if !c.bound && c.reason == nil {
			problems = append(problems, fmt.Errorf("%s (%s) is not in package cgo, and numbers.txt does not say why", c.name, c.header))
		}
	}
	return errors.Join(problems...)
}

// constantsMarkdown is the section of the document about numbers: how many of each
// header are bound, and the others by reason.
func constantsMarkdown(constants []constant) string {
	var b strings.Builder
	b.WriteString("\n## Flags, modes and other numbers\n\nThe FI_* of the headers that package cgo names, and the others with the reason.\n\n" +
		"| Header | Numbers | Bound | Not bound |\n|---|--:|--:|--:|\n")
	var headers []string
	all, bound := make(map[string]int), make(map[string]int)
	var reasons []string
	without := make(map[string][]string)
	for _, c := range constants {
		if all[c.header]++; all[c.header] == 1 {
			headers = append(headers, c.header)
		}
		if c.bound {
			bound[c.header]++
			continue
		}
		why, name := "**without a reason**", c.name
		if c.reason != nil {
			why = c.reason.kind + ": " + c.reason.text
			if strings.Contains(c.reason.pattern, "*") {
				name = c.reason.pattern
			} else if c.reason.pattern == c.header {
				name = "the others of " + c.header
			}
		}
		if without[why] == nil {
			reasons = append(reasons, why)
		}
		if !slices.Contains(without[why], name) {
			without[why] = append(without[why], name)
		}
	}
	for _, h := range headers {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", h, all[h], bound[h], all[h]-bound[h])
	}
	b.WriteString("\n| Not bound | Why |\n|---|---|\n")
	for _, why := range reasons {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.ReplaceAll(strings.Join(without[why], ", "), "*", `\*`), why)
	}
	return b.String()
}
