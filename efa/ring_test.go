package efa

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What is put is there, in order and whole, and what has no room is not put: a queue of what is
// between the two says the same.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := make([]byte, ringSize)
		w, r := ringWriter{ring: memory}, ringReader{ring: memory}
		// Long before the first lap of the numbers ends, or right there.
		start := rapid.SampledFrom([]uint64{0, ringEntries<<32 - 3*ringEntries}).Draw(t, "start")
		w.sent, w.taken, r.taken = start, start, start
		binary.LittleEndian.PutUint64(memory[takenAt:], start)
		type message struct {
			tag  uint64
			body []byte
		}
		var between []message
		into := make([]byte, mostInRing)
		unknown := 0 // of what is between, so much was put by another writer
		small := rapid.Bool().Draw(t, "small")
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "times") {
					most := mostInRing + 1
					if small {
						most = 3 * mostInLine
					}
					size := rapid.IntRange(0, most).Draw(t, "size")
					body := bytes.Repeat([]byte{byte(len(between)), byte(size)}, size/2+1)[:size]
					cut, cut2 := rapid.IntRange(0, size).Draw(t, "cut"), rapid.IntRange(0, size).Draw(t, "cut")
					cut, cut2 = min(cut, cut2), max(cut, cut2)
					tag := rapid.Uint64().Draw(t, "tag")
					if w.put(tag, body[:cut], body[cut:cut2], body[cut2:]) {
						between = append(between, message{tag, body})
						continue
					}
					// There is room for what is between half of what it holds.
					long := 0
					for _, m := range between {
						long += len(m.body) + lineSize
					}
					if unknown > 0 && size > mostInLine {
						continue
					}
					require.False(t, size <= mostInRing && len(between) < ringEntries-takenEvery && long < yardSize/2-mostInRing,
						"%d of %d bytes, and no room for %d", len(between), long, size)
				}
			},
			"take": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "times") {
					require.Equal(t, len(between) > 0, r.isThere())
					if len(between) == 0 {
						return
					}
					tag, body, ok := r.next(into)
					require.True(t, ok)
					require.Equal(t, between[0].tag, tag)
					require.True(t, bytes.Equal(between[0].body, body))
					between = between[1:]
					unknown = max(unknown-1, 0)
				}
			},
			"resume": func(t *rapid.T) {
				if start == 0 {
					sent := w.sent
					w = resume(memory)
					require.Equal(t, sent, w.sent)
					// The reader may have taken some more than it has said.
					unknown = len(between) + takenEvery
				}
			},
		})
	})
}

// The two sides look at the memory at the same time.
func TestRingOfTwo(t *testing.T) {
	memory := make([]byte, ringSize)
	const count = 200_000
	var writer sync.WaitGroup
	writer.Go(func() {
		w := ringWriter{ring: memory}
		random := rand.New(rand.NewPCG(1, 1))
		body := make([]byte, 300)
		for i := uint64(0); i < count; {
			size := random.IntN(len(body))
			for j := range body[:size] {
				body[j] = byte(i)
			}
			for !w.put(i, nil, body[:size], nil) {
				continue
			}
			i++
		}
	})
	r := ringReader{ring: memory}
	into := make([]byte, mostInRing)
	random := rand.New(rand.NewPCG(1, 1))
	for i := uint64(0); i < count; i++ {
		for !r.isThere() {
			continue
		}
		tag, body, ok := r.next(into)
		require.True(t, ok)
		require.Equal(t, i, tag)
		require.Len(t, body, random.IntN(300))
		for _, b := range body {
			if b != byte(i) {
				require.Equal(t, byte(i), b)
			}
		}
	}
	writer.Wait()
}

// Whatever is in the memory, both sides stay within it.
func FuzzRing(f *testing.F) {
	good := make([]byte, ringSize)
	w := ringWriter{ring: good}
	w.put(1, []byte("short"), nil, nil)
	w.put(2, make([]byte, 1000), nil, nil)
	f.Add(good[:yardAt], uint16(8))
	for _, wrong := range []uint64{mostInRing, mostInRing + 1, 1<<32 - 1, yardSize} {
		bad := bytes.Clone(good[:yardAt])
		binary.LittleEndian.PutUint64(bad[entriesAt:], 1<<32|wrong)
		binary.LittleEndian.PutUint64(bad[entriesAt+entryData:], wrong)
		binary.LittleEndian.PutUint64(bad[takenAt:], wrong)
		f.Add(bad, uint16(1000))
	}
	f.Fuzz(func(t *testing.T, begin []byte, size uint16) {
		var w ringWriter
		memory := make([]byte, ringSize)
		copy(memory, begin)
		r := ringReader{ring: memory}
		into := make([]byte, mostInRing)
		for range 2 * ringEntries {
			if !r.isThere() {
				break
			}
			if _, message, ok := r.next(into); ok {
				require.LessOrEqual(t, len(message), mostInRing)
			} else {
				require.False(t, r.isThere())
			}
		}
		w = resume(memory)
		for range 2 * ringEntries {
			w.put(7, make([]byte, size), nil, nil)
		}
	})
}
