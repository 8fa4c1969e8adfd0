package collective

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// Ranks with different parameters would write to other places of a cache than its owner
// reads, or beyond it. They hear that they differ, whatever they call first.
func TestConfigsThatDiffer(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, c := range []struct {
			field  string
			usual  Config
			others Config // of rank 1
		}{
			{field: "CachePages", others: Config{CachePages: 1}},
			{field: "CachePages", others: Config{CachePages: -1}},
			{field: "Fanout", others: Config{Fanout: 3}},
			{field: "Chunk", others: Config{Chunk: 1000}},
			{field: "Algorithms", others: Config{Algorithms: map[schedule.Collective]schedule.Algorithm{
				schedule.CollectiveAllreduce: schedule.Ring,
			}}},
			{field: "Algorithms", others: Config{Choices: []Choice{{schedule.CollectiveAllreduce, 0, 0, schedule.Ring}}}},
		} {
			worlds := open(t, provider, 4)
			errs := errorsOf(worlds, func(rank int, world *comm.Comm) error {
				config := c.usual
				if rank == 1 {
					config = c.others
				}
				if err := Configure(world, config); err != nil {
					return err
				}
				buf := make([]int64, 4)
				for range 1000 {
					if err := Allreduce(deadline(t), world, buf, buf, operator.Sum[int64]()); err != nil {
						return err
					}
				}
				return nil
			})
			found := 0
			for rank, err := range errs {
				var differs *ConfigError
				var aborted *AbortError
				switch {
				case errors.As(err, &differs):
					found++
					require.Equal(t, c.field, differs.Field)
					require.Contains(t, differs.Detail, "all ranks must have the same")
				case errors.As(err, &aborted):
					require.Equal(t, ReasonConfig, aborted.Reason)
				default:
					require.NoError(t, err, "%v: rank %d", c.field, rank)
					require.Fail(t, "no error", "%v: rank %d", c.field, rank)
				}
			}
			require.Positive(t, found, c.field)
		}
	})
}

// What is wrong with the variable of one rank ends the calls of all, whoever comes first.
func TestWrongVariableOfOneRank(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, waiting := range []bool{false, true} {
			worlds := open(t, provider, 3)
			barrier := func(rank int) *Request {
				q, err := Ibarrier(worlds[rank])
				require.NoError(t, err)
				return q
			}
			var of0 *Request
			if waiting {
				of0 = barrier(0)
			}
			t.Setenv(Variable, "fanout=two")
			var wrong *ConfigError
			require.ErrorAs(t, Barrier(deadline(t), worlds[1]), &wrong)
			require.Equal(t, Variable, wrong.Field)
			t.Setenv(Variable, "")
			if !waiting {
				of0 = barrier(0)
			}
			requireAborted(t, worlds[0], of0.Wait(deadline(t)), 1, ReasonConfig)
			requireAborted(t, worlds[2], Barrier(deadline(t), worlds[2]), 1, ReasonConfig)
			require.ErrorAs(t, Barrier(deadline(t), worlds[1]), &wrong)
			require.Equal(t, Variable, wrong.Field)
		}
	})
}

// Puts that a call does not wait for are those of a rank that makes another one. They must
// not stand for those of a later call.
func TestCallsThatDiffer(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 3)
		errs := errorsOf(worlds, func(rank int, world *comm.Comm) error {
			buf := make([]int64, 4)
			// The ranks know each other's caches after this one.
			for root := range 3 {
				if err := Bcast(deadline(t), world, buf, root); err != nil {
					return err
				}
			}
			// Nobody waits for what rank 0 puts to the others, and it waits for nothing.
			if err := Bcast(deadline(t), world, buf, min(rank, 1)); err != nil {
				return err
			}
			for range 100 {
				if err := Barrier(deadline(t), world); err != nil {
					return err
				}
			}
			return nil
		})
		found := 0
		for rank, err := range errs {
			var differs *MismatchError
			var aborted *AbortError
			switch {
			case errors.As(err, &differs):
				found++
			case errors.As(err, &aborted):
				require.Equal(t, ReasonMismatch, aborted.Reason, "rank %d", rank)
			default:
				require.Fail(t, "no error of a mismatch", "rank %d: %v", rank, err)
			}
		}
		require.Positive(t, found)
	})
}
