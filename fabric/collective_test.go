package fabric_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestCollectives(t *testing.T) {
	for _, count := range []int{1, 2, 3, 4} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			members := groupsOf(t, count)
			in, out := make([][]uint32, count), make([][]uint32, count)
			// fill gives every member so many values, and room for results
			// between guards.
			const guard = 0xdeadbeef
			fill := func(values, results int) {
				for i := range members {
					in[i], out[i] = make([]uint32, values), make([]uint32, results+2)
					for k := range in[i] {
						in[i][k] = uint32(1000*i + k)
					}
					out[i][0], out[i][results+1] = guard, guard
				}
			}
			collective := func(i int) fabric.Collective {
				return fabric.Collective{
					Buf: fabric.BytesOf(in[i]), Result: fabric.BytesOf(out[i][1 : len(out[i])-1]),
					Type: fabric.Uint32, Operation: fabric.Sum, Context: uint64(100 + i),
				}
			}
			result := func(i int) []uint32 {
				require.EqualValues(t, guard, out[i][0])
				require.EqualValues(t, guard, out[i][len(out[i])-1])
				return out[i][1 : len(out[i])-1]
			}
			for range 3 {
				together(t, members, func(i int, g *fabric.Group) (fabric.Token, error) {
					return g.Barrier(uint64(100+i), 0)
				})
				fill(5, 5)
				together(t, members, func(i int, g *fabric.Group) (fabric.Token, error) {
					return g.AllReduce(collective(i))
				})
				var all []uint32
				sum := make([]uint32, 5)
				for _, values := range in {
					all = append(all, values...)
					for k, v := range values {
						sum[k] += v
					}
				}
				for i := range members {
					require.Equal(t, sum, result(i))
				}
				fill(5, 5*count)
				together(t, members, func(i int, g *fabric.Group) (fabric.Token, error) {
					return g.AllGather(collective(i))
				})
				for i := range members {
					require.Equal(t, all, result(i))
				}
				for root := range members {
					fill(3*count, 3)
					together(t, members, func(i int, g *fabric.Group) (fabric.Token, error) {
						c := collective(i)
						c.Root = root
						if i != root {
							c.Buf = nil
						}
						return g.Scatter(c)
					})
					for i := range members {
						require.Equal(t, in[root][3*i:3*i+3], result(i))
					}
					fill(0, 4*count)
					for k := range 4 * count {
						out[root][1+k] = uint32(7*k + root)
					}
					together(t, members, func(i int, g *fabric.Group) (fabric.Token, error) {
						c := collective(i)
						c.Buf, c.Result, c.Root = c.Result, nil, root
						return g.Broadcast(c)
					})
					for i := range members {
						require.Equal(t, result(root), result(i))
					}
				}
			}
			for _, m := range members {
				require.ErrorIs(t, m.set.Remove(0), fabric.ErrBusy)
				require.ErrorIs(t, m.set.Close(), fabric.ErrBusy)
				require.NoError(t, m.group.Close())
				require.NoError(t, m.group.Close())
				_, err := m.group.Barrier(0, 0)
				require.ErrorIs(t, err, net.ErrClosed)
				require.NoError(t, m.set.Remove(0))
			}
		})
	}
}

