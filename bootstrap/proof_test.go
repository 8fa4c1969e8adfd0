package bootstrap

import (
	"bytes"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/proof"
)

func TestWrongKeys(t *testing.T) {
	m := Member{Rank: 0, Size: 2}
	for name, keys := range map[string][2][]byte{
		"other":       {testKey, []byte("another key, of the same length!")},
		"rank has":    {nil, testKey},
		"server has":  {testKey, nil},
		"longer":      {testKey, append(bytes.Clone(testKey), 'x')},
		"with a zero": {testKey, append(bytes.Clone(testKey), 0)},
	} {
		t.Run(name, func(t *testing.T) {
			var log lockedBuffer
			s, address := serveTCP(t, 2, func(c *ServerConfig) { c.Key, c.Logger = keys[0], slog.New(slog.NewTextHandler(&log, nil)) })
			_, err := connectRank(t, address, m, keys[1])
			require.ErrorIs(t, err, ErrUnauthorized)
			require.True(t, isFinal(err))
			// Who has none takes nobody's place.
			_, err = connectRank(t, address, m, keys[0])
			require.NoError(t, err)
			require.NoError(t, s.Close()) // which waits for the log
			require.Contains(t, log.String(), "level=WARN")
			require.NotContains(t, log.String(), string(testKey))
		})
	}
}

// lockedBuffer may be written to by goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A rank does not believe in a server that has not the key, and gives it nothing.
func TestFalseServer(t *testing.T) {
	welcome := putRank(nil, -1)
	nonce := make([]byte, proof.NonceSize)
	for name, answer := range map[string]func(conn net.Conn){
		"no challenge": func(conn net.Conn) { _, _ = conn.Write(appendHello(nil, typeWelcome, welcome)) },
		"no proof": func(conn net.Conn) {
			_, _ = conn.Write(appendHello(nil, typeChallenge, nonce))
			_, _, _ = readHello(conn, typeProof)
			_, _ = conn.Write(appendHello(nil, typeWelcome, welcome))
		},
		"reflection": func(conn net.Conn) {
			_, _ = conn.Write(appendHello(nil, typeChallenge, nonce))
			_, sealed, _ := readHello(conn, typeProof)
			_, _ = conn.Write(appendHello(nil, typeWelcome, append(sealed, welcome...)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := net.Pipe()
			defer theirs.Close()
			go func() {
				if _, _, err := readHello(theirs, typeHello); err == nil {
					answer(theirs)
				}
			}()
			_, err := newClient(deadline(t), mine, connection{member: Member{Size: 1}, key: testKey, timeout: patience})
			require.ErrorIs(t, err, ErrUnauthorized)
		})
	}
}

// What goes over the wire stays as it was: ranks of other versions reckon it too.
func TestProofsOnTheWire(t *testing.T) {
	shared := newSession(testKey, []byte("hello"), []byte("challenge"))
	require.Equal(t, "8ff6e256a92ba20c2b84531f105a2bbccb94f33b4bc4dd7b742088508f3f39a0", hex.EncodeToString(shared.Seal(rankLabel, nil)))
	sealed := shared.Seal(serverLabel, []byte("welcome"))
	require.Equal(t, "71b3b9e1938f5d78e263b5120258989c354f1d3ab50c799edd620cbd45e40d2d", hex.EncodeToString(sealed[:proof.Size]))
	require.Equal(t, "welcome", string(sealed[proof.Size:]))

	fromRank, fromServer := shared.Frames()
	for i, want := range []struct{ rank, server string }{
		{"179b133767f6ab763b59b39fff2b0b5418520d0f2c1a8ee9f3e30ed1ab3ed232", "2672af24d78cabd84ee51d0f2e171ff34ddd8df43b95aba5f61e59d448c78645"},
		{"109b2d5c0ede7fcea3bc9c1573b0060dd5e37d3d0d937099dbf2e32ef25b720e", "66d066127ff216d67cf77036d593a0bc9e4c2a1d2c1a9ffa6ca6e126114f6654"},
	} {
		require.Equal(t, want.rank, hex.EncodeToString(fromRank.Next([]byte("body"))), "%d", i)
		require.Equal(t, want.server, hex.EncodeToString(fromServer.Next([]byte("body"))), "%d", i)
	}
}

// What is changed, repeated or left out behind the handshake is noticed.
func TestFramesAreProved(t *testing.T) {
	shared := newSession(testKey, []byte("hello"), []byte("challenge"))
	fromRank, fromServer := shared.Frames()
	var wire bytes.Buffer
	for i := range 3 {
		require.NoError(t, writeFrame(&wire, frame{kindSet, uint32(i + 1), []byte("payload")}, fromRank))
	}
	all := wire.Bytes()
	one := len(all) / 3
	read := func(b []byte) error {
		proofs, _ := shared.Frames()
		r := bytes.NewReader(b)
		for {
			if _, err := readFrame(r, proofs); err != nil {
				return err
			}
		}
	}
	require.ErrorIs(t, read(all), io.EOF)
	require.ErrorIs(t, read(all[one:]), ErrUnauthorized)
	require.ErrorIs(t, read(append(bytes.Clone(all[:one]), all...)), ErrUnauthorized)
	for i := 4; i < one; i++ { // behind the length
		changed := bytes.Clone(all)
		changed[i] ^= 1
		require.ErrorIs(t, read(changed), ErrUnauthorized)
	}
	_, err := readFrame(bytes.NewReader(all), fromServer)
	require.ErrorIs(t, err, ErrUnauthorized)
}
