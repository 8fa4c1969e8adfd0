package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Source is a file or folder to be sent.
type Source struct {
	path string
	name string // at the receiver
}

// Sources checks what is to be sent: that each exists and is a file or folder,
// and that no two would get the same name. Links are followed.
func Sources(paths []string) ([]Source, error) {
	var sources []Source
	taken := make(map[string]string)
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fileError("read", path, err)
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return nil, fileError("send", path, errNotSendable)
		}
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fileError("read", path, err)
		}
		name := filepath.Base(absolute)
		if err := checkName(name); err != nil {
			return nil, fileError("send", path, err)
		}
		if other, ok := taken[name]; ok {
			return nil, fileError("send", path, fmt.Errorf("%q would have the same name at the receiver; send them one after the other", other))
		}
		taken[name] = path
		sources = append(sources, Source{path: path, name: name})
	}
	return sources, nil
}

var (
	errNotSendable = errors.New("it is neither a file nor a folder")
	errTooDeep     = fmt.Errorf("folders are nested deeper than %d", MaxDepth)
)

// Measure returns how many bytes of content the sources hold now. What it
// cannot read it leaves out; Send will complain.
func Measure(ctx context.Context, sources []Source) int64 {
	var bytes int64
	for _, source := range sources {
		path, err := filepath.EvalSymlinks(source.path)
		if err != nil {
			continue
		}
		_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return fs.SkipAll
			}
			if err != nil || !d.Type().IsRegular() || isPartial(d.Name()) {
				return nil
			}
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
			return nil
		})
	}
	return bytes
}

// reader turns files and folders into records.
type reader struct {
	out     *outbox
	options Options
	hash    hash.Hash
	sum     [sha256.Size]byte
	probe   [1]byte
	sent    totals
}

// source packs what was named on the command line. An error that is not
// errStopped is about a file of this side.
func (r *reader) source(s Source) error {
	info, err := os.Stat(s.path)
	switch {
	case err != nil:
		return fileError("read", s.path, err)
	case info.IsDir():
		return r.folder(s.path, s.name, 0, 1)
	case info.Mode().IsRegular():
		return r.file(s.path, s.name, 0)
	}
	return fileError("send", s.path, errNotSendable)
}

// folder packs a folder with what it holds. noFollow is syscall.O_NOFOLLOW
// below the top, where links are not followed.
func (r *reader) folder(path, name string, noFollow, depth int) error {
	if depth > MaxDepth {
		return fileError("send", path, errTooDeep)
	}
	info, entries, err := readFolder(path, noFollow)
	if err != nil {
		return fileError("read", path, err)
	}
	header := entry{name: name, mode: info.Mode().Perm(), modified: info.ModTime()}
	if err := r.out.entry(recordFolder, header); err != nil {
		return err
	}
	r.sent.Folders++
	for _, e := range entries {
		below := filepath.Join(path, e.Name())
		switch {
		case e.IsDir():
			err = r.folder(below, e.Name(), syscall.O_NOFOLLOW, depth+1)
		case isPartial(e.Name()):
			r.skip(below, "left over from a transfer that was interrupted")
		case e.Type().IsRegular():
			err = r.file(below, e.Name(), syscall.O_NOFOLLOW)
		case e.Type()&fs.ModeSymlink != 0:
			r.skip(below, "a link")
		default:
			r.skip(below, "a special file")
		}
		if err != nil {
			return err
		}
	}
	return r.out.record(recordFolderEnd, nil)
}

func readFolder(path string, noFollow int) (fs.FileInfo, []fs.DirEntry, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|noFollow, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return info, entries, err
}

func (r *reader) skip(path, reason string) {
	r.sent.Skipped++
	if r.options.Skipped != nil {
		r.options.Skipped(path, reason)
	}
}

// file packs a file: header, content, sha256.
func (r *reader) file(path, name string, noFollow int) error {
	// O_NONBLOCK, so that a pipe that took the file's place does not block.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|noFollow, 0)
	if err != nil {
		return fileError("read", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileError("read", path, err)
	}
	if !info.Mode().IsRegular() {
		return fileError("send", path, errNotSendable)
	}
	header := entry{name: name, mode: info.Mode().Perm(), size: info.Size(), modified: info.ModTime()}
	if err := r.out.entry(recordFile, header); err != nil {
		return err
	}
	r.hash.Reset()
	for left := header.size; left > 0; {
		err := r.out.data(left, func(room []byte) (int, error) {
			n, err := f.Read(room)
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("it shrank by %d of %d bytes while it was sent", left, header.size)
			}
			if err != nil {
				return 0, fileError("read", path, err)
			}
			r.hash.Write(room[:n])
			r.options.progress(n)
			left -= int64(n)
			return n, nil
		})
		if err != nil {
			return err
		}
	}
	switch n, err := f.Read(r.probe[:]); {
	case n > 0:
		return fileError("read", path, fmt.Errorf("it grew beyond its %d bytes while it was sent", header.size))
	case !errors.Is(err, io.EOF):
		return fileError("read", path, err)
	}
	// The checksum is of what was read, be it half old and half new.
	switch after, err := f.Stat(); {
	case err != nil:
		return fileError("read", path, err)
	case !after.ModTime().Equal(info.ModTime()):
		return fileError("read", path, errors.New("it was written to while it was sent"))
	}
	r.sent.Files++
	r.sent.Bytes += header.size
	return r.out.record(recordFileEnd, r.hash.Sum(r.sum[:0]))
}
