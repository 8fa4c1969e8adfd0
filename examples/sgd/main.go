// Command sgd trains a small network by stochastic gradient descent on data that is spread
// over the ranks of a job: each has a part of every batch, and Allreduce adds up what
// they have learned from it, so that all go on with the same parameters.
//
//	weft run -n 4 -- go run ./examples/sgd
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
)

const (
	points = 1024
	batch  = 64
	rate   = 0.5
)

func main() {
	epochs := flag.Int("epochs", 300, "times to go through the data")
	check := flag.Bool("check", false, "have rank 0 train by itself as well, and compare")
	provider := flag.String("provider", "", "the libfabric provider; empty for the best there is")
	address := flag.String("address", "", "where this rank waits for the others: a host of this machine that they reach, with port 0, such as node7:0; empty for a job on one machine")
	flag.Parse()
	log.SetFlags(0)
	if err := run(context.Background(), *epochs, *check, *provider, *address); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, epochs int, check bool, provider, address string) (err error) {
	job, err := bootstrap.Join(ctx, bootstrap.Options{})
	if errors.Is(err, bootstrap.ErrNoEnvironment) {
		// Started by itself, it is a job of one.
		job, err = bootstrap.Join(ctx, bootstrap.Options{Size: 1})
	}
	if err != nil {
		return err
	}
	engine := &efa.Config{}
	if provider != "" {
		engine.Providers, engine.Require = []string{provider}, true
	}
	// This ends, too, when one of the others is lost before it is there.
	world, err := comm.Open(job.Context(), comm.Config{Rank: job.Rank, Size: job.Size, Exchange: job.Exchange, Address: address, Engine: engine})
	if err != nil {
		return err
	}
	// The ranks have found each other. Without a world, the end of this process tells the
	// others.
	if err := job.Close(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()

	add := func(mine, all []float64) error {
		return collective.Allreduce(ctx, world, mine, all, operator.Sum[float64]())
	}
	report := func(epoch int, loss float64) {
		if world.Rank() == 0 && (epoch == 1 || epoch%50 == 0 || epoch == epochs) {
			fmt.Printf("epoch %d: loss %.4f\n", epoch, loss)
		}
	}
	trained, err := train(spirals(points, 1), epochs, world.Rank(), world.Size(), add, report)
	if err != nil || !check || world.Rank() != 0 {
		return err
	}
	alone, err := train(spirals(points, 1), epochs, 0, 1, func(mine, all []float64) error { copy(all, mine); return nil }, nil)
	if err != nil {
		return err
	}
	furthest := 0.0
	for i := range trained {
		furthest = max(furthest, math.Abs(trained[i]-alone[i]))
	}
	fmt.Printf("%d ranks on %s, parameters differ from those of one by at most %.1e\n", world.Size(), world.Provider(), furthest)
	if furthest > 1e-6 {
		return errors.New("that is more than rounding")
	}
	return nil
}

// train returns the parameters after so many epochs. Of each batch, a rank learns from its
// part, and add gives it the sum over all ranks.
func train(data []point, epochs, rank, size int, add func(mine, all []float64) error, report func(epoch int, loss float64)) (parameters, error) {
	p := initial()
	mine, all := make([]float64, parameterCount+1), make([]float64, parameterCount+1)
	for epoch := 1; epoch <= epochs; epoch++ {
		loss := 0.0
		for first := 0; first < len(data); first += batch {
			clear(mine)
			p.learn(data[first+rank*batch/size:first+(rank+1)*batch/size], mine)
			if err := add(mine, all); err != nil {
				return nil, err
			}
			p.step(all, batch, rate)
			loss += all[parameterCount]
		}
		if report != nil {
			report(epoch, loss/float64(len(data)))
		}
	}
	return p, nil
}
