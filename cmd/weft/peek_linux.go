package main

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peeked does not move while the kernel reads it.
var peeked [2]byte

// peek reads a byte of this process in the way in which others would.
func peek() error {
	to := unix.Iovec{Base: &peeked[0]}
	to.SetLen(1)
	from := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&peeked[1])), Len: 1}
	_, err := unix.ProcessVMReadv(os.Getpid(), []unix.Iovec{to}, []unix.RemoteIovec{from}, 0)
	return err
}
