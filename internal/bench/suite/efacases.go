package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-go/weft/internal/bench"
)

// The benchmarks of libfabric's efa provider on the emulated device, beside the same
// work over tcp in the same run. They say what the provider and the emulation cost, and
// nothing about the hardware.

const emulated = "EFA"

// onDevice runs a program on the emulated device: as it is if this process is on it
// already, and else by scripts/with-efa.
func onDevice(program pairProgram, launcher []string) pairProgram {
	return func(t *tools) []string { return slices.Concat(launcher, program(t)) }
}

// withEFA is the command that runs others on the emulated device.
func withEFA() ([]string, error) {
	if strings.Contains(os.Getenv("LD_PRELOAD"), "libweft-efa-emulator") {
		return nil, nil
	}
	folder, err := os.Getwd()
	for err == nil {
		script := filepath.Join(folder, "scripts", "with-efa")
		if _, missing := os.Stat(script); missing == nil {
			return []string{script}, nil
		}
		if folder == filepath.Dir(folder) {
			return nil, errors.New("there is no scripts/with-efa in this folder or above it: run it in weft's repository")
		}
		folder = filepath.Dir(folder)
	}
	return nil, err
}

// over has a measure made of a program on a provider.
func over(provider string, program pairProgram, made func(pairProgram) measure) measure {
	return func(ctx context.Context, t *tools, o order) (bench.Sample, error) {
		o.provider, o.source = provider, ipSource(provider)
		if provider != "efa" {
			return made(program)(ctx, t, o)
		}
		launcher, err := withEFA()
		if err != nil {
			return bench.Sample{}, err
		}
		return made(onDevice(program, launcher))(ctx, t, o)
	}
}

// deviceBenchmark is work of connections on efa, beside tcp.
func deviceBenchmark(work string, o order, unit unit, options sideOptions, made func(pairProgram) measure) benchmark {
	program := weftSide(options)
	return benchmark{
		id: emulated, provider: "efa", work: work + ", emulated", order: o, unit: unit,
		weft:      over("efa", program, made),
		baselines: []baseline{{"weft over tcp", over("tcp", program, made), 0}},
	}
}

// deviceOneWay is a ping-pong; what is told is one way.
func deviceOneWay(count int) benchmark {
	const size = 64
	o := orderFor(pingPongWork, "efa", count, 1)
	o.size = size
	return deviceBenchmark(fmt.Sprintf("%d B connection ping-pong, one way", size), o, microseconds,
		sideOptions{over: overConn}, perOperation)
}

// deviceLarge is large writes in one direction.
func deviceLarge(count int) benchmark {
	const size = 1 << 20
	o := orderFor(floodWork, "efa", count, 4)
	o.size = size
	return deviceBenchmark("1 MiB connection writes by SendZeroCopy", o, bytesPerSecond(size),
		sideOptions{over: overConn, sender: senderFragments}, operationsPerSecond)
}
