package metrics

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
)

func TestMain(m *testing.M) { fabrictest.Main(m) }

// patience is far beyond what any test needs on a slow machine.
const patience = 60 * time.Second

// exposed is what a scrape of collectors brings, as Prometheus' parser reads it.
func exposed(t *testing.T, collectors ...prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	// A pedantic one refuses what a collector has not described.
	registry := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		require.NoError(t, registry.Register(c))
	}
	gathered, err := registry.Gather()
	require.NoError(t, err)
	var page bytes.Buffer
	for _, family := range gathered {
		_, err := expfmt.MetricFamilyToText(&page, family)
		require.NoError(t, err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&page)
	require.NoError(t, err)
	return families
}

// gather is the values of all series, by name{label="value",...}.
func gather(t *testing.T, collectors ...prometheus.Collector) map[string]float64 {
	t.Helper()
	values := make(map[string]float64)
	for name, family := range exposed(t, collectors...) {
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			series := name
			if labels != nil {
				series += "{" + strings.Join(labels, ",") + "}"
			}
			values[series] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

// told is stats that were told beforehand.
type told efa.Stats

func (s *told) Stats() efa.Stats { return efa.Stats(*s) }
func (s *told) Provider() string { return "sockets" }

// number gives each count below v a number of its own, from next on.
func number(v reflect.Value, next *uint64) {
	switch v.Kind() {
	case reflect.Uint64:
		v.SetUint(*next)
		*next++
	case reflect.Int:
		v.SetInt(int64(*next))
		*next++
	case reflect.String:
		v.SetString(fmt.Sprint("device", *next))
	case reflect.Struct:
		for i := range v.NumField() {
			number(v.Field(i), next)
		}
	case reflect.Array:
		for i := range v.Len() {
			number(v.Index(i), next)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			number(v.Index(i), next)
		}
	}
}

// Each count of a reactor that can be other than 0 is in one series, and no series has
// anything else.
func TestEveryCountOfReactors(t *testing.T) {
	const first = 1000
	var s efa.Stats
	next := uint64(first)
	number(reflect.ValueOf(&s).Elem(), &next)
	values := gather(t, NewReactorCollector("r", (*told)(&s)))
	require.EqualValues(t, 1, values[`weft_reactor_info{provider="sockets",reactor="r"}`])
	delete(values, `weft_reactor_info{provider="sockets",reactor="r"}`)
	requireEach(t, first, next, values, []uint64{
		s.Ended.PeerClosed, s.Ended.Deadline, s.Ended.Canceled, s.Ended.MessageSize, s.Ended.WouldBlock, s.Ended.Other,
		s.Dialing.TooManyHandshakes,
	})
	require.EqualValues(t, s.Ended.Transfer, values[`weft_connections_ended_total{cause="transfer",reactor="r"}`])
	require.EqualValues(t, s.Errors.Transfer, values[`weft_errors_total{kind="transfer",reactor="r"}`])
	require.EqualValues(t, s.Ended.PeerLost, values[`weft_connections_ended_total{cause="peer_lost",reactor="r"}`])
	require.EqualValues(t, s.Dialing.TLS, values[`weft_handshakes_total{reactor="r",result="tls",side="dialing"}`])
	require.EqualValues(t, s.Rails[1].SentBytes, values[fmt.Sprintf(`weft_rail_sent_bytes_total{device=%q,rail="1",reactor="r"}`, s.Rails[1].Domain)])
}

// requireEach asserts that the values are the numbers from first to next, each once,
// without those that are always 0.
func requireEach(t *testing.T, first, next uint64, values map[string]float64, zero []uint64) {
	t.Helper()
	seen := make(map[uint64]string)
	for name, value := range values {
		require.Empty(t, seen[uint64(value)], "%s has the value of another series", name)
		seen[uint64(value)] = name
	}
	for n := first; n < next; n++ {
		require.Equal(t, !slices.Contains(zero, n), seen[n] != "", "count %d, series %q", n, seen[n])
	}
	require.Len(t, values, int(next-first)-len(zero))
}

func TestEveryCountOfCollectives(t *testing.T) {
	const first = 1000
	var s collective.Stats
	next := uint64(first)
	for i := 1; i < len(s.Calls); i++ { // 0 is no collective
		number(reflect.ValueOf(&s.Calls[i]).Elem(), &next)
	}
	s.Neighbours = next
	next++
	s.CrossedBytes = next
	next++
	c := newCollector(collectiveMetrics, nil, func() collective.Stats { return s })
	requireEach(t, first, next, gather(t, c), nil)
}

// all are a collector of each kind, with series in each metric.
func all(t *testing.T, sys fs.FS) []prometheus.Collector {
	r := open(t, fabrictest.NewBed(t, fabrictest.Setting{Name: "fake"}))
	peers := NewConnections("r", 1)
	peers.Add("one", join(t, r, r)[0])
	return []prometheus.Collector{
		NewReactorCollector("r", &told{Rails: make([]efa.RailStats, 2)}), peers,
		newCollector(collectiveMetrics, prometheus.Labels{"communicator": "world"}, func() (s collective.Stats) { return s }),
		newCollector(memoryMetrics, nil, func() memory { return memory{"arenas": 4096} }),
		NewHardwareCollector(sys),
	}
}

// Names, units, types and help texts are as Prometheus wants them.
func TestConventions(t *testing.T) {
	families := exposed(t, all(t, fakeSys(t))...)
	require.NotEmpty(t, families)
	var list []*dto.MetricFamily
	for _, f := range families {
		list = append(list, f)
	}
	problems, err := promlint.NewWithMetricFamilies(list).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	for _, row := range rows() {
		require.Regexp(t, `^weft_`, row.name)
		require.Regexp(t, `\.$`, row.help)
		require.Equal(t, row.kind == prometheus.CounterValue, strings.HasSuffix(row.name, "_total"), row.name)
	}
}

func open(t *testing.T, b *fabrictest.Bed) *efa.Reactor {
	t.Helper()
	// Without a source, a provider takes the newest interface, which may go.
	config := efa.Config{Source: "127.0.0.1", Logger: slog.New(slog.DiscardHandler)}
	if b.Network != nil {
		config.Device = b.Open(t)
	} else {
		config.Providers, config.Require = []string{b.Provider}, true
	}
	r, err := efa.Open(&config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// join makes a connection: the dialed side, and the accepted one.
func join(t *testing.T, from, to *efa.Reactor) [2]*efa.Conn {
	t.Helper()
	l, err := to.Listen(limited(t), "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dialed, err := from.Dial(limited(t), l.Addr().String())
	require.NoError(t, err)
	accepted, err := l.AcceptConn(limited(t))
	require.NoError(t, err)
	return [2]*efa.Conn{dialed, accepted}
}

// each runs a test on a device in memory, and on every provider.
func each(t *testing.T, test func(t *testing.T, b *fabrictest.Bed)) {
	for _, s := range append([]fabrictest.Setting{{Name: "fake"}}, fabrictest.OnProviders()...) {
		t.Run(s.Name, func(t *testing.T) { test(t, fabrictest.NewBed(t, s)) })
	}
}

// Scrapes by several at a time, amid messages and while all is closed, see counts that
// only rise, and the last one sees them all.
func TestScrapesAmidTraffic(t *testing.T) {
	each(t, func(t *testing.T, b *fabrictest.Bed) {
		from, to := open(t, b), open(t, b)
		conns := join(t, from, to)
		senders, receivers := NewConnections("from", 2), NewConnections("to", 2)
		collectors := []prometheus.Collector{
			NewReactorCollector("from", from), NewReactorCollector("to", to), NewMemoryCollector(), senders, receivers,
		}
		removeSender, removeReceiver := senders.Add("peer", conns[0]), receivers.Add("peer", conns[1])

		// What is scraped all the time does little else.
		turns := make(chan struct{})
		var scrapers sync.WaitGroup
		for range 3 {
			scrapers.Go(func() {
				last := make(map[string]float64)
				for range turns {
					for name, value := range scrape(t, collectors) {
						if strings.Contains(name, "_total") && value < last[name] {
							t.Errorf("%s has gone from %v to %v", name, last[name], value)
						}
						last[name] = value
					}
				}
			})
		}

		const messages, size = 300, 10_000
		sent := make(chan error, 1)
		go func() {
			var err error
			for i := 0; i < messages && err == nil; i++ {
				err = conns[0].WriteMessage(limited(t), make([]byte, size))
			}
			sent <- err
		}()
		for i := range messages {
			_, err := conns[1].ReadMessage(limited(t), make([]byte, size))
			require.NoError(t, err)
			if i%10 == 0 {
				turns <- struct{}{}
			}
		}
		require.NoError(t, <-sent)
		for range 3 {
			turns <- struct{}{}
		}
		closed := make(chan error, 1)
		go func() { closed <- conns[0].Close() }()
		require.NoError(t, conns[1].Close())
		require.NoError(t, <-closed)
		removeSender()
		removeReceiver()
		require.NoError(t, from.Close())
		require.NoError(t, to.Close())
		close(turns)
		scrapers.Wait()

		values := gather(t, collectors...)
		for name, want := range map[string]float64{
			`weft_messages_sent_total{reactor="from"}`:                             messages,
			`weft_messages_sent_bytes_total{reactor="from"}`:                       messages * size,
			`weft_messages_received_total{reactor="to"}`:                           messages,
			`weft_messages_received_bytes_total{reactor="to"}`:                     messages * size,
			`weft_connections_ended_total{cause="in_order",reactor="to"}`:          1,
			`weft_connections{reactor="to"}`:                                       0,
			`weft_peer_connections{peer="peer",reactor="to"}`:                      0,
			`weft_peer_messages_sent_bytes_total{peer="peer",reactor="from"}`:      messages * size,
			`weft_peer_messages_received_bytes_total{peer="peer",reactor="to"}`:    messages * size,
			`weft_reactor_info{provider="` + from.Provider() + `",reactor="from"}`: 1,
		} {
			require.Contains(t, values, name)
			require.Equal(t, want, values[name], name)
		}
	})
}

// scrape is gather for any goroutine.
func scrape(t *testing.T, collectors []prometheus.Collector) map[string]float64 {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Error(err)
	}
	values := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.Metric {
			values[fmt.Sprint(family.GetName(), m.Label)] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

// Whatever the peers are called, there are series for so many of them, and what is counted
// for one that has left stays.
func TestPeersAreBounded(t *testing.T) {
	r := open(t, fabrictest.NewBed(t, fabrictest.Setting{Name: "fake"}))
	conns := join(t, r, r)
	require.NoError(t, conns[0].WriteMessage(limited(t), make([]byte, 7)))
	_, err := conns[1].ReadMessage(limited(t), make([]byte, 7))
	require.NoError(t, err)
	peers := NewConnections("r", 2)
	require.Empty(t, gather(t, peers))
	var removes []func()
	for i := range 10 {
		removes = append(removes, peers.Add(fmt.Sprint("peer", i), conns[0]))
	}
	removes = append(removes, peers.Add("peer0", conns[0]))
	values := gather(t, peers)
	require.Len(t, values, 3*len(peerMetrics))
	sent := func(peer string) float64 {
		return gather(t, peers)[fmt.Sprintf(`weft_peer_messages_sent_bytes_total{peer=%q,reactor="r"}`, peer)]
	}
	require.EqualValues(t, 2*7, sent("peer0"))
	require.EqualValues(t, 7, sent("peer1"))
	require.EqualValues(t, 8*7, sent("other"))
	for _, remove := range removes {
		remove()
		remove()
	}
	require.EqualValues(t, 2*7, sent("peer0"))
	require.EqualValues(t, 8*7, sent("other"))
	require.Zero(t, gather(t, peers)[`weft_peer_connections{peer="other",reactor="r"}`])

	// A name that is not text does not fail the scrape.
	foreign := NewConnections("r", 2)
	foreign.Add("\xff\"\n", conns[0])
	require.Contains(t, gather(t, foreign), fmt.Sprintf(`weft_peer_connections{peer=%q,reactor="r"}`, "\ufffd\"\n"))
}

// A communicator's reactor and its collective calls, also after it is closed.
func TestCommunicators(t *testing.T) {
	provider := testenv.Providers()[0]
	fabrictest.NewBed(t, fabrictest.Setting{Name: provider, Provider: provider})
	quiet := slog.New(slog.DiscardHandler)
	world, err := comm.Open(limited(t), comm.Config{
		Rank: 0, Size: 1, Logger: quiet, Engine: &efa.Config{Providers: []string{provider}, Require: true, Source: "127.0.0.1", Logger: quiet},
	})
	require.NoError(t, err)
	collectors := []prometheus.Collector{NewReactorCollector("world", world), NewCollectiveCollector("world", world)}
	const done = `weft_collective_calls_done_total{collective="barrier",communicator="world"}`
	require.Zero(t, gather(t, collectors...)[done])
	require.NoError(t, collective.Barrier(limited(t), world))
	require.EqualValues(t, 1, gather(t, collectors...)[done])
	require.NoError(t, world.Close())
	values := gather(t, collectors...)
	require.EqualValues(t, 1, values[done])
	require.EqualValues(t, 1, values[`weft_collective_calls_begun_total{collective="barrier",communicator="world"}`])
	require.Zero(t, values[`weft_collective_calls_failed_total{collective="barrier",communicator="world"}`])
	require.Contains(t, values, fmt.Sprintf(`weft_reactor_info{provider=%q,reactor="world"}`, world.Provider()))
}

// Two collectors of a kind go together by their names, and twice the same does not.
func TestNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(NewReactorCollector("a", new(told))))
	require.NoError(t, registry.Register(NewReactorCollector("b", new(told))))
	require.Error(t, registry.Register(NewReactorCollector("a", new(told))))
}
