package bootstrap

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func valueName(key string) string { return "k." + hex.EncodeToString([]byte(key)) }

// over is the cause if either the job or ctx has ended.
func (f *folder) over(ctx context.Context) error {
	if f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	return context.Cause(ctx)
}

// failed is an error of the file system, or how the job has ended meanwhile.
func (f *folder) failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if over := f.over(ctx); over != nil {
		return over
	}
	return fmt.Errorf("bootstrap: the folder of the store: %w", err)
}

func (f *folder) Set(ctx context.Context, key string, value []byte) error {
	if err := errors.Join(CheckKey(key), CheckValue(value), f.over(ctx)); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(f.dir, sumName(key, 1))); err == nil {
		return fmt.Errorf("bootstrap: cannot set a key that is added to: %w", errors.ErrUnsupported)
	}
	return f.failed(ctx, f.write(f.dir, valueName(key), value))
}

func (f *folder) Get(ctx context.Context, key string) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	both, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(f.ctx, func() { stop(context.Cause(f.ctx)) })()
	for nap := newNap(mostFolderNap); ; {
		if err := f.over(ctx); err != nil {
			return nil, err
		}
		value, err := f.look(key)
		if err == nil {
			return value, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, f.failed(ctx, err)
		}
		if err := nap.wait(both); err != nil {
			return nil, err
		}
	}
}

// look returns the value of a key; fs.ErrNotExist if there is none.
func (f *folder) look(key string) ([]byte, error) {
	if n, sum, err := f.sum(key); err != nil || n > 0 {
		return sum, err
	}
	return readFile(filepath.Join(f.dir, valueName(key)), MaxValue)
}

func sumName(key string, n int) string {
	return "a." + hex.EncodeToString([]byte(key)) + "." + strconv.Itoa(n)
}

// sum returns how often a key has been added to, and its value then. Sums are
// numbered without gaps, so that only those are looked for that this process has not
// seen.
func (f *folder) sum(key string) (n int, value []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n = f.sums[key]; ; n++ {
		if _, err := os.Stat(filepath.Join(f.dir, sumName(key, n+1))); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return n, nil, err
		}
	}
	if n == 0 {
		return 0, nil, nil
	}
	f.sums[key] = n
	value, err = readFile(filepath.Join(f.dir, sumName(key, n)), mostBody)
	if errors.Is(err, fs.ErrNotExist) {
		delete(f.sums, key) // the key was deleted
		return 0, nil, nil
	}
	return n, value, err
}

func (f *folder) Add(ctx context.Context, key string, delta int64) (int64, error) {
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	for nap := newNap(mostFolderNap); ; {
		if err := f.over(ctx); err != nil {
			return 0, err
		}
		sum, done, err := f.tryAdd(key, delta)
		if err != nil {
			if errors.Is(err, ErrNotNumber) {
				return 0, err
			}
			return 0, f.failed(ctx, err)
		}
		if done {
			return sum, nil
		}
		// Another one had the number. On NFS it may take a while to be seen.
		if err := nap.wait(ctx); err != nil {
			return 0, err
		}
	}
}

// tryAdd makes the file of the next sum, unless another process has made it.
func (f *folder) tryAdd(key string, delta int64) (sum int64, done bool, err error) {
	n, value, err := f.sum(key)
	if err != nil {
		return 0, false, err
	}
	if n == 0 {
		if value, err = readFile(filepath.Join(f.dir, valueName(key)), MaxValue); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, false, err
		}
	}
	sum, value, err = AddTo(value, delta)
	if err != nil {
		return 0, false, err
	}
	if n >= mostAdds {
		return 0, false, &LimitError{What: "the number of times that a key is added to", Got: mostAdds + 1, Most: mostAdds}
	}
	temporary, err := f.draft(f.dir, value)
	if err != nil {
		return 0, false, err
	}
	defer os.Remove(temporary)
	err = os.Link(temporary, filepath.Join(f.dir, sumName(key, n+1)))
	if errors.Is(err, fs.ErrExist) {
		// On NFS that may be said when the answer to the first try was lost.
		names, err := links(temporary)
		return sum, err == nil && names == 2, err
	}
	return sum, err == nil, err
}

func (f *folder) Delete(ctx context.Context, key string) error {
	if err := errors.Join(CheckKey(key), f.over(ctx)); err != nil {
		return err
	}
	n, _, err := f.sum(key)
	for ; n > 0 && err == nil; n-- {
		err = os.Remove(filepath.Join(f.dir, sumName(key, n)))
	}
	f.mu.Lock()
	delete(f.sums, key)
	f.mu.Unlock()
	if removeErr := os.Remove(filepath.Join(f.dir, valueName(key))); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return f.failed(ctx, err)
}

func (f *folder) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := errors.Join(CheckPrefix(prefix), f.over(ctx)); err != nil {
		return nil, err
	}
	names, err := f.names(f.dir)
	if err != nil {
		return nil, f.failed(ctx, err)
	}
	var keys []string
	for name := range names {
		parts := strings.Split(name, ".")
		if len(parts) < 2 || parts[0] != "k" && parts[0] != "a" {
			continue
		}
		if key, err := hex.DecodeString(parts[1]); err == nil && strings.HasPrefix(string(key), prefix) {
			keys = append(keys, string(key))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}
