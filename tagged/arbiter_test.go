package tagged_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/tagged"
)

// operation is one of a connection, and its place in the connection's order.
type operation struct {
	connection, number int
}

// bench is an arbiter with connections that push to it.
type bench struct {
	arbiter     tagged.Arbiter[operation]
	connections []benchConnection
}

type benchConnection struct {
	tagged.Queue[operation]
	pushed, posted int
}

func newBench(connections int) *bench {
	return &bench{connections: make([]benchConnection, connections)}
}

func (b *bench) push(connection, count int) {
	c := &b.connections[connection]
	for range count {
		b.arbiter.Push(&c.Queue, operation{connection, c.pushed})
		c.pushed++
	}
}

// fill keeps a backlog in each of the connections.
func (b *bench) fill(backlog int, connections ...int) {
	for _, i := range connections {
		b.push(i, backlog-b.connections[i].Len())
	}
}

// turn gathers and posts: accept is asked for each operation, but for those
// behind a refused one of the same connection. It returns how many operations
// of each connection were posted.
func (b *bench) turn(t require.TestingT, dst []operation, quota int, accept func(operation) bool) []int {
	n := b.arbiter.Gather(dst, quota)
	posted := make([]int, len(b.connections))
	refused := make([]bool, n)
	stuck := make([]bool, len(b.connections))
	for i, o := range dst[:n] {
		if stuck[o.connection] || !accept(o) {
			stuck[o.connection] = true
			refused[i] = true
			continue
		}
		c := &b.connections[o.connection]
		require.Equal(t, c.posted, o.number, "an operation overtook another of connection %d", o.connection)
		c.posted++
		posted[o.connection]++
	}
	for i := n - 1; i >= 0; i-- {
		if refused[i] {
			b.arbiter.PutBack(&b.connections[dst[i].connection].Queue, dst[i])
		}
	}
	return posted
}

func acceptAll(operation) bool { return true }

var everyConnection = []int{0, 1, 2, 3, 4, 5, 6, 7}

func TestArbiterOrderOfTurns(t *testing.T) {
	b := newBench(3)
	b.push(0, 5)
	b.push(1, 1)
	b.push(2, 3)
	gather := func(size int) []operation {
		dst := make([]operation, size)
		return dst[:b.arbiter.Gather(dst, 2)]
	}
	require.Equal(t, []operation{{0, 0}, {0, 1}, {1, 0}, {2, 0}}, gather(4))
	require.Equal(t, []operation{{2, 1}, {0, 2}, {0, 3}, {2, 2}}, gather(4), "the turn that was cut short goes on")
	require.False(t, b.arbiter.Empty())
	require.Equal(t, []operation{{0, 4}}, gather(4))
	require.True(t, b.arbiter.Empty())
	require.Empty(t, gather(4))
}

// Eight connections, one of which floods: in every turn each of the others gets
// everything that it asks for within its quota.
func TestArbiterFlood(t *testing.T) {
	const quota = 4
	b := newBench(8)
	dst := make([]operation, 8*quota)
	for range 100 {
		b.push(3, 1000)
		for i := range b.connections {
			if i != 3 {
				b.push(i, 2)
			}
		}
		posted := b.turn(t, dst, quota, acceptAll)
		for i, count := range posted {
			if i == 3 {
				require.Equal(t, len(dst)-7*2, count)
			} else {
				require.Equal(t, 2, count)
			}
		}
	}
}

// A turn too small for all goes round: shares differ by no more than a quota.
func TestArbiterSmallTurns(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5, 7, 10, 31} {
		for _, quota := range []int{0, 1, 3, 4, 16} {
			b := newBench(8)
			dst := make([]operation, size)
			for range 300 {
				b.fill(40, everyConnection...)
				b.turn(t, dst, quota, acceptAll)
				least, most := b.shares(everyConnection)
				require.LessOrEqual(t, most-least, max(quota, 1), "size %d, quota %d", size, quota)
			}
		}
	}
}

func (b *bench) shares(connections []int) (least, most int) {
	least = b.connections[connections[0]].posted
	for _, i := range connections {
		least = min(least, b.connections[i].posted)
		most = max(most, b.connections[i].posted)
	}
	return least, most
}

// posted is the number of operations posted in all.
func (b *bench) posted() (sum int) {
	for i := range b.connections {
		sum += b.connections[i].posted
	}
	return sum
}

