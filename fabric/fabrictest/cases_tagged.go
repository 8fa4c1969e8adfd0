package fabrictest

import (
	"errors"

	"github.com/weft-go/weft/fabric"
)

var peekCases = []named{
	{"peek", peekCase},
	{"claim", claimCase},
	{"discard", discardCase},
	{"peek without a tag", untaggedPeekCase},
}

// peek asks until the provider has seen the message.
func (s *station) peek(t *trial, tag uint64, flags fabric.OpFlags) (c fabric.Completion) {
	t.Helper()
	t.until("message to peek at", func(int) bool {
		c = s.look(t, tag, flags)
		if c.Err != nil {
			errorIs(t, c.Err, fabric.ErrNoMessage)
		}
		return c.Err == nil
	})
	return c
}

// look peeks once.
func (s *station) look(t *trial, tag uint64, flags fabric.OpFlags) fabric.Completion {
	t.Helper()
	op := s.post(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Flags: fabric.Peek | flags, Context: 77})
	if errors.Is(op.Err, fabric.ErrNotSupported) {
		t.need("FI_PEEK", op.Err)
	}
	noError(t, op.Err)
	c := s.await(t)
	equal(t, 77, c.Context)
	return c
}

// A message without a tag that was peeked at is still there, and none is said to be when there
// is none.
func untaggedPeekCase(t *trial) {
	a, b := pairOf(t, fabric.Messages)
	look := func() fabric.Completion {
		op := b.post(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Flags: fabric.Peek})
		if errors.Is(op.Err, fabric.ErrNotSupported) {
			t.need("FI_PEEK of messages without a tag", op.Err)
		}
		noError(t, op.Err)
		return b.await(t)
	}
	errorIs(t, look().Err, fabric.ErrNoMessage)
	a.must(t, fabric.Op{Kind: fabric.OpInject, Peer: a.peer, Buf: []byte("one")})
	t.until("message to peek at", func(int) bool {
		c := look()
		if c.Err != nil {
			errorIs(t, c.Err, fabric.ErrNoMessage)
			return false
		}
		equal(t, 3, c.Len)
		return true
	})
	got := make([]byte, 8)
	b.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got})
	equal(t, "one", string(got[:b.done(t).Len]))
	idle(t, b)
}

func (s *station) say(t *trial, tag uint64, text string) {
	t.Helper()
	s.must(t, fabric.Op{Kind: fabric.OpTaggedInject, Peer: s.peer, Tag: tag, Buf: []byte(text)})
}

// hears receives one message.
func (s *station) hears(t *trial, op fabric.Op, want string) {
	t.Helper()
	op.Kind, op.Peer, op.Buf = fabric.OpTaggedReceive, fabric.AddressAny, make([]byte, 32)
	s.must(t, op)
	c := s.done(t)
	equal(t, want, string(op.Buf[:c.Len]))
}

// What was peeked at is still there.
func peekCase(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages)
	errorIs(t, b.look(t, 1, 0).Err, fabric.ErrNoMessage)
	a.say(t, 1, "one")
	equal(t, 3, b.peek(t, 1, 0).Len)
	errorIs(t, b.look(t, 2, 0).Err, fabric.ErrNoMessage, "a message with another tag")
	b.hears(t, fabric.Op{Tag: 1}, "one")
	errorIs(t, b.look(t, 1, 0).Err, fabric.ErrNoMessage, "it was received")
	idle(t, b)
}

// Two messages are claimed, and received in reverse.
func claimCase(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages)
	a.say(t, 2, "first")
	a.say(t, 2, "second")
	one := b.peek(t, 2, fabric.Claim)
	two := b.peek(t, 2, fabric.Claim)
	errorIs(t, b.look(t, 2, 0).Err, fabric.ErrNoMessage, "both are claimed")
	b.hears(t, fabric.Op{Tag: 2, Flags: fabric.Claim, Claimed: two.Token}, "second")
	b.hears(t, fabric.Op{Tag: 2, Flags: fabric.Claim, Claimed: one.Token}, "first")
	again := b.post(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: make([]byte, 8), Flags: fabric.Claim, Claimed: one.Token})
	errorIs(t, again.Err, fabric.ErrInvalid)
	errorSays(t, again.Err, "no claimed message")
	idle(t, b)
}

// What is discarded is gone, and what came after it is not.
func discardCase(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages)
	a.say(t, 3, "unwanted")
	a.say(t, 3, "wanted")
	b.peek(t, 3, fabric.Discard)
	b.hears(t, fabric.Op{Tag: 3}, "wanted")
	errorIs(t, b.look(t, 3, 0).Err, fabric.ErrNoMessage)
	idle(t, b)
}
