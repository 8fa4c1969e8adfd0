package bootstrap

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/weft-go/weft/internal/keepalive"
	"github.com/weft-go/weft/internal/proof"
)

// ServerConfig says how a [Server] works. Only Size must be set.
type ServerConfig struct {
	// Size is how many ranks the job has.
	Size int
	// Host is the rank in whose process the server is: when the server ends, that rank
	// is lost to the others, and the server is for one job only. nil means that it is in
	// none: it may serve one job after the other.
	Host *int
	// Job is the name that the ranks give to the job; those with another one are not
	// let in. Empty lets in only those that give none.
	Job string
	// Key is what ranks must have, at least 16 bytes at random; nil means none.
	Key []byte
	// PeerTimeout is how long the host of a rank may be silent, where the system's
	// keep-alives ask, before the rank is lost: 4 s to 24 h. 0 means 10 s.
	PeerTimeout time.Duration
	// HandshakeTimeout bounds how long a rank may take to say who it is, and
	// MaxHandshakes how many may be at that at the same time; when there are more,
	// the oldest is dropped. 0 means 5 s, and 128.
	HandshakeTimeout time.Duration
	MaxHandshakes    int
	// Limits bounds what is kept.
	Limits Limits
	// Logger is told of ranks that come and leave (Debug), of those that are lost,
	// and of who is not let in (Warn). nil means slog.Default().
	Logger *slog.Logger
}

