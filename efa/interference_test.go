package efa

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/proof"
)

// between is somebody on the way from dialers to a listener who sees every
// frame, and may change, leave out or add some.
type between struct {
	listener net.Listener
	target   string
	// change returns what to send instead, and an empty part to hang up.
	change  func(fromDialer bool, kind frameType, body []byte) [][]byte
	copying sync.WaitGroup
}

func (m *between) address() string { return m.listener.Addr().String() }

func interfere(t *testing.T, target string, change func(fromDialer bool, kind frameType, body []byte) [][]byte) *between {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &between{listener: l, target: target, change: change}
	m.copying.Go(m.serve)
	t.Cleanup(func() { m.end() })
	return m
}

// end takes no more, and waits for what there is.
func (m *between) end() {
	_ = m.listener.Close()
	m.copying.Wait()
}

func (m *between) serve() {
	for {
		dialer, err := m.listener.Accept()
		if err != nil {
			return
		}
		listener, err := net.Dial("tcp", m.target)
		if err != nil {
			dialer.Close()
			continue
		}
		m.copying.Go(func() { m.copy(dialer, listener, true) })
		m.copying.Go(func() { m.copy(listener, dialer, false) })
	}
}

func (m *between) copy(from, to net.Conn, fromDialer bool) {
	defer from.Close()
	defer to.Close()
	header := make([]byte, headerSize)
	for {
		if _, err := io.ReadFull(from, header); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint16(header[6:]))
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		for _, part := range m.change(fromDialer, frameType(header[5]), body) {
			if len(part) == 0 {
				return
			}
			if _, err := to.Write(part); err != nil {
				return
			}
		}
	}
}

// keyed makes two reactors with the same key and a listener of the second.
func keyed(t *testing.T) (from, to *Reactor, l *Listener) {
	t.Helper()
	b := newBed(t, plain)
	from, to = b.open(t, patient(Config{Key: testKey(0)})), b.open(t, patient(Config{Key: testKey(0)}))
	l, err := to.Listen(deadline(t), "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return from, to, l
}

// record notes the bodies of the frames of one good handshake.
func record(t *testing.T, from *Reactor, l *Listener) map[frameType][]byte {
	t.Helper()
	var mu sync.Mutex
	seen := make(map[frameType][]byte)
	m := interfere(t, l.Addr().String(), func(_ bool, kind frameType, body []byte) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		seen[kind] = body
		return [][]byte{appendFrame(nil, kind, body)}
	})
	dialed, err := from.Dial(deadline(t), m.address())
	require.NoError(t, err)
	accepted, err := l.AcceptConn(deadline(t))
	require.NoError(t, err)
	closeBoth(t, dialed, accepted)
	mu.Lock()
	defer mu.Unlock()
	return seen
}

// Whatever byte of the handshake is changed on the way, there is no connection
// between two sides that have a key.
func TestEveryByteOfTheHandshakeCounts(t *testing.T) {
	from, to, l := keyed(t)
	sizes := record(t, from, l)
	for _, kind := range []frameType{frameHello, frameChallenge, frameProof, frameOffer, frameAnswer, frameReady} {
		require.NotEmpty(t, sizes[kind], "frame %d", kind)
		for i := range sizes[kind] {
			var once sync.Once
			m := interfere(t, l.Addr().String(), func(_ bool, got frameType, body []byte) [][]byte {
				if got == kind {
					once.Do(func() { body[i%len(body)] ^= 1 << (i % 8) })
				}
				return [][]byte{appendFrame(nil, got, body)}
			})
			_, err := from.Dial(deadline(t), m.address())
			require.ErrorIs(t, err, ErrHandshake, "byte %d of frame %d", i, kind)
			if kind != frameHello {
				require.ErrorIs(t, err, ErrUnauthorized, "byte %d of frame %d", i, kind)
			}
			if kind == frameReady {
				// The listener has said its last word, and finds out by the end.
				c, err := l.AcceptConn(deadline(t))
				require.NoError(t, err)
				requireAbandoned(t, c)
			}
		}
	}
	requireClean(t, from, to)
}

