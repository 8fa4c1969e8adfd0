package transfer

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// node is what a test compares of a file or folder.
type node struct {
	mode     fs.FileMode
	content  string
	modified int64
}

func tree(t *testing.T, dir string) map[string]node {
	t.Helper()
	nodes := make(map[string]node)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if path == dir {
			return nil
		}
		info, err := d.Info()
		require.NoError(t, err)
		n := node{mode: info.Mode(), modified: info.ModTime().UnixNano()}
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			n.content = string(content)
		}
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		nodes[name] = n
		return nil
	})
	require.NoError(t, err)
	return nodes
}

func write(t *testing.T, path string, content []byte, mode fs.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o600))
	require.NoError(t, os.Chmod(path, mode))
}

func sourcesOf(t *testing.T, paths ...string) []Source {
	t.Helper()
	sources, err := Sources(paths)
	require.NoError(t, err)
	return sources
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func TestTreeArrivesAsItWas(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	top := filepath.Join(from, "top")
	for _, n := range []int{0, 1, minimumData, MaxMessage - recordPrefix, MaxMessage, MaxMessage + 1, 3*MaxMessage + 17} {
		write(t, filepath.Join(top, "sizes", "of "+string(rune('a'+n%26))+"\xff\\", "f"+strings.Repeat("x", n%200)), random(n), 0o640)
	}
	write(t, filepath.Join(top, "run"), []byte("#!/bin/sh\n"), 0o755)
	write(t, filepath.Join(top, "closed", "secret"), []byte("s"), 0o400)
	require.NoError(t, os.MkdirAll(filepath.Join(top, "empty", "emptier"), 0o755))
	for i := range 300 {
		write(t, filepath.Join(top, "many", strings.Repeat("n", 1+i%100)+string(rune('A'+i/100))), random(i*7), 0o644)
	}
	old := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	require.NoError(t, os.Chtimes(filepath.Join(top, "run"), old, old))
	require.NoError(t, os.Chtimes(filepath.Join(top, "closed"), old, old))
	require.NoError(t, os.Chmod(filepath.Join(top, "closed"), 0o555))
	t.Cleanup(func() { // or only root could remove it
		for _, dir := range []string{from, to} {
			_ = os.Chmod(filepath.Join(dir, "top", "closed"), 0o755)
		}
	})
	write(t, filepath.Join(from, "single"), []byte("alone"), 0o604)

	sources := sourcesOf(t, top+"/", filepath.Join(from, "single"))
	for range 2 { // the second time over what is there, into a folder without write permission
		sent, received := run(t, sources, to, nil)
		require.NoError(t, received.err)
		require.NoError(t, sent.err)
		require.Equal(t, tree(t, from), tree(t, to))

		require.True(t, sent.Verified)
		require.True(t, received.Verified)
		require.Positive(t, sent.Elapsed)
		sent.Elapsed, received.Elapsed = 0, 0
		require.Equal(t, sent, received)
		var files, bytes int64
		for _, n := range tree(t, from) {
			if n.mode.IsRegular() {
				files, bytes = files+1, bytes+int64(len(n.content))
			}
		}
		require.Equal(t, files, sent.Files)
		require.Equal(t, bytes, sent.Bytes)
		require.Equal(t, int64(len(tree(t, from)))-files, sent.Folders)
		require.Equal(t, bytes, Measure(t.Context(), sources))
	}
}

func TestLinksAndSpecialFilesAreSkipped(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	top := filepath.Join(from, "top")
	write(t, filepath.Join(top, "file"), []byte("f"), 0o644)
	write(t, filepath.Join(top, partialName()), []byte("half"), 0o600)
	require.NoError(t, os.Symlink("file", filepath.Join(top, "link")))
	require.NoError(t, os.Symlink("/", filepath.Join(top, "everything")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(top, "pipe"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(top, "file"), filepath.Join(from, "named")))

	sent, received := run(t, sourcesOf(t, top, filepath.Join(from, "named")), to, nil)
	require.NoError(t, sent.err)
	require.NoError(t, received.err)
	require.Equal(t, int64(4), sent.Skipped)
	require.Equal(t, int64(4), received.Skipped)
	require.Equal(t, int64(2), sent.Files)
	require.Len(t, tree(t, to), 3)
	require.Equal(t, "f", tree(t, to)["named"].content)
	require.True(t, tree(t, to)["named"].mode.IsRegular())
}

func TestSourcesThatCannotBeSent(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a", "same"), nil, 0o644)
	write(t, filepath.Join(dir, "b", "same"), nil, 0o644)
	for name, paths := range map[string][]string{
		"missing":         {filepath.Join(dir, "none")},
		"device":          {"/dev/null"},
		"root":            {"/"},
		"same name twice": {filepath.Join(dir, "a", "same"), filepath.Join(dir, "b", "same")},
	} {
		_, err := Sources(paths)
		var file *FileError
		require.ErrorAs(t, err, &file, name)
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, filepath.Base(here), sourcesOf(t, ".")[0].name)
}

// requireClean asserts that a failed transfer left neither name nor partial
// file in dir.
func requireClean(t *testing.T, dir, name string) {
	t.Helper()
	for path := range tree(t, dir) {
		require.False(t, isPartial(filepath.Base(path)), path)
		require.NotEqual(t, name, filepath.Base(path))
	}
}

func TestFailureAtTheSenderIsToldToTheReceiver(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "top", "a"), []byte("a"), 0o644)
	deep := filepath.Join(from, "top", "deep")
	for range MaxDepth {
		deep = filepath.Join(deep, "d")
	}
	require.NoError(t, os.MkdirAll(deep, 0o755))
	for name, paths := range map[string][]string{
		// Open works, reading does not: also for root.
		"mem":        {filepath.Join(from, "top", "a"), "/proc/self/mem"},
		"something":  {filepath.Join(from, "top")},
		"cmdline":    {"/proc/self/cmdline"}, // its size is 0, its content is not
		"grown-late": {"/proc/self/environ"},
	} {
		sent, received := run(t, sourcesOf(t, paths...), to, nil)
		var file *FileError
		require.ErrorAs(t, sent.err, &file, name)
		var peer *PeerError
		require.ErrorAs(t, received.err, &peer, name)
		require.Equal(t, "sender", peer.Side)
		require.Contains(t, received.err.Error(), file.Err.Error())
		require.False(t, sent.Verified)
		require.False(t, received.Verified)
		requireClean(t, to, filepath.Base(paths[len(paths)-1])+"/")
		requireClean(t, to, "mem")
		requireClean(t, to, "cmdline")
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
		root, err := os.OpenRoot(to)
		require.NoError(t, err)
		a, b := memoryPair()
		done := make(chan outcome)
		go func() {
			summary, err := Receive(t.Context(), b, root, Options{})
			b.Close()
			done <- outcome{summary, err}
		}()
		var once sync.Once
		var changeErr error
		summary, err := Send(t.Context(), a, sourcesOf(t, path), Options{
			Progress: func(int) { once.Do(func() { changeErr = change(path) }) },
		})
		a.Close()
		received := <-done
		require.NoError(t, root.Close())
		require.NoError(t, changeErr)
		require.ErrorContains(t, err, want)
		require.False(t, summary.Verified)
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
		root, err := os.OpenRoot(to)
		require.NoError(t, err)
		require.NoError(t, obstacle.place(to))
		a, b := memoryPair()
		done := make(chan outcome)
		go func() {
			summary, err := Receive(t.Context(), b, root, Options{})
			b.Close()
			done <- outcome{summary, err}
		}()
		_, sendErr := Send(t.Context(), a, sourcesOf(t, filepath.Join(from, obstacle.source)), Options{})
		a.Close()
		received := <-done
		require.NoError(t, root.Close())
		var file *FileError
		require.ErrorAs(t, received.err, &file, name)
		require.Equal(t, obstacle.source, strings.Split(file.Name, "/")[0], name)
		var peer *PeerError
		require.ErrorAs(t, sendErr, &peer, name)
		require.Equal(t, "receiver", peer.Side)
		require.Contains(t, peer.Text, file.Err.Error())
		require.Empty(t, tree(t, outside), name)
	}
}