func (c ServerConfig) withDefaults() (ServerConfig, error) {
	if c.PeerTimeout == 0 {
		c.PeerTimeout = 10 * time.Second
	}
	if c.HandshakeTimeout == 0 {
		c.HandshakeTimeout = 5 * time.Second
	}
	if c.MaxHandshakes == 0 {
		c.MaxHandshakes = 128
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Limits = c.Limits.withDefaults()
	switch {
	case c.Size < 1 || c.Size > MaxSize:
		return c, &ConfigError{"Size", fmt.Sprintf("%d, a job has 1 to %d ranks", c.Size, MaxSize)}
	case c.Host != nil && (*c.Host < 0 || *c.Host >= c.Size):
		return c, &ConfigError{"Host", fmt.Sprintf("%d, ranks go from 0 to %d", *c.Host, c.Size-1)}
	case len(c.Job) > mostJob:
		return c, &ConfigError{"Job", fmt.Sprintf("a name of %d bytes, at most %d are allowed", len(c.Job), mostJob)}
	case c.Key != nil && len(c.Key) < proof.LeastKey:
		return c, &ConfigError{"Key", fmt.Sprintf("%d bytes, at least %d are needed", len(c.Key), proof.LeastKey)}
	case c.PeerTimeout < keepalive.Least || c.PeerTimeout > keepalive.Most:
		return c, &ConfigError{"PeerTimeout", fmt.Sprintf("%v, it must be from %v to %v", c.PeerTimeout, keepalive.Least, keepalive.Most)}
	case c.HandshakeTimeout < 0 || c.MaxHandshakes < 0 || c.Limits.Keys < 0 || c.Limits.Bytes < 0:
		return c, &ConfigError{"HandshakeTimeout, MaxHandshakes and Limits", "must not be negative"}
	}
	return c, nil
}

// host is the rank in whose process the server is, or -1.
func (c *ServerConfig) host() int {
	if c.Host == nil {
		return -1
	}
	return *c.Host
}

// Server serves the store of one job over TCP. Rank 0 has one by itself where
// [Join] is to serve; weft run serves its jobs in this way, too: where no rank serves,
// and all ranks that came have left, it forgets what they left, and others may come.
// All methods may be called at the same time.
type Server struct {
	config   ServerConfig
	table    *table
	listener net.Listener // nil: in memory
	running  sync.WaitGroup

	mu       sync.Mutex
	members  map[int]*member // those that have joined
	left     map[int]bool    // those that have left in order, while others have not
	greeting []*greeting     // handshakes, the oldest first
	over     map[int]error   // ranks whose process has ended, and how; see Ended
	loss     *LostError      // the first one
	ending   bool
	ended    chan struct{} // closed when ending
	changed  chan struct{} // closed, and made anew, when a member has gone
}

// greeting is a handshake under way.
type greeting struct {
	conn  net.Conn
	since time.Time
}

// Serve begins to serve on a listener, which it closes in the end; also if it fails.
// listener may be nil for a job in this process.
func Serve(listener net.Listener, config ServerConfig) (*Server, error) {
	c, err := config.withDefaults()
	if err != nil {
		if listener != nil {
			_ = listener.Close()
		}
		return nil, err
	}
	s := &Server{
		config: c, table: newTable(c.Limits), listener: listener, members: map[int]*member{}, left: map[int]bool{}, over: map[int]error{},
		ended: make(chan struct{}), changed: make(chan struct{}),
	}
	if listener != nil {
		s.running.Go(s.accept)
	}
	return s, nil
}

// Drain waits until no rank is here that is not among these. It returns the cause
// of ctx if that ends before, and nil if the server does.
func (s *Server) Drain(ctx context.Context, except ...int) error {
	for {
		s.mu.Lock()
		here := len(s.members)
		for _, rank := range except {
			if s.members[rank] != nil {
				here--
			}
		}
		changed := s.changed
		s.mu.Unlock()
		if here == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-s.ended:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the server. For ranks that are still here, the job ends with it. All
// calls return when it is done, and nil.
func (s *Server) Close() error { return s.closeFor("it was closed while the job was going on") }

// closeFor is Close, with what to tell the ranks that are still here.
func (s *Server) closeFor(why string) error {
	s.mu.Lock()
	if !s.ending {
		s.ending = true
		close(s.ended)
		if s.listener != nil {
			_ = s.listener.Close()
		}
		for _, g := range s.greeting {
			_ = g.conn.Close()
		}
		for _, m := range s.members {
			m.out.put(frame{kind: kindClosed, payload: []byte(why)}, true)
		}
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// accept takes connections until the listener is closed.
func (s *Server) accept() {
	nap := time.Millisecond
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			// Too many descriptors, for one, which may pass.
			s.config.Logger.Warn("weft: the store cannot accept", "error", err)
			if !s.rest(nap) {
				return
			}
			nap = min(2*nap, time.Second)
			continue
		}
		nap = time.Millisecond
		keepalive.Set(conn, s.config.PeerTimeout)
		if !s.begin(conn, false) {
			_ = conn.Close()
			return
		}
	}
}

// rest waits, and says whether the server still goes on.
func (s *Server) rest(nap time.Duration) bool {
	timer := time.NewTimer(nap)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ended:
		return false
	}
}

// leastGreeting is the time that each handshake has, however many others come.
const leastGreeting = 100 * time.Millisecond

// begin serves a connection on a goroutine of its own. One from within has a place
// that nobody takes. It returns false when the server ends.
func (s *Server) begin(conn net.Conn, within bool) bool {
	g := &greeting{conn, time.Now()}
	for {
		s.mu.Lock()
		if s.ending {
			s.mu.Unlock()
			return false
		}
		var wait time.Duration
		if !within && len(s.greeting) >= s.config.MaxHandshakes {
			oldest := s.greeting[0]
			if wait = leastGreeting - time.Since(oldest.since); wait <= 0 {
				s.greeting = s.greeting[1:]
				_ = oldest.conn.Close()
			}
		}
		if wait <= 0 {
			if !within {
				s.greeting = append(s.greeting, g)
			}
			s.running.Go(func() { s.serve(g) })
			s.mu.Unlock()
			return true
		}
		s.mu.Unlock()
		if !s.rest(wait) {
			return false
		}
	}
}

// connect is a connection from within the process.
func (s *Server) connect() (net.Conn, error) {
	mine, theirs := net.Pipe()
	if !s.begin(theirs, true) {
		return nil, net.ErrClosed
	}
	return mine, nil
}

// serve is one connection, from the handshake to its end.
func (s *Server) serve(g *greeting) {
	defer g.conn.Close()
	_ = g.conn.SetDeadline(time.Now().Add(s.config.HandshakeTimeout))
	m, err := s.greet(g.conn)
	s.mu.Lock()
	for i, other := range s.greeting {
		if other == g {
			s.greeting = append(s.greeting[:i:i], s.greeting[i+1:]...)
			break
		}
	}
	s.mu.Unlock()
	if err != nil {
		if !errors.Is(err, errEnding) {
			s.config.Logger.Warn("weft: the store does not let somebody in", "peer", g.conn.RemoteAddr(), "error", err)
		}
		return
	}
	_ = g.conn.SetDeadline(time.Time{})
	s.config.Logger.Debug("weft: rank joined the store", "rank", m.rank, "peer", g.conn.RemoteAddr())
	m.run()
}

// greet is the server's side of a handshake.
func (s *Server) greet(conn net.Conn) (*member, error) {
	refuse := func(why error) (*member, error) {
		_, _ = conn.Write(appendHello(nil, typeRefusal, encodeError(why)))
		return nil, why
	}
	_, first, err := readHello(conn, typeHello)
	if err != nil {
		return refuse(err)
	}
	h, err := decodeHello(first)
	if err != nil {
		return refuse(err)
	}
	if h.keyed != (s.config.Key != nil) {
		if h.keyed {
			return refuse(fmt.Errorf("%w: the rank has a key, and the store has none", ErrUnauthorized))
		}
		return refuse(fmt.Errorf("%w: the store has a key, and the rank has none", ErrUnauthorized))
	}
	var shared *proof.Session
	if s.config.Key != nil {
		nonce := proof.NewNonce()
		if _, err := conn.Write(appendHello(nil, typeChallenge, nonce[:])); err != nil {
			return nil, err
		}
		shared = newSession(s.config.Key, first, nonce[:])
		_, sealed, err := readHello(conn, typeProof)
		if err != nil {
			return refuse(err)
		}
		rest, err := shared.Open(rankLabel, sealed)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%w: %d bytes behind the proof", ErrUnauthorized, len(rest))
		}
		if err != nil {
			return refuse(err)
		}
	}
	m := newMember(s, conn, int(h.rank), shared)
	if err := s.admit(m, &h); err != nil {
		return refuse(err)
	}
	body := putRank(nil, s.config.host())
	if _, err := conn.Write(appendHello(nil, typeWelcome, shared.Seal(serverLabel, body))); err != nil {
		// It has joined, so that its end is a loss.
		m.end(err)
		return nil, err
	}
	return m, nil
}

// admit makes somebody a member of the job.
func (s *Server) admit(m *member, h *hello) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ending:
		return errEnding
	case s.loss != nil:
		return s.loss
	case int(h.size) != s.config.Size:
		return fmt.Errorf("%w: it has %d ranks, and this rank's has %d", ErrOtherJob, s.config.Size, h.size)
	case !hmac.Equal([]byte(h.job), []byte(s.config.Job)):
		return fmt.Errorf("%w: it is %q, and this rank's is %q", ErrOtherJob, printable(s.config.Job), printable(h.job))
	case s.members[m.rank] != nil:
		return fmt.Errorf("%w: another process is rank %d of this job", ErrRankTaken, m.rank)
	case len(s.left) > 0:
		return errEnding
	}
	for rank, cause := range s.over {
		// This one would wait for it in vain.
		s.lose(&LostError{Rank: rank, Cause: cause})
		return s.loss
	}
	s.members[m.rank] = m
	return nil
}
