package collective

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// parts are those of all ranks of a slice that is cut evenly.
func parts(size, length int, of func(rank int) []int64) []int64 {
	var all []int64
	for rank := range size {
		all = append(all, of(rank)[:length]...)
	}
	return all
}

// exchange is a collective, done by one rank: what it has got and what it should.
type exchange func(t *testing.T, c *comm.Comm, root, length int, o Option) (got, want []int64, err error)

var exchanges = map[schedule.Collective]exchange{
	schedule.CollectiveBcast: func(t *testing.T, c *comm.Comm, root, length int, o Option) (got, want []int64, err error) {
		want, got = operand(root, 1, length), make([]int64, length)
		if c.Rank() == root {
			copy(got, want)
		}
		return got, want, Bcast(deadline(t), c, got, root, o)
	},
	schedule.CollectiveReduce: func(t *testing.T, c *comm.Comm, root, length int, o Option) (got, want []int64, err error) {
		got = make([]int64, length)
		if err = Reduce(deadline(t), c, operand(c.Rank(), 2, length), got, operator.Sum[int64](), root, o); c.Rank() == root {
			return got, summed(c.Size(), 2, length), err
		}
		return got, make([]int64, length), err
	},
	schedule.CollectiveGather: func(t *testing.T, c *comm.Comm, root, length int, o Option) (got, want []int64, err error) {
		if c.Rank() == root {
			got = make([]int64, c.Size()*length)
			want = parts(c.Size(), length, func(rank int) []int64 { return operand(rank, 3, length) })
		}
		return got, want, Gather(deadline(t), c, operand(c.Rank(), 3, length), got, root, o)
	},
	schedule.CollectiveScatter: func(t *testing.T, c *comm.Comm, root, length int, o Option) (got, want []int64, err error) {
		got = make([]int64, length)
		var all []int64
		if c.Rank() == root {
			all = operand(root, 4, c.Size()*length)
		}
		return got, operand(root, 4, c.Size()*length)[c.Rank()*length:][:length], Scatter(deadline(t), c, all, got, root, o)
	},
	schedule.CollectiveAllgather: func(t *testing.T, c *comm.Comm, _, length int, o Option) (got, want []int64, err error) {
		got = make([]int64, c.Size()*length)
		want = parts(c.Size(), length, func(rank int) []int64 { return operand(rank, 5, length) })
		return got, want, Allgather(deadline(t), c, operand(c.Rank(), 5, length), got, o)
	},
	schedule.CollectiveReduceScatter: func(t *testing.T, c *comm.Comm, _, length int, o Option) (got, want []int64, err error) {
		got = make([]int64, length)
		want = summed(c.Size(), 6, c.Size()*length)[c.Rank()*length:][:length]
		return got, want, ReduceScatter(deadline(t), c, operand(c.Rank(), 6, c.Size()*length), got, operator.Sum[int64](), o)
	},
	schedule.CollectiveAlltoall: func(t *testing.T, c *comm.Comm, _, length int, o Option) (got, want []int64, err error) {
		got = operand(c.Rank(), 7, c.Size()*length) // in place
		want = parts(c.Size(), length, func(rank int) []int64 { return operand(rank, 7, c.Size()*length)[c.Rank()*length:] })
		return got, want, Alltoall(deadline(t), c, got, got, o)
	},
	schedule.CollectiveBarrier: func(t *testing.T, c *comm.Comm, _, _ int, o Option) (got, want []int64, err error) {
		return nil, nil, Barrier(deadline(t), c, o)
	},
}

// Each collective, by each algorithm, with each root.
func TestCollectives(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, size := range sizes(provider) {
			worlds := open(t, provider, size)
			for _, kind := range schedule.Collectives() {
				do, known := exchanges[kind]
				if !known {
					continue // TestAllreduce
				}
				for _, a := range schedule.Algorithms(kind) {
					for _, length := range []int{0, 1, 101, 9_000} {
						for root := range size {
							if root > 0 && !rooted(kind) {
								continue
							}
							everywhere(t, worlds, func(rank int, c *comm.Comm) error {
								got, want, err := do(t, c, root, length, WithAlgorithm(a))
								if err == nil && !slices.Equal(got, want) {
									err = fmt.Errorf("%v by %v of %d, root %d: %.80s, want %.80s", kind, a, length, root, fmt.Sprint(got), fmt.Sprint(want))
								}
								return err
							})
						}
					}
				}
			}
		}
	})
}

