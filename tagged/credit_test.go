package tagged_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/tagged"
)

func TestSendCredit(t *testing.T) {
	c := tagged.NewSendCredit(3, 100)
	require.False(t, c.Take(-1))
	require.True(t, c.Take(40))
	require.True(t, c.Take(50))
	require.False(t, c.Take(11), "more bytes than are left")
	require.True(t, c.Take(10))
	require.False(t, c.Take(0), "more messages than are left")
	messages, bytes := c.Outstanding()
	require.Equal(t, uint64(3), messages)
	require.Equal(t, int64(100), bytes)

	require.NoError(t, c.Grant(2, 90))
	require.NoError(t, c.Grant(1, 40), "an older grant")
	require.NoError(t, c.Grant(2, 90), "the same again")
	messages, bytes = c.Outstanding()
	require.Equal(t, uint64(1), messages)
	require.Equal(t, int64(10), bytes)
}

func TestSendCreditLongMessages(t *testing.T) {
	c := tagged.NewSendCredit(8, 100)
	require.True(t, c.Take(math.MaxInt64), "longer than the whole window")
	require.False(t, c.Take(101), "no two of them")
	require.True(t, c.Take(49), "counts 51, so 49 are left")
	require.True(t, c.Take(0))
	require.False(t, c.Take(1))
	_, bytes := c.Outstanding()
	require.Equal(t, int64(100), bytes)
	require.NoError(t, c.Grant(1, 51))
	require.True(t, c.Take(101), "behind less than half a window")
}

func TestSendCreditFalseGrants(t *testing.T) {
	c := tagged.NewSendCredit(8, 100)
	require.True(t, c.Take(10))
	require.True(t, c.Take(10))
	for _, grant := range [][2]uint64{{3, 20}, {2, 21}, {0, 21}, {2, 19}, {math.MaxUint64, 20}, {1, math.MaxUint64}} {
		err := c.Grant(grant[0], grant[1])
		require.Equal(t, &tagged.CreditError{
			Problem:  tagged.CreditFalseGrant,
			Messages: grant[0], Bytes: grant[1],
			MessageLimit: 2, ByteLimit: 20,
		}, err)
		messages, bytes := c.Outstanding()
		require.Equal(t, uint64(2), messages, "a false grant must change nothing")
		require.Equal(t, int64(20), bytes)
	}
	require.EqualError(t, c.Grant(3, 20), "tagged: credit granted for 3 messages of 20 bytes, sent were 2 of 20")
}

func TestReceiveCreditOverrun(t *testing.T) {
	c := tagged.NewReceiveCredit(2, 100)
	require.Error(t, c.Arrived(-1))
	require.NoError(t, c.Arrived(60))
	require.Equal(t, &tagged.CreditError{
		Problem: tagged.CreditOverrun, Messages: 2, Bytes: 101, MessageLimit: 2, ByteLimit: 100,
	}, c.Arrived(50))
	require.NoError(t, c.Arrived(49), "an overrun is not noted")
	require.EqualError(t, c.Arrived(0), "tagged: 3 messages of 100 bytes without credit, want at most 2 of 100")

	// What is consumed but not granted is not to be sent again.
	c.Consumed(60)
	require.Error(t, c.Arrived(0))
	require.Equal(t, tagged.Control{Type: tagged.ControlCredit, Messages: 1, Bytes: 51}, c.Grant())
	require.NoError(t, c.Arrived(0))
}

func TestReceiveCreditDue(t *testing.T) {
	c := tagged.NewReceiveCredit(5, 100)
	for _, n := range []int64{10, 10, 10, 49, 1} {
		require.NoError(t, c.Arrived(n))
	}
	require.False(t, c.Consumed(10))
	require.False(t, c.Consumed(10))
	require.True(t, c.Consumed(10), "3 of 5 messages")
	require.True(t, c.Due(), "due until granted")
	c.Grant()
	require.False(t, c.Due())
	require.False(t, c.Consumed(49))
	require.True(t, c.Consumed(1), "50 of 100 bytes")
}

// With 49 of 100 bytes consumed no grant is due. If a longer message had to
// wait for more room than the other 51 bytes, it would wait for ever.
func TestCreditIsNotStuckBehindWhatTheReaderKeepsBack(t *testing.T) {
	for _, n := range []int64{51, 99, 100, 101, 1 << 40} {
		send, receive := tagged.NewSendCredit(8, 100), tagged.NewReceiveCredit(8, 100)
		require.True(t, send.Take(49))
		require.NoError(t, receive.Arrived(49))
		require.False(t, receive.Consumed(49))
		require.True(t, send.Take(n))
		require.NoError(t, receive.Arrived(n))
	}
}

