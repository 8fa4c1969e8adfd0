package tagged

// A matched message is one that the transport matches by the rules of MPI: it has
// neither KLength nor KPayload, so that no receive for these takes it. Its tag is,
// from the lowest bit: 32 bits of the sender's tag, the two marks, both clear, 16 bits
// of the sender's rank and 14 bits of context.
const (
	// MaxMatchedTag, MaxMatchedSource and MaxMatchedContext are the largest values
	// that the envelope of a matched message has room for.
	MaxMatchedTag     = 1<<32 - 1
	MaxMatchedSource  = 1<<16 - 1
	MaxMatchedContext = 1<<14 - 1

	// AnyMatched and AnyMatchedIgnore are the tag and the ignore mask of a receive
	// that takes every matched message, and nothing else.
	AnyMatched       uint64 = 0
	AnyMatchedIgnore        = ^KControl

	matchedSource  = 34
	matchedContext = 50
)

// MatchedTag is the tag of a matched message. What is larger than the envelope's
// limits loses the bits that do not fit: whoever takes values from a peer or a program
// checks them before.
func MatchedTag(e Envelope) uint64 {
	return uint64(e.Context)<<matchedContext | uint64(e.Source&MaxMatchedSource)<<matchedSource | e.Tag&MaxMatchedTag
}

// ParseMatchedTag takes the tag of a matched message apart; ok is false if it is that
// of another kind of message.
func ParseMatchedTag(tag uint64) (e Envelope, ok bool) {
	return Envelope{
		Context: uint32(tag >> matchedContext),
		Source:  uint32(tag>>matchedSource) & MaxMatchedSource,
		Tag:     tag & MaxMatchedTag,
	}, tag&KControl == 0
}

// MatchedReceive is the tag and the ignore mask of a receive, from any address, that
// takes the matched messages which the pattern takes, and nothing else. Of the
// pattern's Tag and Ignore the lower 32 bits count.
func (p Pattern) MatchedReceive() (tag, ignore uint64) {
	ignore = p.Ignore & MaxMatchedTag
	source := p.Source
	if source == AnySource {
		source = 0
		ignore |= MaxMatchedSource << matchedSource
	}
	return MatchedTag(Envelope{Context: p.Context, Source: source, Tag: p.Tag}), ignore
}

// Takes says whether the pattern takes a message.
func (p Pattern) Takes(e Envelope) bool {
	return p.Context == e.Context && (p.Source == AnySource || p.Source == e.Source) && (p.Tag^e.Tag)&^p.Ignore == 0
}
