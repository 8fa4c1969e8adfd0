//go:build !asan

package fabric_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// The tests of these files, alloc_*_test.go, say that what a program calls for
// each message, or each time that it looks for one, does not allocate. (Under
// asan, the runtime does.)

// requireFree asserts that a call allocates nothing.
func requireFree(t *testing.T, call func(), what string) {
	t.Helper()
	require.Zero(t, testing.AllocsPerRun(20, call), what)
}

// errand is what two sides post and what then completes, made beforehand, so
// that to run it again and again allocates nothing of its own.
type errand struct {
	sides [2]turner
	posts [2][]fabric.Op
	want  [2]int // completions
	// patient sides block between two looks: sockets' own thread needs the core.
	patient bool
	last    [2]fabric.Completion
	got     [2]int               // completions of the last run
	buf     [1]fabric.Completion // one at a time, so that last is the one there was
	err     error
}

// between makes an errand of two stations: a posts, and b if it is given more.
func between(a, b *station, op fabric.Op, forB ...fabric.Op) *errand {
	e := &errand{sides: [2]turner{a.e, b.e}, patient: a.info.Provider() == "sockets"}
	e.posts = [2][]fabric.Op{{op}, forB}
	e.want = [2]int{completions(op), len(forB)}
	return e
}

// completions is how many an operation has on the side that posts it.
func completions(op fabric.Op) int {
	switch op.Kind {
	case fabric.OpInject, fabric.OpTaggedInject, fabric.OpWriteInject, fabric.OpAtomicInject:
		return 0
	}
	return 1
}

// requireFree runs the errand once, and then asserts that it allocates nothing.
func (e *errand) requireFree(t *testing.T, what string) {
	t.Helper()
	e.run()
	require.NoError(t, e.err, what)
	requireFree(t, e.run, what)
	require.NoError(t, e.err, what)
}

// run posts everything, one operation a turn, and takes turns until everything
// is complete, or until something has gone wrong.
func (e *errand) run() {
	var next [2]int
	e.got = [2]int{}
	deadline := time.Now().Add(30 * time.Second)
	for round := 0; e.err == nil; round++ {
		left := false
		for i := range e.sides {
			posts := e.posts[i][next[i]:min(next[i]+1, len(e.posts[i]))]
			// What is of another errand is left there, as long as there is room.
			into := e.buf[:]
			if round == 0 && e.got[i] >= e.want[i] {
				into = nil
			}
			e.got[i] += e.turn(i, posts, into, round)
			if len(posts) > 0 && posts[0].Result != fabric.Refused {
				e.note(posts[0].Err)
				next[i]++
			}
			left = left || next[i] < len(e.posts[i]) || e.got[i] < e.want[i]
		}
		if !left {
			return
		}
		if time.Now().After(deadline) {
			e.note(errors.New("it is not complete after 30 s"))
		}
	}
}

func (e *errand) turn(i int, posts []fabric.Op, into []fabric.Completion, round int) (n int) {
	var err error
	if e.patient && round > 1 && len(posts) == 0 {
		n, err = e.sides[i].TurnWait(nil, into, 1)
	} else {
		n, err = e.sides[i].Turn(posts, into, 0)
	}
	e.note(err)
	for _, c := range into[:n] {
		e.last[i] = c
		e.note(c.Err)
	}
	return n
}

// note keeps the first error that says that something is wrong.
func (e *errand) note(err error) {
	if e.err == nil && err != nil && !errors.Is(err, fabric.ErrNoMessage) {
		e.err = err
	}
}

// memories are the two kinds of memory that operations use: what weft pins for
// them, and what stays where it is.
func memories(t *testing.T, test func(t *testing.T, fixed bool, memory func(size int) []byte)) {
	t.Run("Go memory", func(t *testing.T) {
		test(t, false, func(size int) []byte { return make([]byte, size) })
	})
	t.Run("arena", func(t *testing.T) {
		free := arena(t, 1<<20).Bytes()
		test(t, true, func(size int) []byte {
			part := free[:size:size]
			free = free[size:]
			return part
		})
	})
}
