package bootstrap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/weft-go/weft/internal/keepalive"
	"github.com/weft-go/weft/internal/proof"
)

// client is the store as a rank has it that is connected to the server.
type client struct {
	conn       net.Conn
	out        *outbox
	in         *proof.Frames
	serverRank int
	places     chan struct{} // taken by calls
	running    sync.WaitGroup

	ctx context.Context
	end context.CancelCauseFunc

	mu      sync.Mutex
	calls   map[uint32]*call
	last    uint32 // id
	leaving bool
}

// call is one that has no answer yet.
type call struct {
	answer chan answer // has room for one
}

type answer struct {
	payload []byte
	err     error
}

// connection is what a rank needs for the handshake.
type connection struct {
	member      Member
	key         []byte
	peerTimeout time.Duration
	timeout     time.Duration // for the handshake
}

// newClient does the handshake over a connection, which it closes if that fails.
func newClient(ctx context.Context, conn net.Conn, c connection) (*client, error) {
	keepalive.Set(conn, c.peerTimeout)
	_ = conn.SetDeadline(time.Now().Add(c.timeout))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	serverRank, shared, err := c.greet(conn)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	fromRank, fromServer := shared.Frames()
	k := &client{
		conn: conn, out: newOutbox(conn, fromRank), in: fromServer, serverRank: serverRank,
		places: make(chan struct{}, mostCalls), calls: map[uint32]*call{},
	}
	k.ctx, k.end = context.WithCancelCause(context.Background())
	k.running.Go(func() { k.out.run(func(frame) {}) })
	k.running.Go(k.read)
	return k, nil
}

// greet is the rank's side of a handshake.
func (c *connection) greet(conn net.Conn) (serverRank int, shared *proof.Session, err error) {
	h := hello{keyed: c.key != nil, nonce: proof.NewNonce(), rank: uint32(c.member.Rank), size: uint32(c.member.Size), job: c.member.Job}
	first := h.encode()
	if _, err := conn.Write(appendHello(nil, typeHello, first)); err != nil {
		return 0, nil, err
	}
	want := typeWelcome
	if c.key != nil {
		want = typeChallenge
	}
	got, body, err := readHello(conn, typeChallenge, typeWelcome)
	switch {
	case err != nil:
		return 0, nil, err
	case got != want:
		return 0, nil, fmt.Errorf("%w: only one side has a key", ErrUnauthorized)
	case c.key != nil:
		shared = newSession(c.key, first, body)
		if _, err := conn.Write(appendHello(nil, typeProof, shared.Seal(rankLabel, nil))); err != nil {
			return 0, nil, err
		}
		if _, body, err = readHello(conn, typeWelcome); err != nil {
			return 0, nil, err
		}
		if body, err = shared.Open(serverLabel, body); err != nil {
			return 0, nil, err
		}
	}
	serverRank, rest, err := takeRank(body)
	if err == nil && (len(rest) > 0 || serverRank >= c.member.Size) {
		err = fmt.Errorf("%w: a welcome of %d bytes that is none", ErrProtocol, len(body))
	}
	return serverRank, shared, err
}

// read takes answers and notices until the connection ends.
func (k *client) read() {
	for {
		f, err := readFrame(k.conn, k.in)
		if err == nil {
			err = k.take(f)
		} else {
			err = &LostError{k.serverRank, lossOf(err)}
		}
		if err != nil {
			k.mu.Lock()
			leaving := k.leaving
			k.mu.Unlock()
			if leaving {
				err = net.ErrClosed
			}
			k.end(err)
			k.out.breakOff()
			return
		}
	}
}

// take takes one frame. An error is the end of the job.
func (k *client) take(f frame) error {
	switch f.kind {
	case kindOK, kindError:
		k.mu.Lock()
		c := k.calls[f.id]
		delete(k.calls, f.id)
		k.mu.Unlock()
		if c == nil {
			return &LostError{k.serverRank, fmt.Errorf("%w: an answer to request %d, which is not open", ErrProtocol, f.id)}
		}
		a := answer{payload: f.payload}
		if f.kind == kindError {
			a.err = remoteError(f.payload)
		}
		c.answer <- a
		<-k.places
		return nil
	case kindLost:
		rank, text, err := takeRank(f.payload)
		if err != nil {
			return &LostError{k.serverRank, err}
		}
		return &LostError{rank, errors.New(printable(string(text)))}
	case kindClosed:
		return &LostError{k.serverRank, errors.New(printable(string(f.payload)))}
	}
	return &LostError{k.serverRank, fmt.Errorf("%w: a frame of kind %d", ErrProtocol, f.kind)}
}

