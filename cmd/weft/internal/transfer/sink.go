package transfer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"time"
)

// sink writes files and folders below one folder. It reaches every file
// through the os.Root of the folder that the file lies in, by a name of one
// component, so that neither names nor links lead out.
type sink struct {
	folders []folder // from the top to the one that is open
	file    *partial // that is being written, or nil
	hash    hash.Hash
	sum     [sha256.Size]byte
	have    totals
}

// folder is one that is being filled.
type folder struct {
	root     *os.Root
	path     string // below the top, for messages
	mode     fs.FileMode
	modified time.Time
}

// partial is a file that is not whole yet.
type partial struct {
	entry
	*os.File
	temporary string
	path      string
	written   int64
}

func newSink(root *os.Root) *sink {
	return &sink{folders: []folder{{root: root}}, hash: sha256.New()}
}

func (s *sink) top() *folder { return &s.folders[len(s.folders)-1] }

// busy says that a file or a folder is open.
func (s *sink) busy() bool { return s.file != nil || len(s.folders) > 1 }

// workMode is what a folder needs while it is filled. Its own mode, which may
// forbid writing, comes when it is complete.
const workMode fs.FileMode = 0o700

func (s *sink) openFolder(e entry) error {
	in := s.top()
	name := path.Join(in.path, e.name)
	switch {
	case s.file != nil:
		return protocolError("a folder within the file %q", s.file.path)
	case len(s.folders) > MaxDepth:
		return fileError("create", name, errTooDeep)
	}
	if err := in.root.Mkdir(e.name, workMode); errors.Is(err, fs.ErrExist) {
		if err := admitFolder(in.root, e.name); err != nil {
			return fileError("write into", name, err)
		}
	} else if err != nil {
		return fileError("create folder", name, err)
	}
	below, err := in.root.OpenRoot(e.name)
	if err != nil {
		return fileError("open folder", name, err)
	}
	s.folders = append(s.folders, folder{root: below, path: name, mode: e.mode, modified: e.modified})
	return nil
}

// admitFolder prepares a folder that was there before to be filled.
func admitFolder(in *os.Root, name string) error {
	info, err := in.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("there is something at the receiver that is not a folder; remove it or choose another folder")
	}
	if info.Mode()&workMode != workMode {
		return in.Chmod(name, info.Mode().Perm()|workMode)
	}
	return nil
}

func (s *sink) closeFolder() error {
	switch {
	case s.file != nil:
		return protocolError("the end of a folder within the file %q", s.file.path)
	case len(s.folders) == 1:
		return protocolError("the end of a folder where none is open")
	}
	f := s.top()
	if err := f.finish(); err != nil {
		return fileError("complete folder", f.path, err)
	}
	s.folders = s.folders[:len(s.folders)-1]
	s.have.Folders++
	return nil
}

// finish gives the folder its time and mode, in this order: the mode may take
// away the right to look up even ".".
func (f *folder) finish() error {
	return errors.Join(
		f.root.Chtimes(".", time.Time{}, f.modified),
		f.root.Chmod(".", f.mode),
		f.root.Close(),
	)
}

func (s *sink) openFile(e entry) error {
	in := s.top()
	name := path.Join(in.path, e.name)
	if s.file != nil {
		return protocolError("a file within the file %q", s.file.path)
	}
	if info, err := in.root.Lstat(e.name); err == nil && info.IsDir() {
		return fileError("write", name, errors.New("there is a folder of that name at the receiver; remove it or choose another folder"))
	}
	temporary := partialName()
	f, err := in.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fileError("write", name, err)
	}
	s.file = &partial{entry: e, File: f, temporary: temporary, path: name}
	s.hash.Reset()
	return nil
}

func (s *sink) write(data []byte) error {
	f := s.file
	switch {
	case f == nil:
		return protocolError("data where no file is open")
	case len(data) == 0:
		return protocolError("a data record without data")
	case int64(len(data)) > f.size-f.written:
		return protocolError("more than the %d bytes announced for %q", f.size, f.path)
	}
	s.hash.Write(data)
	n, err := f.Write(data)
	f.written += int64(n)
	if err != nil {
		return fileError("write", f.path, err)
	}
	return nil
}

// closeFile verifies the file and gives it its name.
func (s *sink) closeFile(sum []byte) error {
	f := s.file
	switch {
	case f == nil:
		return protocolError("the end of a file where none is open")
	case f.written != f.size:
		return protocolError("%d of the %d bytes announced for %q", f.written, f.size, f.path)
	case len(sum) != sha256.Size:
		return protocolError("a checksum of %d bytes", len(sum))
	case !bytes.Equal(sum, s.hash.Sum(s.sum[:0])):
		return fmt.Errorf("%w: the sha256 of %q is not the sender's; send it again", ErrMismatch, f.path)
	}
	in := s.top().root
	err := f.Chmod(f.mode)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = in.Chtimes(f.temporary, time.Time{}, f.modified)
	}
	if err == nil {
		err = in.Rename(f.temporary, f.name)
	}
	if err != nil {
		return fileError("complete", f.path, err)
	}
	s.file = nil
	s.have.Files++
	s.have.Bytes += f.size
	return nil
}

// abandon removes the file that is not whole and leaves the open folders as
// they are, with the modes that were asked for. After success there are none.
func (s *sink) abandon() {
	if f := s.file; f != nil {
		_ = f.Close() // closed before where closeFile failed
		_ = s.top().root.Remove(f.temporary)
		s.file = nil
	}
	for len(s.folders) > 1 {
		_ = s.top().finish()
		s.folders = s.folders[:len(s.folders)-1]
	}
}

// CheckWritable makes sure that files can be created in root.
func CheckWritable(root *os.Root) error {
	name := partialName()
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), root.Remove(name))
}
