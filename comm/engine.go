package comm

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/tagged"
)

// engine is what all communicators of a process' world share: the connections to the
// other ranks and the matcher.
type engine struct {
	config   Config
	reactor  *efa.Reactor
	listener *efa.Listener
	rank     int
	peers    []*peer // by rank of the world; that of this rank has no connection
	pool     sync.Pool

	closeOnce sync.Once
	closeErr  error

	// All below belongs to the progress role of the reactor.
	matcher  tagged.Matcher[*operation, *arrival]
	arrivals arrivals
	sends    operationTable // that wait for an answer
	receives operationTable // that wait for data
	posted   operationList  // receives that wait for a message
	probes   operationList
	// extensions are by context, early notices that came before theirs, absent the ranks
	// that have closed a communicator before, and windows the extensions that hear of
	// writes.
	contexts   uint32              // given out: how many
	unclosed   map[uint32]struct{} // of these
	extensions map[uint32]*extended
	early      map[uint32][]earlyNotice
	absent     map[uint32][]int
	windows    []*extended
	provider   *provider // nil where matching is in software
	lost       []int     // ranks, in the order of their loss
	closed     bool
}

// Open joins the world of a job: a communicator of all its ranks. All of them open it
// at about the same time; ctx bounds the wait for the others. With that of a bootstrap.Job
// it ends when one of them is lost meanwhile. The caller closes the world when its messages
// are done.
//
// Errors: *ConfigError, what Config.Exchange returned, *MatchingError, *MissingError where
// ranks have not come before ctx ended, beside the cause of ctx, *RankError where one could
// not be dialed or was lost, and what efa.Open, Listen and Dial return. With any, the
// Device of Config.Engine is closed.
func Open(ctx context.Context, config Config) (*Comm, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, config.abandon(err)
	}
	e := &engine{config: c, rank: c.Rank, peers: make([]*peer, c.Size)}
	e.pool.New = func() any { return &operation{engine: e} }
	e.arrivals.limit = c.MaxUnexpected
	group := make([]int, c.Size)
	for i := range e.peers {
		e.peers[i] = &peer{engine: e, rank: i}
		group[i] = i
	}
	if e.reactor, err = efa.Open(c.Engine); err != nil {
		return nil, err
	}
	if err := e.open(ctx); err != nil {
		return nil, errors.Join(err, e.abandon())
	}
	e.reactor.HandleWrites(e.written)
	world := newComm(e, group, nil, c.Rank)
	if err := world.meet(ctx); err != nil {
		return nil, errors.Join(err, e.abandon())
	}
	return world, nil
}

// meet returns when all ranks have all their connections. One that left before would be a
// rank that never came to those that wait for it, and shm takes the messages of an
// endpoint for those of another, if peers of that one come and go.
func (c *Comm) meet(ctx context.Context) error {
	size := len(c.group)
	for distance := 1; distance < size; distance *= 2 {
		op := c.sendTo((c.rank+distance)%size, nil)
		op.context, op.tag = op.context+1, meetTag
		if _, err := op.runToEnd(ctx); err != nil {
			return err
		}
		from := c.within((c.rank + size - distance) % size)
		from.Tag = meetTag
		if _, err := c.receiveOn(from, nil).runToEnd(ctx); err != nil {
			return err
		}
	}
	return nil
}

// meetTag is that of the messages of meet, in the context of the world's own.
const meetTag = 1

func (e *engine) open(ctx context.Context) error {
	if len(e.peers) == 1 {
		// Messages to oneself are matched in software in any case.
		return nil
	}
	if e.config.Matching == MatchByProvider {
		if err := e.reactor.CanMatch(); err != nil {
			return &MatchingError{Provider: e.reactor.Provider(), Cause: err}
		}
		e.provider = newProvider(e)
	}
	return e.connect(ctx)
}

// abandon closes what an Open that failed had opened.
func (e *engine) abandon() error {
	for _, p := range e.peers {
		if p.conn != nil {
			// It was never used.
			_ = p.conn.CloseNow()
		}
	}
	return e.closeReactor()
}

func (e *engine) closeReactor() error {
	var err error
	if e.listener != nil {
		err = e.listener.Close()
	}
	return errors.Join(err, e.reactor.Close())
}

// close ends the connections in order. What the others have not taken when the
// time is over is lost.
func (e *engine) close() error {
	e.closeOnce.Do(func() { e.closeErr = e.shut() })
	return e.closeErr
}

