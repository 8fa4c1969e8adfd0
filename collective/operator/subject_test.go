package operator_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/collective/operator"
)

// subject is an operator and what is known about it.
type subject[T any] struct {
	op    operator.Op[T]
	want  func(l, r T) T
	edges []T                 // values that something may go wrong with
	any   func(bits uint64) T // some value
	same  func(a, b T) bool
	// associative says that it is, exactly.
	associative bool
}

func (s subject[T]) test(t *testing.T) {
	require.NoError(t, s.op.Err())
	require.True(t, s.op.Commutative())
	s.testPairs(t)
	for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 1000} {
		s.testLength(t, n)
	}
	rapid.Check(t, s.testFold)
	s.testAllocations(t)
}

// element is a value made of a number: half of them are edges.
func (s subject[T]) element(seed uint64) T {
	if seed%2 == 0 {
		return s.edges[seed/2%uint64(len(s.edges))]
	}
	return s.any(seed)
}

// elements are made of numbers without much of a pattern.
func (s subject[T]) elements(n int, seed uint64) []T {
	list := make([]T, n)
	for i := range list {
		seed = bits.RotateLeft64(seed*0x9e3779b97f4a7c15+uint64(i), 23)
		list[i] = s.element(seed)
	}
	return list
}

func (s subject[T]) require(t require.TestingT, want, got []T, format string, args ...any) {
	if !slices.EqualFunc(want, got, s.same) {
		require.Failf(t, "wrong", "%v: want %v, got %v, %s", s.op, want, got, fmt.Sprintf(format, args...))
	}
}

func (s subject[T]) apply(t require.TestingT, left, right []T) []T {
	dst := make([]T, len(left))
	require.NoError(t, s.op.Apply(dst, left, right))
	return dst
}

// Each edge with each, and in exchange.
func (s subject[T]) testPairs(t *testing.T) {
	var left, right []T
	for _, l := range s.edges {
		for _, r := range s.edges {
			left, right = append(left, l), append(right, r)
		}
	}
	got := s.apply(t, left, right)
	for i := range got {
		s.require(t, []T{s.want(left[i], right[i])}, got[i:i+1], "of %v and %v", left[i], right[i])
	}
	s.require(t, got, s.apply(t, right, left), "exchanged")
	if !s.associative {
		return
	}
	for shift := 0; shift < len(s.edges); shift += 5 {
		third := make([]T, len(left))
		for i := range third {
			third[i] = s.edges[(i+shift)%len(s.edges)]
		}
		s.require(t, s.apply(t, got, third), s.apply(t, left, s.apply(t, right, third)), "grouped")
	}
}

// Slices of a length, at places of any alignment, that are the same or not.
func (s subject[T]) testLength(t *testing.T, n int) {
	const spare = 9
	for at := range spare {
		memory := func(seed uint64, at int) (all, part []T) {
			all = s.elements(n+2*spare, seed)
			return all, all[at : at+n]
		}
		for _, alias := range []string{"none", "dst is left", "dst is right", "left is right", "all are one"} {
			all, dst := memory(1, at)
			_, left := memory(2, at*5%spare)
			_, right := memory(3, at*7%spare)
			switch alias {
			case "dst is left":
				left = dst
			case "dst is right":
				right = dst
			case "left is right":
				left = right
			case "all are one":
				left, right = dst, dst
			}
			want := slices.Clone(all)
			for i := range n {
				want[at+i] = s.want(left[i], right[i])
			}
			if at%2 == 0 {
				require.NoError(t, s.op.Apply(dst, left, right))
			} else {
				require.NoError(t, s.op.Erased().Apply(raw(t, dst), raw(t, left), raw(t, right)))
			}
			s.require(t, want, all, "%s, %d elements at %d", alias, n, at)
			if n > 17 && at > 1 {
				return
			}
		}
	}
}

// Ranks one after the other, as a naive reduction has them.
func (s subject[T]) testFold(t *rapid.T) {
	ranks := rapid.IntRange(2, 4).Draw(t, "ranks")
	n := rapid.IntRange(0, 12).Draw(t, "elements")
	seeds := rapid.SliceOfN(rapid.Uint64(), n, n)
	var want, got []T
	for rank := range ranks {
		var mine []T
		for _, seed := range seeds.Draw(t, fmt.Sprintf("rank %d", rank)) {
			mine = append(mine, s.element(seed))
		}
		if rank == 0 {
			want, got = slices.Clone(mine), mine
			continue
		}
		for i := range want {
			want[i] = s.want(want[i], mine[i])
		}
		require.NoError(t, s.op.Apply(got, got, mine))
		s.require(t, want, got, "up to rank %d", rank)
	}
}

func (s subject[T]) testAllocations(t *testing.T) {
	dst, left, right := s.elements(100, 1), s.elements(100, 2), s.elements(100, 3)
	var err error
	require.Zero(t, testing.AllocsPerRun(20, func() { err = s.op.Apply(dst, left, right) }))
	require.NoError(t, err)
	d, l, r := raw(t, dst), raw(t, left), raw(t, right)
	require.Zero(t, testing.AllocsPerRun(20, func() { err = s.op.Erased().Apply(d, l, r) }))
	require.NoError(t, err)
}

func raw[T any](t require.TestingT, elements []T) []byte {
	memory, err := operator.Bytes(elements)
	require.NoError(t, err)
	require.Len(t, memory, len(elements)*int(unsafe.Sizeof(*new(T))))
	return memory
}
