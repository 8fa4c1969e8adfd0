package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/weft-go/weft/efa"
)

// tracedConn is a connection with a span around each message. Each message has the trace
// context of its sender in front: two bytes with the length of that, little-endian, and
// the fields of the propagator as JSON, such as {"traceparent":"00-..."}.
type tracedConn struct {
	*efa.Conn
	tracer trace.Tracer
}

// propagator says which fields go along: those of the W3C.
var propagator = propagation.TraceContext{}

const (
	// mostContext bounds what a peer may put in front of a message: traceparent has 55
	// characters, and tracestate 512 by the W3C.
	mostContext = 1024
	// mostMessage bounds what a peer can have this side allocate.
	mostMessage = 1 << 20
)

var errContext = errors.New("the message does not begin with a trace context")

// send sends a message within a span.
func (c *tracedConn) send(ctx context.Context, body []byte) error {
	ctx, span := c.tracer.Start(ctx, "send", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(c.attributes(len(body))...))
	defer span.End()
	fields := propagation.MapCarrier{}
	propagator.Inject(ctx, fields)
	packed, err := pack(fields, body)
	if err == nil {
		err = c.WriteMessage(ctx, packed)
	}
	return noted(span, err)
}

// receive waits for the next message, and has handle do something about it within a span
// that is a child of the sender's. It returns the error of either.
func (c *tracedConn) receive(ctx context.Context, handle func(ctx context.Context, body []byte) error) error {
	size, err := c.MessageSize(ctx)
	if err != nil {
		return err
	}
	buf := make([]byte, size)
	if _, err := c.ReadMessage(ctx, buf); err != nil {
		return err
	}
	fields, body, err := unpack(buf)
	if err != nil {
		return err
	}
	ctx = propagator.Extract(ctx, fields)
	ctx, span := c.tracer.Start(ctx, "receive", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(c.attributes(len(body))...))
	defer span.End()
	return noted(span, handle(ctx, body))
}

func (c *tracedConn) attributes(size int) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "weft"),
		attribute.String("weft.provider", c.Provider()),
		attribute.String("network.peer.address", c.RemoteAddr().String()),
		attribute.Int("messaging.message.body.size", size),
	}
}

// noted puts an error into the span.
func noted(span trace.Span, err error) error {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}

func pack(fields map[string]string, body []byte) ([]byte, error) {
	front, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	if len(front) > mostContext {
		return nil, fmt.Errorf("a trace context of %d bytes, at most %d go along", len(front), mostContext)
	}
	packed := binary.LittleEndian.AppendUint16(nil, uint16(len(front)))
	packed = append(packed, front...)
	return append(packed, body...), nil
}

func unpack(message []byte) (fields propagation.MapCarrier, body []byte, err error) {
	if len(message) < 2 {
		return nil, nil, fmt.Errorf("%w: it has %d bytes", errContext, len(message))
	}
	n := int(binary.LittleEndian.Uint16(message))
	message = message[2:]
	if n > min(len(message), mostContext) {
		return nil, nil, fmt.Errorf("%w: of %d bytes it would be the first %d, at most %d go along", errContext, len(message), n, mostContext)
	}
	if err := json.Unmarshal(message[:n], &fields); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errContext, err)
	}
	return fields, message[n:], nil
}
