package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-go/weft/efa"
)

// Connections collects the counts of connections by peer, for a bounded number of peers.
// NewConnections makes it: the zero value cannot be used. It is a prometheus.Collector, and
// its methods may be called from any goroutine.
type Connections struct {
	collector *collector[[]peerStats]
	most      int

	mu    sync.Mutex
	peers map[string]*peer
}

// otherPeers is the label of the peers that have none of their own.
const otherPeers = "other"

type peer struct {
	ended peerStats
	conns map[*tracked]struct{}
}

// tracked is a connection that was added; one may be added more than once.
type tracked struct{ conn *efa.Conn }

// peerStats are the sums over connections with a peer.
type peerStats struct {
	peer string
	open int
	// Those that only rise.
	sent, sentBytes, received, receivedBytes, waited, errors uint64
	// Those of the connections that there are.
	waiting, unread uint64
	waitingBytes    int64
}

// NewConnections makes a collector for up to so many peers, with a name as the label
// reactor and the peer's as the label peer. What comes of more peers is counted together
// for the peer "other". All names that were ever added count, also those of peers that have
// gone.
func NewConnections(name string, most int) *Connections {
	c := &Connections{most: most, peers: make(map[string]*peer)}
	c.collector = newCollector(peerMetrics, prometheus.Labels{"reactor": name}, c.stats)
	return c
}

// Add has a connection counted as one with a peer, until remove is called, which must be
// when the connection has ended: until then conn is kept in memory. remove waits for the
// reactor, and so is not called in its progress role. What it has carried stays in the peer's counts. A name
// that is the same for all connections of a host, say, has the counts go on when it comes
// back; an address with a port would use the names up.
func (c *Connections) Add(name string, conn *efa.Conn) (remove func()) {
	// As it is shown: two names must not become one.
	name = strings.ToValidUTF8(name, "\ufffd")
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peers[name]
	if p == nil {
		if len(c.peers) >= c.most {
			name = otherPeers
		}
		if p = c.peers[name]; p == nil {
			p = &peer{ended: peerStats{peer: name}, conns: make(map[*tracked]struct{})}
			c.peers[name] = p
		}
	}
	t := &tracked{conn}
	p.conns[t] = struct{}{}
	return func() {
		last := conn.Stats()
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, ok := p.conns[t]; ok {
			delete(p.conns, t)
			p.ended.add(&last)
		}
	}
}

// Describe implements [prometheus.Collector].
func (c *Connections) Describe(descriptions chan<- *prometheus.Desc) {
	c.collector.Describe(descriptions)
}

// Collect implements [prometheus.Collector]. It waits for the reactors of the connections.
func (c *Connections) Collect(series chan<- prometheus.Metric) { c.collector.Collect(series) }

// stats asks the connections without the lock, for they may take a while to answer.
func (c *Connections) stats() []peerStats {
	var all []peerStats
	var conns [][]*efa.Conn
	c.mu.Lock()
	for _, p := range c.peers {
		all = append(all, p.ended)
		var open []*efa.Conn
		for t := range p.conns {
			open = append(open, t.conn)
		}
		conns = append(conns, open)
	}
	c.mu.Unlock()
	for i := range all {
		all[i].open = len(conns[i])
		for _, conn := range conns[i] {
			s := conn.Stats()
			all[i].add(&s)
			all[i].waiting += uint64(s.Waiting)
			all[i].waitingBytes += s.WaitingBytes
			all[i].unread += s.Unread
		}
	}
	return all
}

// add adds what only rises.
func (p *peerStats) add(s *efa.ConnStats) {
	p.sent += s.Sent
	p.sentBytes += s.SentBytes
	p.received += s.Received
	p.receivedBytes += s.ReceivedBytes
	p.waited += s.Waited
	tellErrors(&s.Errors, func(n float64, _ ...string) { p.errors += uint64(n) })
}

// byPeer is a metric with a series for each peer.
func byPeer(name, help string, kind prometheus.ValueType, of func(p *peerStats) float64) metric[[]peerStats] {
	return metric[[]peerStats]{name, help, kind, []string{"peer"}, func(all *[]peerStats, tell func(float64, ...string)) {
		for _, p := range *all {
			tell(of(&p), p.peer)
		}
	}}
}

var peerMetrics = []metric[[]peerStats]{
	byPeer("weft_peer_connections", "Connections with a peer now.", prometheus.GaugeValue,
		func(p *peerStats) float64 { return float64(p.open) }),
	byPeer("weft_peer_messages_sent_total", "Messages to a peer that were begun.", prometheus.CounterValue,
		func(p *peerStats) float64 { return float64(p.sent) }),
	byPeer("weft_peer_messages_sent_bytes_total", "Length of the messages to a peer that were begun.", prometheus.CounterValue,
		func(p *peerStats) float64 { return float64(p.sentBytes) }),
	byPeer("weft_peer_messages_received_total", "Messages of a peer that are here whole.", prometheus.CounterValue,
		func(p *peerStats) float64 { return float64(p.received) }),
	byPeer("weft_peer_messages_received_bytes_total", "Length of the messages of a peer that are here whole.", prometheus.CounterValue,
		func(p *peerStats) float64 { return float64(p.receivedBytes) }),
	byPeer("weft_peer_messages_unread", "Messages that a peer has announced, and nobody has read yet.", prometheus.GaugeValue,
		func(p *peerStats) float64 { return float64(p.unread) }),
	byPeer("weft_peer_writes_waited_total", "Writes to a peer that had to wait for its credit.", prometheus.CounterValue,
		func(p *peerStats) float64 { return float64(p.waited) }),
	byPeer("weft_peer_writes_waiting", "Writes that wait for a peer's credit now.", prometheus.GaugeValue,
		func(p *peerStats) float64 { return float64(p.waiting) }),
	byPeer("weft_peer_writes_waiting_bytes", "What the writes that wait for a peer's credit have to send.", prometheus.GaugeValue,
		func(p *peerStats) float64 { return float64(p.waitingBytes) }),
	byPeer("weft_peer_errors_total", "Calls, callbacks and completions of writes on connections with a peer that ended with an error.", prometheus.CounterValue,
		func(p *peerStats) float64 { return float64(p.errors) }),
}
