package bootstrap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/weft-go/weft/internal/proof"
)

// member is a rank's connection, on the server's side.
type member struct {
	server *Server
	conn   net.Conn
	rank   int
	in     *proof.Frames
	out    *outbox

	mu      sync.Mutex
	open    map[uint32]bool    // requests whose answer is not on its way
	waiters map[uint32]*waiter // of gets
}

func newMember(s *Server, conn net.Conn, rank int, shared *proof.Session) *member {
	fromRank, fromServer := shared.Frames()
	return &member{
		server: s, conn: conn, rank: rank, in: fromRank, out: newOutbox(conn, fromServer),
		open: map[uint32]bool{}, waiters: map[uint32]*waiter{},
	}
}

// run serves the rank until its connection ends.
func (m *member) run() {
	var writing sync.WaitGroup
	writing.Go(func() {
		m.out.run(func(f frame) {
			m.mu.Lock()
			delete(m.open, f.id)
			delete(m.waiters, f.id) // where it was delivered before it was noted
			m.mu.Unlock()
		})
	})
	bye, cause := m.read()
	// First, so that the rank may come again as soon as it has the answer.
	m.end(cause)
	if cause == nil {
		m.out.put(frame{kind: kindOK, id: bye}, true)
	}
	writing.Wait()
}

// end takes the member out of the job. No cause means that it left in order.
func (m *member) end(cause error) {
	if cause != nil {
		m.out.breakOff()
	}
	m.mu.Lock()
	waiters := m.waiters
	m.waiters = nil
	m.mu.Unlock()
	for _, w := range waiters {
		m.server.table.forget(w)
	}
	m.server.gone(m, cause)
}

// read serves requests. It returns the id of the bye, once that has come.
func (m *member) read() (bye uint32, err error) {
	for {
		f, err := readFrame(m.conn, m.in)
		if err != nil {
			return 0, lossOf(err)
		}
		if f.kind == kindBye {
			return f.id, nil
		}
		if err := m.serve(f); err != nil {
			return 0, err
		}
	}
}

// lossOf says in words what the end of a connection means.
func lossOf(err error) error {
	switch {
	case errors.Is(err, ErrProtocol), errors.Is(err, ErrUnauthorized):
		return err
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("its host does not answer: %w", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, syscall.ECONNRESET):
		return errors.New("it ended without leaving the job")
	}
	return fmt.Errorf("its connection ended: %w", err)
}

// serve serves one request. An error is the end of the connection.
func (m *member) serve(f frame) error {
	if f.kind == kindCancel {
		m.cancel(f.id)
		return nil
	}
	m.mu.Lock()
	again, many := m.open[f.id], len(m.open) >= mostOpen
	if !again && !many {
		m.open[f.id] = true
	}
	m.mu.Unlock()
	switch {
	case f.id == 0 || again:
		return fmt.Errorf("%w: request %d is open already, or no request", ErrProtocol, f.id)
	case many:
		return fmt.Errorf("%w: more than %d requests at the same time", ErrProtocol, mostOpen)
	}
	answer, err := m.answer(f)
	switch {
	case errors.Is(err, ErrProtocol):
		return err
	case err != nil:
		m.out.put(frame{kindError, f.id, encodeError(err)}, false)
	case answer != nil:
		m.out.put(frame{kindOK, f.id, answer}, false)
	}
	return nil
}

// answer does what a request says. There is none yet for a get that waits.
func (m *member) answer(f frame) ([]byte, error) {
	t := m.server.table
	switch f.kind {
	case kindSet:
		key, value, err := split(f.payload)
		if err != nil {
			return nil, err
		}
		// In memory of its own length: the frame's has room for more.
		return []byte{}, t.set(key, bytes.Clone(value))
	case kindGet:
		return nil, m.get(f.id, string(f.payload))
	case kindAdd:
		if len(f.payload) < 8 {
			return nil, fmt.Errorf("%w: an add of %d bytes", ErrProtocol, len(f.payload))
		}
		sum, err := t.add(string(f.payload[8:]), int64(binary.LittleEndian.Uint64(f.payload)))
		return binary.LittleEndian.AppendUint64(nil, uint64(sum)), err
	case kindDelete:
		t.remove(string(f.payload))
		return []byte{}, nil
	case kindKeys:
		prefix, after, err := split(f.payload)
		if err != nil {
			return nil, err
		}
		answer := []byte{}
		for _, key := range t.keys(prefix, string(after), mostKeys) {
			answer = append(answer, pair(key, nil)...)
		}
		return answer, nil
	}
	return nil, fmt.Errorf("%w: a request of kind %d", ErrProtocol, f.kind)
}

// get answers with a value once it is there.
func (m *member) get(id uint32, key string) error {
	w, err := m.server.table.get(key, func(value []byte) {
		m.mu.Lock()
		delete(m.waiters, id)
		m.mu.Unlock()
		m.out.put(frame{kindOK, id, value}, false)
	})
	if err != nil || w == nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// It may have been delivered in the meantime.
	if m.open[id] {
		m.waiters[id] = w
	}
	return nil
}

// cancel ends a get that waits, with an error as its answer. One that has been
// answered needs nothing.
func (m *member) cancel(id uint32) {
	m.mu.Lock()
	w := m.waiters[id]
	delete(m.waiters, id)
	m.mu.Unlock()
	if w != nil && m.server.table.forget(w) {
		m.out.put(frame{kindError, id, encodeError(context.Canceled)}, false)
	}
}

// putRank appends a rank, or -1.
func putRank(b []byte, rank int) []byte {
	return binary.LittleEndian.AppendUint32(b, uint32(int32(rank)))
}

// takeRank is the reverse of putRank.
func takeRank(b []byte) (int, []byte, error) {
	if len(b) < 4 {
		return 0, nil, fmt.Errorf("%w: %d bytes where a rank should be", ErrProtocol, len(b))
	}
	return int(int32(binary.LittleEndian.Uint32(b))), b[4:], nil
}
