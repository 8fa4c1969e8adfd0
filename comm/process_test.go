package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/internal/jobtest"
)

// playRank is a rank in a process of its own: its words are how it matches, and its part.
func playRank(p jobtest.Part) error {
	mode, part := p.Words[0], p.Words[1]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	job, err := bootstrap.Join(ctx, bootstrap.Options{Rank: p.Rank, Size: p.Size, Address: p.Store, Logger: quiet})
	if err != nil {
		return err
	}
	world, err := Open(ctx, Config{
		Rank: p.Rank, Size: p.Size, Exchange: job.Exchange, Logger: quiet, Matching: Matching(mode[0] - '0'),
		Engine: &efa.Config{Providers: []string{p.Provider}, Require: true, Logger: quiet},
	})
	if err != nil {
		return err
	}
	// The store has done what it was for: who dies from here on is the world's to notice.
	if err := job.Close(); err != nil {
		return err
	}
	err = parts[part](ctx, world, p.Words[2:])
	// What a lost rank has not confirmed is no error of this one.
	var lost *RankError
	if closeErr := world.Close(); !errors.As(closeErr, &lost) || part != "die" {
		err = errors.Join(err, closeErr)
	}
	return err
}

var parts = map[string]func(ctx context.Context, c *Comm, words []string) error{
	"ring": playRing,
	"die":  playDeath,
}

// ranks runs a job in processes, and returns how each rank ended and what it said.
func ranks(t *testing.T, size int, b *bed, part ...string) (errs []error, said []string) {
	t.Helper()
	return jobtest.Ranks(t, size, b.Provider, append([]string{strconv.Itoa(int(b.matching))}, part...)...)
}

// playRing has a message of each protocol go round.
func playRing(ctx context.Context, c *Comm, _ []string) error {
	next, previous := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	for i, size := range []int{0, 8, 8000, 9000, 3 << 20} {
		buf := make([]byte, size)
		status, err := c.Sendrecv(ctx, content(c.Rank(), i, size), next, i, buf, previous, i)
		if err != nil {
			return err
		}
		if status != (Status{previous, i, size}) || !bytes.Equal(buf, content(previous, i, size)) {
			return fmt.Errorf("%d bytes of rank %d are others: %v", size, previous, status)
		}
	}
	return nil
}

func TestRing(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Provider == "" {
			return
		}
		errs, said := ranks(t, 4, b, "ring")
		for rank, err := range errs {
			require.NoError(t, err, "rank %d: %s", rank, said[rank])
		}
	})
}

// stages are how far rank 1 gets before it is killed, with messages of such a length:
// what it does, and what rank 0 does that must end.
var stages = map[string]struct {
	victim   func(ctx context.Context, c *Comm, size int) error
	survivor func(ctx context.Context, c *Comm, size int) error
}{
	"before anything": {
		func(context.Context, *Comm, int) error { return nil },
		func(ctx context.Context, c *Comm, size int) error {
			_, err := c.Recv(ctx, make([]byte, size), 1, 0)
			return err
		},
	},
	"announced": {
		func(ctx context.Context, c *Comm, size int) error {
			if _, err := c.Issend(make([]byte, size), 0, 0); err != nil {
				return err
			}
			return c.Send(ctx, nil, 0, 1)
		},
		func(ctx context.Context, c *Comm, size int) error {
			// Only when the other is gone.
			_, err := c.Recv(ctx, nil, 1, 9)
			var lost *RankError
			if !errors.As(err, &lost) {
				return err
			}
			_, err = c.Recv(ctx, make([]byte, size), 1, 0)
			if size < 1000 {
				// It was here whole.
				return errors.Join(err, lost)
			}
			return err
		},
	},
	"sending": {
		func(ctx context.Context, c *Comm, size int) error {
			for range 4 {
				if _, err := c.Issend(make([]byte, size), 0, 0); err != nil {
					return err
				}
			}
			// The first was received, and the next is on its way, or has been.
			_, err := c.Recv(ctx, nil, 0, 1)
			return err
		},
		func(ctx context.Context, c *Comm, size int) error {
			for i := range 5 {
				if _, err := c.Recv(ctx, make([]byte, size), 1, 0); err != nil {
					return err
				}
				if i == 0 {
					if err := c.Send(ctx, nil, 1, 1); err != nil {
						return err
					}
				}
			}
			return errors.New("there is a fifth message of four")
		},
	},
	"receiving": {
		func(ctx context.Context, c *Comm, size int) error {
			_, err := c.Irecv(make([]byte, size), 0, 0)
			if err == nil {
				err = c.Send(ctx, nil, 0, 1)
			}
			return err
		},
		func(ctx context.Context, c *Comm, size int) error {
			if _, err := c.Recv(ctx, nil, 1, 1); err != nil {
				return err
			}
			for {
				if err := c.Ssend(ctx, make([]byte, size), 1, 0); err != nil {
					return err
				}
			}
		},
	},
	"matched by a probe": {
		func(ctx context.Context, c *Comm, _ int) error {
			_, err := c.Mprobe(ctx, 0, 0)
			return err
		},
		func(ctx context.Context, c *Comm, size int) error { return c.Ssend(ctx, make([]byte, size), 1, 0) },
	},
}

