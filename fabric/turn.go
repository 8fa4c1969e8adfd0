package fabric

import "runtime"

// turnOps is the most operations that one crossing carries, and leastTurnOps how many it does
// also if the queues have fewer entries: injected ones take none.
const (
	turnOps      = 256
	leastTurnOps = 16
)

// opsOf is how many operations a crossing carries for whoever has these queues: each of them
// takes some 600 bytes, which a program with a queue for each connection has many times.
func opsOf(queues ...*CompletionQueue) int {
	ops := leastTurnOps
	for _, q := range queues {
		if q != nil {
			ops = max(ops, min(q.Size(), turnOps))
		}
	}
	return ops
}

// Turn tries to post every operation of posts, in order, and then reads up to
// len(completions) completions of the endpoint's queue, in one crossing into C,
// or in two if it has two queues. It does not allocate, but for errors, and does not block, but
// on sockets: the first operation for a peer connects to it, and if its host does not answer, waits
// until libfabric gives up (FI_SOCKETS_CONN_TIMEOUT, FI_SOCKETS_MAX_CONN_RETRY), as Close does
// meanwhile.
//
// It sets Result, and where it applies Token and Err, of each operation. After
// one that was refused the later ones of the same peer and direction are refused
// untried, so that order is kept. The caller offers them again; of more than the queue
// has entries (but 16 at least), or than 256, those beyond are refused too. posts is the
// caller's again on return, and a buffer is when the completion with its Context has been
// returned, or on return if it was injected.
//
// While there is nothing to read, it looks up to spins more times, where fewer than 0
// is 0, and at most 1,048,576 times: Close waits for it. Before each it rests for 70
// to 300 ns, for longer if the peer's core is far away, and then a look counts as up
// to four. reaped is the number of completions filled in, of which some may be of
// other endpoints with the same queue, and as many as operations are the most; 0 is
// normal. With no completions to fill in nothing is read, and on most providers
// nothing moves. err is about the endpoint or its queue as a whole, never about one
// operation: where it is closed (net.ErrClosed), not enabled, or in a turn of another
// goroutine (both ErrInvalid; of the latter not each is found), all of posts have
// Failed with it.
//
// Several buffers (Op.Vector) go by the calls that end with v, an Immediate by those with data, and
// flags, or pieces of remote memory, by those with msg.
//
// Implements: ssize_t fi_send(...), fi_sendv(...), fi_sendmsg(...), fi_senddata(...), fi_inject(...), fi_injectdata(...), fi_recv(...), fi_recvv(...), fi_recvmsg(...)
//
// Implements: ssize_t fi_tsend(...), fi_tsendv(...), fi_tsendmsg(...), fi_tsenddata(...), fi_tinject(...), fi_tinjectdata(...), fi_trecv(...), fi_trecvv(...), fi_trecvmsg(...)
//
// Implements: ssize_t fi_read(...), fi_readv(...), fi_readmsg(...), fi_write(...), fi_writev(...), fi_writemsg(...), fi_writedata(...), fi_inject_write(...), fi_inject_writedata(...)
//
// Implements: ssize_t fi_atomic(...), fi_atomicv(...), fi_atomicmsg(...), fi_inject_atomic(...), fi_fetch_atomic(...), fi_fetch_atomicv(...), fi_fetch_atomicmsg(...), fi_compare_atomic(...), fi_compare_atomicv(...), fi_compare_atomicmsg(...)
//
// Implements: ssize_t fi_cq_read(...), fi_cq_readfrom(...), fi_cq_readerr(...)
func (e *Endpoint) Turn(posts []Op, completions []Completion, spins int) (reaped int, err error) {
	return e.takeTurn(posts, completions, e.patience(spins), 0)
}

// TurnWait is Turn that, with nothing to read, blocks for up to waitMS
// milliseconds inside the provider, where fewer than 0 is 0. The thread is blocked,
// not only the goroutine; [CompletionQueue.Signal] ends it early, and so does Close of
// the endpoint. It may come back early for no reason, too. ErrNotSupported says that the
// provider cannot block, and nothing was posted. With two queues, it blocks in that of
// sends.
//
// Implements: ssize_t fi_cq_sread(...), fi_cq_sreadfrom(...)
func (e *Endpoint) TurnWait(posts []Op, completions []Completion, waitMS int) (reaped int, err error) {
	for _, q := range []*CompletionQueue{e.send, e.receive} {
		if q != nil {
			if err := q.blocks("fi_cq_sread", &e.handle); err != nil {
				return 0, failAll(posts, err)
			}
		}
	}
	return e.takeTurn(posts, completions, 0, e.patience(waitMS))
}

func (e *Endpoint) takeTurn(posts []Op, completions []Completion, spins, waitMS int) (reaped int, err error) {
	if err := e.enter(); err != nil {
		return 0, failAll(posts, err)
	}
	t := e.turn
	if t == nil {
		e.leave()
		return 0, failAll(posts, e.notEnabled("turn"))
	}
	if e.turning {
		e.leave()
		return 0, failAll(posts, e.invalid("turn", "another goroutine is in a turn of it, which is for one at a time"))
	}
	e.turning = true
	n, staging := 0, true
	// Also after a panic, as of memory of the program that is not there: whoever recovers
	// can close the endpoint.
	defer func() {
		if staging {
			e.unstage(posts[:n])
		}
		e.turning = false
		e.leave()
	}()
	e.pace.step()
	first, second := e.send, e.receive
	if first == nil {
		first, second = second, nil
	}
	for n < len(posts) && n < len(t.Ops) {
		if !e.stage(&posts[n], &t.Ops[n], &t.Extras[n]) {
			break
		}
		n++
	}
	staging = false
	reaped, err = first.reap(t, e, posts[:n], completions, spins, waitMS)
	for i := n; i < len(posts); i++ {
		posts[i].Result, posts[i].Err = Refused, nil
	}
	if v := e.neighbour.vector; reaped > 0 && v != nil && len(v.newcomers.names) > 0 {
		v.newcomers.look(reaped)
	}
	// C has seen the buffers of injects by address only.
	runtime.KeepAlive(posts)
	if second != nil && second != first && reaped < len(completions) {
		more, failure := second.reap(second.reader, nil, nil, completions[reaped:], 0, 0)
		reaped += more
		if err == nil {
			err = failure
		}
	}
	return reaped, err
}

// failAll says of operations that were not tried why, and not what the last
// Turn said of those that were in the same place.
func failAll(posts []Op, err error) error {
	for i := range posts {
		posts[i].Result, posts[i].Token, posts[i].Err = Failed, 0, err
	}
	return err
}