func (e *engine) shut() error {
	drainErr := e.drainExtensions()
	e.do(func(p efa.Progress) {
		for _, x := range e.extensions {
			x.close(p)
		}
		e.closed = true
		e.endUnmatched(p, errClosed)
	})
	errs := make([]error, len(e.peers))
	if e.provider != nil {
		e.provider.leave(errs)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), e.config.CloseTimeout, os.ErrDeadlineExceeded)
	defer cancel()
	var all sync.WaitGroup
	for i, p := range e.peers {
		if p.conn != nil {
			all.Go(func() { errs[i] = errors.Join(errs[i], p.end(ctx, errs[i])) })
		}
	}
	all.Wait()
	e.do(func(p efa.Progress) { e.endMatched(p, errClosed) })
	for i, err := range errs {
		if err != nil {
			errs[i] = &RankError{Rank: i, Cause: err}
		}
	}
	err := errors.Join(drainErr, errors.Join(errs...), e.closeReactor())
	var extensions []*extended
	e.do(func(efa.Progress) { extensions = slices.Collect(maps.Values(e.extensions)) })
	for _, x := range extensions {
		err = errors.Join(err, x.Release())
	}
	return err
}

// end closes the connection of a peer: at once if that has kept Close waiting already.
func (to *peer) end(ctx context.Context, failed error) error {
	if failed != nil {
		return to.conn.CloseNow()
	}
	// What waits for room there are answers, and data of messages that were matched: to
	// close would end it. What ends the connection before is the error of the close.
	_ = to.conn.Flush(ctx, efa.FlushLocal)
	return to.conn.CloseContext(ctx)
}

// errand is something short that is done in the progress role.
type errand struct {
	task efa.Task
	f    func(efa.Progress)
}

// Start implements efa.Work.
func (w *errand) Start(p efa.Progress) {
	w.f(p)
	p.Finish(&w.task, nil)
}

// Abandon implements efa.Work.
func (w *errand) Abandon(efa.Progress, error) {}

// do has f done in the progress role and waits for it.
func (e *engine) do(f func(efa.Progress)) {
	w := &errand{f: f}
	// An errand has no error, and the context no end.
	_ = e.reactor.Run(context.Background(), &w.task, w)
}

// endUnmatched ends what waits for a message, and what was not sent.
func (e *engine) endUnmatched(p efa.Progress, why error) {
	for _, list := range []*operationList{&e.posted, &e.probes} {
		for list.head != nil {
			list.head.endWait(p, why)
		}
	}
	if e.provider != nil {
		e.provider.endAll(p, why)
	}
	for _, to := range e.peers {
		if to.conn != nil {
			to.endWaiting(p, why)
		}
	}
}

// endWaiting ends the sends that wait for room at a rank and have not begun.
func (to *peer) endWaiting(p efa.Progress, why error) {
	for _, s := range p.Waiting(to.conn) {
		switch s := s.(type) {
		case *operation:
			s.cancel(p, why)
		case *announcement:
			(*operation)(s).cancel(p, why)
		}
	}
}

// endMatched ends what waits for an answer or for data, but for what devices still have.
// That is when no connection is left: until then others may match what was announced to
// them, and read it, and the data of what was matched may come.
func (e *engine) endMatched(p efa.Progress, why error) {
	for _, op := range e.sends.live() {
		op.failSend(p, why)
	}
	// What is read or received just now ends by itself.
	for _, op := range e.receives.live() {
		if !op.inDevice {
			op.failReceive(p, why)
		}
	}
}

// lose notes that a rank can not be reached any more, and ends what waits for it.
func (e *engine) lose(p efa.Progress, lost *peer, why error) {
	lost.failure = why
	e.lost = append(e.lost, lost.rank)
	for _, list := range []*operationList{&e.posted, &e.probes} {
		for op := list.head; op != nil; {
			next := op.next
			if rank, waits := op.comm.waitsFor(op.pattern, lost.rank); waits {
				op.endWait(p, &RankError{Rank: rank, Cause: why})
			}
			op = next
		}
	}
	if e.provider != nil {
		e.provider.lose(p, lost, why)
	}
	e.endSends(p, lost, why)
	// What the device had was handed back before, but for reads.
	for _, op := range e.receives.live() {
		if op.peer == lost && op.reading == 0 {
			op.failReceive(p, why)
		}
	}
	for _, x := range e.extensions {
		x.lost(p, lost)
	}
}

// endSends ends the sends to a rank that is lost.
func (e *engine) endSends(p efa.Progress, lost *peer, why error) {
	for _, op := range e.sends.live() {
		if op.peer == lost {
			op.failSend(p, why)
		}
	}
}

// endWait ends a receive or a probe that waits for a message.
func (op *operation) endWait(p efa.Progress, why error) {
	if op.list == &op.engine.posted {
		op.engine.matcher.Cancel(op.ticket)
	}
	op.leaveList()
	op.complete(p, why)
}
