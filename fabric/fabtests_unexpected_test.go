package fabric_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// Messages that nobody has asked for yet wait until somebody does, whether the
// first or the last of them is asked for first.
func TestUnexpectedMessages(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, count := range []int{1000, 5000} {
			for _, order := range []string{"in order", "in reverse"} {
				t.Run(fmt.Sprint(count, " ", order), func(t *testing.T) {
					a, b := stations(t, provider, fabric.TaggedMessages)
					err := unexpected(t, a, b, count, order == "in reverse")
					if keepsFewUnexpected(provider, count, order == "in reverse") {
						testenv.Need(t, fmt.Sprintf("%d unexpected messages on %s", count, provider), err)
					}
					require.NoError(t, err)
				})
			}
		}
	})
}

// keepsFewUnexpected says that a provider is known to have a limit below count.
func keepsFewUnexpected(provider string, count int, reverse bool) bool {
	before2 := fabric.LibraryVersion().Major < 2
	switch provider {
	case "shm":
		return before2 && count > 1000
	case "tcp":
		// FI_TCP_MAX_SAVED.
		return !before2 && reverse
	}
	return false
}

// unexpected sends count messages, each with a tag of its own, before the first
// is received. The error says at which limit of the provider it ended.
func unexpected(t *testing.T, a, b *station, count int, reverse bool) error {
	t.Helper()
	for sent := range count {
		posts := []fabric.Op{{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: uint64(sent), Buf: binary.BigEndian.AppendUint64(nil, uint64(sent))}}
		if !patiently(t, a, b, posts, func() bool { return posts[0].Result != fabric.Refused }) {
			return fmt.Errorf("FI_EAGAIN for ever after %d messages that nobody has received", sent)
		}
		require.NoError(t, posts[0].Err)
	}
	for i := range count {
		tag := uint64(i)
		if reverse {
			tag = uint64(count - 1 - i)
		}
		got := make([]byte, 8)
		b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: got, Context: tag})
		if !patiently(t, b, a, nil, func() bool { return len(b.got) > 0 }) {
			return fmt.Errorf("while %d messages wait, the one with tag %d is not received", count-i, tag)
		}
		c := b.got[0]
		b.got = b.got[1:]
		require.NoError(t, c.Err)
		require.Equal(t, tag, c.Context)
		require.Equal(t, tag, c.Tag)
		require.Equal(t, 8, c.Len)
		require.Equal(t, tag, binary.BigEndian.Uint64(got))
	}
	require.Zero(t, a.q.InFlight()+b.q.InFlight())
	return nil
}

// patiently turns both stations, posting what of posts is still refused, until
// it is done, or says that it has been long without.
func patiently(t *testing.T, s, other *station, posts []fabric.Op, done func() bool) bool {
	t.Helper()
	deadline := time.Now().Add(2 * time.Second)
	for tries := 0; ; tries++ {
		s.turn(t, posts)
		if done() {
			return true
		}
		// Time alone is no measure on a machine that is busy with other things.
		if tries > 2000 && time.Now().After(deadline) {
			return false
		}
		other.turn(t, nil)
		if s.info.Provider() == "sockets" {
			// Its thread needs the core.
			var buf [8]fabric.Completion
			n, err := s.e.TurnWait(nil, buf[:], 1)
			require.NoError(t, err)
			s.got = append(s.got, buf[:n]...)
			if done() {
				return true
			}
		}
	}
}
