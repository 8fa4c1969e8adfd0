package efa

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/tagged"
)

// payloadTag is that of the first message to the peer.
func payloadTag(c *Conn) uint64 { return tagged.PayloadTag(c.remoteID, 0) }

// Devices that do not go together are refused, and closed.
func TestRailsThatDoNotFit(t *testing.T) {
	one := fabrictest.DeviceConfig{}
	for name, c := range map[string]struct {
		config      Config
		device      bool
		rails       []fabrictest.DeviceConfig
		isUnordered bool
		want        string
	}{
		"too many":         {config: Config{Rails: 17}, want: "Rails: 17 is not within 0 to 16"},
		"less than none":   {config: Config{Rails: -1}, want: "Rails: -1 is not within 0 to 16"},
		"without a device": {rails: []fabrictest.DeviceConfig{one}, want: "for a config with a Device"},
		"another number": {
			config: Config{Rails: 3}, device: true, rails: []fabrictest.DeviceConfig{one}, want: "1 with a Device, where Rails is 3",
		},
		"sixteen":          {device: true, rails: make([]fabrictest.DeviceConfig, 16), want: "16, at most 15 are possible"},
		"another provider": {device: true, rails: []fabrictest.DeviceConfig{{Provider: "other"}}, want: "of the same provider as the first device, fake"},
		"too small":        {device: true, rails: []fabrictest.DeviceConfig{one, {MaxOperations: 3}}, want: "a rail must carry"},
		"registration":     {device: true, rails: []fabrictest.DeviceConfig{{NeedsRegistration: true}}, want: "registered memory or none"},
		"order":            {device: true, rails: []fabrictest.DeviceConfig{one}, isUnordered: true, want: "must keep the order"},
	} {
		t.Run(name, func(t *testing.T) {
			network := fabrictest.NewNetwork(fabrictest.Faults{})
			config := c.config
			config.Logger = quiet
			open := func(as fabrictest.DeviceConfig) fabric.Device {
				d, err := network.Open(as)
				require.NoError(t, err)
				if c.isUnordered {
					return unordered{d}
				}
				return d
			}
			if c.device {
				config.Device = open(one)
			}
			for _, rail := range c.rails {
				config.RailDevices = append(config.RailDevices, open(rail))
			}
			_, err := Open(&config)
			require.ErrorContains(t, err, c.want)
			require.Zero(t, network.Stats().OpenDevices)
		})
	}
}

// unordered is a device that does not keep the order of messages.
type unordered struct{ fabric.Device }

func (d unordered) Attributes() fabric.Attributes {
	a := d.Device.Attributes()
	a.KeepsOrder = false
	return a
}

// What a peer says of its rails is looked at before it is believed.
func TestRailTerms(t *testing.T) {
	good := railTerms{piece: 1000, addresses: [][]byte{[]byte("one"), []byte("another")}}
	again, err := decodeRailTerms(good.encode())
	require.NoError(t, err)
	require.Equal(t, good, again)
	none := railTerms{piece: railPiece}
	again, err = decodeRailTerms(none.encode())
	require.NoError(t, err)
	require.Equal(t, none, again)

	many := railTerms{piece: 1000}
	for range mostRails {
		many.addresses = append(many.addresses, []byte("x"))
	}
	for name, b := range map[string][]byte{
		"tiny pieces":   (&railTerms{piece: tiniestPiece - 1}).encode(),
		"too many":      many.encode(),
		"no address":    (&railTerms{piece: 1000, addresses: [][]byte{nil}}).encode(),
		"long address":  (&railTerms{piece: 1000, addresses: [][]byte{make([]byte, mostAddress+1)}}).encode(),
		"behind it":     append(good.encode(), 0),
		"nothing":       nil,
		"half an entry": good.encode()[:len(good.encode())-1],
		"half a size":   good.encode()[:10],
	} {
		_, err := decodeRailTerms(b)
		require.ErrorIs(t, err, ErrHandshake, name)
	}
}

// FuzzRailTerms finds no bytes that make more of rails than there can be.
func FuzzRailTerms(f *testing.F) {
	f.Add((&railTerms{piece: 1000, addresses: [][]byte{[]byte("one"), []byte("another")}}).encode())
	f.Add((&railTerms{piece: railPiece}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		terms, err := decodeRailTerms(b)
		if err != nil {
			require.ErrorIs(t, err, ErrHandshake)
			return
		}
		require.Less(t, len(terms.addresses), mostRails)
		require.GreaterOrEqual(t, terms.piece, uint64(tiniestPiece))
		require.Equal(t, b, terms.encode())
	})
}

// The key vouches for what is said of rails, too.
func TestRailsWithKey(t *testing.T) {
	b := newBed(t, setting{Name: "fake", Device: fabrictest.DeviceConfig{MaxMessage: 1000}})
	dialed, accepted := b.railed(t, Config{Key: testKey(1)}, 3, 2)
	require.Equal(t, 2, dialed.Rails())
	carries(t, dialed, accepted, []int{10, 10_000, 100_000})
	closeBoth(t, dialed, accepted)

	s := newSession(testKey(1), []byte("hello"), []byte("challenge"), nil)
	terms := (&railTerms{piece: 1000}).encode()
	sealed := s.Seal(listenerRailsLabel, terms, []byte("offer"), []byte("answer"))
	for i := range sealed {
		sealed[i] ^= 1
		_, err := s.Open(listenerRailsLabel, sealed, []byte("offer"), []byte("answer"))
		require.ErrorIs(t, err, ErrUnauthorized)
		sealed[i] ^= 1
	}
	_, err := s.Open(dialerRailsLabel, sealed, []byte("offer"), []byte("answer"))
	require.ErrorIs(t, err, ErrUnauthorized, "the other side's")
}

// A rail that a peer names and that cannot be is the end of the handshake, and of
// what it took.
func TestRailThatCannotBeInserted(t *testing.T) {
	network := fabrictest.NewNetwork(fabrictest.Faults{})
	open := func(rail fabric.Device) *Reactor {
		d, err := network.Open(fabrictest.DeviceConfig{})
		require.NoError(t, err)
		r, err := Open(&Config{Logger: quiet, Device: d, RailDevices: []fabric.Device{rail}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Close()) })
		return r
	}
	device := func() fabric.Device {
		d, err := network.Open(fabrictest.DeviceConfig{})
		require.NoError(t, err)
		return d
	}
	from, to := open(misnamed{device()}), open(device())
	l, err := to.Listen(deadline(t), "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = from.Dial(deadline(t), l.Addr().String())
	require.ErrorIs(t, err, ErrHandshake)
	var refused *RefusedError
	require.True(t, errors.As(err, &refused))
	require.Contains(t, refused.Reason, "the address of the peer's rail")
	for _, r := range []*Reactor{from, to} {
		eventually(t, r, func() bool {
			return r.table.count == 0 && len(r.peers) == 0 && len(r.rails[0].peers) == 0
		})
	}
}

// misnamed is a device with an address that is none.
type misnamed struct{ fabric.Device }

func (misnamed) LocalAddress() []byte { return []byte("nobody") }
