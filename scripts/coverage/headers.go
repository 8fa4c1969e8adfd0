package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// function is one that a header declares.
type function struct {
	Name, Header string
	Deprecated   bool
	// calls are the functions that an inline one calls.
	calls []string
}

var (
	comments    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	cplusplus   = regexp.MustCompile(`(?ms)^#ifdef __cplusplus\n.*?^#endif[^\n]*$`)
	directives  = regexp.MustCompile(`(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$`)
	called      = regexp.MustCompile(`\b(fi_\w+)\s*\(`)
	wholeNumber = regexp.MustCompile(`(?m)^#define FI_(MAJOR|MINOR)_VERSION\s+(\d+)`)
)

// readHeaders lists the functions of fabric.h, fi_*.h and providers/*.h, each
// once, by header and in its order.
func readHeaders(folder string) (version string, functions []function, err error) {
	var names []string
	for _, pattern := range []string{"fabric.h", "fi_*.h", "providers/*.h"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return "", nil, err
		}
		names = append(names, found...)
	}
	seen := make(map[string]bool)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", nil, err
		}
		header, err := filepath.Rel(folder, name)
		if err != nil {
			return "", nil, err
		}
		if header == "fabric.h" {
			version = versionOf(string(text))
		}
		for _, f := range functionsOf(string(text)) {
			if !seen[f.Name] {
				seen[f.Name] = true
				f.Header = filepath.ToSlash(header)
				functions = append(functions, f)
			}
		}
	}
	if version == "" {
		return "", nil, fmt.Errorf("there is no fabric.h with a version in %s", folder)
	}
	return version, functions, nil
}

func versionOf(text string) string {
	parts := make(map[string]string)
	for _, m := range wholeNumber.FindAllStringSubmatch(text, -1) {
		parts[m[1]] = m[2]
	}
	if len(parts) != 2 {
		return ""
	}
	return parts["MAJOR"] + "." + parts["MINOR"]
}

// functionsOf finds the functions that a header declares or defines inline. It
// knows as much of C as these headers need: it takes the text between the
// braces of the outermost level apart.
func functionsOf(text string) []function {
	text = comments.ReplaceAllString(text, " ")
	text = cplusplus.ReplaceAllString(text, "")
	text = directives.ReplaceAllString(text, "")
	var functions []function
	for _, d := range outermost(text) {
		if strings.HasPrefix(d.head, "typedef") {
			continue
		}
		m := called.FindStringSubmatchIndex(d.head)
		if m == nil || strings.Contains(d.head[:m[0]], "=") {
			continue
		}
		f := function{Name: d.head[m[2]:m[3]], Deprecated: strings.Contains(d.head, "FI_DEPRECATED_FUNC")}
		for _, call := range called.FindAllStringSubmatch(d.body, -1) {
			f.calls = append(f.calls, call[1])
		}
		functions = append(functions, f)
	}
	return functions
}

// declaration is what stands on the outermost level of C, and the text within
// its braces.
type declaration struct{ head, body string }

// outermost splits C at the semicolons and the braces of the outermost level.
func outermost(text string) []declaration {
	var declarations []declaration
	var head, body strings.Builder
	end := func() {
		if h := strings.Join(strings.Fields(head.String()), " "); h != "" {
			declarations = append(declarations, declaration{h, body.String()})
		}
		head.Reset()
		body.Reset()
	}
	depth := 0
	for _, r := range text {
		switch {
		case r == '{':
			depth++
			body.WriteRune(' ')
		case r == '}':
			depth--
			// What follows the body of a function is another declaration, what
			// follows that of a struct may be its name.
			if depth == 0 && strings.HasSuffix(strings.TrimSpace(head.String()), ")") {
				end()
			}
		case depth > 0:
			body.WriteRune(r)
		case r == ';':
			end()
		default:
			head.WriteRune(r)
		}
	}
	return declarations
}
