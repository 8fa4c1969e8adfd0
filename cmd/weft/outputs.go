package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// namedFile is what the command line names, and as what. Without a name it was not given.
type namedFile struct{ flag, name string }

// checkOutputs says before anything is done whether files can be written when all is, and
// that none of them is read as well, or written twice, unless it is a device or a pipe, such
// as /dev/null. What is there is left as it is, and nothing stays that was not there.
func checkOutputs(outputs []namedFile, inputs ...namedFile) error {
	taken := inputs
	for _, out := range outputs {
		for _, other := range taken {
			if out.is(other) {
				return &usageError{fmt.Sprintf("%s and %s are the same file, %q", other.flag, out.flag, out.name)}
			}
		}
		if !out.isStream() {
			taken = append(taken, out)
		}
	}
	for _, out := range outputs {
		if out.name == "" {
			continue
		}
		err := tryToWrite(out.name)
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("cannot write %s %q: there is no such folder", out.flag, out.name)
		case err != nil:
			return fmt.Errorf("cannot write %s %q: %w", out.flag, out.name, err)
		}
	}
	return nil
}

func (f namedFile) is(other namedFile) bool {
	if f.name == "" || other.name == "" {
		return false
	}
	mine, err := filepath.Abs(f.name)
	if theirs, otherErr := filepath.Abs(other.name); err == nil && otherErr == nil && mine == theirs {
		return true
	}
	there, err := os.Stat(f.name)
	if err != nil {
		return false
	}
	otherThere, err := os.Stat(other.name)
	return err == nil && os.SameFile(there, otherThere)
}

// isStream says whether what is written twice is there twice.
func (f namedFile) isStream() bool {
	there, err := os.Stat(f.name)
	return err == nil && !there.Mode().IsRegular() && !there.IsDir()
}

// tryToWrite opens a file as for writing.
func tryToWrite(name string) error {
	_, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		made, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return nil // a link to what is not there
		} else if err != nil {
			return err
		}
		return errors.Join(made.Close(), os.Remove(name))
	case err != nil:
		return err
	case namedFile{name: name}.isStream():
		// Whoever reads a pipe would see its end.
		return nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return file.Close()
}
