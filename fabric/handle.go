package fabric

import (
	"errors"
	"fmt"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// handle is what every object of libfabric has in weft: a place in the order
// of closing, and a guard against use after Close.
type handle struct {
	kind     string
	provider string
	parents  []*handle
	number   uint64 // of those ever opened

	// users counts calls under way; closedBit is set by Close, and closingBit
	// while it is not known yet whether Close succeeds.
	users atomic.Int64
	// closers are those that wait until nobody uses it.
	closers atomic.Int32
	// wanted counts those that want it together with others.
	wanted atomic.Int32

	mu       sync.Mutex
	children map[*handle]struct{}
	stack    []uintptr
	// wake, if not nil, ends the calls that wait in libfabric.
	wake func()

	// remains are children that are closed for the program and not yet in
	// libfabric; they keep their parents so too. late is how a handle of that
	// kind ends, and hold, if not nil, makes one of it.
	remains map[*handle]struct{}
	late    func() error
	hold    func() bool
}

// Kinds of handles by which others are told apart.
const (
	kindQueue   = "completion queue"
	kindCounter = "counter"
	kindAlias   = "alias"
)

const (
	closedBit  = int64(1) << 62
	closingBit = int64(1) << 61
)

var opened atomic.Uint64

// open puts the handle into the tree. The caller has entered each parent, so
// that none is closed meanwhile.
func (h *handle) open(kind, provider string, parents ...*handle) {
	h.kind, h.provider = kind, provider
	h.number = opened.Add(1)
	pcs := make([]uintptr, 32)
	h.stack = pcs[:runtime.Callers(3, pcs)]
	for _, p := range parents {
		h.adopt(p)
	}
	live.Store(h, struct{}{})
}

// adopt makes p a parent: p cannot be closed before h.
func (h *handle) adopt(p *handle) {
	h.parents = append(h.parents, p)
	p.mu.Lock()
	if p.children == nil {
		p.children = make(map[*handle]struct{})
	}
	p.children[h] = struct{}{}
	p.mu.Unlock()
}

// enter must come before a call into libfabric, and leave after it.
func (h *handle) enter() error {
	if h.number == 0 {
		return h.neverOpened()
	}
	for h.users.Add(1)&(closedBit|closingBit) != 0 {
		if h.users.Add(-1)&closedBit != 0 {
			return h.closedError()
		}
		// A Close that is refused in the end must not be seen.
		runtime.Gosched()
	}
	return nil
}

// tryEnter is enter that does not wait for a Close, and says whether it has entered.
func (h *handle) tryEnter() bool {
	if h.users.Add(1)&(closedBit|closingBit) != 0 {
		h.users.Add(-1)
		return false
	}
	return true
}

func (h *handle) leave() { h.users.Add(-1) }

// closed says whether Close has ended it.
func (h *handle) closed() bool { return h.users.Load()&closedBit != 0 }

// closing says whether Close has ended it, or is about to, or somebody else keeps callers out.
func (h *handle) closing() bool { return h.users.Load()&(closedBit|closingBit) != 0 }

// neverOpened is for the zero value of a type: libfabric would look into what is not
// there.
func (h *handle) neverOpened() error {
	return &Error{Op: "handle", Errno: errnoInvalid, Detail: "it was never opened"}
}

func (h *handle) closedError() error {
	return &Error{Op: h.kind, Provider: h.provider, Errno: errnoClosed}
}

// invalid says what is wrong with the arguments of a call.
func (h *handle) invalid(op, detail string) error {
	return &Error{Op: op, Provider: h.provider, Errno: errnoInvalid, Detail: detail}
}

// shortCalls is for how many looks calls under way are taken for short ones.
const shortCalls = 200

// close runs free once nobody uses the handle and no child is open.
func (h *handle) close(free func() error) error {
	if h.number == 0 {
		return h.neverOpened()
	}
	h.closers.Add(1)
	defer h.closers.Add(-1)
	for looks := 0; ; looks++ {
		n := h.users.Load()
		if n&closedBit != 0 {
			return nil
		}
		h.mu.Lock()
		if len(h.children) > 0 {
			detail := "still open: " + h.childrenText()
			h.mu.Unlock()
			return &Error{Op: "close of " + h.kind, Provider: h.provider, Errno: Errno(syscall.EBUSY), Detail: detail}
		}
		closing := n == 0 && h.users.CompareAndSwap(0, closingBit)
		h.mu.Unlock()
		if closing {
			break
		}
		h.endCalls(looks)
	}
	if h.stays(free) {
		return nil
	}
	if err := free(); err != nil {
		// libfabric still holds it: the handle stays open.
		h.users.Add(-closingBit)
		return err
	}
	err := h.ended()
	h.users.Add(closedBit - closingBit)
	return err
}

// patience is how long a call may wait, or how often it may look: not at all where
// somebody waits for its end, who would otherwise never find nobody in a loop of such
// calls. It must come before enter.
func (h *handle) patience(n int) int {
	if n > 0 && h.closers.Load() > 0 {
		// Somebody who closes must see that nobody is there.
		time.Sleep(time.Millisecond)
		return 0
	}
	return n
}

// endCalls lets calls under way come to their end.
func (h *handle) endCalls(looks int) {
	if looks < shortCalls {
		runtime.Gosched()
		return
	}
	h.mu.Lock()
	// Another Close may be freeing it by now; none can begin to meanwhile.
	if h.wake != nil && h.users.Load()&(closingBit|closedBit) == 0 {
		h.wake()
	}
	h.mu.Unlock()
	time.Sleep(time.Millisecond)
}

// exclude keeps callers out once those that are in have left, until readmit is called. It
// says whether the handle is open.
func (h *handle) exclude() bool {
	h.closers.Add(1)
	defer h.closers.Add(-1)
	for looks := 0; ; looks++ {
		if h.closed() {
			return false
		}
		if h.users.CompareAndSwap(0, closingBit) {
			return true
		}
		h.endCalls(looks)
	}
}

func (h *handle) readmit() { h.users.Add(-closingBit) }

// wakes says how to end the calls that wait.
func (h *handle) wakes(wake func()) {
	h.mu.Lock()
	h.wake = wake
	h.mu.Unlock()
}

// stays puts the end of a closed handle off, if it must be.
func (h *handle) stays(free func() error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold := h.hold != nil && h.hold(); !hold && len(h.remains) == 0 {
		return false
	}
	h.late = free
	for _, p := range h.parents {
		p.mu.Lock()
		delete(p.children, h)
		if p.remains == nil {
			p.remains = make(map[*handle]struct{})
		}
		p.remains[h] = struct{}{}
		p.mu.Unlock()
	}
	live.Delete(h)
	h.users.Add(closedBit - closingBit)
	return true
}

// release ends a handle that stayed, once nothing remains in it. One that libfabric
// does not close stays on.
func (h *handle) release() error {
	h.mu.Lock()
	free := h.late
	if len(h.remains) > 0 {
		free = nil
	}
	if free != nil {
		h.late = nil
	}
	h.mu.Unlock()
	if free == nil {
		return nil
	}
	if err := free(); err != nil {
		h.mu.Lock()
		h.late = free
		h.mu.Unlock()
		return err
	}
	return h.ended()
}

// stayed says whether a closed handle is still to be released.
func (h *handle) stayed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.late != nil
}

