package fabric_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// Each configuration of an address vector is one that the provider has, and then it
// carries messages, or is refused.
func TestAddressVectorConfigurations(t *testing.T) {
	unique := fmt.Sprintf("weft-test-%d", os.Getpid())
	each(t, func(t *testing.T, provider string) {
		for what, test := range map[string]struct {
			config fabric.AddressVectorConfig
			caps   fabric.Capabilities
		}{
			"table":               {config: fabric.AddressVectorConfig{Type: fabric.AddressTable}},
			"map":                 {config: fabric.AddressVectorConfig{Type: fabric.AddressMap}},
			"no type":             {config: fabric.AddressVectorConfig{Type: 99}},
			"sizes":               {config: fabric.AddressVectorConfig{Peers: 10, PeersPerNode: 2}},
			"symmetric":           {config: fabric.AddressVectorConfig{Symmetric: true}},
			"read only":           {config: fabric.AddressVectorConfig{ReadOnly: true}},
			"user IDs":            {config: fabric.AddressVectorConfig{UserIDs: true}},
			"user IDs, asked for": {fabric.AddressVectorConfig{UserIDs: true}, fabric.PeerUserIDs},
			"name":                {config: fabric.AddressVectorConfig{Name: unique + "-" + provider}},
			"name, asked for":     {fabric.AddressVectorConfig{Name: unique + "-" + provider}, fabric.SharedAddressVectors},
			"map with a name": {
				fabric.AddressVectorConfig{Type: fabric.AddressMap, Name: unique + "-" + provider}, fabric.SharedAddressVectors,
			},
			"nobody's name, read only": {
				fabric.AddressVectorConfig{Name: unique + "-nobody", ReadOnly: true}, fabric.SharedAddressVectors,
			},
			"name that is a path": {fabric.AddressVectorConfig{Name: "a/b"}, fabric.SharedAddressVectors},
		} {
			t.Run(what, func(t *testing.T) {
				hints := fabric.Hints{
					Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: fabric.TaggedMessages | test.caps,
					MemoryMode: everyMemoryMode, OrderedSends: true, OneThread: true, Source: sourceOn(provider),
				}
				if test.config.Type == fabric.AddressMap {
					hints.AddressVector = fabric.AddressMap
				}
				infos, err := fabric.Discover(hints)
				if err != nil {
					require.ErrorIs(t, err, fabric.ErrNotFound)
					return
				}
				c := openCorner(t, infos[0])
				v, err := c.domain.OpenAddressVectorConfig(test.config)
				if err != nil {
					require.True(t, errors.Is(err, fabric.ErrNotSupported) || errors.Is(err, fabric.ErrInvalid), "%v", err)
					if test.config.UserIDs {
						require.ErrorIs(t, err, fabric.ErrNotSupported)
					}
					return
				}
				t.Cleanup(func() { require.NoError(t, v.Close()) })
				mustOpen := what != "no type" && what != "nobody's name, read only" && what != "name that is a path"
				require.True(t, mustOpen, "it was opened")
				a, _ := c.endpoint(t, infos[0], fabric.Bindings{Vector: v, Events: c.events})
				other := c.vector(t, fabric.AddressVectorConfig{Type: v.Type()})
				b, _ := c.endpoint(t, infos[0], fabric.Bindings{Vector: other, Events: c.events})
				peer := insert(t, v, b.e)
				insert(t, other, a.e)
				_, err = v.Lookup(peer)
				require.NoError(t, err)
				unknownToShared(t, v)
				exchangeOne(t, a, b, peer)
				require.NoError(t, v.Remove(peer))
				if test.config.Name == "" { // libfabric has what others may still have there
					_, err = v.Lookup(peer)
					require.ErrorIs(t, err, fabric.ErrNotFound)
					require.ErrorIs(t, v.Remove(peer), fabric.ErrNotFound)
				}
			})
		}
	})
}

// unknownToShared asks for what is in no vector, shared or not.
func unknownToShared(t *testing.T, v *fabric.AddressVector) {
	t.Helper()
	for _, nobody := range []fabric.Address{77, 1 << 20, 1 << 31, 77 << 32, 1<<63 | 1, fabric.AddressAny} {
		_, err := v.Lookup(nobody)
		require.ErrorIs(t, err, fabric.ErrNotFound, "%d", nobody)
		require.ErrorIs(t, v.Remove(nobody), fabric.ErrNotFound, "%d", nobody)
	}
}

// exchangeOne has b receive one message of a's.
func exchangeOne(t *testing.T, a, b *party, peer fabric.Address) {
	t.Helper()
	got := make([]byte, 16)
	receive := []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: got}}
	send := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 1, Buf: []byte("through a vector")}}
	sent, received := 0, 0
	for deadline := time.Now().Add(30 * time.Second); sent+received < 2; {
		require.True(t, time.Now().Before(deadline), "no message")
		n, _ := step(t, b, &receive)
		received += n
		n, _ = step(t, a, &send)
		sent += n
	}
	require.Equal(t, "through a vector", string(got))
}

