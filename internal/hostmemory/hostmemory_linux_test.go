package hostmemory

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	name     = "weft-test"
	pageSize = 4096
)

// Memory that two have mapped is the same, and stays for the one when the other has given it up.
func TestSharedIsMapped(t *testing.T) {
	const size = 3 * pageSize
	m, err := New(name, size)
	require.NoError(t, err)
	process, descriptor := m.Name()
	theirs, err := Map(name, process, descriptor, size)
	require.NoError(t, err)
	m.Bytes[size-1] = 7
	require.Equal(t, byte(7), theirs[size-1])
	require.NoError(t, m.Close())
	theirs[0]++
	require.NoError(t, Unmap(theirs))
	_, err = Map(name, process, descriptor, size)
	require.Error(t, err)
}

// What could be anything else, or could be cut off under whoever looks at it, is not mapped.
func TestOtherMemoryIsNotMapped(t *testing.T) {
	const size = pageSize
	process := uint64(os.Getpid())
	memfd := func(called string, seals int) int {
		t.Helper()
		fd, err := unix.MemfdCreate(called, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, unix.Close(fd)) })
		require.NoError(t, unix.Ftruncate(fd, size))
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		require.NoError(t, err)
		return fd
	}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	for what, fd := range map[string]int{
		"a pipe":            int(read.Fd()),
		"of another name":   memfd("something", sealed),
		"of a longer name":  memfd(name+"s", sealed),
		"it may be cut off": memfd(name, unix.F_SEAL_GROW|unix.F_SEAL_SEAL),
		"not sealed":        memfd(name, 0),
		"nothing":           1 << 20,
	} {
		_, err := Map(name, process, uint64(fd), size)
		require.Error(t, err, what)
	}
	sparse := memfd(name, sealed)
	_, err = Map(name, process, uint64(sparse), size)
	require.Error(t, err)
	require.NoError(t, unix.Fallocate(sparse, 0, 0, size))
	right := uint64(sparse)
	_, err = Map(name, process, right, size+1)
	require.Error(t, err)
	_, err = Map(name, 1<<64-1, right, size)
	require.Error(t, err)
	memory, err := Map(name, process, right, size)
	require.NoError(t, err)
	require.NoError(t, Unmap(memory))
}
