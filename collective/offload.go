package collective

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/fabric"
)

// offload is an endpoint of its own, beside the world's, over which the provider does calls of
// a communicator. A goroutine drives it while there are any.
type offload struct {
	group    *group
	domain   *fabric.Domain
	endpoint *fabric.Endpoint
	vector   *fabric.AddressVector
	events   *fabric.EventQueue
	members  *fabric.Group
	closers  []func() error
	why      error // why the provider has no collectives

	meeting *Request // of all ranks, about their addresses
	names   []byte
	queue   chan *call // as many as are under way at a time
	// driving ends by stop, and ended says that it has.
	driving context.Context
	end     context.CancelFunc
	ended   chan struct{}
	started bool
}

// longestName is that of the address of an endpoint, behind its length.
const longestName = 127

// offloaded opens the endpoint, for the first call that asks for the provider.
func (g *group) offloaded() (*offload, error) {
	g.owning.Lock()
	defer g.disown()
	o := g.own.Load()
	switch {
	case g.over:
		return nil, errClosed
	case o == nil:
		o = &offload{group: g, queue: make(chan *call, slots), ended: make(chan struct{})}
		o.driving, o.end = context.WithCancel(context.Background())
		if o.why = o.open(g.comm.Provider(), g.comm.Reactor().LocalAddress()); o.why != nil {
			o.why = errors.Join(o.why, o.shut())
		}
		g.own.Store(o)
	}
	return o, o.why
}

// open opens the endpoint, where the world's is if that has an IP address.
func (o *offload) open(provider string, address []byte) error {
	hints := fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram, OneThread: true,
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.Collectives,
		MemoryMode:   fabric.LocalRegistration | fabric.VirtualAddresses | fabric.AllocatedMemory | fabric.ProviderKeys,
	}
	if len(address) >= 4 {
		switch binary.NativeEndian.Uint16(address) {
		case syscall.AF_INET:
			hints.AddressFormat = fabric.FormatIPv4
		case syscall.AF_INET6:
			hints.AddressFormat = fabric.FormatIPv6
		}
		if hints.AddressFormat != 0 {
			address[2], address[3] = 0, 0 // any port
			hints.SourceAddress = address
		}
	}
	infos, err := fabric.Discover(hints)
	if err != nil {
		return err
	}
	network, err := infos[0].OpenFabric()
	if err != nil {
		return err
	}
	o.opened(network.Close)
	if o.events, err = network.OpenEventQueue(); err != nil {
		return err
	}
	o.opened(o.events.Close)
	if o.domain, err = network.OpenDomain(infos[0]); err != nil {
		return err
	}
	o.opened(o.domain.Close)
	const operations = 64
	queue, err := o.domain.OpenCompletionQueue(operations)
	if err != nil {
		return err
	}
	o.opened(queue.Close)
	if o.vector, err = o.domain.OpenAddressVector(); err != nil {
		return err
	}
	o.opened(o.vector.Close)
	if o.endpoint, err = o.domain.OpenEndpoint(); err != nil {
		return err
	}
	o.opened(o.endpoint.Close)
	return o.endpoint.Enable(o.vector, queue, o.events)
}

// opened notes what is to be closed, in reverse order.
func (o *offload) opened(closer func() error) { o.closers = append(o.closers, closer) }

func (o *offload) shut() (err error) {
	for _, closer := range slices.Backward(o.closers) {
		err = errors.Join(err, closer())
	}
	o.closers = nil
	return err
}

// meet has the ranks tell each other their addresses, by a call before the first one that the
// provider does.
func (g *group) meet(o *offload) error {
	g.owning.Lock()
	defer g.disown()
	switch {
	case g.over:
		return errClosed
	case o.started:
		return nil
	}
	name, err := o.endpoint.Name()
	if err != nil || len(name) > longestName {
		// The others hear of it by the length.
		name = nil
	}
	mine := make([]byte, 1+longestName)
	mine[0] = byte(len(name))
	copy(mine[1:], name)
	o.names = make([]byte, g.size*len(mine))
	if o.meeting, err = Iallgather(g.comm, mine, o.names, WithAlgorithm(schedule.Bruck)); err != nil {
		return err
	}
	o.started = true
	go o.drive()
	return nil
}

