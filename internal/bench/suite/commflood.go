package suite

import (
	"context"
	"fmt"

	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/bench"
)

// sendAll is the first rank's half of a flood: as many sends as the window has are under
// way.
func (s *commSide) sendAll(ctx context.Context, world *comm.Comm) error {
	bufs, arena, err := s.buffers(s.window)
	if err != nil {
		return err
	}
	defer arena.Close()
	if err := s.talk.waitForGo(); err != nil {
		return err
	}
	requests := make([]comm.Request, s.window)
	for i := range s.warmup + s.count {
		slot := i % s.window
		if q := requests[slot]; q != (comm.Request{}) {
			if _, err := q.Wait(ctx); err != nil {
				return err
			}
		}
		putNumber(bufs[slot], uint64(i))
		var err error
		if requests[slot], err = world.Isend(bufs[slot], 1, 0); err != nil {
			return err
		}
	}
	return comm.WaitAll(ctx, requests)
}

// receiveAll is the other rank's: as many receives are posted.
func (s *commSide) receiveAll(ctx context.Context, world *comm.Comm) (took times, err error) {
	total := s.warmup + s.count
	bufs, arena, err := s.buffers(min(s.window, total))
	if err != nil {
		return took, err
	}
	defer arena.Close()
	requests := make([]comm.Request, len(bufs))
	for i := range bufs {
		if requests[i], err = world.Irecv(bufs[i], 0, 0); err != nil {
			return took, err
		}
	}
	if err := s.talk.waitForGo(); err != nil {
		return took, err
	}
	watch := newStopwatch(s.order, s.floodPart())
	for i := range total {
		slot := i % len(bufs)
		status, err := requests[slot].Wait(ctx)
		if err != nil {
			return took, err
		}
		if status.Length != s.size {
			return took, fmt.Errorf("a message of %d bytes instead of %d", status.Length, s.size)
		}
		if err := expectNumber(bufs[slot], uint64(i)); err != nil {
			return took, err
		}
		if i+1 == watch.next {
			watch.mark()
		}
		if i+len(bufs) < total {
			if requests[slot], err = world.Irecv(bufs[slot], 0, 0); err != nil {
				return took, err
			}
		}
	}
	return watch.stop(1)
}

// buffers are so many of the size, in an arena as those of a side that reads without ranks.
func (s *commSide) buffers(count int) (bufs [][]byte, arena *fabric.Arena, err error) {
	if arena, err = fabric.NewArena(count * s.size); err != nil {
		return nil, nil, err
	}
	memory := touched(arena.Bytes())
	bufs = make([][]byte, count)
	for i := range bufs {
		bufs[i] = memory[i*s.size:][:s.size]
	}
	return bufs, arena, nil
}

// rendezvousBenchmark is long messages of one rank to another, which reads them, beside
// the same reads alone.
func rendezvousBenchmark(provider string, count int, limit float64) benchmark {
	const size, window = 4 << 20, 4
	b := benchmark{
		id: "rendezvous", provider: provider, work: "4 MiB messages of two ranks",
		order:     orderFor(floodWork, provider, count, window),
		unit:      bytesPerSecond(size),
		weft:      operationsPerSecond(weftSide(sideOptions{over: overComm})),
		baselines: []baseline{{"reads by fabric", reads(operationsPerSecond(weftSide(sideOptions{}))), limit}},
	}
	b.order.size = size
	return b
}

// reads has a measure made of the reads of a flood.
func reads(made measure) measure {
	return func(ctx context.Context, t *tools, o order) (bench.Sample, error) {
		o.work = readWork
		return made(ctx, t, o)
	}
}

// deviceRendezvous is the same on the emulated device.
func deviceRendezvous(count int) benchmark {
	b := rendezvousBenchmark("efa", count, 0)
	b.id = emulated
	b.work += ", emulated"
	b.weft = over("efa", weftSide(sideOptions{over: overComm}), operationsPerSecond)
	measured := reads(over("efa", weftSide(sideOptions{}), operationsPerSecond))
	b.baselines[0].measure = func(ctx context.Context, t *tools, o order) (bench.Sample, error) {
		if v := fabric.LibraryVersion(); v.Major < 2 {
			return bench.Sample{}, bench.NotHereError{Err: fmt.Errorf("efa of libfabric %v does not have the device read", v)}
		}
		return measured(ctx, t, o)
	}
	return b
}
