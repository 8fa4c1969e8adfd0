package fabric

import "syscall"

// An efa provider before libfabric 1.19 calls whatever its device reports an
// input/output error. deviceErrnos has what later ones call it, by the device's
// status.
var deviceErrnos = map[int32]Errno{
	1:  Errno(syscall.ECANCELED),    // flushed
	7:  Errno(syscall.EINVAL),       // remote address or key
	8:  Errno(syscall.ECONNABORTED), // reset by the peer
	9:  Errno(syscall.ENOTCONN),     // nobody has the queue pair, or not any more
	10: 269,                         // FI_ENORX: the receiver was not ready
	12: Errno(syscall.EREMOTEIO),    // the peer's queue pair is in a wrong state
	13: Errno(syscall.ECONNABORTED), // the peer does not answer
	14: Errno(syscall.ENOTCONN),     // the peer does not know this endpoint
	15: Errno(syscall.EHOSTUNREACH),
}

// failedAs is the code of a failed operation.
func (q *CompletionQueue) failedAs(errno Errno, status int32) Errno {
	if errno == Errno(syscall.EIO) && core(q.provider) == "efa" {
		if e, ok := deviceErrnos[status]; ok {
			return e
		}
	}
	return errno
}
