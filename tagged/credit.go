package tagged

import "fmt"

// window is how much a writer may have outstanding: sent, and not yet granted
// back by the reader.
//
// The reader grants when half of a window has been consumed and not before, so
// that credit costs few messages. It may therefore keep back a little less than
// half a window for ever, and the writer must be able to send any message with
// what is left. That is why a message counts at most half the byte window and
// one byte: two such messages do not fit at once, one always does in the end.
type window struct {
	messages, bytes uint64
}

// newWindow takes 0 as 1, for nothing could ever be sent through 0.
func newWindow(messages, bytes uint64) window {
	return window{messages: max(messages, 1), bytes: max(bytes, 1)}
}

// charge is what a message of n bytes counts.
func (w window) charge(n int64) uint64 {
	return min(uint64(n), w.bytes/2+1)
}

// admits says whether a charge fits on top of what is outstanding.
func (w window) admits(messages, bytes, charge uint64) bool {
	return messages < w.messages && bytes <= w.bytes && charge <= w.bytes-bytes
}

// due says whether what was consumed is half of either window.
func (w window) due(messages, bytes uint64) bool {
	return messages >= w.messages-w.messages/2 || bytes >= w.bytes-w.bytes/2
}

// SendCredit is the writer's side of flow control: how much more may be sent.
// It is used by one goroutine at a time.
//
// A message longer than half the byte window counts as half the window and one
// byte. So one of any length can be sent once less than half the window is
// outstanding, and no two of them are outstanding together. Outstanding data is
// bounded by the window, or by half the window and the longest message,
// whichever is more.
//
// The counters start at 0 with the connection and do not wrap: 2^64 bytes take
// 58 years at 10 GB/s.
type SendCredit struct {
	window        window
	sent, granted counters
}

// counters count messages, and the bytes that they are charged with, since the
// connection began.
type counters struct {
	messages, bytes uint64
}

// NewSendCredit returns the credit of a connection whose reader admits that
// many messages and bytes. Both sides must be made with the same numbers. 0 is
// taken as 1.
func NewSendCredit(messages, bytes uint64) *SendCredit {
	return &SendCredit{window: newWindow(messages, bytes)}
}

// Take takes the credit for a message of n bytes, and says whether it was
// there. If not, nothing is taken, and it is worth trying again after a Grant.
// A negative n is never there.
func (c *SendCredit) Take(n int64) bool {
	if !c.CanTake(n) {
		return false
	}
	c.sent.messages++
	c.sent.bytes += c.window.charge(n)
	return true
}

// CanTake says whether Take of a message of n bytes would be true.
func (c *SendCredit) CanTake(n int64) bool {
	return n >= 0 && c.window.admits(c.sent.messages-c.granted.messages, c.sent.bytes-c.granted.bytes, c.window.charge(n))
}

// Grant takes in the counters of a ControlCredit message: what the reader had
// consumed since the connection began when it sent them. They may be repeated,
// and may come in any order. A grant of what was never sent is a *CreditError
// and changes nothing.
func (c *SendCredit) Grant(messages, bytes uint64) error {
	granted := counters{max(c.granted.messages, messages), max(c.granted.bytes, bytes)}
	// Bytes without a message left to account for them could never be granted,
	// and would hold up the writer for ever.
	lost := granted.messages == c.sent.messages && granted.bytes != c.sent.bytes
	if granted.messages > c.sent.messages || granted.bytes > c.sent.bytes || lost {
		return &CreditError{
			Problem:  CreditFalseGrant,
			Messages: messages, Bytes: bytes,
			MessageLimit: c.sent.messages, ByteLimit: c.sent.bytes,
		}
	}
	c.granted = granted
	return nil
}

// Outstanding is what was taken and not yet granted back. bytes are those that
// count, see [SendCredit].
func (c *SendCredit) Outstanding() (messages uint64, bytes int64) {
	return c.sent.messages - c.granted.messages, int64(c.sent.bytes - c.granted.bytes)
}

// ReceiveCredit is the reader's side of flow control: it finds out a writer
// that sends too much, and says when to grant. It is used by one goroutine at a
// time. If every grant that is due gets through, the writer is never stuck.
type ReceiveCredit struct {
	window                     window
	arrived, consumed, granted counters
}

// NewReceiveCredit returns the counterpart of a [SendCredit] made with the same
// numbers.
func NewReceiveCredit(messages, bytes uint64) *ReceiveCredit {
	return &ReceiveCredit{window: newWindow(messages, bytes)}
}

// Arrived notes that a message of n bytes was announced by its length message;
// the order of arrival does not matter. If the writer had no credit for it,
// that is a *CreditError, and nothing is noted.
func (c *ReceiveCredit) Arrived(n int64) error {
	messages, bytes := c.arrived.messages-c.granted.messages, c.arrived.bytes-c.granted.bytes
	charge := c.window.charge(max(n, 0))
	if n < 0 || !c.window.admits(messages, bytes, charge) {
		return &CreditError{
			Problem:  CreditOverrun,
			Messages: messages + 1, Bytes: bytes + charge,
			MessageLimit: c.window.messages, ByteLimit: c.window.bytes,
		}
	}
	c.arrived.messages++
	c.arrived.bytes += charge
	return nil
}

// Consumed notes that the reader took a message, whether it succeeded or not. n
// is what Arrived was told of it, which must have been before. due says that a
// grant is to be sent, as [ReceiveCredit.Due] does.
func (c *ReceiveCredit) Consumed(n int64) (due bool) {
	c.consumed.messages++
	c.consumed.bytes += c.window.charge(max(n, 0))
	return c.Due()
}

// Due says that the result of Grant is to be sent, now or as soon as possible:
// half of either window has been consumed since the last.
func (c *ReceiveCredit) Due() bool {
	return c.window.due(c.consumed.messages-c.granted.messages, c.consumed.bytes-c.granted.bytes)
}

// Grant returns the message that grants all that was consumed, and counts it as
// granted. It is correct at any time, due or not, and must then be sent.
func (c *ReceiveCredit) Grant() Control {
	c.granted = c.consumed
	return Control{Type: ControlCredit, Messages: c.granted.messages, Bytes: c.granted.bytes}
}

// CreditProblem says how a peer broke the rules of credit.
type CreditProblem uint8

// How the rules of credit can be broken.
const (
	CreditOverrun    CreditProblem = iota + 1 // sent more than it had credit for
	CreditFalseGrant                          // granted what was not sent
)

// CreditError is about a peer that does not keep to the rules of credit.
type CreditError struct {
	Problem CreditProblem
	// Messages and Bytes are what would be outstanding, or what was granted.
	// Bytes are those that count, see [SendCredit].
	Messages, Bytes uint64
	// MessageLimit and ByteLimit are the window, or what had been sent.
	MessageLimit, ByteLimit uint64
}

func (e *CreditError) Error() string {
	if e.Problem == CreditFalseGrant {
		return fmt.Sprintf("tagged: credit granted for %d messages of %d bytes, sent were %d of %d",
			e.Messages, e.Bytes, e.MessageLimit, e.ByteLimit)
	}
	return fmt.Sprintf("tagged: %d messages of %d bytes without credit, want at most %d of %d",
		e.Messages, e.Bytes, e.MessageLimit, e.ByteLimit)
}
