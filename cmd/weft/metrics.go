package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/metrics"
)

// metricsFlags are those of commands that listen.
type metricsFlags struct {
	Metrics string `placeholder:"HOST:PORT" help:"Where to serve metrics to Prometheus, at /metrics, while the command works. Port 0 takes a free one."`
}

// What those who scrape can cost.
const (
	mostScrapers = 16
	scrapeTime   = 10 * time.Second
)

// exposition serves the metrics of a command; nil does nothing.
type exposition struct {
	listener net.Listener
	served   chan struct{} // nil before it serves, closed when it has ended
	server   *http.Server
}

// expose takes the address, if there is one, before anything else has been done.
func (f *metricsFlags) expose() (*exposition, error) {
	if f.Metrics == "" {
		return nil, nil
	}
	if err := checkAddress(f.Metrics, 0); err != nil {
		return nil, &usageError{fmt.Sprintf("--metrics is %v", err)}
	}
	l, err := net.Listen("tcp", f.Metrics)
	if err != nil {
		var network *net.OpError
		if errors.As(err, &network) {
			err = systemError(network.Err)
		}
		return nil, fmt.Errorf("cannot serve --metrics on %s: %w; choose another", f.Metrics, err)
	}
	return &exposition{listener: l}, nil
}

// serve begins to serve the metrics of a listener, and says where.
func (e *exposition) serve(t *terminal, asJSON bool, l *efa.Listener) error {
	if e == nil {
		return nil
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		metrics.NewReactorCollector("weft", l), metrics.NewMemoryCollector(), metrics.NewHardwareCollector(os.DirFS("/sys")),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	errorLog := slog.NewLogLogger(t.logger.Handler(), slog.LevelWarn)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: errorLog, MaxRequestsInFlight: mostScrapers, Timeout: scrapeTime,
	}))
	e.server = &http.Server{
		Handler: mux, ErrorLog: errorLog, MaxHeaderBytes: 16 << 10,
		ReadTimeout: scrapeTime, WriteTimeout: 2 * scrapeTime, IdleTimeout: 2 * time.Minute,
	}
	e.served = make(chan struct{})
	go func() {
		defer close(e.served)
		if err := e.server.Serve(netutil.LimitListener(e.listener, mostScrapers)); !errors.Is(err, http.ErrServerClosed) {
			errorLog.Print(err)
		}
	}()
	address := e.listener.Addr().String()
	if asJSON {
		return t.printJSON(struct {
			Event   string `json:"event"`
			Address string `json:"address"`
		}{"metrics", address})
	}
	_, err := fmt.Fprintf(t.stdout, "metrics at http://%s/metrics\n", address)
	return err
}

func (e *exposition) close() {
	switch {
	case e == nil:
	case e.served == nil:
		_ = e.listener.Close()
	default:
		_ = e.server.Close()
		<-e.served
	}
}
