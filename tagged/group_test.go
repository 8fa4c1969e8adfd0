package tagged

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What is put into a group comes out, in order, and what does not fit leaves the
// group as it was.
func TestGroupHoldsMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dst := make([]byte, rapid.IntRange(LengthSize+GroupEntry, 600).Draw(t, "room"))
		first := rapid.SliceOfN(rapid.Byte(), 0, len(dst)-LengthSize-GroupEntry).Draw(t, "first")
		PutLength(dst, int64(len(first)))
		copy(dst[LengthSize:], first)
		require.False(t, IsGroup(dst))
		size := BeginGroup(dst, len(first))
		want := [][]byte{first}
		for _, m := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 100), 0, 40).Draw(t, "more") {
			before := bytes.Clone(dst)
			end := AppendGroup(dst, size, m[:len(m)/3], m[len(m)/3:])
			require.Equal(t, size+GroupEntry+len(m) <= len(dst), end != 0)
			if end == 0 {
				require.Equal(t, before, dst)
				continue
			}
			size = end
			want = append(want, m)
		}
		require.True(t, IsGroup(dst[:size]))
		g, err := ParseGroup(dst[:size])
		require.NoError(t, err)
		require.Equal(t, len(want), g.Len())
		for _, w := range want {
			m, ok, err := g.Next()
			require.NoError(t, err)
			require.True(t, ok)
			require.True(t, bytes.Equal(w, m), "%q, want %q", m, w)
		}
		_, ok, err := g.Next()
		require.NoError(t, err)
		require.False(t, ok)
	})
}

func TestBadGroups(t *testing.T) {
	for name, message := range map[string][]byte{
		"no messages":           {0, 0, 0, 0, 0, 0, 0, 0x80},
		"more than bytes":       {2, 0, 0, 0, 0, 0, 0, 0x80, 1, 0},
		"count of all ones":     {255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 9},
		"message beyond end":    {1, 0, 0, 0, 0, 0, 0, 0x80, 3, 0, 1, 2},
		"second without length": {2, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 7, 1},
		"bytes left over":       {1, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 7, 7},
		"short":                 {1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := ParseGroup(message)
			for ok := err == nil; ok; {
				_, ok, err = g.Next()
			}
			var bad *LengthError
			require.ErrorAs(t, err, &bad)
			require.NotEmpty(t, bad.Error())
		})
	}
}

// Whatever a peer sends, reading ends, and yields no more than was there.
func FuzzParseGroup(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 7, 2, 0, 8, 9})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0x80, 3, 0, 1, 2})
	f.Fuzz(func(t *testing.T, message []byte) {
		g, err := ParseGroup(message)
		count, sum := 0, 0
		for ok := err == nil; ok; {
			var m []byte
			if m, ok, err = g.Next(); ok {
				count++
				sum += len(m)
			}
		}
		if bad := (*LengthError)(nil); err != nil && !errors.As(err, &bad) {
			t.Fatalf("%v is no *LengthError", err)
		}
		if err == nil && LengthSize+count*GroupEntry+sum != len(message) {
			t.Fatalf("%d messages of %d bytes from %d", count, sum, len(message))
		}
	})
}
