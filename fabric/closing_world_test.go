package fabric_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// world is what a program has opened.
type world struct {
	t     *testing.T
	infos []*fabric.Info
	say   func(format string, args ...any)
	nodes []*node
	// random is what the step says.
	random *rand.Rand
}

// node is one thing that can be closed.
type node struct {
	name   string
	it     any
	close  func() error
	closed bool
}

// What things are part of.
type (
	inFabric struct {
		*fabric.Fabric
		info *fabric.Info
	}
	inDomain struct {
		*fabric.Domain
		f *inFabric
	}
	aQueue struct {
		*fabric.CompletionQueue
		d *inDomain
	}
	aEvents struct {
		*fabric.EventQueue
		f        *inFabric
		requests []*fabric.ConnectionRequest
	}
	aVector struct {
		*fabric.AddressVector
		d     *inDomain
		peers []fabric.Address
		// unused are those, as often as they were inserted, to which nothing was sent.
		unused []fabric.Address
	}
	aRegion struct {
		*fabric.Region
		d      *inDomain
		remote fabric.Remote
		memory []byte
	}
	anEndpoint struct {
		*fabric.Endpoint
		d       *inDomain
		v       *aVector // nil if it is connected
		shares  *aShared // nil if it receives by itself
		tokens  []fabric.Token
		enabled bool
	}
	aPassive struct {
		*fabric.PassiveEndpoint
		f *inFabric
	}
)

// number is one below n.
func (w *world) number(n int) int { return w.random.IntN(n) }

// one is one of the things of a type that are open.
func one[T any](w *world, fits func(T) bool) (it T, ok bool) {
	var all []T
	for _, n := range w.nodes {
		if it, is := n.it.(T); is && !n.closed && (fits == nil || fits(it)) {
			all = append(all, it)
		}
	}
	if len(all) == 0 {
		return it, false
	}
	return all[w.number(len(all))], true
}

func (w *world) add(kind string, it any, end func() error) string {
	name := fmt.Sprintf("%s %d", kind, len(w.nodes))
	w.nodes = append(w.nodes, &node{name: name, it: it, close: end})
	return name
}

func (w *world) name(it any) string {
	for _, n := range w.nodes {
		if n.it == it {
			return n.name
		}
	}
	return "?"
}

// closeOne closes something, if it can be.
func (w *world) closeOne(n *node) bool {
	w.say("close %s", n.name)
	err := n.close()
	if err != nil {
		w.say("  %v", err)
		require.ErrorIs(w.t, err, fabric.ErrBusy)
		require.Regexp(w.t, whatLives, err.Error())
		return false
	}
	n.closed = true
	require.NoError(w.t, n.close(), "again")
	return true
}

// do carries a step out.
func (w *world) do() {
	switch w.number(16) {
	case 0, 1:
		w.endpoint()
	case 2, 3, 4:
		w.post(w.endpoint())
	case 5:
		w.acquaint()
	case 6:
		w.remove()
	case 7:
		w.connect()
	case 8:
		w.answer()
		w.answer()
	case 9:
		if open := w.open(); len(open) > 0 {
			w.closeOne(open[w.number(len(open))])
		}
	case 10:
		if e, ok := one(w, func(e *anEndpoint) bool { return len(e.tokens) > 0 }); ok {
			w.say("cancel at %s", w.name(e))
			if err := e.Cancel(e.tokens[w.number(len(e.tokens))]); err != nil {
				require.ErrorIs(w.t, err, fabric.ErrNotSupported)
			}
		}
	case 11:
		w.alias()
	case 12:
		w.fill()
	case 13:
		w.scale()
	case 14:
		w.useContext()
	default:
		for _, n := range w.open() {
			if x := takesTurns(n.it); x != nil {
				w.turn(x)
			}
		}
	}
}

func (w *world) open() (list []*node) {
	for _, n := range w.nodes {
		if !n.closed {
			list = append(list, n)
		}
	}
	return list
}

// run carries a program out, and closes what is left of it.
func (w *world) run(p program, begin func() *anEndpoint) {
	w.nodes, w.random = nil, rand.New(rand.NewPCG(0, 0))
	if begin != nil {
		begin()
	}
	for _, step := range p {
		w.random = rand.New(rand.NewPCG(uint64(step), 0))
		w.do()
	}
	open := w.open()
	w.random.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	for len(open) > 0 {
		before := len(open)
		open = slices.DeleteFunc(open, w.closeOne)
		require.Less(w.t, len(open), before, "nothing can be closed any more")
	}
}

// closed says whether a thing is.
func (w *world) closed(it any) bool {
	for _, n := range w.nodes {
		if n.it == it {
			return n.closed
		}
	}
	return true
}
