package tagged_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/tagged"
)

// Four writes of two parts each, their eight completions in every order: after
// each completion exactly the finished front is released.
func TestWriteDequeEveryOrder(t *testing.T) {
	permutations(8, func(order []int) {
		var d tagged.WriteDeque[int]
		var tickets [4]tagged.Ticket
		for i := range tickets {
			tickets[i] = d.Push(i, 2)
		}
		var seen [4]int
		released := 0
		for _, part := range order {
			write := part / 2
			if err := d.Complete(tickets[write], nil); err != nil {
				t.Fatal(order, err)
			}
			seen[write]++
			want := released
			for want < 4 && seen[want] == 2 {
				want++
			}
			for {
				value, err, ok := d.Pop()
				if !ok {
					break
				}
				if value != released || err != nil {
					t.Fatal(order, "popped", value, err, "want", released)
				}
				released++
			}
			if released != want || d.Len() != 4-released {
				t.Fatal(order, "released", released, "want", want, "left", d.Len())
			}
		}
		if released != 4 {
			t.Fatal(order, "released", released)
		}
	})
}

func TestWriteDequeReportsTickets(t *testing.T) {
	var d tagged.WriteDeque[string]
	expect := func(ticket tagged.Ticket, finished bool) {
		t.Helper()
		var ticketError *tagged.TicketError
		require.ErrorAs(t, d.Complete(ticket, errFirst), &ticketError)
		require.Equal(t, tagged.TicketError{Ticket: ticket, Finished: finished}, *ticketError)
	}
	expect(0, false)
	expect(1, false)
	ticket := d.Push("a", 1)
	expect(0, false)
	expect(ticket+1, false)
	require.NoError(t, d.Complete(ticket, nil))
	expect(ticket, true)
	value, err, ok := d.Pop()
	require.True(t, ok)
	require.NoError(t, err, "a completion too many must not change the result")
	require.Equal(t, "a", value)
	expect(ticket, false)
	_, ok = d.Value(ticket)
	require.False(t, ok)
}

// naiveWrites is what a WriteDeque should do, by searching.
type naiveWrites struct {
	writes []naiveWrite
	last   tagged.Ticket
}

type naiveWrite struct {
	ticket       tagged.Ticket
	value, parts int
	err          error
}

func (n *naiveWrites) find(ticket tagged.Ticket) *naiveWrite {
	for i := range n.writes {
		if n.writes[i].ticket == ticket {
			return &n.writes[i]
		}
	}
	return nil
}

func TestWriteDequeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d tagged.WriteDeque[int]
		var model naiveWrites
		ticket := rapid.Custom(func(t *rapid.T) tagged.Ticket {
			// Most of the time one in the deque, at times one beside it.
			return model.last + 2 - tagged.Ticket(rapid.IntRange(0, len(model.writes)+3).Draw(t, "ticket"))
		})
		anyError := rapid.SampledFrom([]error{nil, nil, errFirst, errSecond})
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				value, parts := rapid.Int().Draw(t, "value"), rapid.IntRange(-1, 3).Draw(t, "parts")
				got := d.Push(value, parts)
				model.last++
				require.Equal(t, model.last, got)
				model.writes = append(model.writes, naiveWrite{got, value, max(parts, 0), nil})
			},
			"complete": func(t *rapid.T) {
				ticket, err := ticket.Draw(t, "ticket"), anyError.Draw(t, "error")
				got := d.Complete(ticket, err)
				w := model.find(ticket)
				if w == nil || w.parts == 0 {
					require.Equal(t, &tagged.TicketError{Ticket: ticket, Finished: w != nil}, got)
					return
				}
				require.NoError(t, got)
				w.parts--
				if w.err == nil {
					w.err = err
				}
			},
			"pop": func(t *rapid.T) {
				value, err, ok := d.Pop()
				if len(model.writes) == 0 || model.writes[0].parts > 0 {
					require.False(t, ok)
					require.Zero(t, value)
					require.NoError(t, err)
					return
				}
				require.True(t, ok)
				require.Equal(t, model.writes[0].value, value)
				require.Equal(t, model.writes[0].err, err)
				model.writes = model.writes[1:]
			},
			"value": func(t *rapid.T) {
				ticket := ticket.Draw(t, "ticket")
				value, ok := d.Value(ticket)
				w := model.find(ticket)
				require.Equal(t, w != nil, ok)
				if ok {
					require.Equal(t, w.value, *value)
					*value++
					w.value++
				}
			},
			"abandon": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "chance") > 0 {
					t.Skip("too often")
				}
				d.Abandon(errSecond)
				for i := range model.writes {
					if w := &model.writes[i]; w.parts > 0 {
						w.parts = 0
						if w.err == nil {
							w.err = errSecond
						}
					}
				}
			},
			"": func(t *rapid.T) { require.Equal(t, len(model.writes), d.Len()) },
		})
	})
}

func TestWriteDequeAbandonsWithAnError(t *testing.T) {
	var d tagged.WriteDeque[int]
	d.Push(1, 2)
	d.Abandon(nil)
	_, err, ok := d.Pop()
	require.True(t, ok)
	require.Error(t, err, "an unfinished write must not look like a success")
}

func TestWriteDequeRandomOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const count = 100
		var d tagged.WriteDeque[int]
		parts := make([]tagged.Ticket, 0, 2*count)
		for i := range count {
			ticket := d.Push(i, 1+i%2)
			parts = append(parts, ticket)
			if i%2 == 1 {
				parts = append(parts, ticket)
			}
		}
		next := 0
		for _, ticket := range rapid.Permutation(parts).Draw(t, "order") {
			require.NoError(t, d.Complete(ticket, nil))
			for {
				value, err, ok := d.Pop()
				if !ok {
					break
				}
				require.NoError(t, err)
				require.Equal(t, next, value)
				next++
			}
		}
		require.Equal(t, count, next)
	})
}

func TestWriteDequeAllocatesNothing(t *testing.T) {
	var d tagged.WriteDeque[*int]
	failure := errors.New("failure")
	value := new(int)
	requireNoAllocs(t, func() {
		var tickets [20]tagged.Ticket
		for i := range tickets {
			tickets[i] = d.Push(value, 2)
		}
		for i := range tickets {
			ticket := tickets[len(tickets)-1-i]
			if err := errors.Join(d.Complete(ticket, nil), d.Complete(ticket, failure)); err != nil {
				t.Fatal(err)
			}
		}
		for range tickets {
			if _, err, ok := d.Pop(); !ok || err != failure {
				t.Fatal(ok, err)
			}
		}
	})
}
