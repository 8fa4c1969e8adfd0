package bootstrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/internal/proof"
)

// folder is a store of files. It needs of the file system that a rename replaces a
// file as a whole and that a link fails where there is a file, which holds on NFS,
// too; no locks. In the folder of a job there are
//
//	hello.RANK          who is that rank now: a nonce of its own
//	session             what rank 0 says: the name of the session, and all nonces
//	session.NAME/       everything that the job leaves:
//	    k.KEY           a value; keys are in hexadecimal, so that any will do
//	    a.KEY.NUMBER    the sum after so many calls of Add
//	    alive.RANK      a number that grows while the rank lives
//	    left.RANK       the rank has left in order
//	    end             how the job has ended
//	    t.*             a file that is being written
//
// A rank goes by a session only if its own nonce is in it, so that what another job
// has left in the folder does not count, however it ended.
type folder struct {
	parent, dir string // of the folder, and of the session
	member      Member
	nonce       string
	began       time.Time // of rank 0: when the session did, by the file system's clock
	peerTimeout time.Duration
	closing     time.Duration // how long Close waits on rank 0
	temporary   atomic.Uint64

	ctx     context.Context
	end     context.CancelCauseFunc
	running sync.WaitGroup
	close   sync.Once

	mu   sync.Mutex
	sums map[string]int // the last number seen, by key
}

const (
	// mostFolderNap is between two looks at what another process is to write.
	mostFolderNap = 100 * time.Millisecond
	// mostAdds bounds the files of one sum, which cannot be removed: a rank whose
	// view of the folder is old would take their numbers once more.
	mostAdds = 1 << 16
	// mostAlive is between two signs of life, at most.
	mostAlive = 5 * time.Second

	folderPeerTimeout = time.Minute
)

// openFolder returns when rank 0 has this rank in its session.
func openFolder(ctx context.Context, parent string, m Member, peerTimeout, closing time.Duration) (Store, error) {
	if peerTimeout == 0 {
		peerTimeout = folderPeerTimeout
	}
	if m.Job != "" {
		// Of bounded length, and nothing that means something in a path.
		name := sha256.Sum256([]byte(m.Job))
		parent = filepath.Join(parent, "job."+hex.EncodeToString(name[:16]))
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("bootstrap: cannot make the folder of the store: %w", err)
	}
	nonce := proof.NewNonce()
	f := &folder{parent: parent, member: m, nonce: hex.EncodeToString(nonce[:]), peerTimeout: peerTimeout, closing: closing, sums: map[string]int{}}
	f.ctx, f.end = context.WithCancelCause(context.Background())
	began := time.Now()
	if m.Rank == 0 {
		f.dir = filepath.Join(f.parent, "session."+f.nonce)
		if err := os.Mkdir(f.dir, 0o700); err != nil {
			return nil, err
		}
		info, err := os.Stat(f.dir)
		if err != nil {
			return nil, err
		}
		f.began = info.ModTime()
	} else if err := f.findSession(ctx); err != nil {
		if ctx.Err() != nil {
			err = &MissingError{Name: "file://" + parent, Ranks: []int{0}, Size: m.Size, After: time.Since(began), Err: err}
		}
		return nil, err
	}
	if err := f.alive(1); err != nil {
		return nil, err
	}
	if m.Rank == 0 {
		f.running.Go(f.convene)
	} else {
		// It is in the session, and this is not needed any more.
		_ = os.Remove(filepath.Join(parent, helloName(m.Rank)))
	}
	f.running.Go(f.live)
	f.running.Go(f.watch)
	return f, nil
}

// session is what rank 0 writes.
func (f *folder) session(name string, nonces []string) []byte {
	return []byte("weft session 1\n" + name + "\n" + strings.Join(nonces, "\n") + "\n")
}

// mostSession bounds the file.
const mostSession = 128 + MaxSize*(2*proof.NonceSize+1)

// parseSession returns the name of a session and the nonces, if there is one.
func parseSession(text []byte) (name string, nonces []string) {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) < 3 || lines[0] != "weft session 1" || len(lines[1]) != 2*proof.NonceSize {
		return "", nil
	}
	// It becomes a part of a path.
	if _, err := hex.DecodeString(lines[1]); err != nil {
		return "", nil
	}
	return lines[1], lines[2:]
}

// findSession says hello, and waits until rank 0 has this rank in its session.
func (f *folder) findSession(ctx context.Context) error {
	if err := f.write(f.parent, helloName(f.member.Rank), []byte(f.nonce)); err != nil {
		return err
	}
	for nap := newNap(mostFolderNap); ; {
		name, nonces, err := f.readSession()
		if err != nil {
			return err
		}
		if f.member.Rank < len(nonces) && nonces[f.member.Rank] == f.nonce {
			f.dir = filepath.Join(f.parent, "session."+name)
			if len(nonces) != f.member.Size {
				return fmt.Errorf("%w: it has %d ranks, and this rank's has %d", ErrOtherJob, len(nonces), f.member.Size)
			}
			return nil
		}
		hello, err := readFile(filepath.Join(f.parent, helloName(f.member.Rank)), mostBody)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if string(hello) != f.nonce {
			return fmt.Errorf("%w: another process says in %s that it is rank %d", ErrRankTaken, f.parent, f.member.Rank)
		}
		if err := nap.wait(ctx); err != nil {
			return err
		}
	}
}

