package tagged_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tagged"
)

// lengthMessage is a length message that announces n and carries payload.
func lengthMessage(n int64, payload string) []byte {
	message := make([]byte, tagged.LengthSize, tagged.LengthSize+len(payload))
	tagged.PutLength(message, n)
	return append(message, payload...)
}

func TestPutLength(t *testing.T) {
	require.Equal(t, []byte{8, 7, 6, 5, 4, 3, 2, 1}, lengthMessage(0x0102030405060708, ""))
}

func TestParseLength(t *testing.T) {
	const maximum, eager = 100, 4
	for _, c := range []struct {
		name    string
		message []byte
		length  int64
		payload []byte
	}{
		{"zero", lengthMessage(0, ""), 0, []byte{}},
		{"payload follows", lengthMessage(1, ""), 1, nil},
		{"short, but not eager", lengthMessage(4, ""), 4, nil},
		{"eager", lengthMessage(3, "abc"), 3, []byte("abc")},
		{"eager limit", lengthMessage(4, "abcd"), 4, []byte("abcd")},
		{"maximum", lengthMessage(100, ""), 100, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			length, payload, err := tagged.ParseLength(c.message, maximum, eager)
			require.NoError(t, err)
			require.Equal(t, c.length, length)
			require.Equal(t, c.payload, payload) // tells nil from empty
		})
	}
}

// A length message lies in a longer buffer of the pool of receives, and whoever
// appends to the payload must not reach into the rest.
func TestParseLengthPayloadEndsWithTheMessage(t *testing.T) {
	buffer := append(lengthMessage(3, "abc"), "rest"...)
	_, payload, err := tagged.ParseLength(buffer[:tagged.LengthSize+3], 100, 4)
	require.NoError(t, err)
	require.Equal(t, "abc!", string(append(payload, '!')))
	require.Equal(t, "rest", string(buffer[tagged.LengthSize+3:]))
}

func TestParseLengthError(t *testing.T) {
	const maximum, eager = 100, 4
	for _, c := range []struct {
		message []byte
		want    tagged.LengthError
		text    string
	}{
		{
			nil,
			tagged.LengthError{Problem: tagged.LengthTruncated, Limit: 8},
			"tagged: length message of 0 bytes, want at least 8",
		},
		{
			make([]byte, 7),
			tagged.LengthError{Problem: tagged.LengthTruncated, Limit: 8, Got: 7},
			"tagged: length message of 7 bytes, want at least 8",
		},
		{
			lengthMessage(-1, ""),
			tagged.LengthError{Problem: tagged.LengthNegative, Length: -1, Limit: 100},
			"tagged: negative message length -1, want 0 to 100",
		},
		{
			lengthMessage(math.MinInt64, "abc"),
			tagged.LengthError{Problem: tagged.LengthNegative, Length: math.MinInt64, Limit: 100, Got: 3},
			"tagged: negative message length -9223372036854775808, want 0 to 100",
		},
		{
			lengthMessage(101, ""),
			tagged.LengthError{Problem: tagged.LengthAboveMaximum, Length: 101, Limit: 100},
			"tagged: message length 101, want at most 100",
		},
		{
			lengthMessage(math.MaxInt64, ""),
			tagged.LengthError{Problem: tagged.LengthAboveMaximum, Length: math.MaxInt64, Limit: 100},
			"tagged: message length 9223372036854775807, want at most 100",
		},
		{
			lengthMessage(0, "a"),
			tagged.LengthError{Problem: tagged.LengthMismatch, Length: 0, Limit: 0, Got: 1},
			"tagged: 1 bytes follow message length 0, want 0 or none",
		},
		{
			lengthMessage(4, "abc"),
			tagged.LengthError{Problem: tagged.LengthMismatch, Length: 4, Limit: 4, Got: 3},
			"tagged: 3 bytes follow message length 4, want 4 or none",
		},
		{
			lengthMessage(5, "abcde"),
			tagged.LengthError{Problem: tagged.LengthAboveEager, Length: 5, Limit: 4, Got: 5},
			"tagged: payload of 5 bytes in the length message, want at most 4",
		},
	} {
		t.Run(c.text, func(t *testing.T) {
			length, payload, err := tagged.ParseLength(c.message, maximum, eager)
			var lengthError *tagged.LengthError
			require.ErrorAs(t, err, &lengthError)
			require.Equal(t, c.want, *lengthError)
			require.EqualError(t, err, c.text)
			require.Zero(t, length)
			require.Nil(t, payload)
		})
	}
}

func TestParseLengthAllocatesNothing(t *testing.T) {
	eager, rendezvous := lengthMessage(3, "abc"), lengthMessage(50, "")
	requireNoAllocs(t, func() {
		tagged.PutLength(eager, 3)
		_, _, err1 := tagged.ParseLength(eager, 100, 4)
		_, _, err2 := tagged.ParseLength(rendezvous, 100, 4)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
	})
}

func FuzzParseLength(f *testing.F) {
	for _, message := range [][]byte{
		nil, make([]byte, 7), lengthMessage(0, ""), lengthMessage(0, "a"), lengthMessage(3, "abc"),
		lengthMessage(-1, ""), lengthMessage(math.MaxInt64, ""), lengthMessage(5, "abcde"), lengthMessage(6, "abcde"),
	} {
		f.Add(message, int64(100), 4)
		f.Add(message, int64(math.MaxInt64), math.MaxInt32)
		f.Add(message, int64(-1), -1)
	}
	f.Fuzz(func(t *testing.T, message []byte, maximum int64, eager int) {
		length, payload, err := tagged.ParseLength(message, maximum, eager)
		if err != nil {
			var lengthError *tagged.LengthError
			require.ErrorAs(t, err, &lengthError)
			require.NotContains(t, err.Error(), "bad length")
			return
		}
		require.GreaterOrEqual(t, length, int64(0))
		require.LessOrEqual(t, length, maximum)
		if payload == nil {
			require.Positive(t, length)
		} else {
			require.Len(t, payload, int(length))
			require.LessOrEqual(t, len(payload), max(eager, 0))
		}
		require.True(t, bytes.Equal(message, lengthMessage(length, string(payload))))
	})
}
