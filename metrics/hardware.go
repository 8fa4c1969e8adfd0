package metrics

import (
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// NewHardwareCollector collects what EFA devices count themselves, from the file system
// that is mounted at /sys: os.DirFS("/sys"). Devices of other makers are left out, and a
// machine without EFA has no counts. What a device counts is that of all programs on it.
func NewHardwareCollector(sys fs.FS) prometheus.Collector {
	return newCollector(hardwareMetrics, nil, func() hardware { return readHardware(sys) })
}

// What is read at most, whatever the file system has. An instance has up to 32 devices of
// one port, and the driver 12 counts of a device and 22 of a port.
const (
	mostDevices = 64
	mostPorts   = 4
	mostCounts  = 128
	mostDigits  = 64 // bytes of a file
)

// amazon is the vendor of EFA devices on the PCI bus.
const amazon = "0x1d0f"

// hardware is what was read.
type hardware struct {
	counts []hardwareCount
	// unreadable is how many files have no number.
	unreadable int
}

// hardwareCount is a file of a device; those that are not of a port have an empty one.
type hardwareCount struct {
	device, port, name string
	value              uint64
}

func readHardware(sys fs.FS) hardware {
	var h hardware
	const class = "class/infiniband"
	for _, device := range list(sys, class, mostDevices) {
		folder := path.Join(class, device.Name())
		if vendor, err := readLine(sys, path.Join(folder, "device/vendor")); err != nil || vendor != amazon {
			continue
		}
		h.read(sys, path.Join(folder, "hw_counters"), device.Name(), "")
		for _, port := range list(sys, path.Join(folder, "ports"), mostPorts) {
			h.read(sys, path.Join(folder, "ports", port.Name(), "hw_counters"), device.Name(), port.Name())
		}
	}
	return h
}

// read reads the counts of a folder.
func (h *hardware) read(sys fs.FS, folder, device, port string) {
	for _, file := range list(sys, folder, mostCounts) {
		// How often the driver asks the device, in milliseconds, is none.
		if !file.Type().IsRegular() || file.Name() == "lifespan" {
			continue
		}
		line, err := readLine(sys, path.Join(folder, file.Name()))
		var value uint64
		if err == nil {
			value, err = strconv.ParseUint(line, 10, 64)
		}
		if err != nil {
			h.unreadable++
			continue
		}
		h.counts = append(h.counts, hardwareCount{device, port, file.Name(), value})
	}
}

// list returns up to so many entries of a folder, none where there is no such folder.
func list(sys fs.FS, folder string, most int) []fs.DirEntry {
	f, err := sys.Open(folder)
	if err != nil {
		return nil
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	entries, _ := d.ReadDir(most) // what it has read before an error counts
	return entries
}

// readLine returns the beginning of a file.
func readLine(sys fs.FS, name string) (string, error) {
	f, err := sys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostDigits))
	return strings.TrimSpace(string(text)), err
}

const (
	hardwarePrefix = "weft_efa_hw_"
	otherHardware  = hardwarePrefix + "other_total"
)

// driverCounts are the files of the kernel's driver (drivers/infiniband/hw/efa/efa_verbs.c,
// Linux 6.13).
var driverCounts = []struct{ file, help string }{
	{"tx_bytes", "Bytes transmitted."},
	{"tx_pkts", "Packets transmitted."},
	{"rx_bytes", "Bytes received."},
	{"rx_pkts", "Packets received."},
	{"rx_drops", "Packets received and dropped."},
	{"send_bytes", "Bytes of sends."},
	{"send_wrs", "Sends."},
	{"recv_bytes", "Bytes of receives."},
	{"recv_wrs", "Receives."},
	{"rdma_read_bytes", "Bytes that reads of remote memory brought."},
	{"rdma_read_wrs", "Reads of remote memory."},
	{"rdma_read_wr_err", "Reads of remote memory that failed."},
	{"rdma_read_resp_bytes", "Bytes that were given to reads by others."},
	{"rdma_write_bytes", "Bytes that writes to remote memory took there."},
	{"rdma_write_wrs", "Writes to remote memory."},
	{"rdma_write_wr_err", "Writes to remote memory that failed."},
	{"rdma_write_recv_bytes", "Bytes that writes by others brought."},
	{"retrans_bytes", "Bytes that were transmitted again."},
	{"retrans_pkts", "Packets that were transmitted again."},
	{"retrans_timeout_events", "How often packets timed out, so that another path through the network was taken."},
	{"unresponsive_remote_events", "How often a remote device did not answer: its host is gone, or a security group blocks."},
	{"impaired_remote_conn_events", "How often the connection to a remote device became impaired."},
	{"submitted_cmds", "Commands to the device."},
	{"completed_cmds", "Commands that the device has completed."},
	{"cmds_err", "Commands that failed."},
	{"no_completion_cmds", "Commands that the device did not complete in time."},
	{"keep_alive_rcvd", "Signs of life of the device."},
	{"alloc_pd_err", "Protection domains that could not be made."},
	{"create_qp_err", "Queue pairs that could not be made."},
	{"create_cq_err", "Completion queues that could not be made."},
	{"reg_mr_err", "Memory that could not be registered."},
	{"alloc_ucontext_err", "Openings of the device that failed."},
	{"create_ah_err", "Addresses that could not be inserted."},
	{"mmap_err", "Mappings of the device's memory that failed."},
}

var hardwareMetrics = makeHardwareMetrics()

func makeHardwareMetrics() []metric[hardware] {
	var all []metric[hardware]
	known := make(map[string]bool)
	add := func(name, help string, labels []string, read func(h *hardware, tell func(float64, ...string))) {
		all = append(all, metric[hardware]{name, help, prometheus.CounterValue, labels, read})
	}
	for _, d := range driverCounts {
		known[d.file] = true
		add(hardwarePrefix+d.file+"_total", d.help, []string{"device", "port"}, func(h *hardware, tell func(float64, ...string)) {
			for _, c := range h.counts {
				if c.name == d.file {
					tell(float64(c.value), c.device, c.port)
				}
			}
		})
	}
	add(otherHardware, "Counts that this version of weft has no metric of its own for.", []string{"device", "port", "counter"},
		func(h *hardware, tell func(float64, ...string)) {
			for _, c := range h.counts {
				if !known[c.name] {
					tell(float64(c.value), c.device, c.port, c.name)
				}
			}
		})
	all = append(all, metric[hardware]{
		hardwarePrefix + "unreadable", "Files of counts that could not be read, or have no number, at this scrape.", prometheus.GaugeValue, nil,
		func(h *hardware, tell func(float64, ...string)) { tell(float64(h.unreadable)) },
	})
	return all
}
