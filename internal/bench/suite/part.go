package suite

import "os"

// PlayPart does not return in a process that has a part in a benchmark: a side in Go, or a
// rank, is the program that measures, started by itself. So that calls this first.
func PlayPart() {
	switch {
	case len(os.Args) < 2:
	case os.Args[1] == rankCommand:
		os.Exit(rankMain(os.Args[2:], os.Stdout, os.Stderr))
	case os.Args[1] == sideCommand:
		os.Exit(sideMain(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
}
