package tagged_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/tagged"
)

// Four messages, their lengths arriving in every order and their payloads in
// every order after that, over the wrap of the ids.
func TestReadDequeEveryOrder(t *testing.T) {
	const first = math.MaxUint32 - 1
	permutations(4, func(order []int) {
		arrivals := [4]int(order)
		permutations(4, func(payloads []int) {
			d := tagged.NewReadDeque[int](first, 4)
			for _, i := range arrivals {
				if _, err := d.Arrive(first+uint32(i), i); err != nil {
					t.Fatal(arrivals, err)
				}
			}
			var complete [4]bool
			released := 0
			for _, i := range payloads {
				if err := d.Finish(first+uint32(i), nil); err != nil {
					t.Fatal(arrivals, payloads, err)
				}
				complete[i] = true
				for released < 4 && complete[released] {
					value, err, ok := d.Pop()
					if !ok || err != nil || value != released {
						t.Fatal(arrivals, payloads, value, err, ok)
					}
					released++
				}
				if _, _, ok := d.Pop(); ok {
					t.Fatal(arrivals, payloads, "released too early")
				}
			}
		})
	})
}

func TestReadDequeWraps(t *testing.T) {
	const first = math.MaxUint32 - 2 // 2^32-3
	for _, window := range []int{1, 3, 8} {
		d := tagged.NewReadDeque[int](first, window)
		for sent := 0; sent < 8; {
			count := min(window, 8-sent)
			for i := count - 1; i >= 0; i-- { // the last first
				id := uint32((first + uint64(sent+i)) % (1 << 32))
				value, err := d.Arrive(id, sent+i)
				require.NoError(t, err)
				require.Equal(t, sent+i, *value)
				require.NoError(t, d.Finish(id, nil))
			}
			for range count {
				value, err, ok := d.Pop()
				require.True(t, ok)
				require.NoError(t, err)
				require.Equal(t, sent, value)
				sent++
			}
		}
		require.Equal(t, uint32(5), d.Next())
		require.Zero(t, d.Len())
	}
}

func TestReadDequeErrors(t *testing.T) {
	d := tagged.NewReadDeque[string](math.MaxUint32-1, 3)
	expect := func(err error, problem tagged.SequenceProblem, id uint32, text string) {
		t.Helper()
		var sequenceError *tagged.SequenceError
		require.ErrorAs(t, err, &sequenceError)
		require.Equal(t, tagged.SequenceError{Problem: problem, ID: id, Next: d.Next(), Window: 3}, *sequenceError)
		require.EqualError(t, err, text)
	}
	arrive := func(id uint32) error {
		_, err := d.Arrive(id, "")
		return err
	}
	expect(arrive(1), tagged.SequenceOutside, 1, "tagged: message id 1 arrived, want 4294967294 to 0")
	expect(arrive(math.MaxUint32-2), tagged.SequenceOutside, math.MaxUint32-2,
		"tagged: message id 4294967293 arrived, want 4294967294 to 0")
	expect(d.Finish(0, nil), tagged.SequenceAbsent, 0, "tagged: message id 0 finished, but has not arrived")
	require.NoError(t, arrive(0))
	expect(arrive(0), tagged.SequenceDuplicate, 0, "tagged: message id 0 arrived twice")
	require.NoError(t, d.Finish(0, errFirst))
	expect(d.Finish(0, nil), tagged.SequenceFinished, 0, "tagged: message id 0 finished twice")
	expect(arrive(0), tagged.SequenceDuplicate, 0, "tagged: message id 0 arrived twice")
	require.Equal(t, 1, d.Len())
}

// A window out of range is limited, so that it neither shuts everything out nor
// confuses an old id with a new one.
func TestReadDequeWindowLimits(t *testing.T) {
	d := tagged.NewReadDeque[int](5, -1)
	_, err := d.Arrive(6, 0)
	require.Error(t, err)
	_, err = d.Arrive(5, 0)
	require.NoError(t, err)

	d = tagged.NewReadDeque[int](5, math.MaxInt32)
	_, err = d.Arrive(5+tagged.MaxWindow, 0)
	require.Error(t, err)
	_, err = d.Arrive(4, 0)
	require.Error(t, err)
}

