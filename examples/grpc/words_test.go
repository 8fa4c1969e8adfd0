package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
)

func TestMain(m *testing.M) { fabrictest.Main(m) }

// patience is far beyond what any test needs on a slow machine.
const patience = 60 * time.Second

// bed is a server and a client on reactors of their own.
type bed struct {
	server *grpc.Server
	served chan error
	conn   *grpc.ClientConn
	client client
}

// each runs a test on every provider to test on.
func each(t *testing.T, test func(t *testing.T, b *bed)) {
	for _, provider := range testenv.Providers() {
		t.Run(provider, func(t *testing.T) {
			_, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true, Logger: slog.New(slog.DiscardHandler)})
			testenv.Need(t, provider, err)
			test(t, newBed(t, provider))
		})
	}
}

func newBed(t *testing.T, provider string) *bed {
	t.Helper()
	config := &efa.Config{Providers: []string{provider}, Require: true, Logger: slog.New(slog.DiscardHandler)}
	l, err := efa.Listen(t.Context(), "127.0.0.1:0", config)
	require.NoError(t, err)
	r, err := efa.Open(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	b := &bed{server: newServer(), served: make(chan error, 1)}
	go func() { b.served <- b.server.Serve(l) }()
	b.conn, err = connect(r, l.Addr().String())
	require.NoError(t, err)
	b.client = client{b.conn}
	t.Cleanup(func() {
		require.NoError(t, b.conn.Close())
		b.server.GracefulStop()
		require.NoError(t, <-b.served)
	})
	return b
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestUnary(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, size := range []int{0, 1, 4096, 100_000, 3 << 20} {
			text := strings.Repeat("a", size)
			answer, err := b.client.Upper(limited(t), text)
			require.NoError(t, err)
			require.True(t, strings.ToUpper(text) == answer, "%d bytes", size)
		}
	})
}

func TestClientStream(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		calls, err := b.client.Join(limited(t))
		require.NoError(t, err)
		var want []string
		for i := range 500 {
			word := fmt.Sprint("word", i)
			want = append(want, word)
			require.NoError(t, calls.Send(wrapperspb.String(word)))
		}
		answer, err := calls.CloseAndRecv()
		require.NoError(t, err)
		require.Equal(t, strings.Join(want, " "), answer.GetValue())
	})
}

func TestServerStream(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		var want []string
		for i := range 500 {
			want = append(want, fmt.Sprint("word", i))
		}
		answers, err := b.client.Split(limited(t), strings.Join(want, " "))
		require.NoError(t, err)
		for _, word := range want {
			answer, err := answers.Recv()
			require.NoError(t, err)
			require.Equal(t, word, answer.GetValue())
		}
		_, err = answers.Recv()
		require.Equal(t, io.EOF, err)
	})
}

// 16 streams at once, each both ways, share a connection.
func TestBothWays(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		ctx := limited(t)
		var streams sync.WaitGroup
		for k := range 16 {
			streams.Go(func() {
				if err := talk(ctx, b.client, k); err != nil {
					t.Errorf("stream %d: %v", k, err)
				}
			})
		}
		streams.Wait()
	})
}

// talk sends messages of many sizes on a stream of its own, and checks that they
// come back.
func talk(ctx context.Context, c client, k int) error {
	echo, err := c.Echo(ctx)
	if err != nil {
		return err
	}
	content := func(i int) []byte { return bytes.Repeat([]byte{byte(k), byte(i)}, (i*i*(k+1))%40_000) }
	const count = 100
	sent := make(chan error, 1)
	go func() {
		for i := range count {
			if err := echo.Send(wrapperspb.Bytes(content(i))); err != nil {
				sent <- err
				return
			}
		}
		sent <- echo.CloseSend()
	}()
	for i := range count {
		m, err := echo.Recv()
		if err != nil {
			return errors.Join(err, <-sent)
		}
		if !bytes.Equal(content(i), m.GetValue()) {
			return fmt.Errorf("message %d is another", i)
		}
	}
	if _, err := echo.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("after the last: %w", err)
	}
	return <-sent
}

// A deadline ends a stream on which nothing happens, and no other.
func TestDeadlineExceeded(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		other, err := b.client.Echo(limited(t))
		require.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		echo, err := b.client.Echo(short)
		if err == nil {
			_, err = echo.Recv()
		}
		require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
		require.NoError(t, other.Send(wrapperspb.Bytes([]byte("still here"))))
		m, err := other.Recv()
		require.NoError(t, err)
		require.Equal(t, "still here", string(m.GetValue()))
		require.NoError(t, other.CloseSend())
		_, err = other.Recv()
		require.Equal(t, io.EOF, err)
	})
}

// A graceful stop lets the call under way end, and takes no other.
func TestGracefulStop(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		echo, err := b.client.Echo(limited(t))
		require.NoError(t, err)
		require.NoError(t, echo.Send(wrapperspb.Bytes([]byte("one"))))
		_, err = echo.Recv()
		require.NoError(t, err)
		stopped := make(chan struct{})
		go func() {
			b.server.GracefulStop()
			close(stopped)
		}()
		// The client hears of it, and looks for another connection.
		require.True(t, b.conn.WaitForStateChange(limited(t), connectivity.Ready))
		require.NoError(t, echo.Send(wrapperspb.Bytes([]byte("two"))))
		m, err := echo.Recv()
		require.NoError(t, err)
		require.Equal(t, "two", string(m.GetValue()))
		select {
		case <-stopped:
			t.Fatal("stopped with a call under way")
		default:
		}
		require.NoError(t, echo.CloseSend())
		_, err = echo.Recv()
		require.Equal(t, io.EOF, err)
		<-stopped
		_, err = b.client.Upper(limited(t), "too late")
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	})
}
