package fabric_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// How two endpoints of a process, and a third one, have to do with each other.
const (
	inOneDomain = iota
	inTwoDomains
	atOneQueue
)

// Of two endpoints of one process, either may be closed first while messages wait
// on both sides; the other one goes on, and is closed in turn.
func TestNeighbourEndsAmidMessages(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm"} {
		for layout, name := range []string{"in one domain", "in two domains", "at one queue"} {
			t.Run(provider+"/"+name, func(t *testing.T) {
				info := strewInfo(t, provider)
				seeds := uint64(6)
				if provider == "tcp" {
					// An endpoint of ofi_rxm takes its time to open.
					seeds = 2
				}
				for seed := range seeds {
					t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
						// The last of all.
						t.Cleanup(func() { nothingOpen(t) })
						neighbourEnds(t, info, layout, rand.New(rand.NewPCG(seed, 22)))
					})
				}
			})
		}
	}
}

func neighbourEnds(t *testing.T, info *fabric.Info, layout int, random *rand.Rand) {
	f, d := partsOf(t, info)
	a := openStation(t, f, d, info)
	if layout == inTwoDomains {
		f, d = partsOf(t, info)
	}
	b := openStation(t, f, d, info)
	a.peer, b.peer = a.insert(t, b), b.insert(t, a)
	third := stationAt(t, f, d, info, map[bool]*fabric.CompletionQueue{true: a.q}[layout == atOneQueue])
	toThird, toB := b.insert(t, third), third.insert(t, b)
	gathered, rest := gathering{station: a}, gathering{station: b}
	for range 1 + random.IntN(3) {
		a.strew(t, random, 10)
		b.strew(t, random, 10)
		for range random.IntN(30) {
			a.turn(t, nil)
			b.turn(t, nil)
		}
		if random.IntN(4) == 0 {
			gathered.some(t, random)
		}
	}
	if random.IntN(2) == 0 {
		require.NoError(t, a.e.Close())
		rest.some(t, random)
		orderly(t, b, third, toThird, toB)
		rest.some(t, random)
		return
	}
	require.NoError(t, b.e.Close())
	gathered.some(t, random)
}

// Whoever shares a queue with an endpoint that is closed has all completions of its
// own still.
func TestCloseLeavesCompletionsToOthers(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm"} {
		t.Run(provider, func(t *testing.T) {
			info := strewInfo(t, provider)
			f, d := partsOf(t, info)
			closing := openStation(t, f, d, info)
			stays, other := stationAt(t, f, d, info, closing.q), openStation(t, f, d, info)
			toClosing, toStays := other.insert(t, closing), other.insert(t, stays)
			closing.peer, stays.peer = closing.insert(t, other), stays.insert(t, other)
			buf := make([]byte, 10)
			stays.must(t, other, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: buf, Context: 1})
			closing.must(t, other, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: make([]byte, 10), Context: 2})
			for tag, peer := range []fabric.Address{toClosing, toStays, toClosing} {
				other.must(t, closing, fabric.Op{Kind: fabric.OpTaggedSend, Peer: peer, Tag: uint64(tag), Buf: []byte("still here")})
			}
			read := func() (contexts []uint64) {
				var completions [8]fabric.Completion
				n, err := stays.e.Turn(nil, completions[:], 0)
				require.NoError(t, err)
				for _, c := range completions[:n] {
					require.NoError(t, c.Err)
					contexts = append(contexts, c.Context)
				}
				return contexts
			}
			// What post has read of the shared queue while it waited for room.
			var got []uint64
			for _, c := range append(closing.got, stays.got...) {
				got = append(got, c.Context)
			}
			require.NoError(t, closing.e.Close())
			for deadline := time.Now().Add(30 * time.Second); !slices.Contains(got, 1); {
				require.True(t, time.Now().Before(deadline), "no completion")
				other.turn(t, nil)
				got = append(got, read()...)
			}
			require.Equal(t, "still here", string(buf))
			require.Empty(t, read())
		})
	}
}

