package efa

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever has answered the peer's end says nothing more: the peer may be gone by then, and what
// reaches a socket that is closed has its system forget what it would have sent again.
func TestNothingIsSaidAfterTheAnswer(t *testing.T) {
	b := newBed(t, plain)
	from, to := b.open(t, patient(Config{})), b.open(t, patient(Config{}))
	l, err := to.Listen(deadline(t), "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()

	var mu sync.Mutex
	var said []frameType
	answered, lost := make(chan struct{}), make(chan struct{})
	m := interfere(t, l.Addr().String(), func(fromDialer bool, kind frameType, body []byte) [][]byte {
		switch {
		case fromDialer && kind == frameReceived:
			<-lost // for now
		case !fromDialer && kind >= frameFinish:
			mu.Lock()
			said = append(said, kind)
			mu.Unlock()
			if kind == frameReceived {
				close(answered)
			}
		}
		return [][]byte{appendFrame(nil, kind, body)}
	})
	dialed, err := from.Dial(deadline(t), m.address())
	require.NoError(t, err)
	accepted, err := l.AcceptConn(deadline(t))
	require.NoError(t, err)

	require.NoError(t, dialed.Close()) // it has the answer
	<-answered
	require.NoError(t, accepted.CloseWrite())
	closed := make(chan error)
	go func() { closed <- accepted.Close() }()
	require.Eventually(t, func() (begun bool) {
		to.do(func() { begun = accepted.locallyClosed })
		return begun
	}, patience, time.Millisecond)
	close(lost)
	require.NoError(t, <-closed)
	m.end()
	require.Equal(t, []frameType{frameReceived}, said)
	requireClean(t, from, to)
}
