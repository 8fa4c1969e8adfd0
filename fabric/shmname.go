package fabric

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// takeFreeName gives an endpoint on shm another name if there is a file of its name.
// libfabric names endpoints by the process id and counts them, so that a file of that
// name has been left by a process that was killed and had the same id, as processes of
// containers have, or is of one in another container with the same /dev/shm. libfabric
// fails in both cases, and has removed the file, whoever uses it. So it does if an endpoint of this process
// had the name that is closed, which the program has given again.
func (e *Endpoint) takeFreeName() error {
	name, code := e.raw.Name()
	if code != 0 {
		return nil
	}
	plain := plainName(name)
	if !strings.HasPrefix(plain, strconv.Itoa(os.Getpid())+":") {
		// The program's own choice.
		return e.takeNameAgain(plain)
	}
	if _, err := os.Lstat(filepath.Join("/dev/shm", plain)); err != nil && !onThisHost.hasEnded(plain) {
		return nil
	}
	var random [8]byte
	_, _ = rand.Read(random[:])
	before, _, _ := strings.Cut(string(name), plain)
	other := before + plain + ":" + hex.EncodeToString(random[:]) + "\x00"
	return fail("fi_setname", e.provider, int(e.raw.SetName([]byte(other))))
}

// takeNameAgain is for a name that the program has chosen. If one of this process had it that is closed,
// libfabric 1.x would have endpoints of this process look into the memory that was there, as soon as they
// hear of it: with them it is to have nothing to do. Other processes may know it.
func (e *Endpoint) takeNameAgain(name string) error {
	if LibraryVersion().Major > 1 || !onThisHost.hasEnded(name) {
		return nil
	}
	if e.vector.shared || onThisHost.anyIsIn(e.vector) {
		return &Error{Op: "fi_enable", Provider: e.provider, Errno: Errno(syscall.EADDRINUSE), Detail: nameAgain}
	}
	e.neighbour.named = true
	return nil
}

const nameAgain = "the endpoint has the name of an endpoint of this process that is closed, and peers of this process would look for it there: give it another"

// misnamed refuses a peer of this process for an endpoint with such a name.
func (v *AddressVector) misnamed(peer string) error {
	if !onThisHost.isMisnamed(v, peer) {
		return nil
	}
	return &Error{Op: "fi_av_insert", Provider: v.provider, Errno: Errno(syscall.EADDRINUSE), Detail: nameAgain}
}
