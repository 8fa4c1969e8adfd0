package fabric_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// estate is everything that was opened for a test of closing, to be closed in
// whatever order.
type estate struct {
	t      *testing.T
	random *rand.Rand
	things []thing
	log    []string // what was closed, or refused and why
}

type thing struct {
	name   string
	close  func() error
	use    func() // while it is open
	closed bool
}

// add makes something part of the estate. It is used between the closings of
// others.
func (e *estate) add(name string, c interface{ Close() error }, use ...func()) {
	x := thing{name: name, close: c.Close}
	if len(use) > 0 {
		x.use = use[0]
	}
	e.things = append(e.things, x)
}

// whatLives is what a refusal to close says.
const whatLives = `still open: [1-9][0-9]* [a-z]+|` +
	`in flight with it: [1-9][0-9]* [a-z]+|` +
	`[1-9][0-9]* buffers have not been put back|` +
	`joining it, or an operation, is not complete|` +
	`let its counter reach [0-9]+, or close its endpoint|` +
	`it has begun and is not complete`

// closeIn closes everything in the order, and what is refused in later rounds.
// Whatever is still open is used after each closing.
func (e *estate) closeIn(order []int) {
	e.t.Helper()
	defer func() {
		if e.t.Failed() {
			e.t.Logf("the order: %q", e.log)
		}
	}()
	open := slices.Clone(order)
	for len(open) > 0 {
		before := len(open)
		open = slices.DeleteFunc(open, func(i int) bool {
			x := &e.things[i]
			err := x.close()
			if err != nil {
				e.log = append(e.log, err.Error())
				require.ErrorIs(e.t, err, fabric.ErrBusy, x.name)
				require.Regexp(e.t, whatLives, err.Error(), x.name)
				return false
			}
			e.log = append(e.log, x.name)
			x.closed = true
			require.NoError(e.t, x.close(), "the second Close of %s", x.name)
			e.useAll()
			return true
		})
		require.Less(e.t, len(open), before, "nothing can be closed any more: %q", e.log)
	}
}

func (e *estate) useAll() {
	for _, x := range e.things {
		if !x.closed && x.use != nil {
			x.use()
		}
	}
}

// shuffled is a random order of everything.
func (e *estate) shuffled() []int { return e.random.Perm(len(e.things)) }

// inOrders builds estates with the numbers from 0 to count-1, closes each in an
// order of its own, and looks whether anything is left. Each number is the seed
// of a test of its own.
func inOrders(t *testing.T, count int, build func(e *estate)) {
	t.Helper()
	if testing.Short() {
		count /= 4
	}
	run := func(t *testing.T, i int, order func(e *estate) []int) {
		e := &estate{t: t, random: rand.New(rand.NewPCG(uint64(i), 7))}
		build(e)

		e.closeIn(order(e))
		nothingOpen(t)
	}
	// Providers make some descriptors and threads for the process, once.
	for range 2 {
		run(t, 0, func(e *estate) []int {
			order := e.shuffled()
			slices.Sort(order)
			slices.Reverse(order)
			return order
		})
	}
	before := processHas(t)
	for i := range count {
		if !t.Run(strconv.Itoa(i), func(t *testing.T) { run(t, i, (*estate).shuffled) }) {
			return
		}
	}
	before.again(t)
}

// nothingOpen looks for handles and C memory.
func nothingOpen(t *testing.T) {
	t.Helper()
	require.Empty(t, fabric.OpenHandles())
	for purpose, bytes := range fabric.MemoryInUse() {
		require.Zero(t, bytes, "C memory for %s", purpose)
	}
}

// possessions are what a process has that a provider may leave behind.
type possessions struct {
	goroutines, descriptors int
	names                   []string // in /dev/shm
}

func processHas(t *testing.T) possessions {
	t.Helper()
	// Go's network poller has two descriptors, from its first use on.
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, errors.Join(r.Close(), w.Close()))
	p := possessions{goroutines: runtime.NumGoroutine(), descriptors: descriptors(t)}
	prefix := strconv.Itoa(os.Getpid()) + ":"
	entries, err := os.ReadDir("/dev/shm")
	require.NoError(t, err)
	for _, entry := range entries {
		// Others have theirs; shm names its own by the process.
		if strings.HasPrefix(entry.Name(), prefix) {
			p.names = append(p.names, entry.Name())
		}
	}
	return p
}

// again waits until the process has no more than it had: sockets ends its
// threads, and with them their descriptors, a little later.
func (p possessions) again(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		now := processHas(t)
		if now.goroutines <= p.goroutines && now.descriptors <= p.descriptors && len(now.names) <= len(p.names) {
			return
		}
		require.True(t, time.Now().Before(deadline), "before: %+v, now: %+v", p, now)
	}
}
