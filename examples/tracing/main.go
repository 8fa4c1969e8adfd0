// Command tracing sends messages over weft with OpenTelemetry spans around them, whose
// context goes along: what a receiver does about a message is a child of the span in
// which it was sent, in another process.
//
//	go run . -serve 127.0.0.1:7471          # in one terminal,
//	go run . 127.0.0.1:7471 hello           # and in another
//
// Both print their spans as JSON: the TraceID is the same, and each Parent is on the other
// side. A program for real use has another exporter, for OTLP say. What it takes is in
// traced.go; package metrics has the counts.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weft-go/weft/efa"
)

// answer sends each message of a peer back in capitals, until the peer closes.
func answer(ctx context.Context, c *tracedConn) error {
	for {
		err := c.receive(ctx, func(ctx context.Context, body []byte) error {
			return c.send(ctx, bytes.ToUpper(body))
		})
		switch {
		case errors.Is(err, io.EOF):
			return c.Close()
		case err != nil:
			return errors.Join(err, c.CloseNow())
		}
	}
}

// ask sends a message and returns the answer, all in one span.
func ask(ctx context.Context, c *tracedConn, text string) (answer string, err error) {
	ctx, span := c.tracer.Start(ctx, "ask")
	defer span.End()
	if err := c.send(ctx, []byte(text)); err != nil {
		return "", noted(span, err)
	}
	err = c.receive(ctx, func(_ context.Context, body []byte) error {
		answer = string(body)
		return nil
	})
	return answer, noted(span, err)
}

func serve(ctx context.Context, address string, tracer trace.Tracer) error {
	l, err := efa.Listen(ctx, address, &efa.Config{MaxMessage: mostMessage})
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Fprintf(os.Stderr, "serving %s over %s\n", l.Addr(), l.Provider())
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := l.AcceptConn(ctx)
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		conns.Go(func() {
			if err := answer(ctx, &tracedConn{conn, tracer}); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "tracing:", err)
			}
		})
	}
}

func call(ctx context.Context, address, text string, tracer trace.Tracer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := efa.Dial(ctx, address, &efa.Config{MaxMessage: mostMessage})
	if err != nil {
		return err
	}
	answer, err := ask(ctx, &tracedConn{conn, tracer}, text)
	if err != nil {
		return errors.Join(err, conn.CloseNow())
	}
	fmt.Fprintln(os.Stderr, answer)
	return conn.Close()
}

// newProvider makes the spans of a program, and gives those that have ended to an exporter.
func newProvider(service string, processor sdk.SpanProcessor) *sdk.TracerProvider {
	return sdk.NewTracerProvider(sdk.WithSpanProcessor(processor),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", service))))
}

func main() {
	listen := flag.String("serve", "", "serve at this `address`")
	flag.Parse()
	if err := run(*listen, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "tracing:", err)
		os.Exit(1)
	}
}

func run(listen string, args []string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	service := "client"
	if listen != "" {
		service = "server"
	}
	exporter, err := stdouttrace.New(stdouttrace.WithPrettyPrint())
	if err != nil {
		return err
	}
	provider := newProvider(service, sdk.NewBatchSpanProcessor(exporter))
	defer func() { err = errors.Join(err, provider.Shutdown(context.WithoutCancel(ctx))) }()
	tracer := provider.Tracer("weft/examples/tracing")
	switch {
	case listen != "":
		return serve(ctx, listen, tracer)
	case len(args) >= 2:
		return call(ctx, args[0], strings.Join(args[1:], " "), tracer)
	default:
		return errors.New("usage: tracing -serve ADDRESS, or tracing ADDRESS TEXT")
	}
}
