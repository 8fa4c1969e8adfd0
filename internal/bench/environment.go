package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/weft-go/weft/fabric"
)

// Environment is what figures depend on. A figure without it says nothing.
type Environment struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	Kernel    string `json:"kernel"`
	Libfabric string `json:"libfabric"`
	Go        string `json:"go"`
	Commit    string `json:"commit"`
	Load      string `json:"load"`
}

// Unknown stands for what cannot be found out.
const Unknown = "Unknown"

// Describe looks at this machine.
func Describe(ctx context.Context) Environment {
	e := Environment{
		Processor: processor(), Cores: runtime.NumCPU(), Kernel: Unknown,
		Libfabric: fabric.LibraryVersion().String(), Go: runtime.Version(), Commit: commit(ctx), Load: Unknown,
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		e.Kernel = string(bytes.TrimSpace(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 0 {
			e.Load = fields[0]
		}
	}
	return e
}

// commit is what this program was built of: what the go command has put in, or, where it
// has not, what it was built from if that is where it runs.
func commit(ctx context.Context) string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return Unknown
	}
	revision, dirty := "", ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if revision != "" {
		return revision + dirty
	}
	module, err := Output(ctx, []string{"go", "list", "-m"})
	if err == nil && build.Main.Path != "" && strings.Contains("\n"+module+"\n", "\n"+build.Main.Path+"\n") {
		if text, err := Output(ctx, []string{"git", "describe", "--always", "--dirty", "--abbrev=12"}); err == nil {
			return text
		}
	}
	if build.Main.Version != "" {
		return build.Main.Version
	}
	return Unknown
}

func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return Unknown
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// Print prints one line.
func (e Environment) Print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d cores, load %s; Linux %s; libfabric %s; %s; commit %s\n",
		e.Processor, e.Cores, e.Load, e.Kernel, e.Libfabric, e.Go, e.Commit)
}
