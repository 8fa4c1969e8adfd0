package fabric

import "github.com/weft-go/weft/cgo"

// TrustSockets allows the shared send contexts of sockets until the returned
// function is called. They hold as long as there is no traffic.
func TrustSockets() (restore func()) {
	trustSockets = true
	return func() { trustSockets = false }
}

// Newcomers is of how many peers the vector still looks for the connection.
func Newcomers(v *AddressVector) int { return len(v.newcomers.names) }

// UsersOfEndpoint, UsersOfAlias and UsersOfQueue are the calls under way.
func UsersOfEndpoint(e *Endpoint) int64     { return e.users.Load() }
func UsersOfAlias(a *Alias) int64           { return a.endpoint.users.Load() }
func UsersOfQueue(q *CompletionQueue) int64 { return q.users.Load() }

// GuardAll gives an endpoint the guards of providers that look at less than they say.
func GuardAll(e *Endpoint) { e.undirected, e.registered = true, true }

// InfoOfAlias is what an alias takes itself to be opened with.
func InfoOfAlias(a *Alias) *Info { return a.endpoint.Info() }

// Inside is how many endpoints are closed for the program, and stay open inside.
func Inside() (n int) {
	onThisHost.mu.Lock()
	defer onThisHost.mu.Unlock()
	for e := range onThisHost.all {
		if e.neighbour.retired {
			n++
		}
	}
	return n
}

// UnknownSender has a receive in flight end as providers end one of a sender that the
// address vector does not have, with a message of length bytes.
func UnknownSender(q *CompletionQueue, receive Token, length int) (out Completion, ok bool) {
	ok = q.finish(q.reader, &cgo.Completion{
		Token: uint64(receive), Err: errnoUnknownSource, Len: uint64(length), Tag: 3, Source: uint64(AddressAny),
	}, &out)
	q.postAgain()
	return out, ok
}

// EndNeighbours has this test be whom others wait for that end endpoints of shm, until the
// returned function is called.
func EndNeighbours() (done func()) {
	onThisHost.ending.Lock()
	return onThisHost.ending.Unlock
}

// Befriend is how addresses get peers that have none, by a function that may fail.
func Befriend(places []uint64, codes []int32, taken int, again func(place uint64) (errno int)) {
	befriend(places, codes, taken, func(place uint64) cgo.Code { return cgo.Code(again(place)) })
}

// LoseSignal is Signal without what it tells libfabric.
func LoseSignal(q *CompletionQueue) { q.signaled.Store(true) }

// TurningOf is what an endpoint has while a goroutine is in a turn of it.
func TurningOf(e *Endpoint) *bool { return &e.turning }

// PostAnywhere posts an operation at an address of the peer's that Op.Remote may not have, as
// peers do that are not weft.
func PostAnywhere(e *Endpoint, op Op, address uint64) Op {
	t, posts := e.turn, []Op{op}
	if !e.stage(&posts[0], &t.Ops[0], &t.Extras[0]) {
		posts = nil
	}
	t.Extras[0].RemoteAddress = address
	if _, err := e.send.reap(t, e, posts, nil, 0, 0); err != nil || posts == nil {
		op.Result, op.Err = Refused, err
		return op
	}
	return posts[0]
}

// LooksForNeighbours says whether the provider looks for an endpoint of this process when its
// address is inserted.
func LooksForNeighbours(provider string) bool { return hasNeighbours(provider) }
