package metrics_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/metrics"
)

// Counts by peer, for 100 hosts at most.
func ExampleConnections() {
	ctx := context.Background()
	config := &efa.Config{Logger: slog.New(slog.DiscardHandler)}
	l, err := efa.Listen(ctx, "127.0.0.1:0", config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	registry := prometheus.NewRegistry()
	peers := metrics.NewConnections("ingest", 100)
	registry.MustRegister(metrics.NewReactorCollector("ingest", l), peers)

	sent := make(chan error, 1)
	go func() {
		c, err := efa.Dial(ctx, l.Addr().String(), config)
		if err == nil {
			err = c.WriteMessage(ctx, []byte("hello"))
		}
		if err == nil {
			err = c.Close()
		}
		sent <- err
	}()
	c, err := l.AcceptConn(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	remove := peers.Add("127.0.0.1", c)
	_, err = c.ReadMessage(ctx, make([]byte, 10))
	fmt.Println(err, c.Close(), <-sent)
	remove()

	families, err := registry.Gather()
	for _, f := range families {
		if f.GetName() == "weft_peer_messages_received_bytes_total" {
			fmt.Println(f.Metric[0].GetCounter().GetValue(), err)
		}
	}
	// Output:
	// <nil> <nil> <nil>
	// 5 <nil>
}