// A device that is full takes the first few of each turn only. Whoever was
// refused comes first in the next: otherwise the same ones were always late.
func TestArbiterFullDevice(t *testing.T) {
	for _, size := range []int{2, 8, 12, 32, 64} {
		for room := 1; room <= min(size, 33); room++ {
			b := newBench(8)
			dst := make([]operation, size)
			for range 200 {
				b.fill(40, everyConnection...)
				left := room
				posted := b.turn(t, dst, 4, func(operation) bool {
					left--
					return left >= 0
				})
				sum := 0
				for _, count := range posted {
					sum += count
				}
				require.Equal(t, room, sum)
				least, most := b.shares(everyConnection)
				require.LessOrEqual(t, most-least, 4, "size %d, room %d", size, room)
			}
		}
	}
}

// Connections whose peer takes nothing do not keep the others from their turns,
// even where they fill a whole Gather.
func TestArbiterStuckPeers(t *testing.T) {
	live, rounds := []int{2, 6}, 300
	for _, size := range []int{1, 2, 4, 8, 16, 24, 64} {
		b := newBench(8)
		dst := make([]operation, size)
		for range rounds {
			b.fill(40, everyConnection...)
			b.turn(t, dst, 4, func(o operation) bool { return slices.Contains(live, o.connection) })
		}
		least, most := b.shares(live)
		require.GreaterOrEqual(t, least, rounds/8, "size %d", size)
		require.GreaterOrEqual(t, float64(least), 0.8*float64(most), "size %d", size)
		for i := range b.connections {
			if !slices.Contains(live, i) {
				require.Zero(t, b.connections[i].posted)
				require.Equal(t, 40, b.connections[i].Len())
			}
		}
	}
}

// A device that refuses every other post is in step with the turns at times,
// but not for ever.
func TestArbiterEveryOtherPost(t *testing.T) {
	for _, connections := range [][]int{everyConnection, everyConnection[:7], everyConnection[:2], everyConnection[:3]} {
		for _, size := range []int{1, 2, 3, 8, 32} {
			for _, quota := range []int{1, 2, 4} {
				b := newBench(8)
				dst := make([]operation, size)
				attempts := 0
				for range 400 {
					b.fill(40, connections...)
					b.turn(t, dst, quota, func(operation) bool {
						attempts++
						return attempts%2 == 1
					})
				}
				least, _ := b.shares(connections)
				even := float64(b.posted()) / float64(len(connections))
				require.GreaterOrEqual(t, float64(least), 0.25*even, "%d connections, size %d, quota %d",
					len(connections), size, quota)
			}
		}
	}
}

func TestArbiterPutBackSeveral(t *testing.T) {
	var a tagged.Arbiter[int]
	var q tagged.Queue[int]
	for i := range 5 {
		a.Push(&q, i)
	}
	dst := make([]int, 4)
	require.Equal(t, 4, a.Gather(dst, 10))
	a.PutBack(&q, dst[1:]...)
	require.Equal(t, 4, q.Len())
	require.Equal(t, 4, a.Gather(dst, 10))
	require.Equal(t, []int{1, 2, 3, 4}, dst)
}

func TestArbiterDrop(t *testing.T) {
	b := newBench(3)
	for i := range b.connections {
		b.push(i, 3)
	}
	drop := func(connection int) (dropped []operation) {
		b.arbiter.Drop(&b.connections[connection].Queue, func(o operation) { dropped = append(dropped, o) })
		return dropped
	}
	dst := make([]operation, 4)
	require.Equal(t, 4, b.arbiter.Gather(dst, 2))
	require.Equal(t, []operation{{2, 0}, {2, 1}, {2, 2}}, drop(2))
	require.Empty(t, drop(2))
	require.Equal(t, []operation{{0, 2}}, drop(0))
	require.Equal(t, []operation{{1, 2}}, drop(1))
	require.True(t, b.arbiter.Empty())
	// A dropped queue can be used again.
	b.push(2, 1)
	require.Equal(t, 1, b.arbiter.Gather(dst, 2))
	require.Equal(t, operation{2, 3}, dst[0])
}

func TestArbiterAllocatesNothing(t *testing.T) {
	b := newBench(8)
	dst := make([]operation, 16)
	requireNoAllocs(t, func() {
		b.fill(40, everyConnection...)
		n := b.arbiter.Gather(dst, 4)
		for i := n - 1; i >= 0; i -= 2 {
			b.arbiter.PutBack(&b.connections[dst[i].connection].Queue, dst[i])
		}
	})
}

// naiveArbiter states the order of turns with slices and searches.
type naiveArbiter struct {
	order    []int // connections that are not empty, the next one first
	waiting  map[int][]operation
	used     map[int]int // of the quota
	failures map[int]int // how often in a row a connection was passed by
	gathered []naiveOperation
}

type naiveOperation struct {
	operation
	used    int // of the quota, before this operation
	refused bool
}

func (n *naiveArbiter) enter(connection int) {
	if !slices.Contains(n.order, connection) {
		n.order = append(n.order, connection)
		n.used[connection] = 0
	}
}