// A collective that not every member has begun does not complete, and Close of
// the endpoint ends it.
func TestCollectiveUnfinished(t *testing.T) {
	members := groupsOf(t, 2)
	m := members[0]
	in, out := make([]byte, 64), make([]byte, 64)
	_, err := m.group.AllReduce(fabric.Collective{Buf: in, Result: out, Type: fabric.Uint8, Operation: fabric.Max})
	require.NoError(t, err)
	require.False(t, m.turn(t))
	require.Equal(t, 1, m.q.InFlight())
	require.ErrorIs(t, m.group.Close(), fabric.ErrBusy)
	require.NoError(t, m.e.Close())
	require.NoError(t, m.group.Close())
	_, err = m.group.Barrier(0, 0)
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestCollectiveJoinUnfinished(t *testing.T) {
	members := membersOf(t, 2)
	m := members[0]
	g, err := m.e.JoinCollective(m.set, 0)
	require.NoError(t, err)
	m.turn(t)
	_, err = g.Barrier(0, 0)
	require.ErrorIs(t, err, fabric.ErrInvalid, "before it is joined")
	_, err = m.e.JoinCollective(m.set, 0)
	require.ErrorIs(t, err, fabric.ErrBusy)
	require.ErrorIs(t, g.Close(), fabric.ErrBusy)
	require.NoError(t, m.e.Close())
	require.NoError(t, g.Close())
}

// The longest messages that libfabric's own collectives have over ofi_rxm.
func TestCollectiveLongest(t *testing.T) {
	const count, longest = 3, 16 << 10
	members := groupsOf(t, count)
	limits, err := members[0].domain.CollectiveLimits(fabric.Scatter, 0, fabric.Uint8)
	require.NoError(t, err)
	require.Equal(t, longest, limits.MaxMessage)
	in, out := make([][]byte, count), make([][]byte, count)
	for i := range in {
		in[i], out[i] = bytes.Repeat([]byte{byte(i + 1)}, longest), make([]byte, longest*count)
	}
	collective := func(i, results int) fabric.Collective {
		return fabric.Collective{Buf: in[i], Result: out[i][:results], Type: fabric.Uint8, Operation: fabric.Max, Context: uint64(100 + i)}
	}
	together(t, members, func(i int, g *fabric.Group) (fabric.Token, error) { return g.AllReduce(collective(i, longest)) })
	require.Equal(t, in[count-1], out[0][:longest])
	together(t, members, func(i int, g *fabric.Group) (fabric.Token, error) {
		return g.AllGather(collective(i, longest*count))
	})
	require.Equal(t, slices.Concat(in...), out[1])
	const part = longest / count
	together(t, members, func(i int, g *fabric.Group) (fabric.Token, error) {
		c := collective(i, part)
		if c.Buf = c.Buf[:part*count]; i > 0 {
			c.Buf = nil
		}
		return g.Scatter(c)
	})
	require.Equal(t, in[0][:part], out[2][:part])
	together(t, members, func(i int, g *fabric.Group) (fabric.Token, error) {
		c := collective(i, 0)
		c.Buf = c.Buf[:part*count]
		return g.Broadcast(c)
	})
	require.Equal(t, in[0][:part*count], in[2][:part*count])
}

func TestCollectiveFull(t *testing.T) {
	m := groupsOf(t, 2)[0]
	for range m.q.Size() {
		_, err := m.group.Barrier(0, 0)
		require.NoError(t, err)
	}
	_, err := m.group.Barrier(0, 0)
	require.ErrorIs(t, err, fabric.ErrAgain)
}

func TestCollectiveRefuses(t *testing.T) {
	members := groupsOf(t, 2)
	m := members[0]
	g := m.group
	bytes := func(n int) []byte { return make([]byte, n) }
	for name, post := range map[string]func() (fabric.Token, error){
		"no values": func() (fabric.Token, error) {
			return g.AllReduce(fabric.Collective{Type: fabric.Uint8, Operation: fabric.Sum})
		},
		"part of a value": func() (fabric.Token, error) {
			return g.AllReduce(fabric.Collective{Buf: bytes(9), Result: bytes(9), Type: fabric.Uint64, Operation: fabric.Sum})
		},
		"short result": func() (fabric.Token, error) {
			return g.AllGather(fabric.Collective{Buf: bytes(8), Result: bytes(8), Type: fabric.Uint64})
		},
		"uneven broadcast": func() (fabric.Token, error) {
			return g.Broadcast(fabric.Collective{Buf: bytes(3), Type: fabric.Uint8})
		},
		"no such root": func() (fabric.Token, error) {
			return g.Broadcast(fabric.Collective{Buf: bytes(4), Type: fabric.Uint8, Root: 2})
		},
		"no such type": func() (fabric.Token, error) {
			return g.AllReduce(fabric.Collective{Buf: bytes(8), Result: bytes(8), Type: 99, Operation: fabric.Sum})
		},
		"no type": func() (fabric.Token, error) {
			return g.AllReduce(fabric.Collective{Buf: bytes(8), Result: bytes(8), Operation: fabric.Sum})
		},
		"no operation": func() (fabric.Token, error) {
			return g.AllReduce(fabric.Collective{Buf: bytes(8), Result: bytes(8), Type: fabric.Uint8})
		},
		"no such operation": func() (fabric.Token, error) {
			return g.AllReduce(fabric.Collective{Buf: bytes(8), Result: bytes(8), Type: fabric.Uint8, Operation: 1 << 20})
		},
		"buffer of a member that is not the root": func() (fabric.Token, error) {
			return g.Scatter(fabric.Collective{Buf: bytes(8), Result: bytes(4), Type: fabric.Uint8, Root: 1})
		},
		"flag": func() (fabric.Token, error) { return g.Barrier(0, fabric.Peek) },
	} {
		_, err := post()
		require.ErrorIs(t, err, fabric.ErrInvalid, name)
	}
	// Neither version at hand has these; each says so before it is called.
	for name, post := range map[string]func() (fabric.Token, error){
		"all to all": func() (fabric.Token, error) {
			return g.AllToAll(fabric.Collective{Buf: bytes(8), Result: bytes(8), Type: fabric.Uint8})
		},
		"reduce-scatter": func() (fabric.Token, error) {
			return g.ReduceScatter(fabric.Collective{Buf: bytes(8), Result: bytes(4), Type: fabric.Uint8, Operation: fabric.Sum})
		},
		"reduce": func() (fabric.Token, error) {
			return g.Reduce(fabric.Collective{Buf: bytes(8), Result: bytes(8), Type: fabric.Uint8, Operation: fabric.Sum})
		},
		"gather": func() (fabric.Token, error) {
			return g.Gather(fabric.Collective{Buf: bytes(8), Result: bytes(16), Type: fabric.Uint8})
		},
		"long messages": func() (fabric.Token, error) {
			return g.AllReduce(fabric.Collective{Buf: bytes(16<<10 + 1), Result: bytes(16<<10 + 1), Type: fabric.Uint8, Operation: fabric.Sum})
		},
		"long broadcast": func() (fabric.Token, error) {
			return g.Broadcast(fabric.Collective{Buf: bytes(16<<10 + 2), Type: fabric.Uint8})
		},
		"long scatter": func() (fabric.Token, error) {
			return g.Scatter(fabric.Collective{Result: bytes(8<<10 + 1), Type: fabric.Uint8, Root: 1})
		},
		"bits of a float": func() (fabric.Token, error) {
			return g.AllReduce(fabric.Collective{Buf: bytes(8), Result: bytes(8), Type: fabric.Float64, Operation: fabric.BitOr})
		},
	} {
		_, err := post()
		require.ErrorIs(t, err, fabric.ErrNotSupported, name)
	}
	require.Zero(t, m.q.InFlight())

	posts := []fabric.Op{{Kind: fabric.OpCollective}}
	_, err := m.e.Turn(posts, nil, 0)
	require.NoError(t, err)
	require.Equal(t, fabric.Failed, posts[0].Result)
	require.ErrorIs(t, posts[0].Err, fabric.ErrInvalid)

	_, err = m.e.JoinCollective(nil, 0)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	_, err = m.e.JoinCollective(members[1].set, 0)
	require.ErrorIs(t, err, fabric.ErrInvalid, "of another vector")
	_, err = m.e.JoinCollective(m.set, fabric.Messages)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	_, err = m.e.JoinCollective(setOf(t, m.v, 1), 0)
	require.ErrorIs(t, err, fabric.ErrInvalid, "without itself")
}

// The place in the set counts, not the address.
func TestCollectiveOtherOrder(t *testing.T) {
	for _, c := range [][]fabric.Address{{1, 2}, {3, 0}, {2, 3, 1}, {3, 2, 1, 0}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			all := membersOf(t, 4)
			members := make([]*member, len(c))
			for rank, address := range c {
				m := all[address]
				members[rank] = m
				s, err := m.v.OpenSet(fabric.AddressSetConfig{Members: c})
				require.NoError(t, err)
				t.Cleanup(func() {
					require.NoError(t, m.e.Close())
					require.NoError(t, s.Close())
				})
				m.group, err = m.e.JoinCollective(s, 0)
				require.NoError(t, err)
				require.Equal(t, rank, m.group.Rank())
			}
			join(t, members)
			out := make([][]fabric.Address, len(c))
			together(t, members, func(i int, g *fabric.Group) (fabric.Token, error) {
				out[i] = make([]fabric.Address, len(c))
				return g.AllGather(fabric.Collective{
					Buf: fabric.BytesOf(c[i : i+1]), Result: fabric.BytesOf(out[i]),
					Type: fabric.Uint64, Context: uint64(100 + i),
				})
			})
			for i := range out {
				require.Equal(t, c, out[i])
			}
		})
	}
}

