package efa

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
)

// Soak: two processes with many connections between them, half of which each of
// them writes. Sizes and content are made from the connection and the number of
// the message. A tenth of the readers stop half-way until the others have gone
// on for a while.
//
// By default the size is one for every run of the tests, on tcp. make soak does
// the whole, on each provider; SOAK_PROVIDERS, SOAK_CONNECTIONS, SOAK_MESSAGES (of a connection)
// and SOAK_TIME (at least so long) change it.

// soak is what both processes are told.
type soak struct {
	Provider    string
	Connections int
	Messages    int
	Time        time.Duration
	Address     string // of the side that listens, empty for that one
	Limit       time.Duration
}

// What is on its way to one reader at most, and the longest message.
const (
	soakWindow        = 16
	soakWindowBytes   = 256 << 10
	soakMost          = 64 << 10
	soakHandshakes    = 32
	soakStopEvery     = 10
	soakDrain         = 20 * time.Second
	soakBase          = 160 << 20 // the program, libfabric and its queues
	soakPerConnection = 32 << 10  // stacks of two goroutines, the connection itself
)

// memoryLimit is what a side may use: for each connection that it reads what the
// peer may have sent, of which the shelf rounds each message up to a power of
// two, and the reader's buffer; for each that it writes the writer's buffer, and
// a copy in the provider; and as much again, because the garbage collector lets
// the heap grow to twice what is used.
func (s soak) memoryLimit() int64 {
	reading, writing := int64(s.Connections+1)/2, int64(s.Connections+1)/2
	used := reading*(2*soakWindowBytes+soakMost) + writing*(soakMost+soakMost) + int64(s.Connections)*soakPerConnection
	return soakBase + 2*used
}

// soakReport is what a side says at the end.
type soakReport struct {
	Sent, Received, SentBytes, ReceivedBytes int64
	Seconds                                  float64
	PeakRSS, PeakHeap, BaseRSS               int64
	LongestPause                             time.Duration // between two messages of a reader that did not stop
	Stopped                                  int           // readers that did
}

func TestSoak(t *testing.T) {
	s := soak{Connections: 1000, Messages: 100}
	if testing.Short() {
		s = soak{Connections: 300, Messages: 30}
	}
	s.Connections = testenv.Setting(t, "SOAK_CONNECTIONS", s.Connections, strconv.Atoi)
	s.Messages = testenv.Setting(t, "SOAK_MESSAGES", s.Messages, strconv.Atoi)
	s.Time = testenv.Setting(t, "SOAK_TIME", s.Time, time.ParseDuration)
	s.Limit = testenv.Setting(t, "SOAK_LIMIT", s.Time+time.Duration(2+s.Messages/100)*time.Minute, time.ParseDuration)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Max < uint64(s.Connections)+200 {
		testenv.Need(t, fmt.Sprintf("descriptors for %d connections", s.Connections), fmt.Errorf("the hard limit is %d (ulimit -Hn)", limit.Max))
	}
	for provider := range strings.SplitSeq(testenv.Setting(t, "SOAK_PROVIDERS", "tcp", func(v string) (string, error) { return v, nil }), ",") {
		t.Run(provider, func(t *testing.T) {
			_, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Source: "127.0.0.1", Logger: quiet})
			testenv.Need(t, provider, err)
			s.Provider = provider
			s.run(t)
		})
	}
}

func (s soak) run(t *testing.T) {
	listener := startProcess(t, "soak", s.String())
	s.Address = listener.hear(t, "listening")
	dialer := startProcess(t, "soak", s.String())
	var reports [2]soakReport
	for i, p := range []*process{dialer, listener} {
		require.NoError(t, json.Unmarshal([]byte(p.hear(t, "report")), &reports[i]))
		p.order(t, "end")
		<-p.ended
		require.NoError(t, p.err, "%s", p.stderr.Bytes())
	}
	one, other := reports[0], reports[1]
	require.Equal(t, one.Sent, other.Received)
	require.Equal(t, other.Sent, one.Received)
	require.Equal(t, one.SentBytes, other.ReceivedBytes)
	require.Equal(t, other.SentBytes, one.ReceivedBytes)
	require.GreaterOrEqual(t, one.Sent+other.Sent, int64(s.Connections)*int64(s.Messages))
	stopped := 0
	for k := range s.Connections {
		if stops(k) {
			stopped++
		}
	}
	require.Equal(t, stopped, one.Stopped+other.Stopped)
	seconds := max(one.Seconds, other.Seconds)
	t.Logf("%s: %d connections, %d messages, %.0f MB in %.1f s: %.0f messages/s, %.0f MB/s", s.Provider, s.Connections,
		one.Sent+other.Sent, float64(one.SentBytes+other.SentBytes)/1e6, seconds,
		float64(one.Sent+other.Sent)/seconds, float64(one.SentBytes+other.SentBytes)/1e6/seconds)
	for i, name := range []string{"dialer", "listener"} {
		r := reports[i]
		t.Logf("%s: peak RSS %d MiB (limit %d MiB), peak heap %d MiB, %d KiB of RSS a connection beyond the %d MiB before, longest pause %v",
			name, r.PeakRSS>>20, s.memoryLimit()>>20, r.PeakHeap>>20, (r.PeakRSS-r.BaseRSS)>>10/int64(s.Connections), r.BaseRSS>>20, r.LongestPause.Round(time.Millisecond))
		if !raced() { // which keeps a history of all memory
			require.LessOrEqual(t, r.PeakRSS, s.memoryLimit())
		}
		require.LessOrEqual(t, r.PeakHeap, s.memoryLimit())
	}
}

