package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/weft-go/weft/cmd/weft/internal/doctor"
)

type doctorCommand struct {
	Pid  int  `help:"Look at the settings and limits of this process instead of weft's own."`
	All  bool `help:"Print what is as it should be, too."`
	JSON bool `help:"Print as JSON."`
}

// diagnosis is an error for the exit code; the report has said it all.
type diagnosis struct{ severity doctor.Severity }

func (d *diagnosis) Error() string {
	return fmt.Sprintf("the worst finding is a %s; docs/doctor.md has each, its cause and its remedy", d.severity)
}

// ExitCode goes by the severity.
func (d *diagnosis) ExitCode() int {
	if d.severity == doctor.Problem {
		return exitNoProvider
	}
	return exitWarnings
}

// Run reports what keeps this machine from using EFA.
func (c *doctorCommand) Run(t *terminal) error {
	if c.Pid < 0 {
		return &usageError{fmt.Sprintf("--pid=%d is not the number of a process; see weft doctor --help", c.Pid)}
	}
	system := doctor.System{Root: os.DirFS("/"), Open: openDevice, Peek: peek, Library: askLibrary()}
	if c.Pid > 0 {
		if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(c.Pid))); err != nil {
			return fmt.Errorf("there is no process %d: %w", c.Pid, err)
		}
		// What is forbidden to another process, this one cannot try.
		system.Process, system.Peek = strconv.Itoa(c.Pid), nil
	}
	report := doctor.Examine(system)
	var err error
	if c.JSON {
		err = t.printJSON(report)
	} else {
		err = report.Print(t.stdout, c.All)
	}
	if report.Severity > doctor.Note {
		return errors.Join(err, &diagnosis{report.Severity})
	}
	return err
}

// openDevice opens a device as rdma-core does, and leaves it at that.
func openDevice(name string) error {
	f, err := os.OpenFile("/"+name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