func TestCollectiveJoins(t *testing.T) {
	members := membersOf(t, 1)
	m := members[0]
	for range 255 {
		var err error
		m.group, err = m.e.JoinCollective(m.set, 0)
		require.NoError(t, err)
		join(t, members)
		require.NoError(t, m.group.Close())
	}
	_, err := m.e.JoinCollective(m.set, 0)
	require.ErrorIs(t, err, fabric.ErrNotSupported)
}

func TestCollectiveLimits(t *testing.T) {
	_, d := domainOf(t, "tcp;ofi_rxm", fabric.Messages|fabric.TaggedMessages|fabric.Collectives)
	for _, kind := range []fabric.CollectiveKind{fabric.Barrier, fabric.Broadcast, fabric.AllGather, fabric.Scatter, fabric.AllReduce} {
		limits, err := d.CollectiveLimits(kind, fabric.Sum, fabric.Uint64)
		require.NoError(t, err, kind)
		require.Greater(t, limits.MaxMembers, 1000, kind)
		if kind == fabric.AllReduce {
			require.Equal(t, 8, limits.ValueSize)
			require.Positive(t, limits.MaxValues)
		}
	}
	_, err := d.CollectiveLimits(fabric.Gather, 0, fabric.Uint64)
	require.ErrorIs(t, err, fabric.ErrNotSupported)
	_, err = d.CollectiveLimits(fabric.AllReduce, fabric.CompareSwap, fabric.Uint64)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	_, err = d.CollectiveLimits(99, 0, fabric.Uint64)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	_, err = d.CollectiveLimits(fabric.AllGather, 0, 99)
	require.ErrorIs(t, err, fabric.ErrInvalid)
}

