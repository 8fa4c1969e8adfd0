package fabric

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// takeFreeName gives an endpoint on shm another name if there is a file of its name.
// libfabric names endpoints by the process id and counts them, so that a file of that
// name has been left by a process that was killed and had the same id, as processes of
// containers have, or is of one in another container with the same /dev/shm. libfabric
// fails in both cases, and has removed the file, whoever uses it.
func (e *Endpoint) takeFreeName() error {
	name, code := e.raw.Name()
	if code != 0 {
		return nil
	}
	plain := plainName(name)
	if !strings.HasPrefix(plain, strconv.Itoa(os.Getpid())+":") {
		// The program's own choice.
		return nil
	}
	if _, err := os.Lstat(filepath.Join("/dev/shm", plain)); err != nil {
		return nil
	}
	var random [8]byte
	_, _ = rand.Read(random[:])
	before, _, _ := strings.Cut(string(name), plain)
	other := before + plain + ":" + hex.EncodeToString(random[:]) + "\x00"
	return fail("fi_setname", e.provider, int(e.raw.SetName([]byte(other))))
}
