package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metric is one of those that a collector has, with how it is read from a source's stats.
type metric[S any] struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	// read tells the value of each series, with the values of its labels.
	read func(s *S, tell func(value float64, labels ...string))
}

// count is a metric of one series that only rises.
func count[S any](name, help string, of func(s *S) uint64) metric[S] {
	return metric[S]{name, help, prometheus.CounterValue, nil, func(s *S, tell func(float64, ...string)) {
		tell(float64(of(s)))
	}}
}

// collector collects the metrics of one source.
type collector[S any] struct {
	metrics      []metric[S]
	descriptions []*prometheus.Desc
	stats        func() S
}

func newCollector[S any](metrics []metric[S], constant prometheus.Labels, stats func() S) *collector[S] {
	c := &collector[S]{metrics: metrics, stats: stats}
	for _, m := range metrics {
		c.descriptions = append(c.descriptions, prometheus.NewDesc(m.name, m.help, m.labels, constant))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector[S]) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range c.descriptions {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector[S]) Collect(series chan<- prometheus.Metric) {
	s := c.stats()
	for i, m := range c.metrics {
		m.read(&s, func(value float64, labels ...string) {
			for k, label := range labels {
				// Names of peers and files may be anything; one that is not text would fail
				// the scrape.
				labels[k] = strings.ToValidUTF8(label, "\ufffd")
			}
			series <- prometheus.MustNewConstMetric(c.descriptions[i], m.kind, value, labels...)
		})
	}
}