func rooted(kind schedule.Collective) bool {
	switch kind {
	case schedule.CollectiveBcast, schedule.CollectiveReduce, schedule.CollectiveGather, schedule.CollectiveScatter:
		return true
	}
	return false
}

// counts are different for each rank, and for one 0.
func counts(size, unit int) []int {
	n := make([]int, size)
	for i := range n {
		n[i] = i * unit
	}
	return n
}

// strewn are blocks in the reverse order, with room between them, and how long that is.
func strewn(counts []int) (b Blocks, length int) {
	b = Blocks{Counts: counts, Displacements: make([]int, len(counts))}
	for i := len(counts) - 1; i >= 0; i-- {
		b.Displacements[i] = length
		length += counts[i] + 3
	}
	return b, length
}

// laid is a slice with the blocks of all ranks, and -1 between them.
func laid(b Blocks, length int, of func(rank int) []int64) []int64 {
	s := make([]int64, length)
	for i := range s {
		s[i] = -1
	}
	for rank, n := range b.Counts {
		copy(s[b.Displacements[rank]:][:n], of(rank))
	}
	return s
}

// Ranks have counts and places of their own, and what is between these is not touched.
func TestUneven(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, size := range []int{1, 4} {
			worlds := open(t, provider, size)
			for _, unit := range []int{1, 4000} {
				n := counts(size, unit)
				blocks, length := strewn(n)
				empty := laid(Blocks{}, length, nil)
				all := laid(blocks, length, func(rank int) []int64 { return operand(rank, 8, n[rank]) })
				check := func(what string, err error, got, want []int64) error {
					if err == nil && !slices.Equal(got, want) {
						err = fmt.Errorf("%s: %.80s, want %.80s", what, fmt.Sprint(got), fmt.Sprint(want))
					}
					return err
				}
				everywhere(t, worlds, func(rank int, c *comm.Comm) error {
					mine := operand(rank, 8, n[rank])
					recv := slices.Clone(empty)
					if err := check("allgatherv", Allgatherv(deadline(t), c, mine, recv, blocks), recv, all); err != nil {
						return err
					}
					for root := range size {
						recv, want := slices.Clone(empty), empty
						if rank == root {
							want = all
						}
						if err := check("gatherv", Gatherv(deadline(t), c, mine, recv, blocks, root), recv, want); err != nil {
							return err
						}
						got := make([]int64, n[rank])
						if err := check("scatterv", Scatterv(deadline(t), c, all, blocks, got, root), got, mine); err != nil {
							return err
						}
					}
					total := 0
					for _, k := range n {
						total += k
					}
					before := 0
					for _, k := range n[:rank] {
						before += k
					}
					got := make([]int64, n[rank])
					err := ReduceScatterv(deadline(t), c, operand(rank, 9, total), got, n, operator.Sum[int64]())
					if err := check("reduce-scatterv", err, got, summed(size, 9, total)[before:][:n[rank]]); err != nil {
						return err
					}
					// Rank r gives rank s (r+s)*unit elements.
					to := make([]int, size)
					for other := range to {
						to[other] = (rank + other) * unit
					}
					blocks, length := strewn(to)
					send := laid(blocks, length, func(other int) []int64 { return operand(rank*size+other, 10, to[other]) })
					want := laid(blocks, length, func(other int) []int64 { return operand(other*size+rank, 10, to[other]) })
					recv = laid(Blocks{}, length, nil)
					if err := check("alltoallv", Alltoallv(deadline(t), c, send, blocks, recv, blocks), recv, want); err != nil {
						return err
					}
					recv = laid(Blocks{}, length, nil)
					q, err := Ialltoallv(c, send, blocks, recv, blocks)
					if err != nil {
						return err
					}
					// What follows begins while this is under way.
					if err := Barrier(deadline(t), c); err != nil {
						return err
					}
					return check("ialltoallv", q.Wait(deadline(t)), recv, want)
				})
			}
		}
	})
}
