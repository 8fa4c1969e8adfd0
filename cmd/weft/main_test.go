package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain puts this program as weft into PATH, for scripts and for tests that
// need a process, and a program that joins a job.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weft": main, "member": playMember})
}