// naiveCharge is what a message counts: itself, or just over half the window.
func naiveCharge(n int64, window uint64) uint64 {
	if uint64(n) > window/2 {
		return window/2 + 1
	}
	return uint64(n)
}

func naiveSum(charges []uint64) (sum uint64) {
	for _, charge := range charges {
		sum += charge
	}
	return sum
}

func TestSendCreditModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.Uint64Range(0, 9).Draw(t, "messages")
		bytes := rapid.Uint64Range(0, 50).Draw(t, "bytes")
		c := tagged.NewSendCredit(messages, bytes)
		messages, bytes = max(messages, 1), max(bytes, 1)
		var sent []uint64
		granted := 0
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.Int64Range(0, 100).Draw(t, "n")
				charge := naiveCharge(n, bytes)
				outstanding := sent[granted:]
				want := uint64(len(outstanding)) < messages && naiveSum(outstanding)+charge <= bytes
				require.Equal(t, want, c.Take(n))
				if want {
					sent = append(sent, charge)
				}
			},
			"grant": func(t *rapid.T) {
				n := rapid.IntRange(0, len(sent)).Draw(t, "granted")
				require.NoError(t, c.Grant(uint64(n), naiveSum(sent[:n])))
				granted = max(granted, n)
			},
			"false grant": func(t *rapid.T) {
				more := rapid.Uint64Range(1, math.MaxUint64/2).Draw(t, "more")
				require.Error(t, c.Grant(uint64(len(sent))+more, naiveSum(sent)))
				require.Error(t, c.Grant(uint64(granted), naiveSum(sent)+more))
			},
			"": func(t *rapid.T) {
				gotMessages, gotBytes := c.Outstanding()
				require.Equal(t, uint64(len(sent)-granted), gotMessages)
				require.Equal(t, naiveSum(sent[granted:]), uint64(gotBytes))
			},
		})
	})
}

func TestReceiveCreditModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.Uint64Range(0, 9).Draw(t, "messages")
		bytes := rapid.Uint64Range(0, 50).Draw(t, "bytes")
		c := tagged.NewReceiveCredit(messages, bytes)
		messages, bytes = max(messages, 1), max(bytes, 1)
		var lengths []int64
		var charges []uint64
		consumed, granted := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				n := rapid.Int64Range(0, 100).Draw(t, "n")
				charge := naiveCharge(n, bytes)
				outstanding := charges[granted:]
				err := c.Arrived(n)
				if uint64(len(outstanding)) < messages && naiveSum(outstanding)+charge <= bytes {
					require.NoError(t, err)
					lengths, charges = append(lengths, n), append(charges, charge)
					return
				}
				require.IsType(t, &tagged.CreditError{}, err)
			},
			"consume": func(t *rapid.T) {
				if consumed == len(lengths) {
					t.Skip("nothing has arrived")
				}
				due := c.Consumed(lengths[consumed])
				consumed++
				kept := charges[granted:consumed]
				require.Equal(t, 2*uint64(len(kept)) >= messages || 2*naiveSum(kept) >= bytes, due)
				require.Equal(t, due, c.Due())
			},
			"grant": func(t *rapid.T) {
				granted = consumed
				require.Equal(t, tagged.Control{
					Type: tagged.ControlCredit, Messages: uint64(granted), Bytes: naiveSum(charges[:granted]),
				}, c.Grant())
				require.False(t, c.Due())
			},
		})
	})
}

// creditPair is a writer and a reader with a transport between them that
// delivers messages and grants in any order, and grants more than once.
type creditPair struct {
	send            *tagged.SendCredit
	receive         *tagged.ReceiveCredit
	messages, bytes uint64

	lengths  []int64 // of all messages, in order
	sent     int
	flying   []int // messages on their way
	arrived  []bool
	consumed int
	grants   []tagged.Control
	seen     []tagged.Control // grants that may come again
}

func (p *creditPair) write() bool {
	if p.sent == len(p.lengths) || !p.send.Take(p.lengths[p.sent]) {
		return false
	}
	p.flying = append(p.flying, p.sent)
	p.sent++
	return true
}

