package schedule_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
)

// Steps of two ranks that break a rule are found out.
func TestProverFindsOut(t *testing.T) {
	input := func(at, n int) schedule.Span { return schedule.Span{Space: schedule.Input, Offset: at, Length: n} }
	output := func(at, n int) schedule.Span {
		return schedule.Span{Space: schedule.Output, Offset: at, Length: n}
	}
	scratch := func(at, n int) schedule.Span {
		return schedule.Span{Space: schedule.Scratch, Offset: at, Length: n}
	}
	put := func(peer, number int, src, dst schedule.Span) schedule.Step {
		return schedule.Step{Action: schedule.Put, Peer: peer, Number: number, Src: src, Dst: dst}
	}
	await := func(peer, number int) schedule.Step {
		return schedule.Step{Action: schedule.Await, Peer: peer, Number: number}
	}
	signal := func(peer, number int) schedule.Step {
		return schedule.Step{Action: schedule.Signal, Peer: peer, Number: number}
	}
	copied := func(dst, src schedule.Span) schedule.Step {
		return schedule.Step{Action: schedule.Copy, Src: src, Dst: dst}
	}
	reduce := func(dst, src, other schedule.Span) schedule.Step {
		return schedule.Step{Action: schedule.Reduce, Src: src, Other: other, Dst: dst}
	}
	settle := schedule.Step{Action: schedule.Settle}
	type steps = []schedule.Step

	// Each rank has 4 units of Input, Output and Scratch.
	tests := map[string]struct {
		zero, one steps
		want      string // part of the error; "" if there is none
	}{
		"a put":            {zero: steps{put(1, 0, input(0, 4), output(0, 4))}, one: steps{await(0, 0)}},
		"awaits any order": {zero: steps{put(1, 0, input(0, 1), output(0, 1)), put(1, 1, input(0, 1), output(1, 1))}, one: steps{await(0, 1), await(0, 0)}},
		"settles": {
			zero: steps{copied(scratch(0, 1), input(0, 1)), put(1, 0, scratch(0, 1), output(0, 1)), settle, copied(scratch(0, 1), input(1, 1))},
			one:  steps{await(0, 0)},
		},
		"hears that the peer has it": {
			zero: steps{copied(scratch(0, 1), input(0, 1)), put(1, 0, scratch(0, 1), output(0, 1)), await(1, 0), copied(scratch(0, 1), input(1, 1))},
			one:  steps{await(0, 0), signal(0, 0)},
		},
		"nobody awaits": {zero: steps{put(1, 0, input(0, 4), output(0, 4))}, want: "rank 1 does not await"},
		"nobody puts":   {one: steps{await(0, 0)}, want: "rank 1 waits for ever"},
		"awaits nothing": {
			zero: steps{put(1, 0, input(0, 1), output(0, 1))}, one: steps{{Action: schedule.Await, Dst: scratch(0, 1)}}, want: "another span",
		},
		"awaits data":       {zero: steps{signal(1, 0)}, one: steps{{Action: schedule.Await, Dst: output(0, 1)}}, want: "another span"},
		"awaits twice":      {zero: steps{signal(1, 0)}, one: steps{await(0, 0), await(0, 0)}, want: "a second time"},
		"in a circle":       {zero: steps{await(1, 0), signal(1, 0)}, one: steps{await(0, 0), signal(0, 0)}, want: "waits for ever"},
		"a number twice":    {zero: steps{signal(1, 0), signal(1, 0)}, one: steps{await(0, 0), await(0, 1)}, want: "that was before"},
		"a number too many": {zero: steps{signal(1, 1)}, one: steps{await(0, 1)}, want: "leaves out a number"},
		"to itself":         {zero: steps{signal(0, 0), await(0, 0)}, want: "no other rank"},
		"beyond the end":    {zero: steps{put(1, 0, input(0, 2), output(3, 2))}, one: steps{await(0, 0)}, want: "uses 2 units from 3"},
		"beyond scratch":    {zero: steps{put(1, 0, input(0, 2), scratch(3, 2))}, one: steps{await(0, 0)}, want: "uses 2 units from 3"},
		"into an input":     {zero: steps{put(1, 0, input(0, 1), input(0, 1))}, one: steps{await(0, 0)}, want: "into an input"},
		"lengths":           {zero: steps{put(1, 0, input(0, 1), output(0, 2))}, one: steps{await(0, 0)}, want: "different lengths"},
		"nothing":           {zero: steps{put(1, 0, input(0, 0), output(0, 0))}, one: steps{await(0, 0)}, want: "empty ones"},
		"not written":       {zero: steps{copied(output(0, 1), scratch(0, 1))}, want: "what was not written"},
		"reads too early": {
			zero: steps{put(1, 0, input(0, 1), scratch(0, 1))},
			one:  steps{copied(output(0, 1), scratch(0, 1)), await(0, 0)}, want: "may still write",
		},
		"reads behind another": {
			zero: steps{put(1, 0, input(0, 1), scratch(0, 1)), put(1, 1, input(0, 1), scratch(1, 1))},
			one:  steps{await(0, 1), copied(output(0, 1), scratch(0, 1)), await(0, 0)}, want: "may still write",
		},
		"changes what is put": {
			zero: steps{copied(scratch(0, 1), input(0, 1)), put(1, 0, scratch(0, 1), output(0, 1)), copied(scratch(0, 1), input(1, 1))},
			one:  steps{await(0, 0)}, want: "may still read",
		},
		"changes it too early": {
			zero: steps{copied(scratch(0, 1), input(0, 1)), put(1, 0, scratch(0, 1), output(0, 1)), await(1, 0), copied(scratch(0, 1), input(1, 1))},
			one:  steps{signal(0, 0), await(0, 0)}, want: "may still read",
		},
		"settles too early": {
			zero: steps{copied(scratch(0, 1), input(0, 1)), settle, put(1, 0, scratch(0, 1), output(0, 1)), copied(scratch(0, 1), input(1, 1))},
			one:  steps{await(0, 0)}, want: "may still read",
		},
		"overwrites what comes": {
			zero: steps{put(1, 0, input(0, 1), output(0, 1))},
			one:  steps{copied(output(0, 1), input(0, 1)), await(0, 0)}, want: "may still write",
		},
		"puts to one place": {
			zero: steps{put(1, 0, input(0, 1), output(0, 1)), put(1, 1, input(1, 1), output(0, 1))},
			one:  steps{await(0, 0), await(0, 1)}, want: "may still write",
		},
		"puts over what is read": {
			zero: steps{put(1, 0, input(0, 1), scratch(0, 1)), signal(1, 1), await(1, 0), put(1, 2, input(1, 1), scratch(0, 1))},
			one:  steps{await(0, 0), signal(0, 0), copied(output(0, 1), scratch(0, 1)), await(0, 1), await(0, 2)}, want: "may still",
		},
		"overlaps":   {zero: steps{copied(scratch(0, 3), input(0, 3)), copied(scratch(1, 2), scratch(0, 2))}, want: "overlap"},
		"in part":    {zero: steps{copied(scratch(0, 3), input(0, 3)), reduce(scratch(1, 2), scratch(0, 2), input(0, 2))}, want: "a part of what it reads"},
		"onto one":   {zero: steps{copied(scratch(0, 3), input(0, 3)), reduce(scratch(0, 2), scratch(0, 2), input(0, 2))}},
		"no action":  {zero: steps{{}}, want: "is none"},
		"a fat tell": {zero: steps{{Action: schedule.Signal, Peer: 1, Src: input(0, 1)}}, want: "has data"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			awaitPut(test.zero, test.one, 0)
			awaitPut(test.one, test.zero, 1)
			c := call{plans: []schedule.Plan{{Steps: test.zero, Scratch: 4}, {Steps: test.one, Scratch: 4}}}
			for rank := range 2 {
				c.input = append(c.input, contributions(rank, 0, 4))
				c.output = append(c.output, make([]value, 4))
				c.want = append(c.want, make([]value, 4))
			}
			var p prover
			_, err := p.prove(c)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}

// awaitPut gives the Awaits of a rank what the other puts, if nothing else is said.
func awaitPut(from, to []schedule.Step, rank int) {
	for i := range to {
		if to[i].Action != schedule.Await || to[i].Peer != rank || to[i].Dst != (schedule.Span{}) {
			continue
		}
		for _, step := range from {
			if step.Action == schedule.Put && step.Number == to[i].Number {
				to[i].Dst = step.Dst
			}
		}
	}
}

// A result that is wrong, or written more than once, is found out.
func TestProverLooksAtResults(t *testing.T) {
	c, err := allreduceCall(3, 2, schedule.Options{}, nowhere)
	require.NoError(t, err)
	c.ordered = true
	var p prover
	_, err = p.prove(c)
	require.NoError(t, err)

	// 0, 2, 1 in place of 0, 1, 2.
	wrong := contribution(0, 1).then(contribution(2, 1)).then(contribution(1, 1))
	right := c.want[1]
	c.want[1] = []value{right[0], wrong}
	_, err = p.prove(c)
	require.ErrorContains(t, err, "rank 1: unit 1 of the result")
	c.ordered = false
	_, err = p.prove(c)
	require.NoError(t, err)
	c.want[1] = []value{right[0], wrong.then(contribution(0, 1))}
	_, err = p.prove(c)
	require.ErrorContains(t, err, "rank 1: unit 1 of the result has 3 contributions, want 4")

	c, err = bcastCall(2, 0, 1, schedule.Options{}, nowhere)
	require.NoError(t, err)
	c.plans[1].Steps = append(c.plans[1].Steps,
		schedule.Step{Action: schedule.Reduce, Src: c.plans[0].Steps[0].Dst, Other: c.plans[0].Steps[0].Dst, Dst: c.plans[0].Steps[0].Dst})
	c.want[1][0] = c.want[1][0].then(c.want[1][0])
	_, err = p.prove(c)
	require.ErrorContains(t, err, "was written 2 times")
}

// A barrier that some rank may leave before another has entered it is found out, by the prover
// and, in one order or another, by a delivery.
func TestBarrierThatIsNone(t *testing.T) {
	const size = 3
	// Each tells the next one, and hears of the one before it.
	c, err := planned(size, func(rank int) (schedule.Plan, error) {
		return schedule.Plan{Steps: []schedule.Step{
			{Action: schedule.Signal, Peer: (rank + 1) % size},
			{Action: schedule.Await, Peer: (rank + size - 1) % size},
		}}, nil
	})
	require.NoError(t, err)
	var p prover
	_, err = p.prove(c)
	require.NoError(t, err)
	c.together = true
	_, err = p.prove(c)
	require.ErrorContains(t, err, "rank 0 may end before rank 1 has begun")
	err = nil
	for seed := uint64(0); err == nil && seed < 1000; seed++ {
		_, err = deliver(c, seed)
	}
	require.ErrorContains(t, err, "has begun")
}

// A delivery finds out what is put beside what is wanted.
func TestDeliveryCounts(t *testing.T) {
	given := func() call {
		c, err := bcastCall(2, 0, 3, schedule.Options{}, nowhere)
		require.NoError(t, err)
		return c
	}
	c := given()
	got, err := deliver(c, 1)
	require.NoError(t, err)
	require.Equal(t, schedule.Totals{Rounds: 1, Units: 3, Most: 3}, got)

	c.plans[1].Steps = nil
	_, err = deliver(c, 1)
	require.ErrorContains(t, err, "rank 1 does not await number 0 of rank 0")

	c = given()
	again := c.plans[0].Steps[0]
	again.Number++
	c.plans[0].Steps = append(c.plans[0].Steps, again)
	c.plans[1].Steps = append(c.plans[1].Steps, schedule.Step{Action: schedule.Await, Number: 1})
	_, err = deliver(c, 1)
	require.ErrorContains(t, err, "was written 2 times, want 1")
}

// No plan has a step too many: without it, whichever it is, a rule is broken or the result
// is not there.
func TestEachStepCounts(t *testing.T) {
	var p prover
	for _, collective := range schedule.Collectives() {
		for size := 1; size <= 7; size += (sizeStep + 2) / 3 {
			for c, in := range calls(collective, size) {
				if c.Root > 2 || c.Length > 4 || c.Chunk > 1 {
					continue
				}
				given, err := callOf(c, in)
				require.NoError(t, err)
				for rank, plan := range given.plans {
					for i := range plan.Steps {
						given.plans[rank].Steps = slices.Delete(slices.Clone(plan.Steps), i, i+1)
						_, err := p.prove(given)
						require.Error(t, err, "%+v: rank %d without step %d, %+v", c, rank, i, plan.Steps[i])
					}
					given.plans[rank] = plan
				}
			}
		}
	}
}
