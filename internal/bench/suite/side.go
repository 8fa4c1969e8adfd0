package suite

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/fabric"
)

const (
	dataTag = 1
	endTag  = 2
	// batch is the most completions that one turn reads.
	batch = 64
	// spins of a turn with nothing to read: some hundred microseconds, after
	// which the deadline is looked at.
	spins = 10_000
)

// works are what a side over fabric can do; of two sides one measures.
var works = map[string]struct {
	// buffers is how many messages there is to be memory for.
	buffers func(o order) int
	do      func(s *side) (times, error)
}{
	pingPongWork: {func(order) int { return 2 }, (*side).pingPong},
	latencyWork:  {func(order) int { return 2 }, (*side).pingPong},
	floodWork:    {func(o order) int { return o.window + 1 }, (*side).flood},
	readWork:     {func(o order) int { return o.window + 1 }, (*side).read},
}

// side is one endpoint of package fabric, alone in its process.
type side struct {
	order
	talk       talk
	port       *fabric.Port
	peer       fabric.Address
	memory     []byte
	descriptor fabric.Descriptor
	// Of reads: the registration of memory, and where the peer's is.
	exposed     fabric.Registration
	remote      fabric.Remote
	spins       int
	completions [batch]fabric.Completion
	expired     atomic.Bool
}

var errDeadline = errors.New("the deadline has passed")

func (s *side) run() (err error) {
	work, known := works[s.work]
	if !known || s.two {
		return fmt.Errorf("the work is pingpong, latency, flood or read, in one message each, not %q", s.work)
	}
	// The first ends the loops, the second a call that does not return.
	defer time.AfterFunc(s.deadline, func() { s.expired.Store(true) }).Stop()
	defer time.AfterFunc(s.deadline+2*time.Second, func() { os.Exit(3) }).Stop()

	var wanted fabric.Capabilities
	if s.work == readWork {
		wanted = fabric.RemoteMemory
	}
	if s.port, err = openPort(s.order, wanted); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.port.Close()) }()
	arena, err := fabric.NewArena(work.buffers(s.order) * s.size)
	if err != nil {
		return err
	}
	defer arena.Close()
	s.memory = touched(arena.Bytes())
	if s.work != readWork && s.port.Attributes().NeedsRegistration {
		registration, err := s.port.Register(s.memory)
		if err != nil {
			return err
		}
		defer registration.Close()
		s.descriptor = registration.Descriptor()
	}
	if s.port.Attributes().Spin {
		s.spins = spins
	}
	if s.work == readWork {
		err = s.meetForReads()
	} else {
		s.peer, err = s.talk.meetPeer(s.port)
	}
	if s.exposed != nil {
		defer s.exposed.Close()
	}
	if err != nil {
		return err
	}
	took, err := work.do(s)
	if err != nil {
		return err
	}
	if err := s.talk.report(s.figures(took)...); err != nil {
		return err
	}
	return s.talk.waitForEnd()
}

// openPort opens the device of an order, which has what is wanted beside messages if it can.
func openPort(o order, wanted fabric.Capabilities) (*fabric.Port, error) {
	choice, err := fabric.Choose(fabric.Preference{
		Providers: []string{o.provider}, Require: true, Source: o.source, Wanted: wanted,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return fabric.OpenPort(choice.Info, fabric.PortConfig{})
}

// buffer is the memory of one message.
func (s *side) buffer(index int) []byte {
	return s.memory[index*s.size:][:s.size:s.size]
}

// operation is one to post, on the buffer with the index, which is its context.
func (s *side) operation(kind fabric.OpKind, index int, tag uint64) fabric.Op {
	peer := s.peer
	if kind == fabric.OpTaggedReceive {
		peer = fabric.AddressAny
	}
	return fabric.Op{
		Kind: kind, Peer: peer, Tag: tag, Buf: s.buffer(index),
		Descriptor: s.descriptor, Fixed: true, Context: uint64(index),
	}
}

// idle is for after a turn that read nothing. Waiting is right only for what is
// certain to come.
func (s *side) idle(certain bool) error {
	if s.expired.Load() {
		return errDeadline
	}
	if s.spins == 0 && certain && s.port.Arm() {
		s.port.Wait(100 * time.Millisecond)
	}
	return nil
}