func TestLinkInTheFilesPlaceIsReplacedNotFollowed(t *testing.T) {
	from, to, outside := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "name"), []byte("new"), 0o644)
	write(t, filepath.Join(outside, "target"), []byte("untouched"), 0o644)
	require.NoError(t, os.Symlink(filepath.Join(outside, "target"), filepath.Join(to, "name")))
	sent, _ := run(t, sourcesOf(t, filepath.Join(from, "name")), to, nil)
	require.NoError(t, sent.err)
	require.Equal(t, "untouched", tree(t, outside)["target"].content)
	require.Equal(t, "new", tree(t, to)["name"].content)
	require.True(t, tree(t, to)["name"].mode.IsRegular())
}

func TestDamagedContentIsFound(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	content := bytes.Repeat([]byte("weft"), MaxMessage)
	write(t, filepath.Join(from, "name"), content, 0o644)
	write(t, filepath.Join(to, "name"), []byte("before"), 0o644)
	damaged := false
	sent, received := run(t, sourcesOf(t, filepath.Join(from, "name")), to, func(message []byte) {
		if !damaged && len(message) == MaxMessage {
			message[MaxMessage/2] ^= 1
			damaged = true
		}
	})
	require.True(t, damaged)
	require.ErrorIs(t, received.err, ErrMismatch)
	require.ErrorIs(t, sent.err, ErrMismatch)
	require.Equal(t, "before", tree(t, to)["name"].content)
	require.Len(t, tree(t, to), 1)
}