// Nobody gets to know an endpoint of the process that is closed, and nobody is
// harmed who tries.
func TestInsertClosedNeighbour(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := strewInfo(t, provider)
		f, d := partsOf(t, info)
		a, b, third := openStation(t, f, d, info), openStation(t, f, d, info), openStation(t, f, d, info)
		toThird, toB := b.insert(t, third), third.insert(t, b)
		name, err := a.e.Name()
		require.NoError(t, err)
		require.NoError(t, a.e.Close())
		refuses := fabric.LooksForNeighbours(provider)
		many, err := b.v.InsertAll([][]byte{name})
		require.NoError(t, err)
		peer, err := b.v.Insert(name)
		if refuses {
			require.ErrorIs(t, err, fabric.ErrNotFound)
			require.ErrorIs(t, many[0].Err, fabric.ErrNotFound)
		} else {
			require.NoError(t, err)
			require.NoError(t, many[0].Err)
			b.turn(t, []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 1, Buf: make([]byte, 100)}})
		}
		// Also one that stays inside, since another has inserted it.
		name, err = third.e.Name()
		require.NoError(t, err)
		orderly(t, b, third, toThird, toB)
		require.NoError(t, third.e.Close())
		if refuses {
			_, err = b.v.Insert(name)
			require.ErrorIs(t, err, fabric.ErrNotFound)
		}
	})
}

// An address may be inserted while the endpoint of this process that has it is closed, by whoever
// uses another domain.
func TestInsertWhileNeighbourCloses(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := strewInfo(t, provider)
		f, d := partsOf(t, info)
		a := openStation(t, f, d, info)
		names := make(chan []byte)
		var all sync.WaitGroup
		all.Go(func() {
			defer close(names)
			f, d := partsOf(t, info)
			for range 40 {
				q, v, e := queueOf(t, d, 64), vectorOf(t, d), endpointOf(t, d)
				if !assert.NoError(t, e.Enable(v, q, eventsOf(t, f))) {
					return
				}
				name, err := e.Name()
				assert.NoError(t, err)
				names <- name
				assert.NoError(t, errors.Join(e.Close(), v.Close(), q.Close()))
			}
		})
		for name := range names {
			peer, err := a.v.Insert(name)
			if err != nil {
				assert.ErrorIs(t, err, fabric.ErrNotFound)
				continue
			}
			assert.NoError(t, a.v.Remove(peer))
		}
		all.Wait()
	})
}

