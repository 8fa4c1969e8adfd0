package schedule_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/collective/schedule"
)

// callOf is what the ranks give to a call and what they must get.
func callOf(c schedule.Call, in placed) (call, error) {
	switch c.Collective {
	case schedule.CollectiveBcast:
		return bcastCall(c.Size, c.Root, c.Length, c.Options, in)
	case schedule.CollectiveReduce:
		return reduceCall(c.Size, c.Root, c.Length, c.Options, in)
	case schedule.CollectiveAllreduce:
		return allreduceCall(c.Size, c.Length, c.Options, in)
	case schedule.CollectiveGather:
		return gatherCall(equalRows(c.Size, c.Length), c.Root, c.Options, in)
	case schedule.CollectiveScatter:
		return scatterCall(equalRows(c.Size, c.Length), c.Root, c.Options, in)
	case schedule.CollectiveAllgather:
		return allgatherCall(equalRows(c.Size, c.Length), c.Options, in)
	case schedule.CollectiveReduceScatter:
		return reduceScatterCall(equalRows(c.Size, c.Length), c.Options, in)
	case schedule.CollectiveAlltoall:
		return alltoallCall(c.Size, c.Length, c.Options, in)
	}
	return barrierCall(c.Size, c.Options)
}

// requireProof proves that the plans of a call keep all rules and give what is wanted, and
// do as much as the formulas say.
func (p *prover) requireProof(t *testing.T, c schedule.Call, in placed) {
	t.Helper()
	given, err := callOf(c, in)
	require.NoError(t, err, "%+v", c)
	got, err := p.prove(given)
	require.NoError(t, err, "%+v", c)
	requireTotals(t, c, got)
}

// requireTotals holds what plans have done against the formulas.
func requireTotals(t require.TestingT, c schedule.Call, got schedule.Totals) {
	want, err := c.Totals()
	require.NoError(t, err)
	if wholes(c.Collective) && c.Length < c.Size {
		require.LessOrEqual(t, got.Rounds, want.Rounds, "%+v", c)
		want.Rounds = got.Rounds
	}
	require.Equal(t, want, got, "%+v", c)
}

func TestPlans(t *testing.T) {
	for _, collective := range schedule.Collectives() {
		t.Run(collective.String(), func(t *testing.T) {
			t.Parallel()
			var p prover
			for size := 1; size <= 64; size += sizeStep {
				for c, in := range calls(collective, size) {
					p.requireProof(t, c, in)
				}
			}
		})
	}
}

// requireRoom holds what the formulas say of the memory of the ranks against the plans.
func requireRoom(t *testing.T, c schedule.Call) {
	t.Helper()
	scratch, targeted := 0, make([]bool, c.Size)
	for rank := range c.Size {
		plan, err := c.Plan(rank)
		require.NoError(t, err)
		scratch = max(scratch, plan.Scratch)
		for _, step := range plan.Steps {
			if step.Action == schedule.Put && step.Dst.Space == schedule.Output {
				targeted[step.Peer] = true
			}
		}
	}
	got, err := c.MostScratch()
	require.NoError(t, err)
	require.Equal(t, scratch, got, "%+v", c)
	for rank, want := range targeted {
		got, err := c.Targeted(rank)
		require.NoError(t, err)
		require.Equal(t, want, got, "%+v, rank %d", c, rank)
	}
}

func TestRoom(t *testing.T) {
	for _, collective := range schedule.Collectives() {
		t.Run(collective.String(), func(t *testing.T) {
			t.Parallel()
			for size := 1; size <= 64; size += sizeStep {
				for c := range calls(collective, size) {
					requireRoom(t, c)
				}
			}
			for _, algorithm := range schedule.Algorithms(collective) {
				for _, size := range many(algorithm) {
					if size > 1000 {
						continue // too many plans
					}
					c := schedule.Call{Collective: collective, Size: size}
					c.Options = schedule.Options{Algorithm: algorithm, Fanout: size % 5}
					if collective != schedule.CollectiveBarrier {
						c.Length = 3
					}
					if rooted(collective) {
						c.Root = size / 3
					}
					for _, c.Commutative = range []bool{false, true} {
						if c.Commutative || schedule.KeepsOrder(collective, algorithm) {
							requireRoom(t, c)
						}
					}
				}
			}
		})
	}
}

