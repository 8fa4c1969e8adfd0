package fabric

import (
	"cmp"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// Direction is one of the two sides of an endpoint.
type Direction uint64

// The directions.
const (
	Sending   Direction = Direction(cgo.BindTransmit) // FI_TRANSMIT
	Receiving Direction = Direction(cgo.BindReceive)  // FI_RECV
)

// String is libfabric's name.
func (d Direction) String() string {
	return names[Direction]{Sending: "FI_TRANSMIT", Receiving: "FI_RECV"}.of(d)
}

// defaultFlags are those that may hold for all operations of a direction: the
// others belong to single operations, which are accounted for by them.
func (d Direction) defaultFlags() OpFlags {
	switch d {
	case Sending:
		return WithCompletion | completionLevels
	case Receiving:
		return WithCompletion
	}
	return 0
}

// OperationFlags are the flags that operations of the direction have if they are
// posted without flags. ErrNotSupported says that the provider does not tell.
//
// Implements: int fi_control(...)
func (e *Endpoint) OperationFlags(d Direction) (OpFlags, error) {
	const op = "fi_control of operation flags"
	if err := e.enter(); err != nil {
		return 0, err
	}
	defer e.leave()
	if d != Sending && d != Receiving {
		return 0, e.invalid(op, "a direction is Sending or Receiving")
	}
	if err := e.whole(op); err != nil {
		return 0, err
	}
	flags, code := e.raw.OperationFlags(uint64(d))
	return OpFlags(flags &^ uint64(d)), fail(op, e.provider, int(code))
}

// SetOperationFlags sets the flags of operations that are posted without flags:
// for Sending WithCompletion and those that say what a completion means, from
// InjectComplete to CommitComplete, for Receiving WithCompletion. It takes effect for
// operations posted later. Other flags are ErrInvalid; ErrNotSupported says that the
// provider's endpoints have the flags of their info for good.
//
// Implements: int fi_control(...)
func (e *Endpoint) SetOperationFlags(d Direction, flags OpFlags) error {
	const op = "fi_control of operation flags"
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := e.checkDefaults(op, d, flags); err != nil {
		return err
	}
	if err := e.whole(op); err != nil {
		return err
	}
	if err := fail(op, e.provider, int(e.raw.SetOperationFlags(uint64(d)|uint64(flags)))); err != nil {
		return err
	}
	if d == Sending {
		e.sendFlags = flags
	}
	if e.batching {
		e.batch(true)
	}
	return nil
}

func (e *Endpoint) checkDefaults(op string, d Direction, flags OpFlags) error {
	switch {
	case d != Sending && d != Receiving:
		return e.invalid(op, "a direction is Sending or Receiving")
	case flags&^d.defaultFlags() != 0:
		return e.invalid(op, "the flags are not all such that they can hold for every operation of the direction")
	}
	return nil
}

// Alias is an endpoint under another name, with flags of its own for operations
// that are posted without flags (fi_ep_alias). It shares everything else with
// the endpoint, its queues too, and may be used by one goroutine at a time
// together with it. It is closed before the endpoint.
type Alias struct {
	endpoint *Endpoint
	of       *Endpoint
}

// OpenAlias makes an alias of an enabled endpoint, whose operations of the direction
// have the flags, which are as for SetOperationFlags. ErrInvalid says that the
// endpoint is not enabled or that the flags cannot be, ErrNotSupported that the
// provider has no aliases.
//
// Implements: int fi_ep_alias(...)
func (e *Endpoint) OpenAlias(d Direction, flags OpFlags) (*Alias, error) {
	const op = "fi_ep_alias"
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if e.turn == nil {
		return nil, e.notEnabled(op)
	}
	if err := e.checkDefaults(op, d, flags); err != nil {
		return nil, err
	}
	if err := e.whole(op); err != nil {
		return nil, err
	}
	raw, code := e.raw.Alias(uint64(d) | uint64(flags))
	if code != 0 {
		return nil, fail(op, e.provider, int(code))
	}
	first := e.send
	if first == nil {
		first = e.receive
	}
	turn, ok := first.newTurn(raw, len(e.turn.Ops))
	if !ok {
		raw.Close()
		return nil, fail("turn", e.provider, int(syscall.ENOMEM))
	}
	a := &Endpoint{
		raw: raw, domain: e.domain, turn: turn, send: e.send, receive: e.receive, spill: e.spill, spillsEmpty: e.spillsEmpty,
		undirected: e.undirected, unmixed: e.unmixed, takesAny: e.takesAny, registered: e.registered, confirmsEarly: e.confirmsEarly, forgetsReads: e.forgetsReads, sendsLongWrites: e.sendsLongWrites, sendFlags: e.sendFlags,
		singly: e.singly, drains: e.drains, several: e.several, fetching: e.fetching,
	}
	if d == Sending {
		a.sendFlags = flags
	}
	a.connection.of, a.connection.info = e, e.connection.info
	a.connection.restricted.Store(true)
	a.wakes(first.wakeWaiters)
	a.open(kindAlias, e.provider, &e.handle)
	return &Alias{endpoint: a, of: e}, nil
}

func (a *Alias) part() *Endpoint { return cmp.Or(a.endpoint, &unopened) }

// Turn is that of the endpoint.
func (a *Alias) Turn(posts []Op, completions []Completion, spins int) (reaped int, err error) {
	return a.part().Turn(posts, completions, spins)
}

// TurnWait is that of the endpoint.
func (a *Alias) TurnWait(posts []Op, completions []Completion, waitMS int) (reaped int, err error) {
	return a.part().TurnWait(posts, completions, waitMS)
}

// Cancel is that of the endpoint, for operations that were posted through the
// alias.
func (a *Alias) Cancel(token Token) error { return a.part().Cancel(token) }

// Close ends the alias. Operations in flight go on as the endpoint's.
//
// Implements: int fi_close(...)
func (a *Alias) Close() error {
	e := a.part()
	return e.close(func() error {
		if err := fail("fi_close of alias", e.provider, int(e.raw.Close())); err != nil {
			return err
		}
		e.turn.Free()
		for _, q := range e.queues() {
			for i := range q.table {
				if s := &q.table[i]; s.busy && s.endpoint == e {
					s.endpoint = a.of
				}
			}
		}
		return nil
	})
}
