// Command coverage says how much of libfabric is bound: it reads the functions
// of the installed headers and the "Implements:" lines of packages cgo and
// fabric, and writes docs/coverage.md. Functions that are not bound stand there
// with the reason that reasons.txt gives, and so do the flags, modes and other numbers
// of the headers that package cgo does not name, with that of numbers.txt.
//
// It fails if a function is claimed that cgo never calls, if a function has
// neither a binding nor a reason, and a number neither, and if less than 95 % is bound of what is
// neither deprecated nor internal to providers. It is run from the root of the
// repository.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	headers := flag.String("headers", "", "the folder with fabric.h (default: the one of pkg-config)")
	output := flag.String("o", filepath.Join("docs", "coverage.md"), "where to write, - for the standard output")
	flag.Parse()
	if err := run(".", *headers, *output); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

func run(root, headers, output string) error {
	report, err := look(root, headers)
	if err != nil {
		return err
	}
	text := report.markdown()
	if output == "-" {
		_, err = os.Stdout.WriteString(text)
	} else if err = os.MkdirAll(filepath.Dir(output), 0o755); err == nil {
		err = os.WriteFile(output, []byte(text), 0o644)
	}
	return errors.Join(err, report.problems())
}

// look puts the headers, the sources below root and the reasons together.
func look(root, headers string) (*coverage, error) {
	if headers == "" {
		var err error
		if headers, err = installed(); err != nil {
			return nil, err
		}
	}
	version, functions, err := readHeaders(headers)
	if err != nil {
		return nil, err
	}
	reasons, err := readReasons(filepath.Join(root, "scripts", "coverage", "reasons.txt"))
	if err != nil {
		return nil, err
	}
	sources, err := readSources(root)
	if err != nil {
		return nil, err
	}
	sources.through(functions)
	constants, err := readConstants(headers)
	if err != nil {
		return nil, err
	}
	why, err := readReasons(filepath.Join(root, "scripts", "coverage", "numbers.txt"))
	if err != nil {
		return nil, err
	}
	explain(constants, sources.named, why)
	c := cover(version, functions, sources, reasons)
	c.constants = constants
	return c, nil
}

// installed is where libfabric's headers are.
func installed() (string, error) {
	out, err := exec.Command("pkg-config", "--variable=includedir", "libfabric").Output()
	if err != nil {
		return "", fmt.Errorf("pkg-config does not know libfabric: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "rdma"), nil
}
