package efa

import (
	"context"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/proof"
)

// The kinds of sides that are fuzzed.
const (
	fuzzPlain = iota
	fuzzKey
	fuzzTLS
	fuzzRails
	fuzzKinds
)

// fuzzed are reactors of each kind.
type fuzzed struct {
	reactors [fuzzKinds]*Reactor
	terms    []byte // good ones, of a device that there is
	rails    []byte // likewise
	// goroutines is how many there were at the beginning.
	goroutines int
}

func newFuzzed(f *testing.F) *fuzzed {
	f.Helper()
	network := fabrictest.NewNetwork(fabrictest.Faults{})
	a := newAuthority(f)
	secure := a.server(f)
	secure.RootCAs = a.pool()
	z := &fuzzed{}
	for kind, config := range [fuzzKinds]Config{{}, {Key: testKey(0)}, {TLS: secure}, {Rails: 2}} {
		device, err := network.Open(fabrictest.DeviceConfig{})
		require.NoError(f, err)
		if config.Rails > 0 {
			rail, err := network.Open(fabrictest.DeviceConfig{})
			require.NoError(f, err)
			config.RailDevices = []fabric.Device{rail}
		}
		config.Device, config.Logger = device, quiet
		r, err := Open(&config)
		require.NoError(f, err)
		f.Cleanup(func() { require.NoError(f, r.Close()) })
		z.reactors[kind] = r
		z.terms, z.rails = r.terms(&Conn{id: 7}).encode(), r.railTerms().encode()
	}
	z.goroutines = runtime.NumGoroutine()
	return z
}

// check runs one side's handshake against somebody who sends these bytes and
// hangs up. Only one without key and TLS can succeed; nothing is left of any.
func (z *fuzzed) check(t *testing.T, kind uint8, sent []byte, handshake func(r *Reactor, o *opening) (*Conn, error)) {
	kind %= fuzzKinds
	r := z.reactors[kind]
	here, there := net.Pipe()
	var peer sync.WaitGroup
	peer.Go(func() {
		_, _ = there.Write(sent)
		there.Close()
	})
	peer.Go(func() { _, _ = io.Copy(io.Discard, there) })
	c, err := handshake(r, newOpening(here))
	peer.Wait()
	if err == nil {
		if kind == fuzzKey || kind == fuzzTLS {
			t.Fatalf("a connection with somebody who cannot be let in, by %x", sent)
		}
		_ = c.CloseNow()
	}
	var connections, peers int
	r.do(func() {
		connections, peers = r.table.count, len(r.peers)
		for _, l := range r.rails {
			peers += len(l.peers)
		}
	})
	if connections > 0 || peers > 0 {
		t.Fatalf("%d connections and %d peers are left by %x", connections, peers, sent)
	}
	// Some are about to end, such as those of timers, but they do not become
	// more and more.
	for begin := time.Now(); runtime.NumGoroutine() > z.goroutines+10; runtime.Gosched() {
		if time.Since(begin) > patience {
			t.Fatalf("%d goroutines, %d at the beginning", runtime.NumGoroutine(), z.goroutines)
		}
	}
}

func FuzzListenerHandshake(f *testing.F) {
	z := newFuzzed(f)
	for kind := range uint8(fuzzKinds) {
		h := hello{keyed: kind == fuzzKey}
		said := appendFrame(nil, frameHello, h.encode())
		f.Add(kind, said)
		f.Add(kind, appendFrame(said, frameAnswer, z.terms))
		f.Add(kind, appendFrame(appendFrame(said, frameAnswer, z.terms), frameRails, z.rails))
		f.Add(kind, appendFrame(appendFrame(said, frameProof, make([]byte, proof.Size)), frameAnswer, append(make([]byte, proof.Size), z.terms...)))
		f.Add(kind, appendFrame(said, frameRefusal, []byte{1, 'n', 'o'}))
		f.Add(kind, []byte("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"))
	}
	f.Fuzz(func(t *testing.T, kind uint8, sent []byte) {
		z.check(t, kind, sent, func(r *Reactor, o *opening) (*Conn, error) {
			config, err := r.config.serverTLS()
			if err != nil {
				return nil, err
			}
			return r.accept(context.Background(), o, config)
		})
	})
}

func FuzzDialerHandshake(f *testing.F) {
	z := newFuzzed(f)
	for kind := range uint8(fuzzKinds) {
		f.Add(kind, appendFrame(appendFrame(nil, frameOffer, z.terms), frameReady, nil))
		f.Add(kind, appendFrame(appendFrame(appendFrame(nil, frameOffer, z.terms), frameRails, z.rails), frameReady, nil))
		f.Add(kind, appendFrame(appendFrame(nil, frameChallenge, make([]byte, proof.NonceSize)), frameOffer, append(make([]byte, proof.Size), z.terms...)))
		f.Add(kind, appendFrame(nil, frameRefusal, encodeRefusal(ErrTooManyHandshakes)))
		f.Add(kind, []byte("HTTP/1.1 400 Bad Request\r\n"))
		f.Add(kind, []byte("\x15\x03\x03\x00\x02\x02\x28"))
	}
	f.Fuzz(func(t *testing.T, kind uint8, sent []byte) {
		z.check(t, kind, sent, func(r *Reactor, o *opening) (*Conn, error) {
			return dialOver(context.Background(), o, r.config, r.config.clientTLS("127.0.0.1:1"), func(*terms, net.Conn) (*Reactor, error) { return r, nil })
		})
	})
}
