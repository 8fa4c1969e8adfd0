package efa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// site is an HTTP server and a client for it, each with a reactor of its own.
type site struct {
	*http.Server
	client *http.Client
	url    string
	dialed atomic.Int32
}

// serveHTTP serves until the test ends, and then shuts down in order.
func (b *bed) serveHTTP(t *testing.T, handler http.Handler) *site {
	t.Helper()
	from, to := b.open(t, Config{}), b.open(t, Config{})
	l, err := to.Listen(deadline(t), "127.0.0.1:0")
	require.NoError(t, err)
	s := &site{url: "http://" + l.Addr().String()}
	transport := &http.Transport{
		MaxIdleConnsPerHost: 100,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			s.dialed.Add(1)
			return from.DialContext(ctx, network, address)
		},
	}
	s.client = &http.Client{Transport: transport}
	s.Server = &http.Server{Handler: handler, ReadHeaderTimeout: patience}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return s
}

// echo answers with the body.
var echo = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
	// Otherwise the server ends the body when the answer begins.
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = io.Copy(w, q.Body)
})

// do sends a request and returns the body of the answer, read to its end.
func (s *site) do(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return nil, err
	}
	a, err := s.client.Do(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", a.Status)
	}
	return io.ReadAll(a.Body)
}

// Requests one after the other share a connection.
func TestHTTPKeepAlive(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		s := b.serveHTTP(t, echo)
		reused := 0
		ctx := httptrace.WithClientTrace(deadline(t), &httptrace.ClientTrace{
			GotConn: func(got httptrace.GotConnInfo) {
				if got.Reused {
					reused++
				}
			},
		})
		for i := range 20 {
			body := message(1, i, i*10_000)
			got, err := s.do(ctx, http.MethodPost, "/", bytes.NewReader(body))
			require.NoError(t, err)
			require.True(t, bytes.Equal(body, got))
		}
		require.Equal(t, 19, reused)
		require.EqualValues(t, 1, s.dialed.Load())
	})
}

// Bodies flow while they are made: each line is answered before the next is
// written.
func TestHTTPStreamingBodies(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		s := b.serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			control := http.NewResponseController(w)
			if err := control.EnableFullDuplex(); err != nil {
				t.Error(err)
			}
			if err := control.Flush(); err != nil {
				t.Error(err)
			}
			buf := make([]byte, 100)
			for {
				n, err := q.Body.Read(buf)
				fmt.Fprint(w, strings.ToUpper(string(buf[:n])))
				if flushed := control.Flush(); flushed != nil {
					t.Error(flushed)
				}
				if err != nil {
					if err != io.EOF {
						t.Errorf("body: %v", err)
					}
					return
				}
			}
		}))
		in, out := io.Pipe()
		q, err := http.NewRequestWithContext(deadline(t), http.MethodPost, s.url, in)
		require.NoError(t, err)
		a, err := s.client.Do(q)
		require.NoError(t, err)
		buf := make([]byte, 100)
		for i := range 50 {
			line := fmt.Sprintf("line %d", i)
			_, err := io.WriteString(out, line)
			require.NoError(t, err)
			n, err := io.ReadFull(a.Body, buf[:len(line)])
			require.NoError(t, err)
			require.Equal(t, strings.ToUpper(line), string(buf[:n]))
		}
		require.NoError(t, out.Close())
		_, err = a.Body.Read(buf)
		require.Equal(t, io.EOF, err)
		require.NoError(t, a.Body.Close())
	})
}

func TestHTTPConcurrentRequests(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		const count = 100
		// All are there at once before any is answered.
		var arrived atomic.Int32
		all := make(chan struct{})
		s := b.serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if arrived.Add(1) == count {
				close(all)
			}
			select {
			case <-all:
				echo(w, q)
			case <-q.Context().Done():
			}
		}))
		// The first that fails ends the others, which would wait for it.
		ctx, fail := context.WithCancel(deadline(t))
		defer fail()
		var requests sync.WaitGroup
		for i := range count {
			requests.Go(func() {
				body := message(2, i, 1000*i)
				got, err := s.do(ctx, http.MethodPut, "/", bytes.NewReader(body))
				if err != nil || !bytes.Equal(body, got) {
					t.Errorf("request %d: %d bytes of %d, %v", i, len(got), len(body), err)
					fail()
				}
			})
		}
		requests.Wait()
		require.EqualValues(t, count, s.dialed.Load())
	})
}

// A client that goes away in the middle ends the request's context, which is
// how a server notices: its connection reads in the background.
func TestHTTPClientGoesAway(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		noticed := make(chan struct{})
		s := b.serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			<-q.Context().Done()
			close(noticed)
		}))
		ctx, cancel := context.WithCancel(deadline(t))
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
		require.NoError(t, err)
		a, err := s.client.Do(q)
		require.NoError(t, err)
		cancel()
		_, err = io.ReadAll(a.Body)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, a.Body.Close())
		select {
		case <-noticed:
		case <-time.After(patience):
			t.Fatal("the server did not notice")
		}
	})
}

// Deadlines that the server sets end a request that takes too long.
func TestHTTPTimeout(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		failed := make(chan error, 1)
		s := b.serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			control := http.NewResponseController(w)
			err := control.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			_, read := q.Body.Read(make([]byte, 10))
			failed <- errors.Join(err, read)
		}))
		in, out := io.Pipe()
		defer out.Close()
		// The answer comes all the same.
		_, err := s.do(deadline(t), http.MethodPost, "/", in)
		require.NoError(t, err)
		requireTimeout(t, <-failed)
	})
}
