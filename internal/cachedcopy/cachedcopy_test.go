package cachedcopy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the lengths, and wherever the two are, it does what the language does.
func TestCopyIsCopy(t *testing.T) {
	const size = 2*mostCached + 3*piece
	original := make([]byte, size)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(original)
	got, want := make([]byte, size), make([]byte, size)
	length := rapid.SampledFrom([]int{0, 1, piece, leastUncached - 1, leastUncached, leastUncached + 1, 5*piece + 3, mostCached, mostCached + 1})
	rapid.Check(t, func(t *rapid.T) {
		copy(got, original)
		copy(want, original)
		to, from := length.Draw(t, "length of dst"), length.Draw(t, "length of src")
		at := rapid.IntRange(0, size-to).Draw(t, "place of dst")
		of := rapid.IntRange(0, size-from).Draw(t, "place of src")
		if near := rapid.IntRange(-2*piece, 2*piece).Draw(t, "distance"); rapid.Bool().Draw(t, "overlapping") {
			of = min(max(at+near, 0), size-from)
		}
		n := copy(want[at:at+to], want[of:of+from])
		if m := Copy(got[at:at+to], got[of:of+from]); m != n {
			t.Fatalf("copied %d, not %d", m, n)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes from %d to %d, %d bytes: not what copy makes", from, of, at, to)
		}
	})
}

func BenchmarkCopyAndRead(b *testing.B) {
	for _, n := range []int{512 << 10, 1 << 20, 4 << 20, mostCached, 2 * mostCached} {
		dst, src := make([]byte, n), bytes.Repeat([]byte{1}, n)
		for name, move := range map[string]func(dst, src []byte) int{"cached": Copy, "go": func(dst, src []byte) int { return copy(dst, src) }} {
			b.Run(fmt.Sprintf("%dKi/%s", n>>10, name), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					move(dst, src)
					if bytes.IndexByte(dst, 0) >= 0 {
						b.Fatal("a byte is 0")
					}
				}
			})
		}
	}
}