// A handshake that stops in the middle of any frame, or behind it, ends on both
// sides, and leaves nothing.
func TestHandshakeStopsHalfWay(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "with a key": testKey(0)} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, plain)
			from, to := b.open(t, patient(Config{Key: key})), b.open(t, patient(Config{Key: key}))
			l, err := to.Listen(deadline(t), "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { require.NoError(t, l.Close()) }()
			kinds := []frameType{frameHello, frameOffer, frameAnswer, frameReady}
			if key != nil {
				kinds = append(kinds, frameChallenge, frameProof)
			}
			for _, kind := range kinds {
				for _, keep := range []int{1, headerSize - 1, headerSize, headerSize + 1, 1 << 20} {
					reached := false
					m := interfere(t, l.Addr().String(), func(_ bool, got frameType, body []byte) [][]byte {
						frame := appendFrame(nil, got, body)
						if got != kind {
							return [][]byte{frame}
						}
						reached = true
						return [][]byte{frame[:min(keep, len(frame))], nil}
					})
					c, err := from.Dial(deadline(t), m.address())
					if err == nil {
						// Nothing of it was missing; the listener may have been ready
						// before the end came.
						require.True(t, kind == frameReady || (kind == frameAnswer && keep == 1<<20))
						requireAbandoned(t, c)
					} else {
						require.ErrorIs(t, err, ErrHandshake)
					}
					m.end()
					require.True(t, reached)
					if kind == frameReady {
						c, err := l.AcceptConn(deadline(t))
						require.NoError(t, err)
						requireAbandoned(t, c)
					}
				}
			}
			requireClean(t, from, to)
		})
	}
}

// A dialer that has only seen others prove that they have the key.
func TestReplayedProofs(t *testing.T) {
	from, to, l := keyed(t)
	seen := record(t, from, l)
	tcp, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer tcp.Close()
	_, err = tcp.Write(appendFrame(nil, frameHello, seen[frameHello]))
	require.NoError(t, err)
	_, challenge, err := readFrame(tcp, frameChallenge)
	require.NoError(t, err)
	require.NotEqual(t, seen[frameChallenge], challenge)
	_, err = tcp.Write(appendFrame(nil, frameProof, seen[frameProof]))
	require.NoError(t, err)
	_, _, err = readFrame(tcp, frameOffer)
	require.ErrorIs(t, err, ErrUnauthorized)
	require.Zero(t, to.Stats().Connections)
}

// A listener that has only seen another one prove that it has the key.
func TestReplayedOffer(t *testing.T) {
	from, _, l := keyed(t)
	seen := record(t, from, l)
	err := dialScript(t, from, seen[frameChallenge], func([]byte) []byte { return seen[frameOffer] })
	require.ErrorIs(t, err, ErrUnauthorized)
}

// A listener that sends the dialer's own proof back.
func TestReflectedProof(t *testing.T) {
	from, to, _ := keyed(t)
	terms := to.terms(&Conn{id: 7}).encode()
	err := dialScript(t, from, make([]byte, proof.NonceSize), func(proof []byte) []byte { return append(slices.Clone(proof), terms...) })
	require.ErrorIs(t, err, ErrUnauthorized)
	require.Empty(t, from.peers, "no address was taken from it")
}

// dialScript has a reactor dial somebody who challenges it, and answers its
// proof with an offer that is made from it.
func dialScript(t *testing.T, from *Reactor, challenge []byte, offer func(proof []byte) []byte) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	played := make(chan error, 1)
	go func() {
		played <- func() error {
			tcp, err := l.Accept()
			if err != nil {
				return err
			}
			defer tcp.Close()
			if _, _, err := readFrame(tcp, frameHello); err != nil {
				return err
			}
			if _, err := tcp.Write(appendFrame(nil, frameChallenge, challenge)); err != nil {
				return err
			}
			_, proof, err := readFrame(tcp, frameProof)
			if err != nil {
				return err
			}
			if _, err := tcp.Write(appendFrame(nil, frameOffer, offer(proof))); err != nil {
				return err
			}
			_, _, err = readFrame(tcp, frameAnswer)
			return err
		}()
	}()
	_, err = from.Dial(deadline(t), l.Addr().String())
	require.ErrorIs(t, <-played, ErrUnauthorized, "the other side is told")
	return err
}

