// Package metrics shows Prometheus what weft counts. It is an adapter: nothing of weft
// but its command imports it, and only programs that do have Prometheus' library in them.
//
//	registry := prometheus.NewRegistry()
//	registry.MustRegister(
//		metrics.NewReactorCollector("ingest", reactor),
//		metrics.NewMemoryCollector(),
//		metrics.NewHardwareCollector(os.DirFS("/sys")),
//	)
//	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
//
// Nothing is counted here: at each scrape a collector asks its source for what that has
// counted so far. Collectors may be scraped by any goroutine, at any time, also after what
// they ask is closed; the counts are then the last ones. A scrape waits until the reactor
// gets to it, as Stats does.
//
// The number of series is bounded by what the program registers. Counts of connections are
// those of all connections of a reactor together; [Connections] has them by peer, for so
// many peers as it is given.
//
// docs/metrics.md has all metrics.
package metrics