// readSession returns the session that rank 0 tells of, if there is one.
func (f *folder) readSession() (name string, nonces []string, err error) {
	text, err := readFile(filepath.Join(f.parent, "session"), mostSession)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	name, nonces = parseSession(text)
	return name, nonces, err
}

// convene is what rank 0 does: it tells who is in the session, until all are in it.
// A hello may be of a job before; it counts as long as there is no other, and is
// nobody who would come because of that.
func (f *folder) convene() {
	nonces, told := make([]string, f.member.Size), []string(nil)
	for nap := newNap(mostFolderNap); ; {
		all, err := f.callRoll(nonces)
		if err == nil && !all && !slices.Equal(nonces, told) {
			err = f.write(f.parent, "session", f.session(f.nonce, nonces))
			told = slices.Clone(nonces)
		}
		if err != nil {
			f.end(&LostError{f.member.Rank, err})
			return
		}
		if all {
			f.tidy()
			return
		}
		if nap.wait(f.ctx) != nil {
			return
		}
		if name, _, err := f.readSession(); err == nil && told != nil && name != f.nonce {
			f.end(fmt.Errorf("%w: another process says in %s that it is rank 0", ErrRankTaken, f.parent))
			return
		}
	}
}

// callRoll reads the hellos of the ranks that are not in the session yet, and says
// whether all are.
func (f *folder) callRoll(nonces []string) (all bool, err error) {
	here, err := f.names(f.dir)
	if err != nil {
		return false, err
	}
	all = true
	for rank := 1; rank < len(nonces); rank++ {
		if here[aliveName(rank)] {
			continue
		}
		all = false
		hello, err := readFile(filepath.Join(f.parent, helloName(rank)), mostBody)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if _, err := hex.DecodeString(string(hello)); err == nil && len(hello) == 2*proof.NonceSize {
			nonces[rank] = string(hello)
		}
	}
	return all, nil
}

// tidy removes what sessions before have left: the folder is this job's, since all
// of its ranks have said hello in it. Ranks that have left may say hello for the next job
// already, so files that are being written are removed only if they are older than the session.
func (f *folder) tidy() {
	names, _ := f.names(f.parent)
	for name := range names {
		path := filepath.Join(f.parent, name)
		switch {
		case strings.HasPrefix(name, "session.") && name != filepath.Base(f.dir):
			_ = os.RemoveAll(path)
		case strings.HasPrefix(name, "t."):
			if info, err := os.Lstat(path); err == nil && info.ModTime().Before(f.began) {
				_ = os.Remove(path)
			}
		}
	}
}

func helloName(rank int) string { return "hello." + strconv.Itoa(rank) }
func aliveName(rank int) string { return "alive." + strconv.Itoa(rank) }
func leftName(rank int) string  { return "left." + strconv.Itoa(rank) }

// names returns what is in a folder.
func (f *folder) names(dir string) (map[string]bool, error) {
	entries, err := os.ReadDir(dir)
	names := make(map[string]bool, len(entries))
	for _, entry := range entries {
		names[entry.Name()] = true
	}
	return names, err
}

// write puts a file in place as a whole.
func (f *folder) write(dir, name string, content []byte) error {
	temporary, err := f.draft(dir, content)
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return nil
}

// draft writes a file under a name that nobody else has.
func (f *folder) draft(dir string, content []byte) (string, error) {
	name := filepath.Join(dir, fmt.Sprintf("t.%s.%d", f.nonce, f.temporary.Add(1)))
	err := os.WriteFile(name, content, 0o600)
	if err != nil {
		_ = os.Remove(name)
		return "", err
	}
	return name, nil
}

// readFile reads a file that another process has written, within bounds.
func readFile(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAtMost(file, most)
}

func (f *folder) Context() context.Context { return f.ctx }

// giveUp is Close where the job has not come about. Rank 0 waits for nobody then.
func (f *folder) giveUp(why error) {
	if f.member.Rank != 0 {
		_ = f.Close()
		return
	}
	f.close.Do(func() {
		f.end(net.ErrClosed)
		f.running.Wait()
		_ = f.tellEnd(&LostError{f.member.Rank, why}) // the others would find it out
	})
}

// Close leaves. Rank 0 waits for the others and removes the session.
func (f *folder) Close() error {
	var err error
	f.close.Do(func() {
		lost := f.ctx.Err() != nil
		f.end(net.ErrClosed)
		f.running.Wait()
		if !lost {
			err = f.leave()
		}
	})
	return err
}

func (f *folder) leave() error {
	err := f.write(f.dir, leftName(f.member.Rank), nil)
	if err != nil || f.member.Rank != 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), f.closing)
	defer cancel()
	for nap := newNap(mostFolderNap); ; {
		here, err := f.names(f.dir)
		if err != nil {
			return err
		}
		if f.allLeft(here) {
			// They may have come and left while convene had a nap.
			f.tidy()
			break
		}
		if here["end"] {
			break
		}
		if nap.wait(ctx) != nil {
			return f.tellEnd(&LostError{0, errors.New("it has left the job, and the store with it")})
		}
	}
	// The session first: without it no rank looks at the rest.
	if name, _, _ := f.readSession(); name == f.nonce {
		err = os.Remove(filepath.Join(f.parent, "session"))
	}
	return errors.Join(err, os.RemoveAll(f.dir))
}

func (f *folder) allLeft(here map[string]bool) bool {
	for rank := range f.member.Size {
		if !here[leftName(rank)] {
			return false
		}
	}
	return true
}
