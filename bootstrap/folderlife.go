package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// live gives signs of life.
func (f *folder) live() {
	ticker := time.NewTicker(min(f.peerTimeout/4, mostAlive))
	defer ticker.Stop()
	for n := 2; ; n++ {
		select {
		case <-ticker.C:
		case <-f.ctx.Done():
			return
		}
		if err := f.alive(n); err != nil {
			f.end(&LostError{f.member.Rank, fmt.Errorf("it cannot write into the folder of the store: %w", err)})
			return
		}
	}
}

func (f *folder) alive(n int) error {
	return f.write(f.dir, aliveName(f.member.Rank), []byte(strconv.Itoa(n)))
}

// watch looks for the end of the job, and for signs of life of one other rank: the
// next one that has not left. One that has not come yet is not lost. So each rank is watched, and none reads the files of
// all.
func (f *folder) watch() {
	next, seen, since := f.member.Rank, "", time.Now()
	ticker := time.NewTicker(min(f.peerTimeout/8, mostAlive))
	defer ticker.Stop()
	for {
		if loss := f.readEnd(); loss != nil {
			f.end(loss)
			return
		}
		if next == f.member.Rank || f.hasLeft(next) {
			next, seen, since = f.neighbour(next), "", time.Now()
		}
		if next != f.member.Rank {
			text, err := readFile(filepath.Join(f.dir, aliveName(next)), mostBody)
			if err == nil && string(text) != seen {
				seen, since = string(text), time.Now()
			}
			if seen != "" && time.Since(since) > f.peerTimeout && !f.hasLeft(next) {
				loss := &LostError{next, fmt.Errorf("it has given no sign of life for %v", f.peerTimeout)}
				_ = f.tellEnd(loss) // the others would find it out, too
				f.end(loss)
				return
			}
		}
		select {
		case <-ticker.C:
		case <-f.ctx.Done():
			return
		}
	}
}

// neighbour is the next rank behind one that has not left; this one if all have.
func (f *folder) neighbour(rank int) int {
	for {
		rank = (rank + 1) % f.member.Size
		if rank == f.member.Rank || !f.hasLeft(rank) {
			return rank
		}
	}
}

func (f *folder) hasLeft(rank int) bool {
	_, err := readFile(filepath.Join(f.dir, leftName(rank)), 0)
	return err == nil
}

// tellEnd tells all ranks how the job has ended.
func (f *folder) tellEnd(loss *LostError) error {
	text := bare(loss.Cause)
	return f.write(f.dir, "end", []byte(strconv.Itoa(loss.Rank)+" "+text[:min(len(text), mostReason)]))
}

// readEnd returns how the job has ended, if it has. With its folder, the job is gone.
func (f *folder) readEnd() *LostError {
	text, err := readFile(filepath.Join(f.dir, "end"), mostBody)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := f.names(f.dir); errors.Is(err, fs.ErrNotExist) {
			return &LostError{-1, fmt.Errorf("its folder has been removed: %w", err)}
		}
		return nil
	}
	rank, why, _ := strings.Cut(string(text), " ")
	n, numberErr := strconv.Atoi(rank)
	if err != nil || numberErr != nil || n >= f.member.Size {
		return &LostError{-1, fmt.Errorf("%w: what is in its folder cannot be read: %w", ErrProtocol, errors.Join(err, numberErr))}
	}
	return &LostError{n, errors.New(printable(why))}
}
