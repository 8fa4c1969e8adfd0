package comm

import (
	"context"
	crand "crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weft-go/weft/efa"
)

// Every rank has a connection to every other: it dials those before it, and those
// behind it dial. Who dials says who it is in the first message: its rank, and the
// token that the other has handed out to the ranks of the job. Beside token and address
// a rank hands out its terms of matching.

const (
	tokenSize = 16
	cardSize  = tokenSize + termsSize // at least
)

// mostDials is how many connections are being made at a time.
const mostDials = 8

// connect makes the connections.
func (e *engine) connect(ctx context.Context) error {
	if len(e.peers) == 1 {
		return nil
	}
	listener, err := e.reactor.Listen(ctx, e.config.Address)
	if err != nil {
		return err
	}
	e.listener = listener
	var token [tokenSize]byte
	_, _ = crand.Read(token[:]) // never fails
	cards, err := e.config.Exchange(ctx, e.config.Name+"/addresses", e.card(token[:], listener.Addr().String()))
	if err != nil {
		return err
	}
	if len(cards) != len(e.peers) {
		return &ConfigError{"Exchange", fmt.Sprintf("it returned %d values for %d ranks", len(cards), len(e.peers))}
	}
	for rank, card := range cards {
		if len(card) < cardSize {
			return &ConfigError{"Exchange", fmt.Sprintf("it returned %d bytes as the address of rank %d", len(card), rank)}
		}
	}
	if err := e.agree(e.terms(), cards); err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return e.accept(ctx, token[:], len(e.peers)-1-e.rank) })
	// A few at a time, and the nearest first: a large job would fill the others'
	// handshakes, rank 0's before all, if everybody began with it.
	all.Go(func() error {
		dials, ctx := errgroup.WithContext(ctx)
		dials.SetLimit(mostDials)
		for rank := e.rank - 1; rank >= 0; rank-- {
			dials.Go(func() error {
				card := cards[rank]
				if err := e.dial(ctx, e.peers[rank], card[:tokenSize], string(card[cardSize:])); err != nil {
					return &RankError{Rank: rank, Cause: err}
				}
				return nil
			})
		}
		return dials.Wait()
	})
	if err := all.Wait(); err != nil {
		return err
	}
	// Nobody else is to come.
	if err := listener.Close(); err != nil {
		return err
	}
	if e.provider != nil {
		e.do(e.provider.link)
	}
	for _, p := range e.peers {
		if p.conn != nil {
			p.eager = p.conn.EagerLimit()
			p.conn.Handle(p)
		}
	}
	return nil
}

// card is what a rank hands out: its token, its terms and its address.
func (e *engine) card(token []byte, address string) []byte {
	mine := e.terms()
	return append(mine.append(append([]byte(nil), token...)), address...)
}

func (e *engine) dial(ctx context.Context, p *peer, token []byte, address string) error {
	conn, err := e.knock(ctx, address)
	if err != nil {
		return err
	}
	card := binary.LittleEndian.AppendUint32(append([]byte(nil), token...), uint32(e.rank))
	if err := conn.WriteMessage(ctx, card); err != nil {
		return errors.Join(err, conn.CloseNow())
	}
	if conn.EagerLimit() < leastEager {
		_ = conn.CloseNow()
		return &ConfigError{"Engine.EagerLimit", fmt.Sprintf("that rank has %d, at least %d are needed", conn.EagerLimit(), leastEager)}
	}
	p.conn = conn
	return nil
}

// A rank that had to leave for others, because it was silent while they came, dials
// again after a while, between these two.
const (
	shortestAbsence = 10 * time.Millisecond
	longestAbsence  = time.Second
)

// knock dials until there is room for the handshake, or ctx ends.
func (e *engine) knock(ctx context.Context, address string) (*efa.Conn, error) {
	for absence := shortestAbsence; ; absence = min(2*absence, longestAbsence) {
		conn, err := e.reactor.Dial(ctx, address)
		if !errors.Is(err, efa.ErrTooManyHandshakes) {
			return conn, err
		}
		// Those that had to leave together do not come back together.
		again := time.NewTimer(absence/2 + rand.N(absence/2))
		select {
		case <-ctx.Done():
			again.Stop()
			return nil, errors.Join(ctx.Err(), err)
		case <-again.C:
		}
	}
}

// mostVisitors is how many may be about to say who they are, and longestIntroduction how
// long each has for it.
const (
	mostVisitors        = 64
	longestIntroduction = 30 * time.Second
)

// accept waits for so many ranks. Whoever does not say that it is one is shown out, and
// one that says nothing holds nobody up.
func (e *engine) accept(ctx context.Context, token []byte, count int) error {
	if count == 0 {
		return nil
	}
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	var visitors errgroup.Group
	visitors.SetLimit(mostVisitors)
	var mu sync.Mutex // of count, and of the connections of the ranks to come
	for {
		conn, err := e.listener.AcceptConn(waiting)
		if err != nil {
			if _ = visitors.Wait(); count > 0 {
				return errors.Join(err, e.missing())
			}
			return nil
		}
		visitors.Go(func() error {
			rank, err := e.introduced(waiting, conn, token)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && e.peers[rank].conn != nil {
				err = fmt.Errorf("%w: rank %d is here already", ErrProtocol, rank)
			}
			if err != nil {
				err = errors.Join(err, conn.CloseNow())
				e.config.Logger.Warn("weft: refused a connection to this rank", "rank", e.rank, "peer", conn.RemoteAddr(), "error", err)
				return nil
			}
			e.peers[rank].conn = conn
			if count--; count == 0 {
				enough()
			}
			return nil
		})
	}
}

// introduced reads who has dialed.
func (e *engine) introduced(ctx context.Context, conn *efa.Conn, token []byte) (rank int, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestIntroduction)
	defer cancel()
	var card [tokenSize + 4]byte
	n, err := conn.ReadMessage(ctx, card[:])
	if err != nil {
		return 0, err
	}
	if n != len(card) || subtle.ConstantTimeCompare(card[:tokenSize], token) != 1 {
		return 0, fmt.Errorf("%w: not the token of this rank", ErrProtocol)
	}
	rank = int(binary.LittleEndian.Uint32(card[tokenSize:]))
	if rank <= e.rank || rank >= len(e.peers) {
		return 0, fmt.Errorf("%w: rank %d is none that is to come", ErrProtocol, rank)
	}
	return rank, nil
}

// missing names the ranks that have not dialed.
func (e *engine) missing() error {
	var ranks []int
	for rank := e.rank + 1; rank < len(e.peers); rank++ {
		if e.peers[rank].conn == nil {
			ranks = append(ranks, rank)
		}
	}
	return &MissingError{Rank: e.rank, Ranks: ranks}
}
