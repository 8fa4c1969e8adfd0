package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Document is the part of docs/doctor.md that lists the findings.
func Document() string {
	var b strings.Builder
	for s := Problem; s > Fine; s-- {
		fmt.Fprintf(&b, "## %s\n", headings[s])
		kinds := slices.Sorted(maps.Keys(catalogue))
		for _, k := range kinds {
			if about := catalogue[k]; about.severity == s {
				fmt.Fprintf(&b, "\n### %s\n\n%s\n\n**What to do:** %s\n", k, about.cause, about.do)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

var headings = map[Severity]string{
	Problem: "Problems: EFA cannot be used",
	Warning: "Warnings: it costs something, or may become a problem",
	Note:    "Notes: to be known",
}
