package efa

import (
	"bufio"
	"context"
	"errors"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

func init() { roles["railed"] = playRailed }

// playRailed is a peer with so many devices, which reads and says nothing.
func playRailed(orders *bufio.Scanner, arguments []string) error {
	rails, err := strconv.Atoi(arguments[1])
	if err != nil {
		return err
	}
	l, err := Listen(context.Background(), "127.0.0.1:0", &Config{
		Providers: arguments[:1], Require: true, Logger: quiet, Rails: rails,
	})
	if err != nil {
		return err
	}
	return playListener(orders, l, func(c *Conn) error {
		buf := make([]byte, 4<<20)
		var err error
		for err == nil {
			_, err = c.ReadMessage(context.Background(), buf)
		}
		return errors.Join(err, c.Close())
	})
}

// A peer that is killed in the middle of messages over several devices ends the
// connections to it, and those to others go on.
func TestPeerIsKilledOnRails(t *testing.T) {
	eachProcess(t, func(t *testing.T, b *bed) {
		if b.Provider == "shm" {
			testenv.Need(t, "long messages to others after a peer was killed in one on shm", errors.New("none gets through any more, also with one device"))
		}
		r := b.open(t, Config{Rails: 3})
		other := startProcess(t, "railed", b.Provider, "3").hear(t, "listening")
		good, err := r.Dial(deadline(t), other)
		require.NoError(t, err)
		require.Equal(t, 3, good.Rails())
		size := min(3*good.piece, 1<<20)
		for range 2 {
			victim := startProcess(t, "railed", b.Provider, "2")
			bad, err := r.Dial(deadline(t), victim.hear(t, "listening"))
			require.NoError(t, err)
			require.Equal(t, 2, bad.Rails())
			ended := make(chan error, 1)
			go func() {
				for {
					if err := bad.WriteMessage(context.Background(), make([]byte, size)); err != nil {
						ended <- err
						return
					}
				}
			}()
			eventually(t, r, func() bool { return bad.stats.Pieces > 20 })
			victim.kill(t)
			require.ErrorIs(t, <-ended, ErrPeerLost)
			_ = bad.Close()
			for range 10 {
				require.NoError(t, good.WriteMessage(deadline(t), make([]byte, size)))
			}
			require.NoError(t, good.Flush(deadline(t), FlushRemote))
		}
		require.NoError(t, good.Close())
	})
}

var carriedByDevice = regexp.MustCompile(`device(\d+)_(sent|received)=(\d+)`)

// carriedByDevices asks the emulated devices what each has sent and received.
func carriedByDevices(t *testing.T) map[string]uint64 {
	t.Helper()
	all := make(map[string]uint64)
	for _, match := range carriedByDevice.FindAllStringSubmatch(testenv.Order(t, os.Getpid(), "counters"), -1) {
		n, err := strconv.ParseUint(match[3], 10, 64)
		require.NoError(t, err)
		all[match[2]+match[1]] = n
	}
	return all
}

// Each of several EFA devices carries its share.
func TestRailsOnDevices(t *testing.T) {
	onEFA(t, func(t *testing.T, b *bed) {
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{b.Provider}, Logger: quiet})
		require.NoError(t, err)
		const devices = 3
		if there := len(choice.Devices); there < devices {
			err = errors.New("there are " + strconv.Itoa(there) + "; set WEFT_EFA_DEVICES=3")
		}
		testenv.Need(t, "three EFA devices", err)
		dialed, accepted := b.railed(t, Config{}, devices, devices)
		require.Equal(t, devices, dialed.Rails())
		domains := []string{dialed.reactor.attributes.Domain}
		for _, l := range dialed.reactor.rails {
			require.NotContains(t, domains, l.attributes.Domain)
			domains = append(domains, l.attributes.Domain)
		}
		before := carriedByDevices(t)
		const count, size = 6, 3 << 20
		var sizes []int
		for range count {
			sizes = append(sizes, size)
		}
		carries(t, dialed, accepted, sizes)
		now := carriedByDevices(t)
		// Both ways.
		const share = 2 * count * size / devices
		for i := range devices {
			for _, way := range []string{"sent", "received"} {
				name := way + strconv.Itoa(i)
				require.Contains(t, now, name)
				require.GreaterOrEqual(t, now[name]-before[name], uint64(share), name)
				if os.Getenv("WEFT_EFA_DROP") == "" {
					require.Less(t, now[name]-before[name], uint64(share*2), name)
				}
			}
			stats := dialed.reactor.Stats().Rails[i]
			require.Equal(t, domains[i], stats.Domain)
			require.EqualValues(t, share/2, stats.SentBytes)
			require.EqualValues(t, share/2, stats.ReceivedBytes)
		}
		closeBoth(t, dialed, accepted)
	})
}
