package fabric

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// openArenas are those of the process, by address, for ArenaOf. The list is replaced and
// not changed, so that who looks takes no lock.
var openArenas struct {
	mu   sync.Mutex
	list atomic.Pointer[[]arenaSpan]
}

// arenaSpan is where an arena is.
type arenaSpan struct {
	first, end uintptr
	arena      *Arena
}

// changeArenas replaces the list.
func changeArenas(f func(list []arenaSpan) []arenaSpan) {
	openArenas.mu.Lock()
	defer openArenas.mu.Unlock()
	var list []arenaSpan
	if old := openArenas.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = f(list)
	openArenas.list.Store(&list)
}

func byAddress(s arenaSpan, at uintptr) int { return cmp.Compare(s.first, at) }

// list has ArenaOf find the arena.
func (a *Arena) list() {
	s := arenaSpan{first: address(a.buf), arena: a}
	s.end = s.first + uintptr(len(a.buf))
	changeArenas(func(list []arenaSpan) []arenaSpan {
		i, _ := slices.BinarySearchFunc(list, s.first, byAddress)
		return slices.Insert(list, i, s)
	})
}

func (a *Arena) unlist() {
	changeArenas(func(list []arenaSpan) []arenaSpan {
		return slices.DeleteFunc(list, func(s arenaSpan) bool { return s.arena == a })
	})
}

// ArenaOf is the open arena of this process that all of buf is part of, or nil. It
// neither allocates nor waits. Any goroutine may call it.
func ArenaOf(buf []byte) *Arena {
	list := openArenas.list.Load()
	if list == nil || len(buf) == 0 {
		return nil
	}
	first := address(buf)
	i, begins := slices.BinarySearchFunc(*list, first, byAddress)
	if !begins {
		i--
	}
	if i < 0 || first+uintptr(len(buf)) > (*list)[i].end {
		return nil
	}
	return (*list)[i].arena
}

// holder is who keeps something of an arena until that is closed.
type holder struct{ release func() error }

// BeforeClose has Close call release before the memory goes, for who keeps the arena
// registered beyond a call: it gives up what it has, calls forget, and returns nil, or it
// says why it cannot, which is then the error of Close. It may be called more than once,
// and must not wait for a call that uses the arena. forget ends that; it may be called at
// any time, and again. Errors: net.ErrClosed, and ErrInvalid without release.
func (a *Arena) BeforeClose(release func() error) (forget func(), err error) {
	if err := a.enter(); err != nil {
		return nil, err
	}
	defer a.leave()
	if release == nil {
		return nil, a.invalid("arena", "there is no release to call")
	}
	h := &holder{release}
	a.holding.Lock()
	defer a.holding.Unlock()
	a.holders = append(a.holders, h)
	return func() {
		a.holding.Lock()
		defer a.holding.Unlock()
		a.holders = slices.DeleteFunc(a.holders, func(other *holder) bool { return other == h })
	}, nil
}

// releaseHolders asks all who keep something to give it up.
func (a *Arena) releaseHolders() error {
	a.holding.Lock()
	holders := slices.Clone(a.holders)
	a.holding.Unlock()
	for _, h := range holders {
		if err := h.release(); err != nil {
			return err
		}
	}
	return nil
}

// held is an error if somebody has come since who keeps something.
func (a *Arena) held() error {
	a.holding.Lock()
	defer a.holding.Unlock()
	if len(a.holders) > 0 {
		return &Error{Op: "close of arena", Errno: Errno(syscall.EBUSY), Detail: "it is in use again"}
	}
	return nil
}
