//go:build !linux

package fabric

import (
	"syscall"
	"time"

	"github.com/weft-go/weft/cgo"
)

// What the rest of the package asks of Linux. Nothing opens elsewhere, so nobody gets
// to ask but for an arena.

func mapArena(int, Pages) (*Arena, error) {
	return nil, &Error{Op: "arena", Errno: Errno(syscall.ENOSYS), Detail: cgo.Missing()}
}

func (*Arena) settle(ArenaConfig) error { return nil }
func unmap([]byte) error                { return nil }
func vacate([]byte) error               { return nil }

func newSleeper(int, bool) (sleeper, error) {
	return nil, &Error{Op: "wait descriptor", Errno: Errno(syscall.ENOSYS), Detail: cgo.Missing()}
}

func doze(nap time.Duration) { time.Sleep(nap) }

type (
	socketName  any
	accepted    map[int]uint64
	newcomers   struct{ names map[portAndHost]struct{} }
	portAndHost struct{}
	links       struct{}
	unreceived  struct{ cgo.Unreceived }
	arrivals    struct{}
)

func acceptedAt([]byte, func(socketName) bool) (accepted, bool) { return nil, false }
func stopListening([]byte)                                      {}
func acceptedBy(*Endpoint) accepted                             { return nil }
func (accepted) shutDown(func())                                {}
func (accepted) closeLeft()                                     {}
func isAt(socketName, []byte) bool                              { return false }

func acceptNoMore([]byte)            {}
func linksOf([]byte) *links          { return nil }
func linksMade(func()) *links        { return nil }
func (*links) cut() int              { return 0 }
func (*links) finish(time.Time) bool { return false }

func (unreceived) answered(*Endpoint) bool { return false }

func arrivalsIn(_ *Endpoint, _ []*CompletionQueue, open func()) (a arrivals) {
	open()
	return a
}
func (*Endpoint) endArrivals() {}

func readsEndTwice(string) bool { return false }
func (*Endpoint) endReads(bool) {}

func makeRoomForCallers(*Endpoint)                {}
func (*newcomers) add([]byte)                     {}
func (*newcomers) remove(*AddressVector, Address) {}
func (*newcomers) look(int)                       {}

func checkMemory(string, string, []byte) error { return nil }

type waste struct{ memory []byte }

var scratch waste

func (*waste) take() *waste { return nil }
func (*waste) empty()       {}
func (*waste) give(bool)    {}

var hasShm bool

type sharedRoom int

const noRoom sharedRoom = -1

func (*Endpoint) shmIsInside() bool                 { return false }
func (*Endpoint) reserveRoom() (sharedRoom, error)  { return noRoom, nil }
func (sharedRoom) enable(raw cgo.Endpoint) cgo.Code { return raw.Enable() }
func (sharedRoom) release()                         {}

func (e *Endpoint) enableError(code cgo.Code) error {
	return fail("fi_enable", e.provider, int(code))
}
