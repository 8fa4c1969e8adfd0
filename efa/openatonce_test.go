package efa

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// Goroutines may open and close reactors at the same time. In libfabric 1.17 the efa provider
// ends the process in one of some hundred of these, without a lock around what lists and opens.
func TestReactorsOpenAtOnce(t *testing.T) {
	for _, s := range settings {
		if s.Provider == "" {
			continue // Nothing of libfabric's is opened for a device in memory.
		}
		t.Run(s.Name, func(t *testing.T) { openAtOnce(t, newBed(t, s)) })
	}
}

func openAtOnce(t *testing.T, b *bed) {
	t.Helper()
	rounds := 200
	if testing.Short() || b.Provider != "efa" {
		rounds = 10
	}
	var all errgroup.Group
	for range 3 {
		all.Go(func() error {
			for range rounds {
				r, err := Open(&Config{Providers: []string{b.Provider}, Require: true, Logger: quiet})
				if err == nil {
					err = r.Close()
				}
				if err != nil {
					return errors.Join(errors.New(b.Provider), err)
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
}