// drive is the goroutine.
func (o *offload) drive() {
	defer close(o.ended)
	err := o.join()
	under := make(map[uint64]*call)
	for next := uint64(0); ; next++ {
		var c *call
		for c == nil && o.driving.Err() == nil {
			if len(under) == 0 || err != nil {
				select {
				case c = <-o.queue:
				case <-o.driving.Done():
				}
				continue
			}
			select {
			case c = <-o.queue:
			default:
				err = o.turn(under)
			}
		}
		if o.driving.Err() != nil {
			return
		}
		for err == nil {
			if err = c.provision.post(o.members, next); !errors.Is(err, fabric.ErrAgain) {
				break
			}
			if err = o.turn(under); o.driving.Err() != nil {
				return
			}
		}
		under[next] = c
		if err != nil {
			o.tell(c, err)
		}
	}
}

// turn has the provider go on, and tells of calls that are done. An error is that of all.
func (o *offload) turn(under map[uint64]*call) error {
	var completions [slots]fabric.Completion
	// The provider does its part in turns, so the others wait for this one: it looks for a
	// while before it rests.
	const looks, rest = 100, 50 * time.Microsecond
	n, err := o.endpoint.Turn(nil, completions[:], looks)
	if n == 0 && err == nil {
		time.Sleep(rest)
	}
	for _, done := range completions[:n] {
		if c := under[done.Context]; c != nil {
			delete(under, done.Context)
			o.tell(c, done.Err)
		}
		err = errors.Join(err, done.Err)
	}
	if err != nil {
		for _, c := range under {
			o.tell(c, err)
		}
	}
	return err
}

func (o *offload) tell(c *call, err error) {
	o.group.comm.Reactor().Do(func(p progress) { o.group.provided(p, c, err) })
}

// join makes the group of all ranks.
func (o *offload) join() error {
	if err := o.meeting.Wait(o.driving); err != nil {
		return err
	}
	size := o.group.size
	names := make([][]byte, size)
	for rank := range names {
		entry := o.names[rank*(1+longestName):][:1+longestName]
		if entry[0] == 0 || entry[0] > longestName {
			return &ConfigError{"provider", fmt.Sprintf("rank %d has no endpoint for collectives of the provider's own", rank)}
		}
		names[rank] = entry[1:][:entry[0]]
	}
	inserted, err := o.vector.InsertAll(names)
	if err != nil {
		return err
	}
	addresses := make([]fabric.Address, size)
	for rank, one := range inserted {
		if one.Err != nil {
			return one.Err
		}
		addresses[rank] = one.Address
	}
	set, err := o.vector.OpenSet(fabric.AddressSetConfig{Members: addresses})
	if err != nil {
		return err
	}
	// Before the vector, and behind the endpoint, which ends its groups.
	o.closers = slices.Insert(o.closers, len(o.closers)-1, set.Close)
	if o.members, err = o.endpoint.JoinCollective(set, 0); err != nil {
		return err
	}
	for o.driving.Err() == nil {
		if err := o.turn(nil); err != nil {
			return err
		}
		event, ok, err := o.events.Read()
		if err != nil {
			return err
		}
		if joined, is := event.(fabric.JoinCompleteEvent); ok && is && joined.Group == o.members {
			return nil
		}
	}
	return o.driving.Err()
}

// stop ends what goes on. o may be nil.
func (o *offload) stop() {
	if o != nil {
		o.end()
	}
}

// close closes the endpoint, when the driving has ended. o may be nil.
func (o *offload) close() error {
	if o == nil {
		return nil
	}
	o.end()
	if o.started {
		<-o.ended
	}
	return o.shut()
}
