// Package exampletest has the tests of an example run it as what it is: a command, with a
// process of its own.
package exampletest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testprocess"
)

// variable has a process of the test's binary be the example.
const variable = "WEFT_TEST_EXAMPLE"

// Main is the TestMain of an example.
func Main(m *testing.M, example func()) {
	if os.Getenv(variable) != "" {
		example()
		os.Exit(0)
	}
	fabrictest.Main(m)
}

// OnProviders runs a test on each provider to test on.
func OnProviders(t *testing.T, test func(t *testing.T, provider string)) {
	for _, s := range fabrictest.OnProviders() {
		t.Run(s.Name, func(t *testing.T) {
			fabrictest.NewBed(t, s)
			test(t, s.Provider)
		})
	}
}

// Command is the example with arguments. It is ended with the test, or when it takes too long.
func Command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	p := testprocess.Command(t, os.Args[0], arguments...)
	p.Env = append(os.Environ(), variable+"=1")
	return p
}

// Serve starts the example, and returns the address that it says it listens on. When the
// test ends, so does the example, in order.
func Serve(t *testing.T, arguments ...string) (address string) {
	t.Helper()
	p := Command(t, arguments...)
	var complaints bytes.Buffer
	p.Stderr = &complaints
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, _ := lines.ReadString('\n')
	words := strings.Fields(first)
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_, _ = lines.WriteTo(os.Stderr)
		if err := p.Wait(); p.ProcessState.ExitCode() != 0 {
			t.Errorf("the server ended with %v:\n%s", err, complaints.String())
		}
	})
	if len(words) != 5 || words[0] != "listening" {
		t.Fatalf("the server said %q:\n%s", first, complaints.String())
	}
	return words[2]
}

// Run runs the example to its end, and returns what it prints and what it logs.
func Run(t *testing.T, arguments ...string) (printed, logged string, err error) {
	t.Helper()
	p := Command(t, arguments...)
	var out, complaints bytes.Buffer
	p.Stdout, p.Stderr = &out, &complaints
	err = p.Run()
	return out.String(), complaints.String(), err
}
