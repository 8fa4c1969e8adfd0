package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/weft-go/weft/fabric"
)

// environment is what figures depend on. A figure without it says nothing.
type environment struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	Kernel    string `json:"kernel"`
	Libfabric string `json:"libfabric"`
	Go        string `json:"go"`
	Commit    string `json:"commit"`
	Load      string `json:"load"`
}

const unknown = "unknown"

func describeEnvironment(ctx context.Context) environment {
	e := environment{
		Processor: processor(), Cores: runtime.NumCPU(), Kernel: unknown,
		Libfabric: fabric.LibraryVersion().String(), Go: runtime.Version(), Commit: unknown, Load: unknown,
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		e.Kernel = string(bytes.TrimSpace(b))
	}
	if text, err := output(ctx, []string{"git", "describe", "--always", "--dirty", "--abbrev=12"}); err == nil {
		e.Commit = text
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 0 {
			e.Load = fields[0]
		}
	}
	return e
}

func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func (e environment) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d cores, load %s; Linux %s; libfabric %s; %s; commit %s\n",
		e.Processor, e.Cores, e.Load, e.Kernel, e.Libfabric, e.Go, e.Commit)
}
