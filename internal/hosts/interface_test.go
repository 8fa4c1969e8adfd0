//go:build linux

package hosts_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/internal/hosts"
	"github.com/weft-go/weft/internal/jobtest"
)

// playLocalJob is a job whose ranks are told of no address, and so are on one machine. On
// order each sends to each.
func playLocalJob(arguments []string, orders <-chan string, say func(any)) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const size = 3
	meeting := jobtest.NewMeeting(size)
	worlds := make([]*comm.Comm, size)
	err := onRanks(size, func(rank int) (err error) {
		worlds[rank], err = comm.Open(ctx, comm.Config{
			Rank: rank, Size: size, Exchange: meeting.Exchange(rank), Logger: quiet, Engine: engine(arguments[0]),
		})
		return err
	})
	if err != nil {
		return err
	}
	say("open")
	<-orders
	if err := onRanks(size, func(rank int) error {
		return sendToAll(ctx, worlds[rank])
	}); err != nil {
		return err
	}
	say("sent")
	<-orders
	return onRanks(size, func(rank int) error { return worlds[rank].Close() })
}

func onRanks(size int, f func(rank int) error) error {
	var all errgroup.Group
	for rank := range size {
		all.Go(func() error { return f(rank) })
	}
	return all.Wait()
}

func sendToAll(ctx context.Context, world *comm.Comm) error {
	var both errgroup.Group
	for peer := range world.Size() {
		if peer == world.Rank() {
			continue
		}
		both.Go(func() error { return world.Send(ctx, make([]byte, 100_000), peer, 1) })
		both.Go(func() error {
			_, err := world.Recv(ctx, make([]byte, 100_000), peer, 1)
			return err
		})
	}
	return both.Wait()
}

// A job on one machine needs none of its interfaces: not the newest, which libfabric
// prefers, and which goes while the job runs, as the bridge of a container's network does.
// TCP is silent then: the address is nobody's, and the system keeps the connections.
func TestInterfaceGoes(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			n := hosts.New(t, hosts.Config{Hosts: 1, Decoy: true})
			job := n.Hosts[0].Start(t, "job", nil, "localJob", provider)
			hear := func(want string) {
				t.Helper()
				var said string
				require.NoError(t, job.Hear(&said, patience))
				require.Equal(t, want, said)
			}
			hear("open")
			require.NoError(t, n.Hosts[0].LoseDecoy())
			require.NoError(t, job.Order("send"))
			begin := time.Now()
			hear("sent")
			t.Logf("all messages arrived after %v", time.Since(begin))
			require.NoError(t, job.Order("close"))
			require.NoError(t, job.End(patience))
		})
	}
}

// playCaller dials a listener once, and has a message back.
func playCaller(arguments []string, _ <-chan string, say func(any)) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := efa.Dial(ctx, arguments[1], engine(arguments[0]))
	if err != nil {
		return err
	}
	if err = c.WriteMessage(ctx, []byte(echoes)); err == nil {
		err = roundTrip(ctx, c, 3, 0, 100_000)
	}
	if err != nil {
		return errors.Join(err, c.CloseNow())
	}
	say("answered")
	return c.Close()
}

// A listener that is given no host is at the address by which others reach the machine, and
// not at that of the newest interface: a handshake would succeed, and no message arrive.
func TestListenerWithoutHost(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			n := hosts.New(t, hosts.Config{Hosts: 2, Decoy: true, Route: true})
			listener := n.Hosts[0].Start(t, "listener", nil, "listener", provider, ":7465")
			var ready event
			require.NoError(t, listener.Hear(&ready, patience))
			caller := n.Hosts[1].Start(t, "caller", nil, "caller", provider, n.Hosts[0].Address+":7465")
			var said string
			require.NoError(t, caller.Hear(&said, 2*patience))
			require.Equal(t, "answered", said)
			require.NoError(t, caller.End(patience))
			require.NoError(t, listener.Order("finish"))
			require.NoError(t, listener.End(patience))
		})
	}
}
