package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/weft-go/weft/cmd/weft/internal/doctor"
	"github.com/weft-go/weft/fabric"
)

// askCommand is what doctor runs in a process of its own to ask libfabric: for some
// settings, providers end the process.
type askCommand struct{}

// Run prints a doctor.Library.
func (*askCommand) Run(t *terminal) error { return t.printJSON(whatLibrarySays()) }

// askLimit is plenty for a library that opens devices one after the other.
const askLimit = 2 * time.Minute

// askLibrary runs weft ask.
func askLibrary() doctor.Library {
	if err := fabric.Supported(); err != nil {
		return doctor.Library{Missing: detailOf(err)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	ask := exec.CommandContext(ctx, "/proc/self/exe", "ask")
	ask.Args[0] = os.Args[0]
	ask.Stdout, ask.Stderr = &stdout, &stderr
	err := ask.Run()
	var library doctor.Library
	if err == nil {
		err = json.Unmarshal(stdout.Bytes(), &library)
	}
	if err != nil {
		return doctor.Library{Died: err.Error(), Said: firstLines(stderr.String(), 5)}
	}
	return library
}

// firstLines are so many lines of a text, in one. What Go says of a crash begins with
// what it was.
func firstLines(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(most, len(lines))], "; ")
}

func whatLibrarySays() doctor.Library {
	var l doctor.Library
	l.Version, l.Headers = doctor.Version(fabric.LibraryVersion()), doctor.Version(fabric.HeaderVersion())
	infos, err := fabric.Discover(fabric.Hints{AttributesOnly: true})
	if err == nil {
		l.Providers = coreNames(infos)
	}
	variables, err := fabric.Variables()
	if err == nil {
		for _, v := range variables {
			l.Variables = append(l.Variables, v.Name)
		}
	}
	l.Needs = linkedWith("libfabric.so")
	quiet := slog.New(slog.DiscardHandler)
	choice, err := fabric.Choose(fabric.Preference{Providers: []string{"efa"}, Require: true, Logger: quiet})
	if err != nil {
		l.Refusal = reasonOf(err)
	} else {
		for _, i := range choice.Devices {
			l.Devices = append(l.Devices, i.Domain())
		}
		l.Failure = tryPort(choice.Info)
	}
	if choice, err = fabric.Choose(fabric.Preference{Logger: quiet}); err == nil {
		l.Chosen, _, _ = strings.Cut(choice.Info.Provider(), ";")
	}
	return l
}

// tryPort says why an endpoint cannot be opened, and is empty if it can.
func tryPort(i *fabric.Info) string {
	port, err := fabric.OpenPort(i, fabric.PortConfig{})
	if err == nil {
		err = port.Close()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// detailOf is what an error of fabric has to say beyond its code.
func detailOf(err error) string {
	var e *fabric.Error
	if errors.As(err, &e) && e.Detail != "" {
		return e.Detail
	}
	return err.Error()
}

// linkedWith lists what a library that this process has loaded was linked with.
func linkedWith(prefix string) []string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.Contains(fields[5], "/"+prefix) {
			continue
		}
		file, err := elf.Open(fields[5])
		if err != nil {
			return nil
		}
		defer file.Close()
		needs, _ := file.ImportedLibraries() // none where it is not to be read
		return needs
	}
	return nil
}
