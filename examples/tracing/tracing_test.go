package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
)

func TestMain(m *testing.M) { fabrictest.Main(m) }

// patience is far beyond what any test needs on a slow machine.
const patience = 60 * time.Second

// end is one side: a connection, and the spans that it has made.
type end struct {
	*tracedConn
	spans *tracetest.InMemoryExporter
}

// join makes two ends that know nothing of each other but by the connection.
func join(t *testing.T, provider string) (client, server *end) {
	t.Helper()
	_, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true, Logger: slog.New(slog.DiscardHandler)})
	testenv.Need(t, provider, err)
	config := efa.Config{Providers: []string{provider}, Require: true, MaxMessage: mostMessage, Logger: slog.New(slog.DiscardHandler)}
	l, err := efa.Listen(t.Context(), "127.0.0.1:0", &config)
	require.NoError(t, err)
	defer l.Close()
	dialed, err := efa.Dial(limited(t), l.Addr().String(), &config)
	require.NoError(t, err)
	accepted, err := l.AcceptConn(limited(t))
	require.NoError(t, err)
	return newEnd(t, "client", dialed), newEnd(t, "server", accepted)
}

func newEnd(t *testing.T, name string, conn *efa.Conn) *end {
	spans := tracetest.NewInMemoryExporter()
	tracers := newProvider(name, sdk.NewSimpleSpanProcessor(spans))
	t.Cleanup(func() {
		_ = conn.CloseNow() // where the test has not closed it
		require.NoError(t, tracers.Shutdown(context.Background()))
	})
	return &end{&tracedConn{conn, tracers.Tracer("test")}, spans}
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// byName are the spans of an end, of which there is one of each name.
func (e *end) byName(t *testing.T) map[string]tracetest.SpanStub {
	t.Helper()
	spans := make(map[string]tracetest.SpanStub)
	for _, s := range e.spans.GetSpans() {
		require.NotContains(t, spans, s.Name)
		spans[s.Name] = s
	}
	return spans
}

// A question and its answer are one trace over two ends: each span is a child of the one
// that has caused it, on this side or on the other.
func TestTraceGoesAlong(t *testing.T) {
	for _, provider := range testenv.Providers() {
		t.Run(provider, func(t *testing.T) {
			client, server := join(t, provider)
			answered := make(chan error, 1)
			go func() { answered <- answer(limited(t), server.tracedConn) }()
			text := strings.Repeat("long ", 20_000)
			got, err := ask(limited(t), client.tracedConn, text)
			require.NoError(t, err)
			require.True(t, strings.ToUpper(text) == got)
			require.NoError(t, client.Close())
			require.NoError(t, <-answered)

			here, there := client.byName(t), server.byName(t)
			require.Len(t, here, 3)
			require.Len(t, there, 2)
			require.False(t, here["ask"].Parent.IsValid())
			requireChild(t, here["ask"], here["send"], false)
			requireChild(t, here["send"], there["receive"], true)
			requireChild(t, there["receive"], there["send"], false)
			requireChild(t, there["send"], here["receive"], true)
			require.Equal(t, trace.SpanKindConsumer, there["receive"].SpanKind)
			require.Contains(t, there["receive"].Resource.String(), "service.name=server")
		})
	}
}

// requireChild asserts who is whose child, and whether the parent is on the other side.
func requireChild(t *testing.T, parent, child tracetest.SpanStub, remote bool) {
	t.Helper()
	require.True(t, parent.SpanContext.IsValid())
	require.Equal(t, parent.SpanContext.TraceID(), child.SpanContext.TraceID())
	require.Equal(t, parent.SpanContext.SpanID(), child.Parent.SpanID())
	require.Equal(t, remote, child.Parent.IsRemote())
}

// What a receiver fails with is in its span.
func TestErrorsAreInSpans(t *testing.T) {
	client, server := join(t, testenv.Providers()[0])
	require.NoError(t, client.send(limited(t), []byte("hello")))
	wrong := errors.New("cannot be done")
	require.ErrorIs(t, server.receive(limited(t), func(context.Context, []byte) error { return wrong }), wrong)
	require.Equal(t, wrong.Error(), server.byName(t)["receive"].Status.Description)
}

// A message without a context that can be read is refused, and what can be read is no more
// than a parent.
func TestForeignContexts(t *testing.T) {
	for name, c := range map[string]struct{ message, why string }{
		"empty":     {"", "it has 0 bytes"},
		"short":     {"\x05\x00{}", "of 2 bytes it would be the first 5"},
		"too long":  {"\x01\x04" + strings.Repeat(" ", 2000), "at most 1024 go along"},
		"not JSON":  {"\x02\x00{[", "invalid character"},
		"no fields": {"\x02\x00[]", "cannot unmarshal array"},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := join(t, testenv.Providers()[0])
			require.NoError(t, client.WriteMessage(limited(t), []byte(c.message)))
			err := server.receive(limited(t), func(context.Context, []byte) error { return nil })
			require.ErrorIs(t, err, errContext)
			require.ErrorContains(t, err, c.why)
		})
	}
	client, server := join(t, testenv.Providers()[0])
	for _, message := range []string{"\x02\x00{}one", "\x04\x00null" + "one", "\x19\x00" + `{"traceparent":"nothing"}one`} {
		require.NoError(t, client.WriteMessage(limited(t), []byte(message)))
		server.spans.Reset()
		require.NoError(t, server.receive(limited(t), func(_ context.Context, body []byte) error {
			require.Equal(t, "one", string(body))
			return nil
		}))
		require.False(t, server.byName(t)["receive"].Parent.IsValid(), message)
	}
}
