package collective

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Memory that two have mapped is the same, and stays for the one when the other has given it up.
func TestSharedIsMapped(t *testing.T) {
	const size = 3 * pageSize
	s, mine, err := newShared(size)
	require.NoError(t, err)
	process, descriptor := s.name()
	theirs, err := mapShared(process, descriptor, size)
	require.NoError(t, err)
	mine[size-1] = 7
	require.Equal(t, byte(7), theirs[size-1])
	require.NoError(t, unmapShared(mine))
	require.NoError(t, s.close())
	theirs[0]++
	require.NoError(t, unmapShared(theirs))
	_, err = mapShared(process, descriptor, size)
	require.Error(t, err)
}

// What could be anything else, or could be cut off under whoever looks at it, is not mapped.
func TestOtherMemoryIsNotMapped(t *testing.T) {
	const size = pageSize
	process := uint64(os.Getpid())
	memfd := func(name string, seals int) int {
		t.Helper()
		fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
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
	for name, fd := range map[string]int{
		"a pipe":            int(read.Fd()),
		"of another name":   memfd("something", sealed),
		"it may be cut off": memfd(sharedName, unix.F_SEAL_GROW|unix.F_SEAL_SEAL),
		"not sealed":        memfd(sharedName, 0),
		"nothing":           1 << 20,
	} {
		_, err := mapShared(process, uint64(fd), size)
		require.Error(t, err, name)
	}
	right := uint64(memfd(sharedName, sealed))
	_, err = mapShared(process, right, size+1)
	require.Error(t, err)
	_, err = mapShared(1<<64-1, right, size)
	require.Error(t, err)
	memory, err := mapShared(process, right, size)
	require.NoError(t, err)
	require.NoError(t, unmapShared(memory))
}
