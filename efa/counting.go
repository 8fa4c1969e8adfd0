package efa

import (
	"log/slog"

	"github.com/weft-go/weft/tagged"
)

// Counting: what happens to a message is counted where it happens, in plain
// integers of its connection, by whoever holds the progress role. The reactor's
// totals are made when somebody asks: the sum over the table, and over those that
// have left it. What happens outside of the role is counted under a lock that is
// held there anyway, and handshakes under one of their own.

// connStats are the counts of a connection that it does not keep for its own
// sake.
type connStats struct {
	MessageStats
	// opened: its handshake has succeeded. retired: the reactor has taken its
	// counts over.
	opened, retired bool
	// The id after the furthest that was announced, and likewise the ticket after
	// the furthest that the device was done with.
	announced uint32
	completed tagged.Ticket
}

// arrival counts a message whose length is here.
func (s *connStats) arrival(id uint32) {
	if int32(id-s.announced) < 0 {
		s.LateArrivals++
	} else {
		s.announced = id + 1
	}
}

// completion counts an operation of so many writes from a ticket on.
func (s *connStats) completion(ticket tagged.Ticket, writes int) {
	if next := ticket + tagged.Ticket(writes); next < s.completed {
		s.LateCompletions++
	} else {
		s.completed = next
	}
}

// joined counts a message that has become the last one of a group.
func (s *connStats) joined(group int) {
	if group == 2 {
		s.Groups++
		s.Grouped++
	}
	s.Grouped++
}

// payload counts a part of a payload that is on its way out.
func (s *connStats) payload(part, whole int) {
	if part < whole {
		s.Pieces++
	}
}

// pieceReceived counts a part of a payload that is here.
func (s *connStats) pieceReceived(part int, whole int64) {
	if int64(part) < whole {
		s.PiecesReceived++
	}
}

// waits counts what has to stand in line.
func (s *connStats) waits(w *write) {
	if w.flush == nil {
		s.Waited++
	}
}

// messageStats returns the counts of a connection.
func (c *Conn) messageStats() MessageStats {
	s := c.stats.MessageStats
	s.Sent, s.Received, s.Read = c.sent, c.received, c.consumed
	s.Bounced = s.Sent - s.ZeroCopy
	s.Parked = s.Received - s.Direct
	return s
}

// countTurn counts a turn to which n operations were offered.
func (r *Reactor) countTurn(n, posted, reaped int) {
	r.stats.Posts += uint64(posted)
	r.stats.Completions += uint64(reaped)
	if n+reaped == 0 {
		r.stats.EmptyTurns++
	}
}

// countRefused counts an operation that the device did not take.
func (r *Reactor) countRefused(op *operation) {
	if op.conn != nil {
		op.conn.stats.Refused++
	} else {
		r.retired.Refused++
	}
}

// countBackground counts a turn of the background goroutine, and that it looked
// whether there was nothing more, if so. waited: it has waited before.
func (r *Reactor) countBackground(waited, active bool) {
	if !active {
		r.stats.Crossings++
	}
	if waited {
		r.stats.Crossings++
		r.stats.Waits++
		if !active {
			r.stats.IdleWakeUps++
		}
	}
}

// opened notes that the handshake of a connection has succeeded. It may have ended
// again meanwhile.
func (r *Reactor) opened(c *Conn) {
	c.stats.opened = true
	r.stats.Opened++
	if c.over {
		r.countEnd(c)
	}
}

// countEnd notes that a connection is over, in the log as well.
func (r *Reactor) countEnd(c *Conn) {
	if !c.stats.opened {
		return
	}
	if c.failure == nil {
		r.stats.InOrder++
	} else {
		*r.stats.Ended.of(c.failure)++
	}
	if c.plain == nil {
		c.logEnd()
	}
}

// retire takes over the counts of a connection that leaves the table.
func (r *Reactor) retire(c *Conn) {
	if c.stats.retired {
		return
	}
	c.stats.retired = true
	s := c.messageStats()
	r.retired.add(&s)
}

// countRead notes that a message was read. That may be after the connection has
// left the table, and so may errors.
func (r *Reactor) countRead(c *Conn) {
	if c.stats.retired {
		r.retired.Read++
	}
}

// count is one of those that a struct of them has.
type count struct {
	name  string
	value *uint64
}

func (s *MessageStats) counts() []count {
	return append([]count{
		{"sent", &s.Sent},
		{"sent_bytes", &s.SentBytes},
		{"bounced", &s.Bounced},
		{"zero_copy", &s.ZeroCopy},
		{"eager", &s.Eager},
		{"groups", &s.Groups},
		{"grouped", &s.Grouped},
		{"pieces", &s.Pieces},
		{"held", &s.Held},
		{"received", &s.Received},
		{"received_bytes", &s.ReceivedBytes},
		{"direct", &s.Direct},
		{"parked", &s.Parked},
		{"read", &s.Read},
		{"groups_received", &s.GroupsReceived},
		{"pieces_received", &s.PiecesReceived},
		{"late_arrivals", &s.LateArrivals},
		{"late_completions", &s.LateCompletions},
		{"waited", &s.Waited},
		{"grants_sent", &s.GrantsSent},
		{"grants_received", &s.GrantsReceived},
		{"flushes", &s.Flushes},
		{"beside", &s.Beside},
		{"injected", &s.Injected},
		{"refused", &s.Refused},
	}, s.Errors.counts("errors_")...)
}

func (s *ErrorStats) counts(prefix string) []count {
	all := []count{
		{"closed", &s.Closed},
		{"peer_closed", &s.PeerClosed},
		{"peer_lost", &s.PeerLost},
		{"protocol", &s.Protocol},
		{"device", &s.Device},
		{"transfer", &s.Transfer},
		{"deadline", &s.Deadline},
		{"canceled", &s.Canceled},
		{"message_size", &s.MessageSize},
		{"would_block", &s.WouldBlock},
		{"other", &s.Other},
	}
	for i := range all {
		all[i].name = prefix + all[i].name
	}
	return all
}

func (s *MessageStats) add(more *MessageStats) {
	mine, theirs := s.counts(), more.counts()
	for i := range mine {
		*mine[i].value += *theirs[i].value
	}
}

// LogValue makes a group of the counts that are not 0.
func (s MessageStats) LogValue() slog.Value {
	var attributes []slog.Attr
	for _, c := range s.counts() {
		if *c.value > 0 {
			attributes = append(attributes, slog.Uint64(c.name, *c.value))
		}
	}
	return slog.GroupValue(attributes...)
}

func (f *followers) counts() (total, handOvers uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total, f.handOvers
}

func (q *callbackQueue) count() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ran
}
