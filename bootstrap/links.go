//go:build !windows

package bootstrap

import "syscall"

// links is how many names a file has.
func links(path string) (uint64, error) {
	var s syscall.Stat_t
	if err := syscall.Stat(path, &s); err != nil {
		return 0, err
	}
	return uint64(s.Nlink), nil //nolint:unconvert // which type it has depends on the system
}
