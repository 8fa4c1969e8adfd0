package fabric_test

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// undertaking is what an endpoint does at its peer, again and again.
type undertaking struct {
	name        string
	kind        fabric.OpKind
	size, count int // count are under way at a time
	flags       fabric.OpFlags
	received    bool // by receives that are there before
}

// undertakings are of all kinds. What is long is longer than what the system has room for.
// Messages are short enough for ofi_rxm to copy them: those that it fetches leave something
// behind, or end the process (docs/PROVIDERS.md).
var undertakings = []undertaking{
	{name: "write", kind: fabric.OpWrite, size: 16 << 20, count: 1},
	{name: "told write", kind: fabric.OpWrite, size: 16 << 20, count: 1, flags: fabric.Immediate},
	{name: "short told writes", kind: fabric.OpWrite, size: 4 << 10, count: 16, flags: fabric.Immediate},
	{name: "delivered writes", kind: fabric.OpWrite, size: 1 << 20, count: 4, flags: fabric.DeliveryComplete},
	{name: "read", kind: fabric.OpRead, size: 16 << 20, count: 1},
	{name: "short reads", kind: fabric.OpRead, size: 4 << 10, count: 16},
	{name: "atomics", kind: fabric.OpAtomic, size: 8, count: 8},
	{name: "fetching atomics", kind: fabric.OpFetch, size: 512, count: 8},
	{name: "comparing atomics", kind: fabric.OpCompare, size: 512, count: 8},
	{name: "tagged messages", kind: fabric.OpTaggedSend, size: 8 << 10, count: 8},
	{name: "received messages", kind: fabric.OpSend, size: 8 << 10, count: 8, received: true},
	{name: "injects", kind: fabric.OpInject, size: 64, count: 8, received: true},
}

// undertakingMemory is for told writes in its first half, and for everything else in the
// second.
const undertakingMemory = 32 << 20

// Contexts of what undertakers post.
const (
	undertaken = 1 + iota
	awaited
)

// undertaker is an endpoint that carries an undertaking out at its peer, which does the same
// here.
type undertaker struct {
	*station
	undertaking
	remote      fabric.Remote
	buf, result []byte
	underWay    int    // operations
	awaiting    int    // receives
	accepted    bool   // the peer is known
	begun       bool   // something has been posted
	told        uint32 // writes that this side was told of
	written     uint32 // operations that were posted
}

var atomicOf = map[fabric.OpKind]fabric.AtomicOp{
	fabric.OpAtomic: fabric.Sum, fabric.OpFetch: fabric.Sum, fabric.OpCompare: fabric.CompareSwap,
}

// undertakers are one for each undertaking that the provider can do.
func undertakers(t *testing.T, f *fabric.Fabric, d *fabric.Domain, info *fabric.Info) (all []*undertaker) {
	t.Helper()
	for _, u := range undertakings {
		s := openStation(t, f, d, info)
		if what, atomic := atomicOf[u.kind]; atomic {
			if _, err := s.e.AtomicLimit(u.kind, fabric.Int64, what); err != nil {
				continue
			}
		}
		all = append(all, &undertaker{station: s, undertaking: u, buf: make([]byte, u.size), result: make([]byte, u.size)})
	}
	return all
}

func undertakingInfo(t *testing.T, provider string) *fabric.Info {
	t.Helper()
	return undertakingInfoFor(t, provider, true)
}

func undertakingInfoFor(t *testing.T, provider string, oneThread bool) *fabric.Info {
	t.Helper()
	hints := fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram, MemoryMode: everyMemoryMode, OneThread: oneThread, Source: sourceOn(provider),
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.RemoteMemory | fabric.Atomics, OrderedSends: provider == "efa",
	}
	infos, err := fabric.Discover(hints)
	if err != nil {
		hints.Capabilities &^= fabric.Atomics
		infos, err = fabric.Discover(hints)
	}
	testenv.Need(t, provider, err)
	return infos[0]
}

// invitation is a line that says where the peer finds everything.
func invitation(t *testing.T, all []*undertaker, memory fabric.Remote) string {
	t.Helper()
	words := []string{strconv.FormatUint(memory.Address, 10), strconv.FormatUint(memory.Key, 10)}
	for _, u := range all {
		name, err := u.e.Name()
		require.NoError(t, err)
		words = append(words, hex.EncodeToString(name))
	}
	return strings.Join(words, " ") + "\n"
}

// accept has the endpoints find those of an invitation.
func accept(t *testing.T, all []*undertaker, invitation string) {
	t.Helper()
	words := strings.Fields(invitation)
	require.Len(t, words, 2+len(all), invitation)
	var numbers [2]uint64
	for i := range numbers {
		var err error
		numbers[i], err = strconv.ParseUint(words[i], 10, 64)
		require.NoError(t, err)
	}
	for i, u := range all {
		name, err := hex.DecodeString(words[2+i])
		require.NoError(t, err)
		u.peer, err = u.v.Insert(name)
		require.NoError(t, err)
		u.accepted, u.remote = true, fabric.Remote{Address: numbers[0], Key: numbers[1]}
		if u.name != "told write" {
			u.remote.Address += undertakingMemory / 2
		}
	}
}

func allBegun(all []*undertaker) bool {
	return !slices.ContainsFunc(all, func(u *undertaker) bool { return !u.begun })
}

// lastWrite is the number of the last told write that is there from its beginning to its
// end, but for one that is coming.
func lastWrite(memory []byte) uint32 {
	return binary.LittleEndian.Uint32(memory[undertakingMemory/2-4:])
}

// work posts what is missing, whatever becomes of it, and takes what has come to its end.
func (u *undertaker) work(t *testing.T) {
	t.Helper()
	var posts []fabric.Op
	for range u.awaits() {
		posts = append(posts, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, u.size), Context: awaited})
	}
	if u.accepted {
		for range u.count - u.underWay {
			posts = append(posts, u.op())
		}
	}
	u.turn(t, posts)
	for _, op := range posts {
		switch {
		case op.Result != fabric.Posted:
		case op.Context == awaited:
			u.awaiting++
		default:
			u.begun = true
			u.written++
			if u.kind != fabric.OpInject {
				u.underWay++
			}
		}
	}
	for _, c := range u.got {
		switch {
		case c.Kind == fabric.OpRemoteWrite:
			u.told++
		case c.Context == awaited:
			u.awaiting--
		case c.Context == undertaken:
			u.underWay--
		}
	}
	u.got = nil
}

// awaits is how many receives are missing.
func (u *undertaker) awaits() int {
	if !u.received {
		return 0
	}
	return u.count - u.awaiting
}

func (u *undertaker) op() fabric.Op {
	op := fabric.Op{Kind: u.kind, Peer: u.peer, Buf: u.buf, Flags: u.flags, Context: undertaken}
	if u.kind != fabric.OpTaggedSend && u.kind != fabric.OpSend && u.kind != fabric.OpInject {
		op.Remote = u.remote
	}
	if what, atomic := atomicOf[u.kind]; atomic {
		op.Atomic = &fabric.Atomic{Type: fabric.Int64, Operation: what}
	}
	switch u.kind {
	case fabric.OpFetch:
		op.Atomic.Result = u.result
	case fabric.OpCompare:
		op.Atomic.Result, op.Atomic.Compare = u.result, u.buf
	}
	if u.flags&fabric.Immediate != 0 {
		op.Immediate = 7
	}
	if u.name == "told write" {
		// The one before is complete.
		binary.LittleEndian.PutUint32(u.buf[len(u.buf)-4:], u.written+1)
	}
	return op
}
