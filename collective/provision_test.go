package collective

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/fabric/fabrictest"
)

// refusedHere says that the provider was asked for, and does not do the call.
func refusedHere(err error) bool {
	var argument *ArgumentError
	return errors.As(err, &argument) && argument.Name == "algorithm" && argument.Value == "provider"
}

// What a provider does of its own comes to the same as a fold, and what it does not do is said,
// or done by another algorithm if the call has not asked itself.
func TestProvision(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		sizes := []int{2, 5}
		switch {
		case !strings.HasPrefix(provider, "tcp"):
			sizes = sizes[:1]
		case soaking():
			sizes = []int{2, 3, 4, 5}
		}
		for _, size := range sizes {
			worlds := open(t, provider, size)
			done := make([]map[string]int, size)
			everywhere(t, worlds, func(rank int, world *comm.Comm) error {
				done[rank] = map[string]int{}
				ctx := deadline(t)
				seed := uint64(0)
				for _, k := range kinds {
					for i, s := range subjects {
						if !combines(k.collective) && i > 0 {
							break
						}
						for _, bytes := range []int{0, 8 * size, 3000, 300_000} {
							if bytes > 8*size && i%16 > 0 && !soaking() {
								continue
							}
							for root := range k.roots(size) {
								seed++
								a := s.attempt(world, trial{kind: k, root: root, bytes: bytes, seed: scramble(seed), algorithm: schedule.Provider})
								err := a.run(ctx)
								if refusedHere(err) {
									continue
								}
								if err == nil {
									err = a.check()
								}
								if err != nil {
									return fmt.Errorf("%s of %v, %d bytes: %w", k.name, s, bytes, err)
								}
								done[rank][k.name]++
							}
						}
					}
				}
				return nil
			})
			for rank := range done {
				require.Equal(t, done[0], done[rank])
			}
			if !strings.HasPrefix(provider, "tcp") {
				require.Empty(t, done[0])
				continue
			}
			for _, name := range []string{"barrier", "bcast", "allreduce", "allgather", "scatter"} {
				require.NotZero(t, done[0][name], "%s, %v", name, done[0])
			}
			require.Len(t, done[0], 5)
			require.Greater(t, done[0]["allreduce"], 100)
		}
	})
}

// Several calls at once, amid those of other algorithms, as the Config asks for.
func TestProvisionByConfig(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const size = 3
		worlds := open(t, provider, size)
		everywhere(t, worlds, func(rank int, world *comm.Comm) error {
			ctx := deadline(t)
			all := make(map[schedule.Collective]schedule.Algorithm)
			for _, kind := range schedule.Collectives() {
				all[kind] = schedule.Provider
			}
			if err := Configure(world, Config{Algorithms: all}); err != nil {
				return err
			}
			p := &player{world: world, other: world, seed: 1, mine: rand.New(rand.NewPCG(1, uint64(rank)))}
			return p.storm(ctx, campaign{Calls: 200})
		})
		for _, world := range worlds {
			o := world.Extended().(*group).own.Load()
			require.Equal(t, strings.HasPrefix(provider, "tcp"), o.started, "whether the provider has done any")
		}
	})
}

// What the provider has for a communicator ends with that, and not with the world.
func TestProvisionEndsWithItsCommunicator(t *testing.T) {
	worlds := open(t, "tcp", 2)
	barrier := func(_ int, world *comm.Comm) error { return Barrier(deadline(t), world) }
	everywhere(t, worlds, barrier)
	before := fabrictest.Holds()
	for range 3 {
		everywhere(t, worlds, func(_ int, world *comm.Comm) error {
			c, err := world.Dup(deadline(t))
			if err != nil {
				return err
			}
			return errors.Join(Barrier(deadline(t), c, WithAlgorithm(schedule.Provider)), c.Close())
		})
	}
	everywhere(t, worlds, barrier)
	require.NoError(t, before.Returned(patience))
}

// A rank that gives up ends what the others have the provider do.
func TestProvisionIsGivenUp(t *testing.T) {
	worlds := open(t, "tcp", 2)
	asked := WithAlgorithm(schedule.Provider)
	everywhere(t, worlds, func(_ int, world *comm.Comm) error { return Barrier(deadline(t), world, asked) })
	waiting, err := Ibarrier(worlds[1], asked)
	require.NoError(t, err)
	given, cancel := context.WithCancel(deadline(t))
	cancel()
	require.ErrorIs(t, Barrier(given, worlds[0]), context.Canceled)
	var aborted *AbortError
	require.ErrorAs(t, waiting.Wait(deadline(t)), &aborted)
}