// StoreError carries what the server of a store says against a call.
type StoreError struct {
	// Kind is ErrNotNumber, ErrFull or ErrProtocol, or nil.
	Kind error
	// Reason is the server's own text, made printable.
	Reason string
}

func (e *StoreError) Error() string { return "bootstrap: the store says: " + e.Reason }

// Unwrap returns Kind.
func (e *StoreError) Unwrap() error { return e.Kind }

func remoteError(payload []byte) error {
	text, kind := decodeError(payload)
	return &StoreError{Kind: kind, Reason: text}
}

// call makes a request and waits for the answer.
func (k *client) call(ctx context.Context, kind frameKind, payload []byte) ([]byte, error) {
	// One that has ended beforehand asks for nothing.
	if err := k.over(ctx); err != nil {
		return nil, err
	}
	select {
	case k.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-k.ctx.Done():
		return nil, context.Cause(k.ctx)
	}
	c := &call{answer: make(chan answer, 1)}
	k.mu.Lock()
	k.last++
	for k.last == 0 || k.calls[k.last] != nil { // 0 is for notices
		k.last++
	}
	id := k.last
	k.calls[id] = c
	k.mu.Unlock()
	k.out.put(frame{kind, id, payload}, false)
	select {
	case a := <-c.answer:
		return a.payload, a.err
	case <-k.ctx.Done():
		return nil, context.Cause(k.ctx)
	case <-ctx.Done():
	}
	// Its place is free when the answer has come. That may be there already.
	k.out.put(frame{kind: kindCancel, id: id}, false)
	select {
	case a := <-c.answer:
		return a.payload, a.err
	default:
		return nil, context.Cause(ctx)
	}
}

// over is the cause if either the job or ctx has ended.
func (k *client) over(ctx context.Context) error {
	if k.ctx.Err() != nil {
		return context.Cause(k.ctx)
	}
	return context.Cause(ctx)
}

func (k *client) Set(ctx context.Context, key string, value []byte) error {
	if err := errors.Join(CheckKey(key), CheckValue(value)); err != nil {
		return err
	}
	_, err := k.call(ctx, kindSet, pair(key, value))
	return err
}

func (k *client) Get(ctx context.Context, key string) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	return k.call(ctx, kindGet, []byte(key))
}

func (k *client) Add(ctx context.Context, key string, delta int64) (int64, error) {
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	sum, err := k.call(ctx, kindAdd, append(binary.LittleEndian.AppendUint64(nil, uint64(delta)), key...))
	if err != nil {
		return 0, err
	}
	if len(sum) != 8 {
		return 0, fmt.Errorf("%w: a sum of %d bytes", ErrProtocol, len(sum))
	}
	return int64(binary.LittleEndian.Uint64(sum)), nil
}

func (k *client) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	_, err := k.call(ctx, kindDelete, []byte(key))
	return err
}

func (k *client) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := CheckPrefix(prefix); err != nil {
		return nil, err
	}
	var keys []string
	for after := ""; ; after = keys[len(keys)-1] {
		page, err := k.call(ctx, kindKeys, pair(prefix, []byte(after)))
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return keys, nil
		}
		for len(page) > 0 {
			var key string
			if key, page, err = split(page); err != nil {
				return nil, err
			}
			if key <= after {
				return nil, fmt.Errorf("%w: keys that are not in order", ErrProtocol)
			}
			keys, after = append(keys, key), key
		}
	}
}

func (k *client) Context() context.Context { return k.ctx }

// mostGoodbye is how long the server may take to answer the bye.
const mostGoodbye = 5 * time.Second

func (k *client) Close() error {
	k.mu.Lock()
	first := !k.leaving
	k.leaving = true
	k.mu.Unlock()
	if first && k.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), mostGoodbye)
		_, _ = k.call(ctx, kindBye, nil)
		cancel()
	}
	k.end(net.ErrClosed)
	k.out.breakOff()
	k.running.Wait()
	return nil
}