func playDeath(ctx context.Context, c *Comm, words []string) error {
	stage := stages[strings.ReplaceAll(words[0], "-", " ")]
	size, _ := strconv.Atoi(words[1])
	// Not before the others have their connections to it.
	if c.Rank() != 1 {
		if err := c.Ssend(ctx, nil, 1, 8); err != nil {
			return err
		}
	}
	switch c.Rank() {
	case 1:
		for _, rank := range []int{0, 2} {
			if _, err := c.Recv(ctx, nil, rank, 8); err != nil {
				return err
			}
		}
		// What it sends may be lost with it: they need not wait for that.
		if _, err := c.Recv(ctx, nil, 0, 7); err != nil {
			return err
		}
		if err := stage.victim(ctx, c, size); err != nil {
			return err
		}
		// Outside of libfabric: shm of 1.17 would leave what it shares with the others
		// locked (docs/PROVIDERS.md).
		var err error
		c.engine.do(func(efa.Progress) { err = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
		return err
	case 0:
		if _, err := c.Recv(ctx, nil, 2, 7); err != nil {
			return err
		}
		if err := c.Send(ctx, nil, 1, 7); err != nil {
			return err
		}
		err := stage.survivor(ctx, c, size)
		var lost *RankError
		if !errors.As(err, &lost) || lost.Rank != 1 {
			return fmt.Errorf("%v, and not the loss of rank 1", err)
		}
		if live := append(c.engine.sends.live(), c.engine.receives.live()...); len(live) > 0 {
			return fmt.Errorf("%d operations are left", len(live))
		}
		// The others go on.
		if _, err := c.Sendrecv(ctx, []byte("still"), 2, 5, make([]byte, 5), 2, 5); err != nil {
			return err
		}
	default:
		if err := c.Send(ctx, nil, 0, 7); err != nil {
			return err
		}
		if _, err := c.Sendrecv(ctx, []byte("still"), 0, 5, make([]byte, 5), 0, 5); err != nil {
			return err
		}
	}
	return nil
}

// A rank that is killed, at each stage of each protocol: the others hear of it, and
// go on.
func TestRankIsKilled(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Provider == "" {
			return
		}
		for stage := range stages {
			sizes := []int{100, 50_000, 8 << 20}
			switch {
			case stage == "before anything":
				// None of it is sent.
				sizes = sizes[:1]
			case stage == "matched by a probe":
				// A probe sees no difference between long ones.
				sizes = sizes[:2]
			case stage == "sending" && b.matching == MatchInSoftware:
				// What is short is here whole, as if it was announced.
				sizes = sizes[2:]
			case b.matching == MatchByProvider && (stage == "receiving" || stage == "sending"):
				// Nor do the modes, beyond the match.
				sizes = sizes[1:2]
			case b.matching == MatchByProvider:
				sizes = sizes[:2]
			}
			for _, size := range sizes {
				t.Run(fmt.Sprintf("%s/%d", stage, size), func(t *testing.T) {
					t.Parallel()
					errs, said := ranks(t, 3, b, "die", strings.ReplaceAll(stage, " ", "-"), strconv.Itoa(size))
					require.NoError(t, errs[0], said[0])
					require.ErrorContains(t, errs[1], "signal: killed", said[1])
					require.NoError(t, errs[2], said[2])
				})
			}
		}
	})
}
