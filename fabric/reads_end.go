//go:build linux

package fabric

import (
	"time"

	"golang.org/x/sys/unix"
)

// readsEndTwice says of a provider that a read of which a part has come ends twice when the endpoint
// ends the connection: tcp and net of libfabric 1.17 report it, and give its place in memory back, as one
// that is asked for and as the one that is coming in. Later operations of the domain then share a place,
// and never complete; ofi_rxm looks for the operation of the second report, and ends the process. If
// nothing more comes in first, it ends once.
func readsEndTwice(provider string) bool {
	name := core(provider)
	return LibraryVersion().Major < 2 && (name == "tcp" || name == "net")
}

// endReads has reads in flight end, without what is still to come of them, before the connections
// do. What completes is the program's, but for operations of the endpoint if it closes.
func (e *Endpoint) endReads(closes bool) {
	if e.severed || !readsEndTwice(e.provider) {
		return
	}
	for end := time.Now().Add(patienceWithThread); e.isReading() && e.endIncoming() && time.Now().Before(end); {
		e.gather(closes)
	}
}

// endIncoming ends what comes in of the endpoint's connections, and says whether libfabric has some still.
func (e *Endpoint) endIncoming() (some bool) {
	// net has a set of the domain's in those of the queues.
	sets := setsIn(e.queues())
	for _, q := range e.queues() {
		sets[q.waitFD] = struct{}{}
	}
	for set := range sets {
		for fd, m := range members(set) {
			if !e.raw.OwnsConnection(m.data) {
				continue
			}
			// Another endpoint's turn may close it meanwhile, but not this one.
			own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				continue
			}
			if inodeOf(own) == m.inode {
				some = unix.Shutdown(own, unix.SHUT_RD) == nil || some
			}
			_ = unix.Close(own)
		}
	}
	return some
}

// isReading says whether the endpoint has reads in flight.
func (e *Endpoint) isReading() bool {
	if e.send == nil {
		return false
	}
	for i := range e.send.table {
		if s := &e.send.table[i]; s.busy && s.endpoint == e && s.kind == OpRead {
			return true
		}
	}
	return false
}
