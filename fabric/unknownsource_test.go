package fabric_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// withStranger opens two stations, and one that only knows the second, which does not know it.
func withStranger(t *testing.T, provider string, caps fabric.Capabilities) (a, b, c *station) {
	t.Helper()
	a, b = stations(t, provider, caps)
	f, d := partsOf(t, a.info)
	c = openStation(t, f, d, a.info)
	c.peer = c.insert(t, b)
	return a, b, c
}

// What comes from a peer that is in no vector is not taken for a message of one that is, and
// keeps none of those away.
func TestStrangersSource(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b, c := withStranger(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.SourceAddress)
		for i, s := range []*station{c, a, c, c, a, a, c} {
			kinds := [2]fabric.OpKind{fabric.OpTaggedSend, fabric.OpTaggedReceive}
			if i%2 == 1 {
				kinds = [2]fabric.OpKind{fabric.OpSend, fabric.OpReceive}
			}
			buf := make([]byte, 100)
			b.must(t, s, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Buf: buf})
			s.must(t, b, fabric.Op{Kind: kinds[0], Peer: s.peer, Buf: []byte{byte(i + 1)}})
			done := b.await(t, s)
			require.NoError(t, done.Err)
			require.Equal(t, byte(i+1), buf[0])
			if s == a {
				require.Equal(t, b.peer, done.Source)
			} else {
				require.NotEqual(t, b.peer, done.Source)
			}
			require.NoError(t, s.await(t, b).Err)
		}
	})
}

// A receive that is for one peer does not get what a stranger sends; on sockets it does, and says
// that it is from nobody known.
func TestStrangersAndDirectedReceives(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b, c := withStranger(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.SourceAddress|fabric.DirectedReceive)
		buf := make([]byte, 100)
		b.must(t, c, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: b.peer, Buf: buf, Tag: 7})
		c.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: c.peer, Buf: []byte("not this"), Tag: 7})
		require.NoError(t, c.await(t, b).Err)
		if provider == "sockets" {
			require.Equal(t, fabric.AddressAny, b.await(t, a).Source)
			b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: b.peer, Buf: buf, Tag: 7})
		}
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Buf: []byte("this"), Tag: 7})
		done := b.await(t, a)
		require.NoError(t, done.Err)
		require.Equal(t, b.peer, done.Source)
		require.Equal(t, "this", string(buf[:done.Len]))
		require.NoError(t, a.await(t, b).Err)
	})
}

// A message that came before its sender was inserted, and before anybody received it, is there
// afterwards, whatever else the endpoint is for.
func TestInsertBehindUnexpected(t *testing.T) {
	for name, caps := range map[string]fabric.Capabilities{
		"plain": 0, "source": fabric.SourceAddress, "directed": fabric.DirectedReceive,
	} {
		t.Run(name, func(t *testing.T) {
			eachWithLayers(t, func(t *testing.T, provider string) {
				_, b, c := withStranger(t, provider, fabric.Messages|fabric.TaggedMessages|caps)
				sendUnreceived(t, b, c)
				peer := b.insert(t, c)
				if provider == "shm" && caps == fabric.DirectedReceive && fabric.LibraryVersion().Major < 2 {
					testenv.Need(t, "directed receives of what came before its sender was inserted on shm", errors.New("libfabric 1.17 has noted that it is of nobody known"))
				}
				buf := make([]byte, 100)
				if caps != fabric.DirectedReceive {
					peer = fabric.AddressAny
				}
				b.must(t, c, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: peer, Buf: buf, Tag: 1})
				done := b.await(t, c)
				require.NoError(t, done.Err)
				require.Equal(t, "one", string(buf[:done.Len]))
			})
		})
	}
}

// A message whose sender has ended is not taken for one of a peer that has come since, whether
// the sender was known or not.
func TestSenderEndsBeforeInsert(t *testing.T) {
	for _, known := range []bool{false, true} {
		for name, caps := range map[string]fabric.Capabilities{"plain": 0, "source": fabric.SourceAddress} {
			t.Run(fmt.Sprintf("known %v, %s", known, name), func(t *testing.T) {
				eachWithLayers(t, func(t *testing.T, provider string) {
					a, b, c := withStranger(t, provider, fabric.Messages|fabric.TaggedMessages|caps)
					var sender fabric.Address
					if known {
						sender = b.insert(t, c)
					}
					sendUnreceived(t, b, c)
					require.NoError(t, c.e.Close())
					f, domain := partsOf(t, a.info)
					d := openStation(t, f, domain, a.info)
					d.peer = d.insert(t, b)
					sendUnreceived(t, b, d)
					other := b.insert(t, d)
					buf := make([]byte, 100)
					b.must(t, d, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: buf, Tag: 1})
					done := b.await(t, d)
					require.NoError(t, done.Err)
					require.Equal(t, "one", string(buf[:done.Len]))
					if caps == fabric.SourceAddress {
						if strings.HasSuffix(a.info.Provider(), ";ofi_rxm") {
							testenv.Need(t, "sources of what came from somebody who has ended on tcp", errors.New("over ofi_rxm it is that of who has the connection's place since"))
						}
						if known && done.Source != fabric.AddressAny {
							require.Equal(t, sender, done.Source)
						}
						require.NotContains(t, []fabric.Address{b.peer, other}, done.Source)
					}
				})
			})
		}
	}
}

// sendUnreceived has a message with tag 1 come to a station that has no receive for it.
func sendUnreceived(t *testing.T, to, from *station) {
	t.Helper()
	from.must(t, to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: from.peer, Buf: []byte("one"), Tag: 1})
	// Where messages come in order, it has come with the next; but tcp's own endpoints of 2.x
	// give none while an earlier one waits.
	if to.info.Provider() != "tcp" {
		to.must(t, from, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: make([]byte, 100), Tag: 2})
		from.must(t, to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: from.peer, Buf: []byte("two"), Tag: 2})
		require.NoError(t, to.await(t, from).Err)
		require.NoError(t, from.await(t, to).Err)
	}
	require.NoError(t, from.await(t, to).Err)
}
