package bootstrap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var testKey = []byte("a key that all of the ranks have")

// serveTCP starts a server for size ranks, none of which serves it.
func serveTCP(t *testing.T, size int, change func(c *ServerConfig)) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := ServerConfig{Size: size, Logger: quiet}
	if change != nil {
		change(&c)
	}
	s, err := Serve(l, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, l.Addr().String()
}

// connectRank connects one rank.
func connectRank(t *testing.T, address string, m Member, key []byte) (*client, error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	k, err := newClient(deadline(t), conn, connection{member: m, key: key, peerTimeout: shortTimeout, timeout: patience})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, k.Close()) })
	}
	return k, err
}

// say writes to the server and returns the refusal, if it sends one before it ends
// the connection.
func say(t *testing.T, address string, words []byte) error {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, _ = conn.Write(words)
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _, err = readHello(conn, typeWelcome)
	_, restErr := io.Copy(io.Discard, conn)
	require.NotErrorIs(t, restErr, context.DeadlineExceeded, "the server has not hung up")
	return err
}

func TestGarbageOnThePort(t *testing.T) {
	s, address := serveTCP(t, 2, nil)
	h := hello{rank: 0, size: 2}
	good := h.encode()
	huge := append([]byte(magic), version, byte(typeHello), 0xff, 0xff)
	wrongVersion := append([]byte(magic), 99, byte(typeHello), 0, 0)
	outside := hello{rank: 2, size: 2}
	for name, words := range map[string][]byte{
		"nothing":        {},
		"http":           []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"binary":         bytes.Repeat([]byte{0xff, 0, 0x80}, 1000),
		"huge":           huge,
		"version":        wrongVersion,
		"short":          appendHello(nil, typeHello, good[:len(good)-1]),
		"no hello":       appendHello(nil, typeProof, good),
		"half a hello":   appendHello(nil, typeHello, good)[:20],
		"rank beyond":    appendHello(nil, typeHello, outside.encode()),
		"job beyond":     appendHello(nil, typeHello, append(good[:len(good)-5], 0xff, '\r', '\n', '\r', '\n')),
		"magic and zero": append([]byte(magic), make([]byte, 100)...),
	} {
		t.Run(name, func(t *testing.T) {
			err := say(t, address, words)
			var refused *RefusedError
			if errors.As(err, &refused) {
				if !strings.Contains(refused.Reason, "EOF") {
					require.ErrorIs(t, refused, ErrProtocol)
				}
				return
			}
			require.Error(t, err)
		})
	}
	// None of that has ended anything.
	_, err := connectRank(t, address, Member{Rank: 0, Size: 2}, nil)
	require.NoError(t, err)
	require.Nil(t, s.loss)
}

// rawRank does the handshake as a rank that then says what it likes.
func rawRank(t *testing.T, address string, rank, size int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	h := hello{rank: uint32(rank), size: uint32(size)}
	_, err = conn.Write(appendHello(nil, typeHello, h.encode()))
	require.NoError(t, err)
	_, _, err = readHello(conn, typeWelcome)
	require.NoError(t, err)
	return conn
}

// A rank that breaks the protocol is lost, and nothing else is.
func TestRankBreaksTheProtocol(t *testing.T) {
	frames := func(all ...frame) []byte {
		var b bytes.Buffer
		for _, f := range all {
			require.NoError(t, writeFrame(&b, f, nil))
		}
		return b.Bytes()
	}
	var many []frame
	for i := range mostOpen + 1 {
		many = append(many, frame{kindGet, uint32(i + 1), []byte(fmt.Sprint("never", i))})
	}
	for name, words := range map[string][]byte{
		"huge":           binary.LittleEndian.AppendUint32(nil, mostFrame+1),
		"hugest":         {0xff, 0xff, 0xff, 0xff},
		"too short":      {4, 0, 0, 0, 1, 2, 3, 4},
		"unknown":        frames(frame{99, 1, nil}),
		"an answer":      frames(frame{kindOK, 1, nil}),
		"no id":          frames(frame{kindGet, 0, []byte("key")}),
		"the same id":    frames(frame{kindGet, 1, []byte("never")}, frame{kindGet, 1, []byte("never")}),
		"short set":      frames(frame{kindSet, 1, []byte{200, 0, 'k'}}),
		"short add":      frames(frame{kindAdd, 1, []byte{1, 2, 3}}),
		"short keys":     frames(frame{kindKeys, 1, nil}),
		"many at a time": frames(many...),
	} {
		t.Run(name, func(t *testing.T) {
			_, address := serveTCP(t, 2, nil)
			good, err := connectRank(t, address, Member{Rank: 0, Size: 2}, nil)
			require.NoError(t, err)
			bad := rawRank(t, address, 1, 2)
			_, err = bad.Write(words)
			require.NoError(t, err)
			<-good.ctx.Done()
			var loss *LostError
			require.ErrorAs(t, context.Cause(good.ctx), &loss)
			require.Equal(t, 1, loss.Rank)
			require.ErrorContains(t, loss, "rank 1 is lost: protocol error: ")
		})
	}
}

