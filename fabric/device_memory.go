package fabric

import (
	"math"
	"strconv"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// MemoryInterface is what memory of a device was allocated with (enum
// fi_hmem_iface).
type MemoryInterface int32

// The memory interfaces.
const (
	SystemMemory    MemoryInterface = MemoryInterface(cgo.InterfaceSystem)    // FI_HMEM_SYSTEM: the host's
	CUDAMemory      MemoryInterface = MemoryInterface(cgo.InterfaceCUDA)      // FI_HMEM_CUDA: NVIDIA
	ROCRMemory      MemoryInterface = MemoryInterface(cgo.InterfaceROCR)      // FI_HMEM_ROCR: AMD
	LevelZeroMemory MemoryInterface = MemoryInterface(cgo.InterfaceLevelZero) // FI_HMEM_ZE: Intel
	NeuronMemory    MemoryInterface = MemoryInterface(cgo.InterfaceNeuron)    // FI_HMEM_NEURON: AWS
	SynapseAIMemory MemoryInterface = MemoryInterface(cgo.InterfaceSynapseAI) // FI_HMEM_SYNAPSEAI: Habana
)

var interfaceNames = names[MemoryInterface]{
	SystemMemory: "system", CUDAMemory: "cuda", ROCRMemory: "rocr", LevelZeroMemory: "ze",
	NeuronMemory: "neuron", SynapseAIMemory: "synapseai",
}

// String is libfabric's name of the interface.
func (i MemoryInterface) String() string { return interfaceNames.numbered(i, "memory interface ") }

// LevelZeroDevice is the Device of a driver and a device of oneAPI Level Zero
// (fi_hmem_ze_device).
func LevelZeroDevice(driver, device int) int { return cgo.LevelZeroDevice(driver, device) }

// DeviceMemory is memory of an accelerator, which Go cannot look at.
type DeviceMemory struct {
	Interface MemoryInterface // what it was allocated with
	Device    int             // as the interface numbers its devices
	Address   uintptr         // as the interface gave it
	Length    uint64          // bytes
}

// DMABuf is a part of a dma-buf, memory that the kernel knows by a descriptor.
type DMABuf struct {
	Interface MemoryInterface // what it was allocated with
	Device    int             // as the interface numbers its devices
	File      int             // the descriptor; it may be closed after registration
	Offset    uint64          // where the part begins in the dma-buf
	Length    uint64          // bytes
	// Address is where peers see it begin in domains with virtual addresses,
	// and where it is mapped, if it is.
	Address uintptr
}

// RegisterDevice makes memory of a device known to the domain, whose info must
// have the capability FI_HMEM; otherwise it is ErrNotSupported. The memory must
// stay allocated until Close of the region. ErrInvalid says what is wrong with it.
//
// Implements: int fi_mr_regattr(...)
func (d *Domain) RegisterDevice(m DeviceMemory, c RegionConfig) (*Region, error) {
	req := cgo.RegionRequest{Interface: int32(m.Interface)}
	return d.registerDevice(&req, m.Interface, m.Device, segment{m.Address, m.Length}, c)
}

// RegisterDMABuf makes a part of a dma-buf known to the domain. It needs
// libfabric 1.20 or newer, and a domain whose info has the capability FI_HMEM;
// otherwise it is ErrNotSupported. ErrInvalid says what is wrong with the part; whether
// the file is a dma-buf, not all providers look.
//
// Implements: int fi_mr_regattr(...)
func (d *Domain) RegisterDMABuf(m DMABuf, c RegionConfig) (*Region, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	// libfabric's are of 32 bits: more would be cut off to another file.
	if m.File < 0 || m.File > math.MaxInt32 {
		return nil, d.invalidRegion(strconv.Itoa(m.File) + " is no file descriptor")
	}
	if m.Length > ^uint64(0)-m.Offset {
		return nil, d.invalidRegion("the part ends beyond the last offset")
	}
	if !cgo.HasDMABuf() {
		return nil, &Error{
			Op: "fi_mr_regattr", Provider: d.provider, Errno: Errno(syscall.ENOSYS),
			Detail: "dma-buf needs libfabric 1.20, this is " + LibraryVersion().String() + " built for " + HeaderVersion().String(),
		}
	}
	req := cgo.RegionRequest{
		Interface: int32(m.Interface),
		DMABuf:    1, DMABufFile: int32(m.File), DMABufOffset: m.Offset,
	}
	return d.registerDevice(&req, m.Interface, m.Device, segment{m.Address, m.Length}, c)
}

func (d *Domain) registerDevice(req *cgo.RegionRequest, i MemoryInterface, device int, s segment, c RegionConfig) (*Region, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if interfaceNames[i] == "" {
		return nil, d.invalidRegion("there is no " + i.String())
	}
	if device < 0 {
		return nil, d.invalidRegion(strconv.Itoa(device) + " is no device")
	}
	req.Device = uint64(device)
	if s.length == 0 || (s.base == 0 && req.DMABuf == 0) {
		return nil, d.invalidRegion("no memory to register")
	}
	// Without the capability a provider takes the address for the host's.
	if d.info.a.Caps&cgo.DeviceCapability == 0 {
		return nil, &Error{
			Op: "fi_mr_regattr", Provider: d.provider, Errno: Errno(syscall.EOPNOTSUPP),
			Detail: "the domain's info does not have the capability for memory of devices (FI_HMEM)",
		}
	}
	r := d.newRegion(c)
	r.ofDevice = i != SystemMemory
	if r.ofDevice {
		d.ofDevices.Store(true)
	}
	r.segments = []segment{s}
	if err := r.check(c); err != nil {
		return nil, err
	}
	r.fill(req, c)
	err := r.register(c, "fi_mr_regattr", func(key uint64) (cgo.Region, cgo.Code) {
		req.Key = key
		return d.raw.RegisterAttributes(req, c.AuthKey)
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}