// Whatever the order in which ranks go on and puts arrive, the result is the same: a second
// look at what the prover says, by means that share nothing with it.
func TestAnyOrder(t *testing.T) {
	for _, collective := range schedule.Collectives() {
		t.Run(collective.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				c := schedule.Call{Collective: collective, Size: rapid.IntRange(1, 40).Draw(t, "size")}
				c.Options = drawOptions(t, collective)
				if rooted(collective) {
					c.Root = rapid.IntRange(0, c.Size-1).Draw(t, "root")
				}
				if collective != schedule.CollectiveBarrier {
					c.Length = rapid.IntRange(0, 12).Draw(t, "length")
				}
				given, err := callOf(c, drawPlaced(t))
				require.NoError(t, err)
				got, err := deliver(given, rapid.Uint64().Draw(t, "seed"))
				require.NoError(t, err)
				requireTotals(t, c, got)
			})
		})
	}
}

// many are sizes beyond those that are all tested. Where each rank has as many steps as
// there are ranks they are fewer.
func many(a schedule.Algorithm) []int {
	sizes := []int{100, 257, 1000, manyMost}
	if slices.Contains([]schedule.Algorithm{schedule.Ring, schedule.Pairwise, schedule.Direct}, a) || manyMost < 1000 {
		sizes = sizes[:2]
	}
	return sizes
}

// Many ranks, where what they put is not too much for a test.
func TestManyRanks(t *testing.T) {
	for _, collective := range schedule.Collectives() {
		for _, algorithm := range schedule.Algorithms(collective) {
			t.Run(collective.String()+"/"+algorithm.String(), func(t *testing.T) {
				t.Parallel()
				for _, size := range many(algorithm) {
					lengths := []int{1}
					switch {
					case collective == schedule.CollectiveBarrier:
						lengths[0] = 0
					case wholes(collective):
						// Of what is cut into fewer parts than there are ranks, some have nothing to do.
						lengths = []int{3, size + 1}
					}
					for _, length := range lengths {
						c := schedule.Call{Collective: collective, Size: size, Length: length}
						c.Options = schedule.Options{Algorithm: algorithm, Commutative: !schedule.KeepsOrder(collective, algorithm), Fanout: size % 5}
						totals, err := c.Totals()
						require.NoError(t, err)
						if totals.Units > 500_000 {
							continue
						}
						if rooted(collective) {
							c.Root = size / 3
						}
						given, err := callOf(c, odd)
						require.NoError(t, err)
						got, err := deliver(given, uint64(size))
						require.NoError(t, err, "%+v", c)
						requireTotals(t, c, got)
					}
				}
			})
		}
	}
}

// Many ranks of which few have a block, so that all can have them all.
func TestManyRanksWithFewBlocks(t *testing.T) {
	type way struct {
		plan   func(r rows, o schedule.Options) (call, error)
		totals func(r rows, o schedule.Options) (schedule.Totals, error)
	}
	ways := map[schedule.Collective]way{
		schedule.CollectiveAllgather: {
			func(r rows, o schedule.Options) (call, error) { return allgatherCall(r, o, odd) },
			func(r rows, o schedule.Options) (schedule.Totals, error) {
				return schedule.AllgathervTotals(r.Blocks, o)
			},
		},
		schedule.CollectiveReduceScatter: {
			func(r rows, o schedule.Options) (call, error) { return reduceScatterCall(r, o, odd) },
			func(r rows, o schedule.Options) (schedule.Totals, error) {
				return schedule.ReduceScattervTotals(r.Counts, o)
			},
		},
		schedule.CollectiveGather: {
			func(r rows, o schedule.Options) (call, error) { return gatherCall(r, r.size/3, o, odd) },
			func(r rows, o schedule.Options) (schedule.Totals, error) {
				return schedule.GathervTotals(r.size/3, r.Blocks, o)
			},
		},
		schedule.CollectiveScatter: {
			func(r rows, o schedule.Options) (call, error) { return scatterCall(r, r.size/3, o, odd) },
			func(r rows, o schedule.Options) (schedule.Totals, error) {
				return schedule.ScattervTotals(r.size/3, r.Blocks, o)
			},
		},
	}
	for collective, way := range ways {
		for _, algorithm := range schedule.Algorithms(collective) {
			t.Run(collective.String()+"/"+algorithm.String(), func(t *testing.T) {
				t.Parallel()
				for _, size := range many(algorithm) {
					counts := make([]int, size)
					for rank := size / 7; rank < size; rank += size/5 + 1 {
						counts[rank] = 1 + rank%2
					}
					r := rowsOf(schedule.Blocks{Counts: counts}, -1)
					o := schedule.Options{Algorithm: algorithm, Commutative: !schedule.KeepsOrder(collective, algorithm)}
					given, err := way.plan(r, o)
					require.NoError(t, err)
					got, err := deliver(given, uint64(size))
					require.NoError(t, err, "size %d", size)
					want, err := way.totals(r, o)
					require.NoError(t, err)
					require.LessOrEqual(t, got.Rounds, want.Rounds, "size %d", size)
					want.Rounds = got.Rounds
					require.Equal(t, want, got, "size %d", size)
				}
			})
		}
	}
}
