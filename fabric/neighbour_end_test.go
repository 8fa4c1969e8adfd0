package fabric_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
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
				if provider == "sockets" {
					testenv.Need(t, "endpoints of a domain of sockets that are closed amid messages", errors.New("its thread uses what fi_close has freed of one, and may end the process"))
				}
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
	for _, provider := range []string{"sockets", "tcp", "shm"} {
		t.Run(provider, func(t *testing.T) {
			info := strewInfo(t, provider)
			f, d := partsOf(t, info)
			a, b, third := openStation(t, f, d, info), openStation(t, f, d, info), openStation(t, f, d, info)
			toThird, toB := b.insert(t, third), third.insert(t, b)
			name, err := a.e.Name()
			require.NoError(t, err)
			require.NoError(t, a.e.Close())
			many, err := b.v.InsertAll([][]byte{name})
			require.NoError(t, err)
			peer, err := b.v.Insert(name)
			if provider == "shm" {
				require.ErrorIs(t, err, fabric.ErrNotFound)
				require.ErrorIs(t, many[0].Err, fabric.ErrNotFound)
			} else {
				require.NoError(t, err)
				require.NoError(t, many[0].Err)
				b.turn(t, []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 1, Buf: make([]byte, 100)}})
			}
			orderly(t, b, third, toThird, toB)
		})
	}
}