// An endpoint that stayed inside ends with a look at its queue, which is left to whoever
// uses that: the last that has to do with it may be of another goroutine.
func TestQueueIsLeftToItsUser(t *testing.T) {
	info := strewInfo(t, "shm")
	f, d := partsOf(t, info)
	first, far := openStation(t, f, d, info), openStation(t, f, d, info)
	stays := stationAt(t, f, d, info, first.q)
	far.insert(t, stays)
	require.NoError(t, stays.e.Close())
	require.Equal(t, 1, fabric.Inside())
	reading, stop := make(chan struct{}), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		var completions [8]fabric.Completion
		for begun := false; ; begun = true {
			if _, err := first.e.Turn(nil, completions[:], 0); err != nil {
				t.Error(err)
			}
			if !begun {
				close(reading)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	<-reading
	require.NoError(t, far.e.Close())
	require.Equal(t, 2, fabric.Inside(), "the queue is somebody else's")
	close(stop)
	reader.Wait()
	require.NoError(t, far.v.Close())
	require.NoError(t, first.e.Close())
	require.Zero(t, fabric.Inside())
}

// An endpoint is in its own vector, which another one is enabled with when the first is
// closed. The provider looks at the first then, so its memory is there until the vector
// is closed.
func TestEndpointStaysInItsVector(t *testing.T) {
	info := strewInfo(t, "shm")
	f, d := partsOf(t, info)
	first := openStation(t, f, d, info)
	name, err := first.e.Name()
	require.NoError(t, err)
	memory := strings.TrimRight(strings.TrimPrefix(string(name), "fi_shm://"), "\x00")
	mapped := func() bool {
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		return strings.Contains(string(maps), "/dev/shm/"+memory)
	}
	require.True(t, mapped(), "memory of %s", memory)

	first.insert(t, first)
	require.NoError(t, first.e.Close())
	require.True(t, mapped(), "the vector has the endpoint")
	second := endpointOf(t, d)
	require.NoError(t, second.Enable(first.v, queueOf(t, d, 512), eventsOf(t, f)))
	require.NoError(t, second.Close())
	require.NoError(t, first.v.Close())
	require.False(t, mapped(), "nobody has the endpoint")
}

// An endpoint that stays meets many others of its process, one after the other. They do not
// stay with it, once both sides have removed each other, but for the last few (keptpeers.go).
func TestNeighboursComeAndGo(t *testing.T) {
	const few = 5
	each(t, func(t *testing.T, provider string) {
		for _, ownDomain := range []bool{false, true} {
			t.Run("own domain "+strconv.FormatBool(ownDomain), func(t *testing.T) {
				info := strewInfo(t, provider)
				f, d := partsOf(t, info)
				stays := openStation(t, f, d, info)
				for range 4 * few {
					t.Run("", func(t *testing.T) {
						if ownDomain {
							f, d = partsOf(t, info)
						}
						goes := openStation(t, f, d, info)
						goes.peer, stays.peer = goes.insert(t, stays), stays.insert(t, goes)
						for _, way := range [][2]*station{{goes, stays}, {stays, goes}} {
							buf := make([]byte, 8000)
							way[1].must(t, way[0], fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: buf})
							way[0].must(t, way[1], fabric.Op{Kind: fabric.OpTaggedSend, Peer: way[0].peer, Buf: make([]byte, len(buf))})
							require.NoError(t, way[1].await(t, way[0]).Err)
							require.NoError(t, way[0].await(t, way[1]).Err)
						}
						require.NoError(t, stays.v.Remove(stays.peer))
						require.NoError(t, goes.v.Remove(goes.peer))
					})
				}
				require.LessOrEqual(t, fabric.Inside(), few)
			})
		}
	})
}

// Who has sent ends no earlier than the one that has not taken it, even if that is closed and is
// inside only because its queue is somebody else's, and whether that knew the sender or not.
func TestSenderEndsBehindReceiver(t *testing.T) {
	const goesOn, hasRemovedIt, isClosedAndKnewIt, isClosed = "goes on", "has removed the sender", "is closed, and knew the sender", "is closed"
	for _, receiver := range []string{goesOn, hasRemovedIt, isClosedAndKnewIt, isClosed} {
		t.Run(receiver, func(t *testing.T) {
			each(t, func(t *testing.T, provider string) {
				info := strewInfo(t, provider)
				f, d := partsOf(t, info)
				reader := openStation(t, f, d, info)
				a, b := stationAt(t, f, d, info, reader.q), openStation(t, f, d, info)
				// remove has shm of 1.17 remove the peer, too.
				remove := func(s *station, peer fabric.Address) {
					require.NoError(t, s.v.Remove(peer))
					for range 5 {
						other := openStation(t, f, d, info)
						require.NoError(t, s.v.Remove(s.insert(t, other)))
						require.NoError(t, other.e.Close())
					}
				}
				switch receiver {
				case hasRemovedIt:
					remove(a, a.insert(t, b))
				case isClosedAndKnewIt:
					a.insert(t, b)
				}
				b.peer = b.insert(t, a)
				// On shm it is refused the first time, and what both need to know is on its way.
				posts := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: b.peer, Buf: make([]byte, 8)}}
				b.turn(t, posts)
				if posts[0].Result == fabric.Posted {
					// A peer is not to be removed before that.
					require.NoError(t, b.await(t, reader).Err)
				}
				if receiver == isClosed || receiver == isClosedAndKnewIt {
					require.NoError(t, a.e.Close())
					require.NoError(t, a.v.Close())
				}
				remove(b, b.peer)
				require.NoError(t, b.e.Close())
				require.NoError(t, b.v.Close())
				if provider == "shm" {
					require.Positive(t, fabric.Inside())
				}
				reader.turn(t, nil)
			})
		})
	}
}
