package fabric

import "github.com/weft-go/weft/cgo"

// CompletionFormat is how much the completions of a queue say: what the format does
// not have is zero in a [Completion]. Context, Kind, Source, Released, Token and Err
// are in all of them, and an operation that has failed has everything. Shorter ones
// are less for a provider to write, and some endpoints have no longer ones.
type CompletionFormat uint8

// The formats, from the fullest to the shortest.
const (
	// CompletionTagged has everything (FI_CQ_FORMAT_TAGGED).
	CompletionTagged CompletionFormat = iota
	// CompletionData does not have Tag (FI_CQ_FORMAT_DATA).
	CompletionData
	// CompletionMessage has neither Tag nor HasImmediate, Immediate and Offset, and
	// an endpoint with such a receive queue takes no MultiReceive
	// (FI_CQ_FORMAT_MSG).
	CompletionMessage
	// CompletionContext does not have Len either, nor completions of what peers do:
	// an OpRemoteWrite is counted in Strays (FI_CQ_FORMAT_CONTEXT).
	CompletionContext
)

// completionFormats are their names and libfabric's numbers.
var completionFormats = [...]struct {
	name string
	raw  int
}{
	CompletionTagged:  {"FI_CQ_FORMAT_TAGGED", cgo.CQTagged},
	CompletionData:    {"FI_CQ_FORMAT_DATA", cgo.CQData},
	CompletionMessage: {"FI_CQ_FORMAT_MSG", cgo.CQMessage},
	CompletionContext: {"FI_CQ_FORMAT_CONTEXT", cgo.CQContext},
}

// String is libfabric's name.
func (f CompletionFormat) String() string {
	if int(f) < len(completionFormats) {
		return completionFormats[f].name
	}
	return "unknown"
}

// within is the format that a queue of the provider has in libfabric: where only the
// length says that a message did not fit (see spill.go), one that has it.
func (f CompletionFormat) within(provider string) int {
	if f == CompletionContext && (onlyLengthTells(provider) || provider == "tcp") {
		f = CompletionMessage
	}
	return completionFormats[f].raw
}

// narrow takes away what completions of the format do not have.
func (f CompletionFormat) narrow(c *Completion) {
	if f == CompletionTagged {
		return
	}
	c.Tag = 0
	if f >= CompletionMessage {
		c.HasImmediate, c.Immediate, c.Offset = false, 0, 0
	}
	if f >= CompletionContext {
		c.Len = 0
	}
}

// placeless says that an operation would end with messages of which nobody knows
// where they are.
func (e *Endpoint) placeless(op *Op) bool {
	return op.Flags&MultiReceive != 0 && kinds[op.Kind].receive && e.receive != nil && e.receive.format >= CompletionMessage
}
