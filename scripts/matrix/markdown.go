package main

import (
	"fmt"
	"strings"
)

// String is the text of a cell.
func (c count) String() string {
	if c == (count{}) {
		return ""
	}
	text := fmt.Sprintf("%d / %d / %d", c.passed+c.failed, c.passed, c.unsupported)
	if c.failed > 0 {
		text += fmt.Sprintf(", **%d failed**", c.failed)
	}
	return text
}

// markdown is the section of one version, markers included.
func (m *matrix) markdown(version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n## Matrix, libfabric %s\n\n", begin(version), version)
	b.WriteString("The functional cases of fabtests as Go tests: run / passed / unsupported. What is\n" +
		"unsupported did not run. The column \"" + noProvider + "\" has the tests that are not about one\n" +
		"provider. Made by `make matrix`.\n\n")
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(append([]string{"Case", "fabtests"}, m.columns...))
	b.WriteString(strings.Repeat("|---", len(m.columns)+2) + "|\n")
	for _, t := range m.topics {
		cells := []string{t.name, t.fabtests}
		for _, p := range m.columns {
			cells = append(cells, m.total(t.name, p).String())
		}
		row(cells)
	}
	sums := []string{"all", ""}
	for _, p := range m.columns {
		sums = append(sums, m.total("", p).String())
	}
	row(sums)
	if len(m.failures) > 0 {
		b.WriteString("\nFailed:\n\n")
		for _, test := range m.failures {
			b.WriteString("- `" + test + "`\n")
		}
	}
	b.WriteString("\nUnsupported, and why: what the provider answered, where it answers at all.\n\n")
	row([]string{"Case", "Provider", "Tests", "Reason"})
	b.WriteString("|---|---|---|---|\n")
	for _, t := range m.topics {
		for _, p := range m.columns {
			for _, u := range m.unsupported {
				if u.topic == t.name && u.provider == p {
					row([]string{u.topic, u.provider, u.names(), cell(u.reason)})
				}
			}
		}
	}
	b.WriteString(end(version) + "\n")
	return b.String()
}

// names are the names of the tests, shortened if there are many.
func (u *unsupported) names() string {
	first := "`" + u.tests[0] + "`"
	if more := len(u.tests) - 1; more > 0 {
		first += fmt.Sprintf(" and %d more", more)
	}
	return first
}

// cell makes any text fit for a cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s)
}

func begin(version string) string { return "<!-- matrix " + version + " begin -->" }
func end(version string) string   { return "<!-- matrix " + version + " end -->" }

// place puts the section in the place of the one of the same version, or at the
// end of the text.
func place(text, version, section string) (string, error) {
	first, last := strings.Count(text, begin(version)), strings.Count(text, end(version))
	switch {
	case first == 0 && last == 0:
		if text != "" {
			text = strings.TrimRight(text, "\n") + "\n\n"
		}
		return text + section, nil
	case first != 1 || last != 1 || strings.Index(text, begin(version)) > strings.Index(text, end(version)):
		return "", fmt.Errorf("%s and %s are wanted once each, in this order", begin(version), end(version))
	}
	before, rest, _ := strings.Cut(text, begin(version))
	_, after, _ := strings.Cut(rest, end(version))
	return before + section + strings.TrimPrefix(after, "\n"), nil
}