// ended takes a handle out of the tree, and ends what stayed for it.
func (h *handle) ended() error {
	var all error
	for _, p := range h.parents {
		p.mu.Lock()
		_, stayed := p.remains[h]
		delete(p.children, h)
		delete(p.remains, h)
		p.mu.Unlock()
		if stayed {
			all = errors.Join(all, p.release())
		}
	}
	live.Delete(h)
	return all
}

func (h *handle) childrenText() string {
	count := make(map[string]int)
	for c := range h.children {
		count[c.kind]++
	}
	var parts []string
	for kind, n := range count {
		parts = append(parts, fmt.Sprintf("%d %s", n, kind))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}

// fail makes an error of a code that libfabric returned; 0 is nil.
func fail(op, provider string, code int) error {
	if code == 0 {
		return nil
	}
	return &Error{Op: op, Provider: provider, Errno: Errno(code)}
}

// live holds every open handle, for OpenHandles: a leak is to be found by the
// stack that made it, and not by a finalizer that hides it.
var live sync.Map

// HandleInfo describes an open handle.
type HandleInfo struct {
	Kind     string // such as "endpoint"
	Provider string // empty for what is of none, such as an arena
	Stack    string // where it was opened
}

// OpenHandles lists what is open in this process, for tests that assert that
// nothing leaks. Any goroutine may call it.
func OpenHandles() []HandleInfo {
	var list []HandleInfo
	live.Range(func(k, _ any) bool {
		h := k.(*handle)
		var b strings.Builder
		frames := runtime.CallersFrames(h.stack)
		for {
			f, more := frames.Next()
			fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
			if !more {
				break
			}
		}
		list = append(list, HandleInfo{Kind: h.kind, Provider: h.provider, Stack: b.String()})
		return true
	})
	return list
}
