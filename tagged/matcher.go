package tagged

const (
	// AnySource is the Source of a [Pattern] that takes messages of all sources.
	// It is no source of a message.
	AnySource uint32 = 1<<32 - 1
	// AnyTag is the Ignore of a [Pattern] that takes every tag.
	AnyTag uint64 = 1<<64 - 1
)

// Envelope is what a message is matched by.
type Envelope struct {
	// Context tells communicators apart.
	Context uint32
	// Source is the rank of the sender in its communicator.
	Source uint32
	Tag    uint64
}

func (e Envelope) key() key { return key{tag: e.Tag, context: e.Context, source: e.Source} }

// Pattern says which messages a receive or a probe takes: those of the context,
// from the source or from [AnySource], with Tag | Ignore == message's tag |
// Ignore. A bit that is set in Ignore does not count, as in libfabric's
// fi_trecv.
//
// It has no more fields than the compiler keeps in registers.
type Pattern struct {
	Context uint32
	Source  uint32
	Tag     uint64
	Ignore  uint64
}

func (p Pattern) key() key { return key{tag: p.Tag, context: p.Context, source: p.Source} }

func (p Pattern) wildcard() wildcard {
	w := wildcard{tag: ^p.Ignore, source: ^uint32(0)}
	if p.Source == AnySource {
		w.source = 0
	}
	return w
}

// Message is an unexpected message: one that arrived before its receive.
type Message[M any] struct {
	Envelope
	Value M
}

// ReceiveTicket names a receive that was posted. Tickets are never reused, and
// the zero ReceiveTicket names none.
type ReceiveTicket[R any] struct {
	receive  *receive[R]
	sequence uint64
}

// Matcher brings together receives and messages by the rules of MPI: of the
// posted receives that match a message the earliest takes it, whatever their
// wildcards; of the unexpected messages that match a receive the one that
// arrived first is taken. So it never holds a receive and a message that match.
// R is what the caller keeps with a receive, M what it keeps with a message.
//
// Every operation takes the same time however many receives and messages there
// are, and however their tags were chosen. It does depend on the number of
// masks: a receive's Ignore that is neither 0 nor [AnyTag] makes a class of its
// own. A message asks every class that has receives. The first receive or probe
// of such a mask while messages wait looks at all of them, and later ones do
// not, until none waits any more or 16 other masks were used since.
//
// The zero Matcher is empty and ready. It is used by one goroutine at a time,
// and must not be copied after first use. Its memory grows with what is in it,
// which is for the caller to bound, and is given back but for a reserve:
// nothing is allocated while no more than some thousands come and go.
type Matcher[R, M any] struct {
	receives posted[R]
	messages unexpected[M]
}

// Post takes the first unexpected message that the pattern takes out, as
// [Matcher.Take] does, and matched is true. If there is none, the receive is
// posted, and ticket names it for [Matcher.Cancel].
func (m *Matcher[R, M]) Post(p Pattern, value R) (ticket ReceiveTicket[R], message Message[M], matched bool) {
	if m.messages.count != 0 {
		if message, matched = m.Take(p); matched {
			return ticket, message, true
		}
	}
	if m.receives.seed == nil {
		m.start()
	}
	r := m.receives.post(p.key(), p.wildcard(), value)
	return ReceiveTicket[R]{receive: r, sequence: r.sequence}, message, false
}

// Arrive takes the earliest posted receive that takes the message out, and
// matched is true. If there is none, the message is kept as unexpected, with
// its value.
func (m *Matcher[R, M]) Arrive(e Envelope, value M) (receive R, matched bool) {
	if m.receives.count != 0 {
		if r := m.receives.match(e.key()); r != nil {
			return m.receives.remove(r), true
		}
	}
	if m.receives.seed == nil {
		m.start()
	}
	m.messages.add(e.key(), value)
	return receive, false
}

// Cancel takes a posted receive out. ok is false if it is not posted: it was
// matched or cancelled before.
func (m *Matcher[R, M]) Cancel(ticket ReceiveTicket[R]) (receive R, ok bool) {
	r := ticket.receive
	if r == nil || r.sequence != ticket.sequence {
		return receive, false
	}
	return m.receives.remove(r), true
}

// Probe returns the first unexpected message that the pattern takes, and leaves
// it there. ok is false if there is none.
func (m *Matcher[R, M]) Probe(p Pattern) (message Message[M], ok bool) {
	found := m.messages.find(p.key(), p.wildcard())
	if found == nil {
		return message, false
	}
	return found.copied(), true
}

// Take takes the first unexpected message that the pattern takes out: a matched
// probe, after which no receive gets it. ok is false if there is none.
func (m *Matcher[R, M]) Take(p Pattern) (message Message[M], ok bool) {
	found := m.messages.find(p.key(), p.wildcard())
	if found == nil {
		return message, false
	}
	message = found.copied()
	m.messages.remove(found)
	return message, true
}

// Posted is the number of posted receives.
func (m *Matcher[R, M]) Posted() int { return m.receives.count }

// Unexpected is the number of unexpected messages.
func (m *Matcher[R, M]) Unexpected() int { return m.messages.count }

func (m *Matcher[R, M]) start() {
	seed := newHashSeed()
	m.receives.start(seed)
	m.messages.start(seed)
}

func (m *message[M]) copied() Message[M] {
	k := m.key()
	return Message[M]{Envelope: Envelope{Context: k.context, Source: k.source, Tag: k.tag}, Value: m.value}
}
