package fabric_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a killed process with the same id has left in /dev/shm, or one of another
// container that shares it uses still, keeps nobody from opening endpoints, and stays.
func TestNameIsTaken(t *testing.T) {
	info := strewInfo(t, "shm")
	f, d := partsOf(t, info)
	first := openStation(t, f, d, info)
	path := nameOf(t, first)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	// The names that come next.
	at := strings.LastIndexByte(path, ':') + 1
	last, err := strconv.Atoi(path[at:])
	require.NoError(t, err)
	taken := make(map[string]os.FileInfo)
	for i := range 3 {
		next := path[:at] + strconv.Itoa(last+1+i)
		require.NoError(t, os.WriteFile(next, content, 0o600))
		t.Cleanup(func() { require.NoError(t, os.Remove(next)) })
		taken[next], err = os.Lstat(next)
		require.NoError(t, err)
	}
	a, b := openStation(t, f, d, info), openStation(t, f, d, info)
	require.NotEqual(t, nameOf(t, a), nameOf(t, b))
	toB, toA := a.insert(t, b), b.insert(t, a)
	orderly(t, a, b, toB, toA)
	for name, before := range taken {
		now, err := os.Lstat(name)
		require.NoError(t, err)
		require.True(t, os.SameFile(before, now), name)
		require.NotContains(t, []string{nameOf(t, a), nameOf(t, b)}, name)
	}
}

// nameOf is the file of an endpoint on shm.
func nameOf(t *testing.T, s *station) string {
	t.Helper()
	name, err := s.e.Name()
	require.NoError(t, err)
	plain, _, _ := strings.Cut(strings.TrimPrefix(string(name), "fi_shm://"), "\x00")
	return filepath.Join("/dev/shm", plain)
}
