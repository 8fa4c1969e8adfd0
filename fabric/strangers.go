//go:build linux

package fabric

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
)

// checkOwner refuses the address of an endpoint on shm whose memory another
// user owns. The provider says no more than that the address is invalid.
func checkOwner(op, provider string, address []byte) error {
	if core(provider) != "shm" {
		return nil
	}
	text, _, _ := bytes.Cut(address, []byte{0})
	name, ok := strings.CutPrefix(string(text), "fi_shm://")
	if !ok || name == "" || strings.Contains(name, "/") {
		return nil
	}
	memory, err := os.OpenFile("/dev/shm/"+name, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err == nil {
		return memory.Close()
	}
	if !errors.Is(err, syscall.EACCES) {
		return nil
	}
	return &Error{
		Op: op, Provider: provider, Errno: Errno(syscall.EACCES),
		Detail: "the peer runs as another user, and shm connects processes of one user only; run both as the same user, or use another provider",
	}
}
