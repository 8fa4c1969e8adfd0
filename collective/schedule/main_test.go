package schedule_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain raises the number of random cases, which are cheap here, unless the
// command line says how many.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
