package collective_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// Three ranks, here of one process, add up what each has.
func ExampleAllreduce() {
	ctx := context.Background()
	var results [3][]float64
	inJob(3, func(world *comm.Comm) error {
		mine := []float64{float64(world.Rank()), 1}
		sum := make([]float64, 2)
		results[world.Rank()] = sum
		return collective.Allreduce(ctx, world, mine, sum, operator.Sum[float64]())
	})
	fmt.Println(results)
	// Output: [[3 3] [3 3] [3 3]]
}

// A broadcast and a barrier go on at the same time.
func ExampleIbcast() {
	ctx := context.Background()
	var results [2][]int32
	inJob(2, func(world *comm.Comm) error {
		buf := make([]int32, 3)
		if world.Rank() == 0 {
			copy(buf, []int32{7, 8, 9})
		}
		results[world.Rank()] = buf
		given, err := collective.Ibcast(world, buf, 0)
		if err != nil {
			return err
		}
		all, err := collective.Ibarrier(world)
		if err != nil {
			return err
		}
		if err := all.Wait(ctx); err != nil {
			return err
		}
		return given.Wait(ctx)
	})
	fmt.Println(results)
	// Output: [[7 8 9] [7 8 9]]
}

// inJob runs f as each rank of a job. A real one has a process for each: package
// bootstrap finds the others.
func inJob(size int, f func(world *comm.Comm) error) {
	addresses := make([][]byte, size)
	var known, all sync.WaitGroup
	known.Add(size)
	for rank := range size {
		all.Go(func() {
			world, err := comm.Open(context.Background(), comm.Config{
				Rank: rank, Size: size,
				Exchange: func(_ context.Context, _ string, mine []byte) ([][]byte, error) {
					addresses[rank] = mine
					known.Done()
					known.Wait()
					return addresses, nil
				},
			})
			if err != nil {
				log.Fatal(err)
			}
			if err := f(world); err != nil {
				log.Fatal(err)
			}
			if err := world.Close(); err != nil {
				log.Fatal(err)
			}
		})
	}
	all.Wait()
}
