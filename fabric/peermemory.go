//go:build linux

package fabric

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// checkMemory refuses the address of an endpoint on shm whose memory another user owns, or
// that is no endpoint's: an address may come from anywhere, and the provider goes by what it finds
// in whatever file the address names.
func checkMemory(op, provider string, address []byte) error {
	name := plainName(address)
	if core(provider) != "shm" || name == "" || strings.ContainsRune(name, filepath.Separator) {
		return nil
	}
	memory, err := os.OpenFile(filepath.Join("/dev/shm", name), os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, syscall.EACCES):
		return &Error{
			Op: op, Provider: provider, Errno: Errno(syscall.EACCES),
			Detail: "the peer runs as another user, and shm connects processes of one user only; run both as the same user, or use another provider",
		}
	case err != nil:
		// One that is not there yet may come.
		return nil
	}
	defer memory.Close()
	foreign := isForeign(memory)
	// One that is being made has not all of its head.
	for range 10 {
		if !foreign {
			break
		}
		time.Sleep(time.Millisecond)
		foreign = isForeign(memory)
	}
	if foreign {
		return &Error{Op: op, Provider: provider, Errno: errnoInvalid, Detail: "what is at the address is no endpoint's memory"}
	}
	return nil
}

// isForeign says that a file is neither the memory of an endpoint of shm, which has its own length
// in its head, nor still empty.
func isForeign(memory *os.File) bool {
	const head, word = 256, 8
	info, err := memory.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	var begin [head]byte
	n, _ := memory.ReadAt(begin[:], 0)
	empty := true
	for at := 0; at+word <= n; at += word {
		switch binary.NativeEndian.Uint64(begin[at:]) {
		case 0:
		case uint64(info.Size()):
			return false
		default:
			empty = false
		}
	}
	return !empty || info.Size() < head
}