// naiveReads is what a ReadDeque should do, with a map by position in the
// stream instead of by id.
type naiveReads struct {
	messages map[uint64]*naiveRead
	popped   uint64
}

type naiveRead struct {
	value    int
	finished bool
	err      error
}

func TestReadDequeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.OneOf(rapid.Uint32(), rapid.Uint32Min(math.MaxUint32-20)).Draw(t, "first")
		window := rapid.IntRange(1, 40).Draw(t, "window")
		d := tagged.NewReadDeque[int](first, window)
		model := naiveReads{messages: map[uint64]*naiveRead{}}
		// A position is in the window, or just beside it.
		position := func(t *rapid.T) uint64 {
			return model.popped + uint64(rapid.IntRange(-2, window+1).Draw(t, "position"))
		}
		id := func(position uint64) uint32 { return first + uint32(position) }
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				p, v := position(t), rapid.Int().Draw(t, "value")
				value, err := d.Arrive(id(p), v)
				want := tagged.SequenceError{ID: id(p), Next: id(model.popped), Window: window}
				switch {
				case p-model.popped >= uint64(window): // also where p is behind
					want.Problem = tagged.SequenceOutside
					require.Equal(t, &want, err)
				case model.messages[p] != nil:
					want.Problem = tagged.SequenceDuplicate
					require.Equal(t, &want, err)
				default:
					require.NoError(t, err)
					require.Equal(t, v, *value)
					*value++
					model.messages[p] = &naiveRead{value: v + 1}
				}
			},
			"finish": func(t *rapid.T) {
				p, failure := position(t), rapid.SampledFrom([]error{nil, errFirst}).Draw(t, "error")
				err := d.Finish(id(p), failure)
				m := model.messages[p]
				if m == nil || m.finished {
					require.IsType(t, &tagged.SequenceError{}, err)
					return
				}
				require.NoError(t, err)
				m.finished, m.err = true, failure
			},
			"get": func(t *rapid.T) {
				p := position(t)
				value, ok := d.Get(id(p))
				m := model.messages[p]
				require.Equal(t, m != nil, ok)
				if ok {
					require.Equal(t, m.value, *value)
				}
			},
			"pop": func(t *rapid.T) {
				value, err, ok := d.Pop()
				m := model.messages[model.popped]
				require.Equal(t, m != nil && m.finished, ok)
				if ok {
					require.Equal(t, m.value, value)
					require.Equal(t, m.err, err)
					delete(model.messages, model.popped)
					model.popped++
				}
			},
			"drop": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "chance") > 0 {
					t.Skip("too often")
				}
				p := model.popped
				d.Drop(func(got uint32, value int) {
					for model.messages[p] == nil {
						p++
					}
					require.Equal(t, id(p), got)
					require.Equal(t, model.messages[p].value, value)
					delete(model.messages, p)
				})
				require.Empty(t, model.messages)
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model.messages), d.Len())
				require.Equal(t, id(model.popped), d.Next())
				front, value, arrived, finished, err := d.Front()
				require.Equal(t, d.Next(), front)
				m := model.messages[model.popped]
				require.Equal(t, m != nil, arrived)
				if m == nil {
					require.Nil(t, value)
					require.False(t, finished)
					require.NoError(t, err)
					return
				}
				require.Equal(t, m.value, *value)
				require.Equal(t, m.finished, finished)
				require.Equal(t, m.err, err)
			},
		})
	})
}

func TestReadDequeAllocatesNothing(t *testing.T) {
	const window = 20
	d := tagged.NewReadDeque[*int](math.MaxUint32-50, window)
	value := new(int)
	requireNoAllocs(t, func() {
		next := d.Next()
		for i := uint32(window); i > 0; i-- {
			if _, err := d.Arrive(next+i-1, value); err != nil {
				t.Fatal(err)
			}
			if err := d.Finish(next+i-1, nil); err != nil {
				t.Fatal(err)
			}
		}
		for range window {
			if _, _, ok := d.Pop(); !ok {
				t.Fatal("nothing to pop")
			}
		}
	})
}