// raced says whether this binary was built with -race.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func (s soak) String() string {
	b, _ := json.Marshal(s)
	return string(b)
}

func init() { roles["soak"] = playSoak }

// playSoak is one of the two processes.
func playSoak(orders *bufio.Scanner, arguments []string) error {
	var s soak
	if err := json.Unmarshal([]byte(arguments[0]), &s); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(context.Background(), s.Limit, errors.New("the soak took too long"))
	defer cancel()
	ctx, stop := context.WithCancelCause(limited)
	defer stop(nil)
	before := fabrictest.Holds()
	side := soakSide{soak: s, pattern: soakPattern(), ctx: ctx, stop: stop}
	side.moved = sync.NewCond(&side.mu)
	report, err := side.play()
	if err == nil {
		err = before.Returned(patience)
	}
	if err != nil {
		return err
	}
	b, err := json.Marshal(report)
	fmt.Printf("report %s\n", b)
	orders.Scan()
	return err
}

// soakSide is what a process knows.
type soakSide struct {
	soak
	ctx     context.Context
	stop    context.CancelCauseFunc
	pattern []byte
	begin   time.Time
	report  soakReport

	mu      sync.Mutex
	moved   *sync.Cond
	going   int          // readers that do not stop, and are not at their end
	read    atomic.Int64 // messages that they have read
	problem error
}

// soakPattern is what all content is cut from.
func soakPattern() []byte {
	b := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{'w', 'e', 'f', 't'}).Read(b)
	return b
}

// content is that of message i of connection k: a piece of the pattern whose
// place and length follow from both.
func (s *soakSide) content(k, i int) []byte {
	rng := rand.New(rand.NewPCG(uint64(k), uint64(i)))
	size := rng.IntN(soakMost + 1)
	if rng.IntN(20) == 0 {
		size = rng.IntN(3) * 4096 // empty, and at the eager limit
	}
	at := rng.IntN(len(s.pattern) - size)
	return s.pattern[at : at+size]
}

func (s *soakSide) play() (soakReport, error) {
	r, err := Open(&Config{
		Providers: []string{s.Provider}, Require: true, Logger: quiet,
		WindowMessages: soakWindow, WindowBytes: soakWindowBytes, HandshakeTimeout: s.Limit, HelloTimeout: s.Limit, DrainTimeout: soakDrain,
	})
	if err != nil {
		return s.report, err
	}
	s.report.BaseRSS = residentMemory("VmRSS")
	conns, err := s.connect(r)
	if err != nil {
		return s.report, errors.Join(err, r.Close())
	}
	s.begin = time.Now()
	ended := make(chan struct{})
	var sampling, all sync.WaitGroup
	sampling.Go(func() { s.sample(ended) })
	s.going = 0
	for k := range conns {
		if s.reads(k) && !stops(k) {
			s.going++
		}
	}
	stopAll := context.AfterFunc(s.ctx, func() { s.mu.Lock(); s.moved.Broadcast(); s.mu.Unlock() })
	for k, c := range conns {
		all.Go(func() {
			work := s.write
			if s.reads(k) {
				work = s.receive
			}
			if err := work(k, c); err != nil {
				s.fail(fmt.Errorf("connection %d: %w", k, err))
			}
		})
	}
	all.Wait()
	stopAll()
	s.report.Seconds = time.Since(s.begin).Seconds()
	close(ended)
	sampling.Wait()
	return s.report, errors.Join(s.problem, r.Close())
}

// reads says whether this side reads connection k, and not writes it.
func (s *soakSide) reads(k int) bool { return (k%2 == 0) == (s.Address == "") }