// The server checks lengths itself, whatever a rank leaves out.
func TestServerChecksLengths(t *testing.T) {
	_, address := serveTCP(t, 1, nil)
	conn := rawRank(t, address, 0, 1)
	ask := func(kind frameKind, payload []byte) frame {
		require.NoError(t, writeFrame(conn, frame{kind, 7, payload}, nil))
		f, err := readFrame(conn, nil)
		require.NoError(t, err)
		require.Equal(t, uint32(7), f.id)
		return f
	}
	long := strings.Repeat("k", MaxKey+1)
	require.Equal(t, kindError, ask(kindSet, pair(long, nil)).kind)
	require.Equal(t, kindError, ask(kindSet, pair("", nil)).kind)
	require.Equal(t, kindError, ask(kindSet, pair("k", make([]byte, MaxValue+1))).kind)
	require.Equal(t, kindError, ask(kindGet, []byte(long)).kind)
	require.Equal(t, kindError, ask(kindAdd, append(make([]byte, 8), long...)).kind)
	require.Equal(t, kindOK, ask(kindSet, pair("k", make([]byte, MaxValue))).kind)
	require.Len(t, ask(kindGet, []byte("k")).payload, MaxValue)
}

func TestFullStore(t *testing.T) {
	_, address := serveTCP(t, 1, func(c *ServerConfig) { c.Limits = Limits{Keys: 3, Bytes: 100} })
	k, err := connectRank(t, address, Member{Size: 1}, nil)
	require.NoError(t, err)
	ctx := deadline(t)
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, k.Set(ctx, key, []byte("value")))
	}
	err = k.Set(ctx, "d", nil)
	require.ErrorIs(t, err, ErrFull)
	require.ErrorContains(t, err, "the number of keys in the store is 4, it must be at most 3")
	_, err = k.Add(ctx, "d", 1)
	require.ErrorIs(t, err, ErrFull)
	require.ErrorIs(t, k.Set(ctx, "a", make([]byte, 100)), ErrFull)
	// What is removed or replaced makes room.
	require.NoError(t, k.Set(ctx, "a", make([]byte, 87)))
	require.ErrorIs(t, k.Set(ctx, "b", []byte("values")), ErrFull)
	require.NoError(t, k.Delete(ctx, "c"))
	require.NoError(t, k.Set(ctx, "b", []byte("values")))
	require.NoError(t, k.Set(ctx, "d", nil))
}

// Strangers that say nothing keep nobody out.
func TestSilentStrangers(t *testing.T) {
	_, address := serveTCP(t, 1, func(c *ServerConfig) { c.MaxHandshakes, c.HandshakeTimeout = 4, patience })
	for range 20 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer conn.Close()
	}
	_, err := connectRank(t, address, Member{Size: 1}, nil)
	require.NoError(t, err)
}

// A server that no rank serves is for one set of ranks after another, and does not
// mix them up.
func TestServerIsUsedAgain(t *testing.T) {
	_, address := serveTCP(t, 2, nil)
	ctx := deadline(t)
	first, err := connectRank(t, address, Member{Rank: 0, Size: 2}, nil)
	require.NoError(t, err)
	second, err := connectRank(t, address, Member{Rank: 1, Size: 2}, nil)
	require.NoError(t, err)
	require.NoError(t, first.Set(ctx, "old", nil))
	require.NoError(t, first.Close())
	_, err = connectRank(t, address, Member{Rank: 0, Size: 2}, nil)
	require.ErrorIs(t, err, errEnding)
	require.False(t, isFinal(err))
	require.NoError(t, second.Close())
	first, err = connectRank(t, address, Member{Rank: 0, Size: 2}, nil)
	require.NoError(t, err)
	keys, err := first.Keys(ctx, "")
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestServerSaysWhoIsLost(t *testing.T) {
	s, address := serveTCP(t, 3, nil)
	k, err := connectRank(t, address, Member{Rank: 0, Size: 3}, nil)
	require.NoError(t, err)
	s.Lose(2, errors.New("exited with code 7"))
	s.Lose(1, errors.New("later"))
	<-k.ctx.Done()
	require.EqualError(t, context.Cause(k.ctx), "bootstrap: rank 2 is lost: exited with code 7")
	_, err = connectRank(t, address, Member{Rank: 1, Size: 3}, nil)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Reason, "rank 2 is lost: exited with code 7")
	require.True(t, isFinal(err))
}

// Who is told that a process has ended knows whether its rank is missed.
func TestServerIsToldOfProcesses(t *testing.T) {
	cause := errors.New("it exited")
	s, address := serveTCP(t, 2, nil)
	first, err := connectRank(t, address, Member{Rank: 0, Size: 2}, nil)
	require.NoError(t, err)
	second, err := connectRank(t, address, Member{Rank: 1, Size: 2}, nil)
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.False(t, s.Ended(1, cause))
	require.NoError(t, first.Set(deadline(t), "key", nil)) // which goes on
	require.NoError(t, first.Close())
	_, err = connectRank(t, address, Member{Rank: 0, Size: 2}, nil)
	require.ErrorContains(t, err, "rank 1 is lost: it exited")

	s, address = serveTCP(t, 2, nil)
	first, err = connectRank(t, address, Member{Rank: 0, Size: 2}, nil)
	require.NoError(t, err)
	require.True(t, s.Ended(1, cause))
	require.True(t, s.Ended(1, cause))
	require.False(t, s.Ended(0, cause), "rank 1 was lost before")
	<-first.ctx.Done()
	require.EqualError(t, context.Cause(first.ctx), "bootstrap: rank 1 is lost: it exited")
}

func TestServerConfigIsChecked(t *testing.T) {
	outside := 1
	for field, c := range map[string]ServerConfig{
		"Size":        {},
		"Host":        {Size: 1, Host: &outside},
		"Job":         {Size: 1, Job: strings.Repeat("j", mostJob+1)},
		"Key":         {Size: 1, Key: []byte("short")},
		"PeerTimeout": {Size: 1, PeerTimeout: time.Second},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, err = Serve(l, c)
		var wrong *ConfigError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, field, wrong.Field)
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	}
}
