package transfer

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFailureAtTheSenderIsToldToTheReceiver(t *testing.T) {
	from := t.TempDir()
	write(t, filepath.Join(from, "top", "a"), []byte("a"), 0o644)
	deep := filepath.Join(from, "top", "deep")
	for range MaxDepth {
		deep = filepath.Join(deep, "d")
	}
	require.NoError(t, os.MkdirAll(deep, 0o755))
	for name, c := range map[string]struct {
		paths []string
		stays []string // of what is not a folder
	}{
		// Open works, reading does not: also for root.
		"unreadable": {[]string{filepath.Join(from, "top", "a"), "/proc/self/mem"}, []string{"a"}},
		"too deep":   {[]string{filepath.Join(from, "top")}, []string{"top/a"}},
		// Its size is 0, its content is not.
		"growing": {[]string{"/proc/self/cmdline"}, nil},
	} {
		to := t.TempDir()
		sent, received := run(t, sourcesOf(t, c.paths...), to, nil)
		var file *FileError
		require.ErrorAs(t, sent.err, &file, name)
		var peer *PeerError
		require.ErrorAs(t, received.err, &peer, name)
		require.Equal(t, "sender", peer.Side)
		require.Contains(t, received.err.Error(), file.Err.Error())
		require.False(t, sent.Verified)
		require.False(t, received.Verified)
		var left []string
		for path, n := range tree(t, to) {
			if !n.mode.IsDir() {
				left = append(left, path)
			}
		}
		require.Equal(t, c.stays, left, name)
	}
}

// A file that changes under the reader is neither what it was nor what it is,
// so that there is nothing to verify it against.
func TestFileThatChangesWhileItIsSent(t *testing.T) {
	for want, change := range map[string]func(path string) error{
		"it shrank by ":     func(path string) error { return os.Truncate(path, MaxMessage) },
		"it grew beyond ":   func(path string) error { return os.Truncate(path, 20*MaxMessage) },
		"it was written to": func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
	} {
		from, to := t.TempDir(), t.TempDir()
		path := filepath.Join(from, "name")
		write(t, path, random(10*MaxMessage), 0o644)
		a, b := memoryPair()
		var once sync.Once
		var changeErr error
		sent, received := carry(t, a, b, sourcesOf(t, path), openRoot(t, to), Options{
			Progress: func(int) { once.Do(func() { changeErr = change(path) }) },
		}, Options{})
		require.NoError(t, changeErr)
		require.ErrorContains(t, sent.err, want)
		require.False(t, sent.Verified)
		require.ErrorContains(t, received.err, want)
		require.Empty(t, tree(t, to))
	}
}

func TestFailureAtTheReceiverIsToldToTheSender(t *testing.T) {
	from := t.TempDir()
	write(t, filepath.Join(from, "name"), random(20*MaxMessage), 0o644)
	write(t, filepath.Join(from, "folder", "name"), []byte("x"), 0o644)
	outside := t.TempDir()
	for name, obstacle := range map[string]struct {
		source string
		place  func(dir string) error
	}{
		"a folder in the file's place":  {"name", func(dir string) error { return os.Mkdir(filepath.Join(dir, "name"), 0o755) }},
		"a file in the folder's place":  {"folder", func(dir string) error { return os.WriteFile(filepath.Join(dir, "folder"), nil, 0o644) }},
		"a link in the folder's place":  {"folder", func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "folder")) }},
		"a link to the folder itself":   {"folder", func(dir string) error { return os.Symlink(".", filepath.Join(dir, "folder")) }},
		"the receiver's folder is gone": {"name", os.Remove},
	} {
		to := t.TempDir()
		root := openRoot(t, to)
		require.NoError(t, obstacle.place(to))
		a, b := memoryPair()
		sent, received := carry(t, a, b, sourcesOf(t, filepath.Join(from, obstacle.source)), root, Options{}, Options{})
		var file *FileError
		require.ErrorAs(t, received.err, &file, name)
		require.Equal(t, obstacle.source, strings.Split(file.Name, "/")[0], name)
		var peer *PeerError
		require.ErrorAs(t, sent.err, &peer, name)
		require.Equal(t, "receiver", peer.Side)
		require.Contains(t, peer.Text, file.Err.Error())
		require.Empty(t, tree(t, outside), name)
	}
}