// A listener without the key cannot make a dialer with one do without.
func TestListenerCannotDoWithoutTheKey(t *testing.T) {
	from, to, _ := keyed(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	told := make(chan error, 1)
	go func() {
		tcp, err := l.Accept()
		if err != nil {
			told <- err
			return
		}
		defer tcp.Close()
		_, _, _ = readFrame(tcp, frameHello)
		_, _ = tcp.Write(appendFrame(nil, frameOffer, to.terms(&Conn{id: 7}).encode()))
		_, _, err = readFrame(tcp, frameAnswer)
		told <- err
	}()
	_, err = from.Dial(deadline(t), l.Addr().String())
	require.ErrorIs(t, err, ErrUnauthorized)
	require.ErrorIs(t, <-told, ErrUnauthorized)
	require.Empty(t, from.peers)
}

// What ends a connection is vouched for as well: with a key, a frame that was
// changed, repeated or made up breaks it, and does not end it in order.
func TestFramesAfterTheHandshake(t *testing.T) {
	finish := func(count uint64) []byte {
		return appendFrame(nil, frameFinish, binary.LittleEndian.AppendUint64(nil, count))
	}
	for name, change := range map[string]func(frame, body []byte) [][]byte{
		"changed count": func(_, body []byte) [][]byte {
			body[0]++
			return [][]byte{appendFrame(nil, frameFinish, body)}
		},
		"changed kind": func(_, body []byte) [][]byte { return [][]byte{appendFrame(nil, frameReceived, body)} },
		"twice":        func(frame, _ []byte) [][]byte { return [][]byte{frame, frame} },
		"without a proof": func(_, body []byte) [][]byte {
			return [][]byte{finish(binary.LittleEndian.Uint64(body))}
		},
		"garbage":    func(_, _ []byte) [][]byte { return [][]byte{[]byte("garbage!")} },
		"too long":   func(_, _ []byte) [][]byte { return [][]byte{append([]byte("weft\x02\x10"), 0xff, 0xff)} },
		"too short":  func(_, _ []byte) [][]byte { return [][]byte{appendFrame(nil, frameFinish, []byte{1})} },
		"of no kind": func(_, body []byte) [][]byte { return [][]byte{appendFrame(nil, 99, body)} },
	} {
		t.Run(name, func(t *testing.T) {
			from, _, l := keyed(t)
			m := interfere(t, l.Addr().String(), func(fromDialer bool, kind frameType, body []byte) [][]byte {
				frame := appendFrame(nil, kind, body)
				if fromDialer && kind == frameFinish {
					return change(frame, bytes.Clone(body))
				}
				return [][]byte{frame}
			})
			dialed, err := from.Dial(deadline(t), m.address())
			require.NoError(t, err)
			accepted, err := l.AcceptConn(deadline(t))
			require.NoError(t, err)
			require.NoError(t, accepted.WriteMessage(deadline(t), []byte("is not read")))
			var closing sync.WaitGroup
			// Whether it works depends on what was changed.
			closing.Go(func() { _ = dialed.Close() })
			// A read might still see the end that the first frame said.
			var failure error
			require.Eventually(t, func() bool {
				accepted.reactor.do(func() { failure = accepted.failure })
				return failure != nil
			}, patience, 1e6)
			require.ErrorIs(t, failure, ErrProtocol)
			_ = accepted.Close()
			closing.Wait()
		})
	}
}

// Without a key, what is no frame at all is a protocol violation, too.
func TestGarbageAfterTheHandshake(t *testing.T) {
	b := newBed(t, plain)
	from, to := b.open(t, Config{}), b.open(t, Config{})
	for name, sent := range map[string][]byte{
		"garbage":     []byte("GET / HTTP/1.1\r\n\r\n"),
		"too long":    append([]byte("weft\x02\x10"), 0xff, 0xff),
		"wrong order": appendFrame(nil, frameHello, make([]byte, 8)),
		"too short":   appendFrame(nil, frameFinish, []byte{1, 2, 3}),
		"with proof":  appendFrame(nil, frameReceived, make([]byte, 8+proof.Size)),
	} {
		t.Run(name, func(t *testing.T) {
			one, other := join(t, from, to)
			_, err := one.control.tcp.Write(sent)
			require.NoError(t, err)
			_, err = other.ReadMessage(deadline(t), nil)
			require.ErrorIs(t, err, ErrProtocol)
			require.NoError(t, other.Close())
			_ = one.CloseNow()
		})
	}
}

// requireAbandoned is for a connection of which the other side has given up.
func requireAbandoned(t *testing.T, c *Conn) {
	t.Helper()
	_, err := c.ReadMessage(deadline(t), nil)
	require.ErrorIs(t, err, ErrPeerLost)
	require.NoError(t, c.CloseNow())
}

// requireClean waits until two reactors have no connections, and has them make one.
func requireClean(t *testing.T, from, to *Reactor) {
	t.Helper()
	requireLetGo(t, from, to)
	one, other := join(t, from, to)
	closeBoth(t, one, other)
}