func TestDeathOfEitherSide(t *testing.T) {
	from := t.TempDir()
	write(t, filepath.Join(from, "name"), random(64*MaxMessage), 0o644)
	for _, victim := range []string{"sender", "receiver"} {
		to := t.TempDir()
		root, err := os.OpenRoot(to)
		require.NoError(t, err)
		a, b := memoryPair()
		half := Options{Progress: func() func(int) {
			total := 0
			return func(n int) {
				if total += n; total > 32*MaxMessage {
					if victim == "sender" {
						a.Kill()
					} else {
						b.Kill()
					}
				}
			}
		}()}
		done := make(chan outcome)
		go func() {
			summary, err := Receive(t.Context(), b, root, half)
			b.Close()
			done <- outcome{summary, err}
		}()
		_, sendErr := Send(t.Context(), a, sourcesOf(t, filepath.Join(from, "name")), Options{})
		a.Close()
		received := <-done
		require.NoError(t, root.Close())
		require.ErrorIs(t, sendErr, ErrLost, victim)
		require.ErrorIs(t, received.err, ErrLost, victim)
		require.Empty(t, tree(t, to), victim)
	}
}

func TestInterruption(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "name"), random(64*MaxMessage), 0o644)
	root, err := os.OpenRoot(to)
	require.NoError(t, err)
	defer root.Close()
	a, b := memoryPair()
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted by a test")
	done := make(chan outcome)
	go func() {
		summary, err := Receive(ctx, b, root, Options{Progress: func(int) { cancel(interrupted) }})
		b.Close()
		done <- outcome{summary, err}
	}()
	_, sendErr := Send(t.Context(), a, sourcesOf(t, filepath.Join(from, "name")), Options{})
	a.Close()
	require.ErrorIs(t, (<-done).err, interrupted)
	var peer *PeerError
	require.ErrorAs(t, sendErr, &peer)
	require.Contains(t, peer.Text, interrupted.Error())
	require.Empty(t, tree(t, to))

	_, err = Send(ctx, a, sourcesOf(t, filepath.Join(from, "name")), Options{})
	require.ErrorIs(t, err, interrupted)
}

func TestSilentPeer(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "name"), random(64*MaxMessage), 0o644)
	root, err := os.OpenRoot(to)
	require.NoError(t, err)
	defer root.Close()
	a, b := memoryPair()
	soon := Options{Timeout: 10 * time.Millisecond}
	_, err = Receive(t.Context(), b, root, soon)
	require.ErrorIs(t, err, ErrLost)
	_, err = Send(t.Context(), a, sourcesOf(t, filepath.Join(from, "name")), soon)
	require.ErrorIs(t, err, ErrLost)
}
