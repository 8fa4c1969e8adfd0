//go:build !linux

package launch

import (
	"errors"
	"syscall"
)

func grouped() *syscall.SysProcAttr { return nil }

// adopt says at the begin of a job that there can be none.
func adopt() error { return errors.New("weft run is for Linux") }
