package main

import (
	"math/rand/v2"
	"time"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/fabric"
)

// worker learns at a server. In its memory are the parameters that it has read, and behind
// them what it adds.
type worker struct {
	port       *fabric.Port
	memory     []float64
	region     fabric.RemoteRegistration
	server     fabric.Address
	parameters fabric.Remote
}

func (w *worker) learn(job *bootstrap.Job, steps int) error {
	read, change := w.memory[:features], w.memory[features:]
	random := rand.New(rand.NewPCG(1, uint64(job.Rank)))
	for range steps {
		if err := job.Context().Err(); err != nil {
			return err
		}
		if err := w.do(fabric.Op{
			Kind: fabric.OpRead, Peer: w.server, Remote: w.parameters,
			Buf: fabric.BytesOf(read), Descriptor: w.region.Descriptor(),
		}); err != nil {
			return err
		}
		descend(read, change, random)
		if err := w.do(fabric.Op{
			// It has an answer, what was there before: so it is done when it is in the
			// server's memory, and not when it has left.
			Kind: fabric.OpFetch, Peer: w.server, Remote: w.parameters,
			Buf: fabric.BytesOf(change), Descriptor: w.region.Descriptor(),
			Atomic: &fabric.Atomic{
				Type: fabric.TypeOf[float64](), Operation: fabric.Sum,
				Result: fabric.BytesOf(read), ResultDescriptor: w.region.Descriptor(),
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// do posts an operation and waits for its end. The memory that it names belongs to the
// device meanwhile.
func (w *worker) do(op fabric.Op) error {
	posts := []fabric.Op{op}
	for {
		ended, err := turn(w.port, posts)
		if err != nil || ended {
			return err
		}
		switch {
		case len(posts) == 0:
		case posts[0].Result == fabric.Posted:
			posts = nil
		case posts[0].Result == fabric.Failed:
			return posts[0].Err
		default: // there was no room, and it is offered again
		}
	}
}

// turn posts, says whether an operation has ended, and rests where nothing happens.
func turn(port *fabric.Port, posts []fabric.Op) (ended bool, err error) {
	var done [1]fabric.Completion
	n, err := port.Turn(posts, done[:], 100)
	if err != nil {
		return false, err
	}
	if n > 0 {
		return true, done[0].Err
	}
	if err := port.Errors(); err != nil {
		return false, err
	}
	if len(posts) == 0 && port.Arm() {
		port.Wait(100 * time.Millisecond)
	}
	return false, nil
}
