package transfer

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
