package metrics

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

const counters = "class/infiniband/rdmap0s6/ports/1/hw_counters/"

func fakeSys(t *testing.T) fstest.MapFS {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/sys.txtar")
	require.NoError(t, err)
	sys := make(fstest.MapFS)
	for _, f := range archive.Files {
		sys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return sys
}

var readable = map[string]float64{
	`weft_efa_hw_tx_bytes_total{device="rdmap0s6",port="1"}`:                       1 << 64,
	`weft_efa_hw_rx_bytes_total{device="rdmap0s6",port="1"}`:                       900,
	`weft_efa_hw_submitted_cmds_total{device="rdmap0s6",port=""}`:                  4711,
	`weft_efa_hw_other_total{counter="invented_later",device="rdmap0s6",port="1"}`: 3,
	`weft_efa_hw_unreadable`: 4,
}

// What is a number is collected, of EFA devices only; what is none is counted.
func TestHardware(t *testing.T) {
	require.Equal(t, readable, gather(t, NewHardwareCollector(fakeSys(t))))
}

// The same from a real file system, where links lead to devices as in /sys.
func TestHardwareBehindLinks(t *testing.T) {
	sys := t.TempDir()
	require.NoError(t, os.CopyFS(path.Join(sys, "devices"), fakeSys(t)))
	require.NoError(t, os.Mkdir(path.Join(sys, "class"), 0o777))
	require.NoError(t, os.Mkdir(path.Join(sys, "class/infiniband"), 0o777))
	for _, device := range []string{"rdmap0s6", "mlx5_0", "nameless"} {
		require.NoError(t, os.Symlink("../../devices/class/infiniband/"+device, path.Join(sys, "class/infiniband", device)))
	}
	require.Equal(t, readable, gather(t, NewHardwareCollector(os.DirFS(sys))))
}

func TestNoHardware(t *testing.T) {
	nothing := map[string]float64{"weft_efa_hw_unreadable": 0}
	require.Equal(t, nothing, gather(t, NewHardwareCollector(fstest.MapFS{})))
	require.Equal(t, nothing, gather(t, NewHardwareCollector(fstest.MapFS{"class/infiniband": {Data: []byte("no folder")}})))
}

// A file that cannot be read is counted, and the others are collected.
func TestUnreadableHardware(t *testing.T) {
	want := map[string]float64{}
	for name, value := range readable {
		want[name] = value
	}
	delete(want, `weft_efa_hw_rx_bytes_total{device="rdmap0s6",port="1"}`)
	want["weft_efa_hw_unreadable"]++
	require.Equal(t, want, gather(t, NewHardwareCollector(forbidding{fakeSys(t), counters + "rx_bytes", 0})))
	// Some counts of a device fail when they are read.
	require.Equal(t, want, gather(t, NewHardwareCollector(forbidding{fakeSys(t), counters + "rx_bytes", 1})))
}

// forbidding is a file system of which a file cannot be opened, or read where read is 1.
type forbidding struct {
	fs.FS
	name string
	read int
}

func (f forbidding) Open(name string) (fs.File, error) {
	switch {
	case name != f.name:
		return f.FS.Open(name)
	case f.read == 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	file, err := f.FS.Open(name)
	return failing{file}, err
}

type failing struct{ fs.File }

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// However many files there are, and however long they are, little is read.
func TestHardwareIsBounded(t *testing.T) {
	sys := fstest.MapFS{}
	for device := range 2 * mostDevices {
		name := fmt.Sprintf("class/infiniband/efa%d/", device)
		sys[name+"device/vendor"] = &fstest.MapFile{Data: []byte(amazon + "\n")}
		for port := range 2 * mostPorts {
			sys[fmt.Sprintf("%sports/%d/hw_counters/tx_bytes", name, port)] = &fstest.MapFile{Data: []byte("1")}
		}
	}
	require.Len(t, gather(t, NewHardwareCollector(sys)), mostDevices*mostPorts+1)

	sys = fakeSys(t)
	for i := range 2 * mostCounts {
		sys[fmt.Sprint(counters, "a", i)] = &fstest.MapFile{Data: []byte("1")}
	}
	sys["class/infiniband/rdmap0s6/hw_counters/submitted_cmds"].Data = make([]byte, 1<<20)
	got := gather(t, NewHardwareCollector(sys))
	require.Len(t, got, mostCounts+1)
	require.EqualValues(t, 1, got["weft_efa_hw_unreadable"])

	line, err := readLine(one{}, "any")
	require.NoError(t, err)
	require.Len(t, line, mostDigits)
}

// one has a file without an end under every name.
type one struct{}

func (one) Open(string) (fs.File, error) { return endless{}, nil }

type endless struct{ fs.File }

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '7'
	}
	return len(b), nil
}

func (endless) Close() error { return nil }
