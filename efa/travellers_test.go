package efa

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func init() { roles["traveller"] = playTraveller }

// playTraveller echoes what it is sent, and is told whom to dial, and to leave.
func playTraveller(orders *bufio.Scanner, arguments []string) error {
	r, err := Open(&Config{Providers: arguments[:1], Require: true, Logger: quiet})
	if err != nil {
		return err
	}
	l, err := r.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("listening", l.Addr())
	go servePeers(l, servePeer)
	conns := make(map[string]*Conn)
	for orders.Scan() {
		what, address, _ := strings.Cut(orders.Text(), " ")
		if err := travel(r, conns, what, address); err != nil {
			fmt.Println("failed", strings.ReplaceAll(fmt.Sprint(what, " ", address, ": ", err), "\n", "; "))
			return err
		}
		fmt.Println("done", what)
	}
	for _, c := range conns {
		err = errors.Join(err, c.Close())
	}
	return errors.Join(err, l.Close(), r.Close())
}

func travel(r *Reactor, conns map[string]*Conn, what, address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()
	switch what {
	case "dial":
		c, err := r.Dial(ctx, address)
		if err != nil {
			return err
		}
		conns[address] = c
		return c.WriteMessage(ctx, []byte(echoes))
	case "drop":
		c := conns[address]
		delete(conns, address)
		return c.Close()
	}
	for to, c := range conns {
		for i, size := range []int{1, 3000, 9000} {
			sent, got := message(1, i, size), make([]byte, 16<<10)
			if err := c.WriteMessage(ctx, sent); err != nil {
				return fmt.Errorf("to %s: %w", to, err)
			}
			n, err := c.ReadMessage(ctx, got)
			if err != nil || !bytes.Equal(got[:n], sent) {
				return fmt.Errorf("from %s: %d of %d bytes: %w", to, n, size, err)
			}
		}
	}
	return nil
}

// Processes that come, dial each other, and leave in order, in any order, hear what they
// should of those that are there.
func TestTravellers(t *testing.T) {
	eachProcess(t, func(t *testing.T, b *bed) {
		const steps, most = 40, 5
		seed := uint64(time.Now().UnixNano())
		rng := rand.New(rand.NewPCG(seed, 1))
		type traveller struct {
			*process
			address string
			knows   map[string]bool
		}
		var here []*traveller
		say := func(p *traveller, order string) {
			p.order(t, order)
			p.hear(t, "done")
		}
		for range steps {
			switch k := rng.IntN(10); {
			case len(here) < 2 || k < 3 && len(here) < most:
				p := startProcess(t, "traveller", b.Provider)
				here = append(here, &traveller{p, p.hear(t, "listening"), map[string]bool{}})
			case k < 6:
				from, to := here[rng.IntN(len(here))], here[rng.IntN(len(here))]
				if from != to && !from.knows[to.address] {
					from.knows[to.address] = true
					say(from, "dial "+to.address)
					say(from, "check")
				}
			case k < 7:
				p := here[rng.IntN(len(here))]
				for address := range p.knows {
					delete(p.knows, address)
					say(p, "drop "+address)
					break
				}
			case k < 8 && len(here) > 2:
				i := rng.IntN(len(here))
				p := here[i]
				here = append(here[:i], here[i+1:]...)
				for _, other := range here {
					if other.knows[p.address] {
						delete(other.knows, p.address)
						say(other, "drop "+p.address)
					}
				}
				require.NoError(t, p.orders.Close())
				<-p.ended
				require.NoError(t, p.err, "%s; seed %d", p.stderr.Bytes(), seed)
			default:
				for _, p := range here {
					say(p, "check")
				}
			}
		}
	})
}
