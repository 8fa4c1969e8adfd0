package comm_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/comm"
)

// A job of one rank needs nobody else. In one that weft run, torchrun, mpirun or srun
// has started, Join finds out by itself which rank this is.
func ExampleOpen() {
	ctx := context.Background()
	run := func() error {
		job, err := bootstrap.Join(ctx, bootstrap.Options{Size: 1})
		if err != nil {
			return err
		}
		defer job.Close()
		world, err := comm.Open(job.Context(), comm.Config{Rank: job.Rank, Size: job.Size, Exchange: job.Exchange})
		if err != nil {
			return err
		}
		defer world.Close()
		if err := world.Send(ctx, []byte("to myself"), world.Rank(), 7); err != nil {
			return err
		}
		buf := make([]byte, 100)
		status, err := world.Recv(ctx, buf, comm.AnySource, comm.AnyTag)
		fmt.Printf("%s %d\n", buf[:status.Length], status.Tag)
		return err
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
	// Output: to myself 7
}

// Two ranks, here of one process, send each other numbers at the same time.
func ExampleComm_Sendrecv() {
	ctx := context.Background()
	var values [2][]byte
	var told sync.WaitGroup
	told.Add(2)
	var all sync.WaitGroup
	var sums [2]float64
	for rank := range 2 {
		all.Go(func() {
			world, err := comm.Open(ctx, comm.Config{Rank: rank, Size: 2, Exchange: func(_ context.Context, _ string, mine []byte) ([][]byte, error) {
				values[rank] = mine
				told.Done()
				told.Wait()
				return values[:], nil
			}})
			if err != nil {
				log.Fatal(err)
			}
			defer world.Close()
			mine, theirs := []float64{float64(rank + 1)}, make([]float64, 1)
			if _, err := world.Sendrecv(ctx, comm.Bytes(mine), 1-rank, 0, comm.Bytes(theirs), 1-rank, 0); err != nil {
				log.Fatal(err)
			}
			sums[rank] = mine[0] + theirs[0]
		})
	}
	all.Wait()
	fmt.Println(sums)
	// Output: [3 3]
}