func (p *creditPair) deliver(t *rapid.T, i int) {
	message := p.flying[i]
	p.flying = append(p.flying[:i], p.flying[i+1:]...)
	require.NoError(t, p.receive.Arrived(p.lengths[message]), "a writer that keeps to its credit is never refused")
	p.arrived[message] = true

	// What the reader must hold is bounded, in true bytes.
	held, long, count := uint64(0), uint64(0), uint64(0)
	for i := p.consumed; i < len(p.lengths); i++ {
		if p.arrived[i] {
			count++
			held += uint64(p.lengths[i])
			long = max(long, uint64(p.lengths[i]))
		}
	}
	require.LessOrEqual(t, count, p.messages)
	require.LessOrEqual(t, held, max(p.bytes, p.bytes/2+long))
}

// read takes the next message in order, and grants only when it is due.
func (p *creditPair) read() bool {
	if p.consumed == len(p.lengths) || !p.arrived[p.consumed] {
		return false
	}
	due := p.receive.Consumed(p.lengths[p.consumed])
	p.consumed++
	if due {
		p.grants = append(p.grants, p.receive.Grant())
	}
	return true
}

func (p *creditPair) grant(t *rapid.T, i int) {
	control := p.grants[i]
	p.grants = append(p.grants[:i], p.grants[i+1:]...)
	p.seen = append(p.seen, control)
	require.NoError(t, p.send.Grant(control.Messages, control.Bytes))
}

// Whatever the windows, the lengths and the order of events: once everything on
// its way has arrived and been read, the writer can write its next message.
func TestCreditNeverDeadlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := creditPair{
			messages: rapid.Uint64Range(1, 9).Draw(t, "messages"),
			bytes:    rapid.Uint64Range(1, 40).Draw(t, "bytes"),
		}
		p.send = tagged.NewSendCredit(p.messages, p.bytes)
		p.receive = tagged.NewReceiveCredit(p.messages, p.bytes)
		length := rapid.OneOf(
			rapid.Int64Range(0, 3),
			rapid.Int64Range(0, int64(p.bytes)),
			rapid.Int64Range(int64(p.bytes), 3*int64(p.bytes)),
		)
		p.lengths = rapid.SliceOfN(length, 1, 60).Draw(t, "lengths")
		p.arrived = make([]bool, len(p.lengths))

		for _, choice := range rapid.SliceOfN(rapid.IntRange(0, 1<<20), 0, 200).Draw(t, "events") {
			i := choice / 8
			switch {
			case choice%8 < 3:
				p.write()
			case choice%8 < 5 && len(p.flying) > 0:
				p.deliver(t, i%len(p.flying))
			case choice%8 == 5:
				p.read()
			case choice%8 == 6 && len(p.grants) > 0:
				p.grant(t, i%len(p.grants))
			case choice%8 == 7 && len(p.seen) > 0:
				again := p.seen[i%len(p.seen)]
				require.NoError(t, p.send.Grant(again.Messages, again.Bytes))
			}
		}
		for p.consumed < len(p.lengths) {
			progress := false
			for len(p.flying) > 0 {
				p.deliver(t, len(p.flying)-1)
				progress = true
			}
			for p.read() {
				progress = true
			}
			for len(p.grants) > 0 {
				p.grant(t, len(p.grants)-1)
				progress = true
			}
			for p.write() {
				progress = true
			}
			require.True(t, progress, "stuck at message %d of %d bytes", p.sent, p.lengths[min(p.sent, len(p.lengths)-1)])
		}
	})
}

// In the worst case of one message at a time, credit costs a grant for every
// half of a window and no more.
func TestCreditCostsFewGrants(t *testing.T) {
	send, receive := tagged.NewSendCredit(64, 1<<20), tagged.NewReceiveCredit(64, 1<<20)
	grants := 0
	for range 3200 {
		require.True(t, send.Take(8))
		require.NoError(t, receive.Arrived(8))
		if receive.Consumed(8) {
			control := receive.Grant()
			require.NoError(t, send.Grant(control.Messages, control.Bytes))
			grants++
		}
	}
	require.Equal(t, 100, grants)
}

func TestCreditAllocatesNothing(t *testing.T) {
	send, receive := tagged.NewSendCredit(2, 100), tagged.NewReceiveCredit(2, 100)
	requireNoAllocs(t, func() {
		if !send.Take(60) {
			t.Fatal("no credit")
		}
		if err := receive.Arrived(60); err != nil {
			t.Fatal(err)
		}
		if !receive.Consumed(60) {
			t.Fatal("no grant due")
		}
		control := receive.Grant()
		if err := send.Grant(control.Messages, control.Bytes); err != nil {
			t.Fatal(err)
		}
	})
}
