package comm

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/internal/jobtest"
)

// A rank whose handshake had to leave for somebody else's comes back.
func TestRankComesBackToAFullDoor(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		worlds, errs, dials := openCrowded(deadline(t), t, b, 1)
		require.NoError(t, errors.Join(errs...))
		t.Cleanup(func() { closeAll(t, worlds) })
		require.Equal(t, 2, dials)
		isend(t, worlds[1], content(1, 1, 10), 0, 0)
		expect(t, worlds[0], 1, 0, Status{Source: 1, Tag: 0, Length: 10}, 1)
	})
}

// One that finds no place until ctx ends says both.
func TestDoorStaysFull(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Name != "fake" {
			return
		}
		ctx, cancel := context.WithCancel(deadline(t))
		defer cancel()
		crowds := 0
		_, errs, dials := openCrowded(ctx, t, b, 1<<30, func() {
			if crowds++; crowds == 3 {
				cancel()
			}
		})
		require.ErrorIs(t, errs[1], context.Canceled)
		require.ErrorIs(t, errs[1], efa.ErrTooManyHandshakes)
		var wrong *RankError
		require.ErrorAs(t, errs[1], &wrong)
		require.Equal(t, 0, wrong.Rank)
		require.GreaterOrEqual(t, dials, 3)
	})
}

// openCrowded opens two ranks, of which rank 0 has a place for one handshake, which
// rank 1 has to leave to a stranger as often as crowds says. left is called each time.
// dials is how often rank 1 has dialed.
func openCrowded(ctx context.Context, t *testing.T, b *bed, crowds int, left ...func()) (worlds []*Comm, errs []error, dials int) {
	worlds, errs = make([]*Comm, 2), make([]error, 2)
	m := jobtest.NewMeeting(len(worlds))
	door, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var count atomic.Int32
	var all, visitors sync.WaitGroup
	for rank := range worlds {
		config := b.config(t, Config{}, efa.Config{MaxHandshakes: 1})
		config.Rank, config.Size, config.Exchange = rank, len(worlds), m.Exchange(rank)
		if rank == 0 {
			config.Exchange = func(ctx context.Context, name string, mine []byte) ([][]byte, error) {
				behind := string(mine[cardSize:])
				visitors.Go(func() {
					for {
						visitor, err := door.Accept()
						if err != nil {
							return
						}
						if int(count.Add(1)) > crowds {
							visitors.Go(func() { relay(t, visitor, behind) })
							continue
						}
						pushOut(t, visitor, behind)
						for _, f := range left {
							f()
						}
					}
				})
				return m.Exchange(0)(ctx, name, append(slices.Clone(mine[:cardSize]), door.Addr().String()...))
			}
		}
		all.Go(func() {
			if worlds[rank], errs[rank] = Open(ctx, config); errs[rank] != nil {
				giveUp()
			}
		})
	}
	all.Wait()
	t.Cleanup(visitors.Wait)
	require.NoError(t, door.Close())
	return worlds, errs, int(count.Load())
}

// pushOut has a visitor wait silently at the place behind, until it has to leave for a
// stranger, and hands it what it is told.
func pushOut(t *testing.T, visitor net.Conn, behind string) {
	defer visitor.Close()
	silent, err := net.Dial("tcp", behind)
	if !check(t, err == nil, "%v", err) {
		return
	}
	defer silent.Close()
	stranger, err := net.Dial("tcp", behind)
	if !check(t, err == nil, "%v", err) {
		return
	}
	defer stranger.Close()
	var heard sync.WaitGroup
	heard.Go(func() { _, _ = io.Copy(io.Discard, visitor) })
	refusal, err := io.ReadAll(silent)
	check(t, err == nil && len(refusal) > 0, "%d bytes of a refusal, %v", len(refusal), err)
	_, err = visitor.Write(refusal)
	check(t, err == nil, "%v", err)
	_ = visitor.(*net.TCPConn).CloseWrite()
	heard.Wait()
}

// relay takes a visitor to the place behind.
func relay(t *testing.T, visitor net.Conn, behind string) {
	there, err := net.Dial("tcp", behind)
	if !check(t, err == nil, "%v", err) {
		visitor.Close()
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{visitor, there}, {there, visitor}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
	visitor.Close()
	there.Close()
}
