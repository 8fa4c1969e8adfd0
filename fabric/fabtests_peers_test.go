package fabric_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Five endpoints send to each other, themselves left out, and each knows who
// sent what.
func TestManyPeers(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const count, rounds = 5, 10
		s := openDomain(t, fabric.Hints{
			Provider: provider, MemoryMode: everyMemoryMode,
			Capabilities: fabric.TaggedMessages | fabric.SourceAddress,
		})
		var all [count]*station
		var known [count][count]fabric.Address
		var posts [count][]fabric.Op
		var bufs [count][][]byte
		for i := range all {
			all[i] = s.open(t, nil)
		}
		for i, from := range all {
			for j, to := range all {
				known[i][j] = from.insert(t, to)
				if i == j {
					continue
				}
				for range rounds {
					posts[j] = append(posts[j], fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(i), Buf: make([]byte, 32)})
				}
			}
		}
		for i := range all {
			for k := range posts[i] {
				posts[i][k].Context = uint64(k)
				bufs[i] = append(bufs[i], posts[i][k].Buf)
			}
			for round := range rounds {
				for j := range all {
					if i != j {
						posts[i] = append(posts[i], fabric.Op{
							Kind: fabric.OpTaggedSend, Peer: known[i][j], Tag: uint64(i),
							Buf: fmt.Appendf(nil, "%d to %d, round %d", i, j, round),
						})
					}
				}
			}
		}
		const each = 2 * (count - 1) * rounds
		for deadline := time.Now().Add(30 * time.Second); ; {
			busy := false
			for i, x := range all {
				x.turn(t, posts[i])
				var rest []fabric.Op
				for _, op := range posts[i] {
					require.NoError(t, op.Err)
					if op.Result == fabric.Refused {
						rest = append(rest, op)
					}
				}
				posts[i] = rest
				busy = busy || len(x.got) < each
			}
			if !busy {
				break
			}
			require.True(t, time.Now().Before(deadline), "not everything came")
			if provider == "sockets" {
				// Its threads need the core.
				var buf [8]fabric.Completion
				n, err := all[0].e.TurnWait(nil, buf[:], 1)
				require.NoError(t, err)
				all[0].got = append(all[0].got, buf[:n]...)
			}
		}
		for j, x := range all {
			require.Len(t, x.got, each)
			var next [count]int
			for _, c := range x.got {
				require.NoError(t, c.Err)
				if c.Kind == fabric.OpTaggedSend {
					continue
				}
				i := int(c.Tag)
				require.Equal(t, known[j][i], c.Source)
				require.Equal(t, fmt.Sprintf("%d to %d, round %d", i, j, next[i]), string(bufs[j][c.Context][:c.Len]))
				next[i]++
			}
			require.Zero(t, x.q.InFlight())
		}
	})
}

// A fabric has many domains at once, and each works.
func TestManyDomains(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, fabric.Hints{Provider: provider, MemoryMode: everyMemoryMode, Capabilities: fabric.TaggedMessages})
		for i := range 8 {
			d, err := s.fabric.OpenDomain(s.info)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, d.Close()) })
			x := &site{info: s.info, fabric: s.fabric, domain: d, events: s.events}
			x.enable(t, nil, nil)
			got := make([]byte, 8)
			x.b.must(t, x.a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: got})
			x.a.must(t, x.b, fabric.Op{Kind: fabric.OpTaggedInject, Peer: x.a.peer, Buf: []byte{byte(i)}})
			c := x.b.await(t, x.a)
			require.NoError(t, c.Err)
			require.Equal(t, []byte{byte(i)}, got[:c.Len])
		}
	})
}
