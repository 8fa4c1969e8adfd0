package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestBenchScripts(t *testing.T) {
	needProvider(t, "tcp")
	params := scripts("testdata/bench", map[string]string{"PROVIDER": "tcp"})
	setup := params.Setup
	params.Setup = func(e *testscript.Env) error {
		err := setup(e)
		// This program and no other: Open MPI takes seconds to start, and may be there or not.
		e.Setenv("PATH", filepath.SplitList(e.Getenv("PATH"))[0])
		return err
	}
	testscript.Run(t, params)
}
