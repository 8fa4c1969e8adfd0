package tagged_test

import (
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain raises the number of random cases, which are cheap here, unless the
// command line says how many.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "1000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

var (
	errFirst  = errors.New("first")
	errSecond = errors.New("second")
)

// requireNoAllocs runs f once to let it grow, and then expects no allocation.
func requireNoAllocs(t *testing.T, f func()) {
	t.Helper()
	f()
	require.Zero(t, testing.AllocsPerRun(100, f))
}

// permutations calls f with every order of 0 to n-1. f must not keep the slice.
func permutations(n int, f func(order []int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var permute func(k int)
	permute = func(k int) {
		if k == n {
			f(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			permute(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	permute(0)
}
