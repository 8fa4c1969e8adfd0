package fabric_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// When an end of a long operation is closed amid it, other endpoints of both domains go on, also those of
// the same queue.
func TestCloseAmidLongOperations(t *testing.T) {
	providers := append(testenv.Providers(), "net")
	if slices.Contains(providers, "tcp") && fabric.LibraryVersion().Major >= 2 {
		providers = append(providers, "tcp;")
	}
	for _, provider := range providers {
		for name, op := range longOperations {
			for _, closes := range []string{"initiator", "target", "both"} {
				t.Run(provider+"/"+name+"/"+closes, func(t *testing.T) {
					info := undertakingInfo(t, provider)
					here, there := openCouple(t, info), openCouple(t, info)
					rounds := 3
					if testing.Short() {
						rounds = 1
					}
					for range rounds {
						closeAmid(t, op, closes, here, there)
						here.goOn(t)
						there.goOn(t)
					}
				})
			}
		}
	}
}

// It does while another goroutine is in turns of those of other queues.
func TestCloseAmidLongOperationsBesideTurns(t *testing.T) {
	for _, provider := range testenv.Providers() {
		for name, op := range map[string]fabric.Op{
			"delivered send": {Kind: fabric.OpSend, Flags: fabric.DeliveryComplete},
			"read":           {Kind: fabric.OpRead},
		} {
			t.Run(provider+"/"+name, func(t *testing.T) {
				info := undertakingInfoFor(t, provider, false)
				here, there := openCouple(t, info), openCouple(t, info)
				ended, failed := make(chan struct{}), make(chan error, 2)
				for _, beside := range []*station{openStation(t, here.a.fabric, here.a.domain, info), openStation(t, there.a.fabric, there.a.domain, info)} {
					go func() {
						var err error
						for buf := make([]fabric.Completion, 8); err == nil; {
							select {
							case <-ended:
								failed <- nil
								return
							default:
								if _, err = beside.e.TurnWait(nil, buf, 1); errors.Is(err, fabric.ErrNotSupported) {
									_, err = beside.e.Turn(nil, buf, 0)
									runtime.Gosched()
								}
							}
						}
						failed <- err
					}()
				}
				rounds := 5
				if testing.Short() {
					rounds = 1
				}
				for range rounds {
					for _, closes := range []string{"initiator", "target"} {
						closeAmid(t, op, closes, here, there)
					}
				}
				close(ended)
				for range 2 {
					require.NoError(t, <-failed)
				}
			})
		}
	}
}

// couple is two endpoints of a domain that know each other.
type couple struct {
	a, b     *station
	toB, toA fabric.Address
}

func openCouple(t *testing.T, info *fabric.Info) *couple {
	t.Helper()
	f, d := partsOf(t, info)
	s := &couple{a: openStation(t, f, d, info), b: openStation(t, f, d, info)}
	s.toB, s.toA = s.a.insert(t, s.b), s.b.insert(t, s.a)
	return s
}

// another opens one that has the queue of the first.
func (s *couple) another(t *testing.T) *station {
	t.Helper()
	return stationAt(t, s.a.fabric, s.a.domain, s.a.info, s.a.q)
}

func (s *couple) goOn(t *testing.T) {
	t.Helper()
	for range 2 {
		orderly(t, s.a, s.b, s.toB, s.toA)
	}
}

// closeAmid has an endpoint begin an operation of 32 MiB with another, and closes one of them, or both,
// when some of it is there; the other one after that.
func closeAmid(t *testing.T, op fabric.Op, closes string, here, there *couple) {
	t.Helper()
	a, b := here.another(t), there.another(t)
	a.peer, b.peer = a.insert(t, b), b.insert(t, a)
	from := make([]byte, longOperation)
	to, remote := shared(t, b, longOperation)
	op.Peer, op.Buf, op.Remote = a.peer, from, remote
	receive := fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: to}
	switch op.Kind {
	case fabric.OpRead:
		from, to = to, from
	case fabric.OpTaggedSend:
		receive.Kind, receive.Tag = fabric.OpTaggedReceive, op.Tag
		b.must(t, a, receive)
	case fabric.OpSend:
		b.must(t, a, receive)
	}
	from[0], from[longOperation-1] = 1, 1
	if op = a.post(t, b, op); op.Err != nil {
		require.ErrorIs(t, op.Err, fabric.ErrNotSupported)
	}
	for deadline := time.Now().Add(30 * time.Second); op.Err == nil && to[0] == 0 && to[longOperation-1] == 0 && len(a.got) == 0; {
		require.True(t, time.Now().Before(deadline), "nothing comes")
		a.turn(t, nil)
		b.turn(t, nil)
	}
	first, second := a, b
	if closes == "target" {
		first, second = b, a
	}
	require.NoError(t, first.e.Close())
	if closes != "both" {
		here.goOn(t)
		there.goOn(t)
	}
	require.NoError(t, second.e.Close())
}