// stops says whether the reader of connection k does. The next one, of the other
// side, must not, so that both have some that do.
func stops(k int) bool { return k%soakStopEvery == k/soakStopEvery%2 }

// connect makes the connections; the first message of each says which it is.
func (s *soakSide) connect(r *Reactor) ([]*Conn, error) {
	conns := make([]*Conn, s.Connections)
	if s.Address == "" {
		l, err := r.Listen(s.ctx, "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		fmt.Printf("listening %s\n", l.Addr())
		for range conns {
			c, err := l.AcceptConn(s.ctx)
			if err != nil {
				return nil, errors.Join(err, l.Close())
			}
			var number [4]byte
			if _, err := c.ReadMessage(s.ctx, number[:]); err != nil {
				return nil, errors.Join(err, l.Close())
			}
			conns[binary.LittleEndian.Uint32(number[:])] = c
		}
		return conns, l.Close()
	}
	errs := make(chan error, soakHandshakes)
	var next atomic.Int64
	for range soakHandshakes {
		go func() {
			for k := next.Add(1) - 1; k < int64(s.Connections); k = next.Add(1) - 1 {
				c, err := r.Dial(s.ctx, s.Address)
				if err == nil {
					conns[k] = c
					err = c.WriteMessage(s.ctx, binary.LittleEndian.AppendUint32(nil, uint32(k)))
				}
				if err != nil {
					errs <- fmt.Errorf("dial %d: %w", k, err)
					return
				}
			}
			errs <- nil
		}()
	}
	var all error
	for range soakHandshakes {
		all = errors.Join(all, <-errs)
	}
	return conns, all
}

// write sends the messages of connection k, and closes it.
func (s *soakSide) write(k int, c *Conn) error {
	buf := make([]byte, soakMost)
	var count, size int64
	for i := 0; i < s.Messages || time.Since(s.begin) < s.Time; i++ {
		// The buffer is this side's again after each.
		n := copy(buf, s.content(k, i))
		if err := c.WriteMessage(s.ctx, buf[:n]); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
		clear(buf[:min(n, 64)])
		count++
		size += int64(n)
	}
	s.mu.Lock()
	s.report.Sent += count
	s.report.SentBytes += size
	s.mu.Unlock()
	return c.Close()
}

// receive reads connection k to its end.
func (s *soakSide) receive(k int, c *Conn) error {
	buf := make([]byte, soakMost)
	var size int64
	var longest time.Duration
	i, stopping := 0, stops(k)
	last := time.Now()
	for ; ; i++ {
		if stopping && i == s.Messages/2 {
			s.await()
		}
		n, err := c.ReadMessage(s.ctx, buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read %d: %w", i, err)
		}
		if !bytes.Equal(buf[:n], s.content(k, i)) {
			return fmt.Errorf("message %d is another one: %d bytes", i, n)
		}
		size += int64(n)
		if !stopping {
			now := time.Now()
			longest, last = max(longest, now.Sub(last)), now
			if s.read.Add(1)%256 == 0 {
				s.moved.Broadcast()
			}
		}
	}
	if i < s.Messages {
		return fmt.Errorf("the end after %d messages of %d", i, s.Messages)
	}
	s.mu.Lock()
	s.report.Received += int64(i)
	s.report.ReceivedBytes += size
	s.report.LongestPause = max(s.report.LongestPause, longest)
	if stopping {
		s.report.Stopped++
	} else {
		s.going--
		s.moved.Broadcast()
	}
	s.mu.Unlock()
	return c.Close()
}

// await waits until the readers that do not stop have read a quarter of what
// there is for them, or have no more.
func (s *soakSide) await() {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.read.Load() + int64(s.going)*int64(s.Messages)/4
	for s.read.Load() < until && s.going > 0 && s.problem == nil && s.ctx.Err() == nil {
		s.moved.Wait()
	}
}

func (s *soakSide) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem == nil {
		s.problem = err
	}
	s.stop(err)
	s.moved.Broadcast()
}

// sample looks at the memory of the process until the end.
func (s *soakSide) sample(ended <-chan struct{}) {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for done := false; !done; {
		metrics.Read(heap)
		s.report.PeakHeap = max(s.report.PeakHeap, int64(heap[0].Value.Uint64()))
		select {
		case <-ended:
			done = true
		case <-ticker.C:
		}
	}
	s.report.PeakRSS = residentMemory("VmHWM")
}

// residentMemory reads a line of /proc/self/status, in bytes: VmRSS is what is
// resident now, VmHWM the most that was.
func residentMemory(name string) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				panic(err)
			}
			return kib << 10
		}
	}
	return 0
}
