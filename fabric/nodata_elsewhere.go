//go:build !linux

package fabric

// errnoNoData is no number of the system: not all have ENODATA, and where libfabric is not
// called nobody gives it.
const errnoNoData Errno = 1 << 16
