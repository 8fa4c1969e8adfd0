package fabric_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
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

// An endpoint that has the name of one that is closed is none for those of its process, where libfabric 1.x
// looks for it in the memory of the closed one: neither can insert the other. A name of libfabric's own is
// not given again at all.
func TestNameOfClosedEndpoint(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		if provider != "shm" {
			return
		}
		info := strewInfo(t, "shm")
		f, d := partsOf(t, info)
		other := openStation(t, f, d, info)
		again := func(name []byte, know bool) (*station, error) {
			s := &station{info: info, fabric: f, domain: d, events: eventsOf(t, f)}
			s.q, s.v, s.e = queueOf(t, d, 64), vectorOf(t, d), endpointOf(t, d)
			require.NoError(t, s.e.SetName(name))
			if know {
				s.peer = s.insert(t, other)
			}
			return s, s.e.Enable(s.v, s.q, s.events)
		}
		nobody := openStation(t, f, d, info)
		name, err := nobody.e.Name()
		require.NoError(t, err)
		require.NoError(t, nobody.e.Close())
		s, err := again(name, true)
		require.NoError(t, err)
		s.must(t, other, fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: 1})
		arrive(t, s, other, fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: 2})
		require.NotEqual(t, string(name), string(nameBytes(t, s)))

		own := fmt.Appendf(nil, "fi_shm://weft-test-own-%d\x00", os.Getpid())
		s, err = again(own, false)
		require.NoError(t, err)
		require.NoError(t, s.e.Close())
		s, err = again(own, false)
		require.NoError(t, err, "it may be for other processes")
		_, err = other.v.Insert(own)
		require.ErrorIs(t, err, fabric.ErrNotFound)
		if fabric.LibraryVersion().Major >= 2 {
			return
		}
		_, err = s.v.Insert(nameBytes(t, other))
		require.ErrorContains(t, err, "has the name of an endpoint of this process that is closed")
		require.NoError(t, s.e.Close())
		_, err = again(own, true)
		require.ErrorContains(t, err, "has the name of an endpoint of this process that is closed")
	})
}

func nameBytes(t *testing.T, s *station) []byte {
	t.Helper()
	name, err := s.e.Name()
	require.NoError(t, err)
	return name
}
