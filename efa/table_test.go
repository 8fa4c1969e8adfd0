package efa

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// An id comes again only after all the other generations of its place.
func TestTableReusesIdsLate(t *testing.T) {
	var table connTable
	seen := make(map[uint32]bool)
	for range generations {
		c := &Conn{}
		require.True(t, table.add(c, 1))
		require.False(t, table.add(&Conn{}, 1), "the table is full")
		require.NotZero(t, c.id>>slotBits, "generation 0 is none")
		require.Less(t, c.id, uint32(1)<<30)
		require.False(t, seen[c.id], "id %x a second time", c.id)
		seen[c.id] = true
		require.Same(t, c, table.find(c.id))
		table.remove(c)
		require.Nil(t, table.find(c.id))
	}
	again := &Conn{}
	require.True(t, table.add(again, 1))
	require.True(t, seen[again.id])
}

// Neither the first id of a place nor the way to the next can be told
// beforehand. Of 256 places, some differ for certain.
func TestTableIdsAreNotCounted(t *testing.T) {
	var table connTable
	first, steps := make(map[uint32]bool), make(map[uint16]bool)
	for range 256 {
		c := &Conn{}
		require.True(t, table.add(c, 256))
		first[c.id>>slotBits] = true
	}
	for _, g := range table.generations {
		steps[g.step] = true
	}
	require.Greater(t, len(first), 200)
	require.Greater(t, len(steps), 200)
}

// The table against a map of what is in it.
func TestTableAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 200).Draw(t, "limit")
		var table connTable
		in := make(map[uint32]*Conn)
		var ids []uint32 // all that there ever were
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				c := &Conn{}
				if table.add(c, limit) != (len(in) < limit) {
					t.Fatalf("%d of %d places are taken", len(in), limit)
				}
				if c.id != 0 {
					if in[c.id] != nil {
						t.Fatalf("id %x is taken", c.id)
					}
					in[c.id] = c
					ids = append(ids, c.id)
				}
			},
			"remove": func(t *rapid.T) {
				if len(ids) == 0 {
					t.Skip("none")
				}
				c := in[rapid.SampledFrom(ids).Draw(t, "id")]
				if c == nil {
					return
				}
				delete(in, c.id)
				table.remove(c)
				// A second time does not hurt who has the place then.
				table.remove(c)
			},
			"": func(t *rapid.T) {
				for _, id := range ids {
					if table.find(id) != in[id] {
						t.Fatalf("id %x finds another connection", id)
					}
				}
				if table.count != len(in) {
					t.Fatalf("counts %d of %d", table.count, len(in))
				}
			},
		})
	})
}
