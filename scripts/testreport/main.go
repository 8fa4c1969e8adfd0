// Command testreport runs go test with the arguments it is given and says at
// the end what ran and what was skipped and why. Of tests that passed it says
// no more than the number, of those that failed everything.
//
// Its exit code is that of go test, but a run in which no test ran fails.
//
//	testreport [-only=NAME] [-also=FOLDER] ARGUMENTS OF GO TEST
//
// With -only, of the tests that passed only those count that have NAME as a part of
// their own name, between slashes; the others are named. -run cannot tell: it also
// runs tests that have no subtest of that name.
//
// With -also, the same is run in the module of that folder, for the same report.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	// An interrupted run is reported too: what had failed, what hung.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	report := newReport(os.Stdout)
	if len(args) > 0 {
		if only, found := strings.CutPrefix(args[0], "-only="); found {
			report.only, args = only, args[1:]
		}
	}
	folders, args := modules(args)
	code := 0
	for _, folder := range folders {
		code = max(code, test(ctx, report, folder, args))
	}
	if passed := report.finish(code != 0); !passed && code == 0 {
		code = 1
	}
	return code
}

// modules splits off the folders in which to run, this one first.
func modules(args []string) (folders, rest []string) {
	folders = []string{"."}
	for len(args) > 0 {
		folder, also := strings.CutPrefix(args[0], "-also=")
		if !also {
			break
		}
		folders, args = append(folders, folder), args[1:]
	}
	return folders, args
}

// test runs go test in a folder, and returns its exit code.
func test(ctx context.Context, report *report, folder string, args []string) int {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = folder
	cmd.Stdout = report
	cmd.Stderr = os.Stderr
	// The signal must reach the test binaries too: go test does not pass it on,
	// and one that hangs would outlive the run.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		// Whoever caught the interrupt and stayed. None left is fine.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}

	code := 0
	if err != nil {
		code = 1
		if exit := cmd.ProcessState; exit != nil && exit.ExitCode() > 0 {
			code = exit.ExitCode()
		} else {
			fmt.Fprintln(os.Stderr, "testreport:", err)
		}
	}
	return code
}
