//go:build !linux

package bench

import "syscall"

// Grouped is of Linux: elsewhere the command compiles, and nothing is measured.
func Grouped() *syscall.SysProcAttr { return nil }
