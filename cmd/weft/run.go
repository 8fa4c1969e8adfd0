package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weft-go/weft/cmd/weft/internal/launch"
)

type runCommand struct {
	Ranks   int           `short:"n" required:"" placeholder:"N" help:"How many processes."`
	Timeout time.Duration `default:"0" help:"End the job after so long (0 for never)."`
	Grace   time.Duration `default:"10s" help:"How long processes have to end before they are killed."`
	Command []string      `arg:"" passthrough:"" help:"The command and its arguments."`
}

// mostRanks is how many processes there can be, each with two pipes.
const mostRanks = 4096

// Run runs a job.
func (c *runCommand) Run(t *terminal) error {
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	switch {
	case len(command) == 0:
		return &usageError{"nothing to run; usage: weft run -n N -- COMMAND ARGUMENT..."}
	case c.Ranks < 1 || c.Ranks > mostRanks:
		return &usageError{fmt.Sprintf("-n is %d, it must be from 1 to %d", c.Ranks, mostRanks)}
	case c.Timeout < 0:
		return &usageError{fmt.Sprintf("--timeout is %v, it must not be negative", c.Timeout)}
	case c.Grace < 0:
		return &usageError{fmt.Sprintf("--grace is %v, it must not be negative", c.Grace)}
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(stopSignals(), syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH)...)
	defer signal.Stop(signals)
	return launch.Run(launch.Config{
		Size: c.Ranks, Command: command, Timeout: c.Timeout, Grace: c.Grace,
		Stdout: t.stdout, Stderr: t.stderr, Signals: signals, Logger: t.logger,
		Keeper: []string{"weft", "keep"},
	})
}

// keepCommand is what weft run starts, see launch.Keep.
type keepCommand struct{}

// Run keeps.
func (*keepCommand) Run(*terminal) error {
	launch.Keep(os.Stdin)
	return nil
}
