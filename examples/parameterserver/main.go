// Command parameterserver fits a linear model in the way of a parameter server: rank 0 of a
// job has the parameters in its memory, and the other ranks read them from there, and add
// what they have learned to them, by remote reads and atomic additions. Rank 0 is not asked.
//
//	weft run -n 4 -- go run ./examples/parameterserver
//
// No worker waits for another: each learns from parameters that the others change meanwhile.
// For training in step, see examples/sgd.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/fabric"
)

func main() {
	steps := flag.Int("steps", 500, "how often each worker learns")
	provider := flag.String("provider", "", "the libfabric provider; empty for the best there is")
	source := flag.String("source", "127.0.0.1", "the address of this machine that the others reach")
	flag.Parse()
	log.SetFlags(0)
	if err := run(*steps, *provider, *source); err != nil {
		log.Fatal(err)
	}
}

// introduction is what the ranks tell each other.
type introduction struct {
	Endpoint   []byte
	Parameters fabric.Remote // of rank 0
}

func run(steps int, provider, source string) (err error) {
	job, err := bootstrap.Join(context.Background(), bootstrap.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	if job.Size < 2 {
		return errors.New("a server and its workers are two ranks at least: weft run -n 2")
	}
	preference := fabric.Preference{Capabilities: fabric.RemoteMemory | fabric.Atomics, Source: source}
	if provider != "" {
		preference.Providers, preference.Require = []string{provider}, true
	}
	choice, err := fabric.Choose(preference)
	if err != nil {
		return err
	}
	port, err := fabric.OpenPort(choice.Info, fabric.PortConfig{})
	if err != nil {
		return err
	}
	// What a rank reads and writes is in one place, which its device knows: at rank 0
	// the parameters are at the beginning of it.
	memory := make([]float64, 2*features)
	region, err := port.RegisterRemote(fabric.BytesOf(memory))
	if err != nil {
		return errors.Join(err, port.Close())
	}
	defer func() { err = errors.Join(err, region.Close(), port.Close()) }()

	mine := introduction{Endpoint: port.LocalAddress()}
	if mine.Parameters, err = region.RemoteOf(fabric.BytesOf(memory)); err != nil {
		return err
	}
	told, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	all, err := job.Exchange(job.Context(), "introductions", told)
	if err != nil {
		return err
	}
	// The server knows its workers before they begin: it answers them.
	w := worker{port: port, memory: memory, region: region}
	for rank, told := range all {
		var other introduction
		if err := json.Unmarshal(told, &other); err != nil {
			return err
		}
		if rank == job.Rank {
			continue
		}
		peer, err := port.Insert(other.Endpoint)
		if err != nil {
			return err
		}
		if rank == 0 {
			w.server, w.parameters = peer, other.Parameters
		}
	}
	if err := job.Barrier(job.Context(), "known"); err != nil {
		return err
	}
	if job.Rank == 0 {
		return serve(job, port, choice.Info.Provider(), memory[:features])
	}
	if err := w.learn(job, steps); err != nil {
		return err
	}
	return job.Barrier(job.Context(), "learned")
}

// serve takes turns until all workers have learned. It posts nothing: turns are what moves
// the reads and writes of the others on, where neither a device nor a thread does.
func serve(job *bootstrap.Job, port *fabric.Port, provider string, parameters []float64) error {
	learned := make(chan error, 1)
	go func() {
		learned <- job.Barrier(job.Context(), "learned")
		port.Wake()
	}()
	for {
		select {
		case err := <-learned:
			if err != nil {
				return err
			}
			fmt.Printf("%d workers over %s, furthest from the truth: %.1e\n", job.Size-1, provider, furthest(parameters))
			return nil
		default:
		}
		if _, err := turn(port, nil); err != nil {
			return err
		}
	}
}
