package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Print writes the report for people: the verdict, what is not as it should be, and
// the rest in one line each if all is asked for.
func (r *Report) Print(w io.Writer, all bool) error {
	var b strings.Builder
	if r.Usable {
		fmt.Fprintln(&b, "EFA can be used.")
	} else {
		fmt.Fprintln(&b, "EFA cannot be used here.")
	}
	fine := 0
	for _, f := range r.Findings {
		if f.Severity == Fine {
			fine++
			if all {
				fmt.Fprintf(&b, "\nfine\n  looked at  %s\n  found      %s\n", f.Looked, f.Found)
			}
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s\n", f.Severity, f.Kind)
		fmt.Fprintf(&b, "  looked at  %s\n  found      %s\n  do         %s\n", f.Looked, f.Found, f.Do)
	}
	if !all && fine > 0 {
		fmt.Fprintf(&b, "\n%d other things are as they should be; --all lists them.\n", fine)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