func (n *naiveArbiter) push(o operation) {
	n.enter(o.connection)
	n.waiting[o.connection] = append(n.waiting[o.connection], o)
}

func (n *naiveArbiter) putBack(i int) {
	o := &n.gathered[i]
	o.refused = true
	n.enter(o.connection)
	n.waiting[o.connection] = slices.Concat([]operation{o.operation}, n.waiting[o.connection])
}

func (n *naiveArbiter) drop(connection int) {
	n.waiting[connection] = nil
	n.failures[connection] = 0
	n.order = slices.DeleteFunc(n.order, func(c int) bool { return c == connection })
}

func (n *naiveArbiter) gather(size, quota int) (got []operation) {
	n.settle()
	endTurn := func() bool {
		c := n.order[0]
		if n.used[c] < quota {
			return false
		}
		n.used[c] = 0
		n.order = append(n.order[1:], c)
		return true
	}
	for len(n.order) > 0 && len(got) < size {
		c := n.order[0]
		for endTurn() { // where the quota has become smaller
			c = n.order[0]
		}
		o := n.waiting[c][0]
		n.waiting[c] = n.waiting[c][1:]
		got = append(got, o)
		n.gathered = append(n.gathered, naiveOperation{operation: o, used: n.used[c]})
		n.used[c]++
		if len(n.waiting[c]) == 0 {
			n.order = n.order[1:]
		} else {
			endTurn()
		}
	}
	return got
}

func (n *naiveArbiter) settle() {
	end := len(n.gathered) // nothing was posted from here on
	for end > 0 && n.gathered[end-1].refused {
		end--
	}
	posted := map[int]bool{}
	for _, o := range n.gathered {
		posted[o.connection] = posted[o.connection] || !o.refused
	}
	var seen, first, last []int
	lead := func(o naiveOperation) {
		if slices.Contains(n.order, o.connection) && !slices.Contains(first, o.connection) {
			first = append(first, o.connection)
			n.used[o.connection] = o.used
		}
	}
	for i, o := range n.gathered {
		c := o.connection
		if slices.Contains(last, c) {
			continue
		}
		if !slices.Contains(seen, c) {
			seen = append(seen, c)
			if posted[c] {
				n.failures[c] = 0
			} else if slices.Contains(n.order, c) && (i < end || end == 0) {
				if n.failures[c]++; n.failures[c] >= 2 {
					last = append(last, c)
					n.used[c] = 0
					continue
				}
				lead(o)
			}
		}
		if i >= end {
			lead(o)
		}
	}
	rest := slices.DeleteFunc(n.order, func(c int) bool {
		return slices.Contains(first, c) || slices.Contains(last, c)
	})
	n.order = slices.Concat(first, rest, last)
	n.gathered = nil
}

func TestArbiterModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const connections = 5
		b := newBench(connections)
		model := naiveArbiter{waiting: map[int][]operation{}, used: map[int]int{}, failures: map[int]int{}}
		connection := rapid.IntRange(0, connections-1)
		push := func(t *rapid.T) {
			c := connection.Draw(t, "connection")
			for range rapid.IntRange(1, 6).Draw(t, "count") {
				model.push(operation{c, b.connections[c].pushed})
				b.push(c, 1)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push":  push,
			"push2": push,
			"turn": func(t *rapid.T) {
				dst := make([]operation, rapid.IntRange(0, 20).Draw(t, "size"))
				quota := rapid.IntRange(1, 5).Draw(t, "quota")
				n := b.arbiter.Gather(dst, quota)
				require.Equal(t, model.gather(len(dst), quota), append([]operation(nil), dst[:n]...))
				if rapid.Bool().Draw(t, "push meanwhile") {
					push(t)
				}
				// The first few are posted, but for those of stuck peers.
				room := rapid.IntRange(0, 20).Draw(t, "room")
				stuck := rapid.SliceOfN(rapid.Bool(), connections, connections).Draw(t, "stuck")
				for i := n - 1; i >= 0; i-- {
					if i >= room || stuck[dst[i].connection] {
						b.arbiter.PutBack(&b.connections[dst[i].connection].Queue, dst[i])
						model.putBack(i)
					}
				}
			},
			"drop": func(t *rapid.T) {
				c := connection.Draw(t, "connection")
				var dropped []operation
				b.arbiter.Drop(&b.connections[c].Queue, func(o operation) { dropped = append(dropped, o) })
				require.True(t, slices.Equal(model.waiting[c], dropped), "%v, want %v", dropped, model.waiting[c])
				model.drop(c)
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model.order) == 0, b.arbiter.Empty())
				for i := range b.connections {
					require.Equal(t, len(model.waiting[i]), b.connections[i].Len())
				}
			},
		})
	})
}