// carried has one operation done, and returns the length of the message. It fails if
// the other process ends before that.
func carried(t *testing.T, p *party, op fabric.Op, ended <-chan error, said *strings.Builder) (length int) {
	t.Helper()
	posts := []fabric.Op{op}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if n, c := step(t, p, &posts); n > 0 {
			return c.Len
		}
		select {
		case err := <-ended:
			t.Fatalf("the other process has ended: %v\n%s", err, said)
		default:
		}
	}
	t.Fatal("no completion")
	return 0
}

// step turns once, posts what is left, and returns how many completions there were and
// the first of them.
func step(t *testing.T, p *party, posts *[]fabric.Op) (int, fabric.Completion) {
	t.Helper()
	var buf [1]fabric.Completion
	turn := func() (int, error) { return p.Turn(*posts, buf[:], 0) }
	if p.q.WaitDescriptor() >= 0 {
		turn = func() (int, error) { return p.TurnWait(*posts, buf[:], 1) }
	}
	n, err := turn()
	require.NoError(t, err)
	if len(*posts) > 0 && (*posts)[0].Result != fabric.Refused {
		require.NoError(t, (*posts)[0].Err)
		*posts = nil
	}
	if n > 0 {
		require.NoError(t, buf[0].Err)
	}
	return n, buf[0]
}

// The vector is in this variable for the process that opens it as the second one.
const sharedVector = "WEFT_TEST_SHARED_VECTOR"

// Two processes have one address vector: what one inserts is known to the other, and
// what nobody has inserted is refused and harms nobody.
func TestAddressVectorOfTwoProcesses(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		infos, err := fabric.Discover(fabric.Hints{
			Provider: provider, Endpoint: fabric.ReliableDatagram,
			Capabilities: fabric.TaggedMessages | fabric.SharedAddressVectors,
			MemoryMode:   everyMemoryMode, OneThread: true, Source: sourceOn(provider),
		})
		testenv.Need(t, provider+" with shared address vectors", err)
		c := openCorner(t, infos[0])
		if name := os.Getenv(sharedVector); name != "" {
			joinVector(t, c, infos[0], name)
			return
		}
		name := fmt.Sprintf("weft-test-two-%d", os.Getpid())
		v := c.vector(t, fabric.AddressVectorConfig{Name: name})
		me, _ := c.endpoint(t, infos[0], fabric.Bindings{Vector: v, Events: c.events})
		insert(t, v, me.e)

		child := testprocess.Command(t, os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v", "-test.timeout=1m")
		child.Env = append(os.Environ(), sharedVector+"="+name)
		var said strings.Builder
		child.Stdout, child.Stderr = &said, &said
		delivered, err := child.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		ended := make(chan error, 1)
		go func() { ended <- child.Wait() }()

		// It says who it is, is inserted, and finds itself in its own vector.
		address := make([]byte, 64)
		n := carried(t, me, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: address}, ended, &said)
		peer, err := v.Insert(address[:n])
		require.NoError(t, err)
		require.Equal(t, fabric.Address(1), peer)
		unknownToShared(t, v)
		carried(t, me, fabric.Op{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 2, Buf: []byte("you are 1")}, ended, &said)
		require.NoError(t, delivered.Close())
		require.NoError(t, <-ended, said.String())
		require.Contains(t, said.String(), "--- PASS: "+t.Name(), said.String())
	})
}

// joinVector is what the second process does.
func joinVector(t *testing.T, c *corner, info *fabric.Info, name string) {
	v := c.vector(t, fabric.AddressVectorConfig{Name: name, ReadOnly: true})
	me, _ := c.endpoint(t, info, fabric.Bindings{Vector: v, Events: c.events})
	mine, err := me.e.Name()
	require.NoError(t, err)
	unknownToShared(t, v)
	theirs, err := v.Lookup(0)
	require.NoError(t, err)
	require.NotEqual(t, mine, theirs)
	_, err = v.Insert(mine)
	require.Error(t, err)
	_, err = v.Lookup(1)
	require.ErrorIs(t, err, fabric.ErrNotFound)

	carried(t, me, fabric.Op{Kind: fabric.OpTaggedSend, Peer: 0, Tag: 1, Buf: mine}, nil, nil)
	carried(t, me, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: make([]byte, 16)}, nil, nil)
	myself, err := v.Lookup(1)
	require.NoError(t, err)
	require.Equal(t, mine, myself)
	unknown(t, me, strangers(fabric.TaggedMessages|fabric.Messages, fabric.Remote{}, 2, 77, 1<<20, 77<<32, 1<<63|1, fabric.AddressAny))
	// A send is an error on sockets if its receiver ends before the sender knows of the receipt.
	_, err = io.Copy(io.Discard, os.Stdin)
	require.NoError(t, err)
}

// The error of a vector that the domain has not been opened for says which it has been.
func TestVectorOfAnotherType(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		infos, err := fabric.Discover(fabric.Hints{
			Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: fabric.TaggedMessages,
			MemoryMode: everyMemoryMode, Source: sourceOn(provider),
		})
		testenv.Need(t, provider, err)
		_, d := partsOf(t, infos[0])
		v, err := d.OpenAddressVectorConfig(fabric.AddressVectorConfig{Type: fabric.AddressMap})
		if err == nil {
			require.NoError(t, v.Close())
			return
		}
		require.ErrorContains(t, err, "FI_AV_TABLE, not FI_AV_MAP")
	})
}
