package fabric_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Without the capability, an address of a device must not be taken for the
// host's.
func TestDeviceMemoryNeedsItsCapability(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, rmaHints(provider))
		memory := arena(t, 4096).Bytes()
		for _, i := range []fabric.MemoryInterface{
			fabric.SystemMemory, fabric.CUDAMemory, fabric.ROCRMemory, fabric.LevelZeroMemory, fabric.NeuronMemory, fabric.SynapseAIMemory,
		} {
			_, err := s.domain.RegisterDevice(fabric.DeviceMemory{Interface: i, Address: addressOf(memory), Length: 4096}, fabric.RegionConfig{})
			require.ErrorIs(t, err, fabric.ErrNotSupported, i.String())
		}
		for _, m := range []fabric.DeviceMemory{
			{Interface: 99, Address: addressOf(memory), Length: 4096},
			{Interface: fabric.CUDAMemory, Length: 4096},
			{Interface: fabric.CUDAMemory, Address: addressOf(memory)},
			{Interface: fabric.CUDAMemory, Address: addressOf(memory), Length: 4096, Device: -1},
		} {
			_, err := s.domain.RegisterDevice(m, fabric.RegionConfig{})
			require.ErrorIs(t, err, fabric.ErrInvalid)
		}
		_, err := s.domain.RegisterDMABuf(fabric.DMABuf{File: 0, Length: 4096}, fabric.RegionConfig{})
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		_, err = s.domain.RegisterDMABuf(fabric.DMABuf{Length: 4096, Offset: math.MaxUint64}, fabric.RegionConfig{})
		require.ErrorIs(t, err, fabric.ErrInvalid)
		for _, file := range []int{-1, 1 << 32, math.MaxInt} {
			_, err = s.domain.RegisterDMABuf(fabric.DMABuf{File: file, Length: 4096}, fabric.RegionConfig{})
			require.ErrorIs(t, err, fabric.ErrInvalid, "%d", file)
		}
	})
}

func TestMemoryInterfaceInWords(t *testing.T) {
	require.Equal(t, "cuda", fabric.CUDAMemory.String())
	require.Equal(t, "memory interface 99", fabric.MemoryInterface(99).String())
	require.Equal(t, 1<<16|2, fabric.LevelZeroDevice(1, 2))
}