func TestCollectiveNotSupported(t *testing.T) {
	for _, provider := range []string{"sockets", "shm"} {
		t.Run(provider, func(t *testing.T) {
			a, _ := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
			_, err := a.domain.CollectiveLimits(fabric.Barrier, 0, 0)
			require.ErrorIs(t, err, fabric.ErrNotSupported)
			require.ErrorIs(t, fabric.PostBare(a.e), fabric.ErrNotSupported)
			_, err = a.e.JoinMulticast(make([]byte, 16), 0)
			require.ErrorIs(t, err, fabric.ErrNotSupported)
		})
	}
}

// Close of an endpoint from another goroutine and a collective that is just being
// posted do not wait for each other.
func TestEndpointClosesAmidCollectives(t *testing.T) {
	for range 30 {
		m := groupsOf(t, 1)[0]
		posting, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			close(posting)
			for {
				// What is posted would have to complete before the group can go.
				_, err := m.group.Broadcast(fabric.Collective{Root: -1})
				if !errors.Is(err, fabric.ErrInvalid) {
					ended <- err
					return
				}
			}
		}()
		<-posting
		closed := make(chan error, 1)
		go func() { closed <- m.e.Close() }()
		select {
		case err := <-closed:
			require.NoError(t, err)
		case <-time.After(30 * time.Second):
			t.Fatal("Close and the collective wait for each other")
		}
		require.ErrorIs(t, <-ended, net.ErrClosed)
	}
}
