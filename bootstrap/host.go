package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// hosted is the store of the rank that serves it.
type hosted struct {
	*client
	server       *Server
	closeTimeout time.Duration
}

// Close leaves, waits until the others have left, and ends the server.
func (h *hosted) Close() error {
	_ = h.client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), h.closeTimeout)
	defer cancel()
	_ = h.server.Drain(ctx) // who is still there is told by the end of the server
	return h.server.closeFor("it has left the job, and served the store until then")
}

// giveUp is Close without waiting, where the job has not come about.
func (h *hosted) giveUp(why error) {
	text := bare(why)
	_ = h.server.closeFor(text[:min(len(text), mostReason)])
	_ = h.client.Close()
}

// host serves the store in this process and joins it.
func (o *Options) host(ctx context.Context, m Member, a address, key []byte) (Store, error) {
	var listener net.Listener
	if a.tcp != "" {
		at, err := listenAt(a.tcp)
		if err == nil {
			listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", at)
		}
		if err != nil {
			return nil, fmt.Errorf("bootstrap: rank 0 cannot serve the store at %s: %w", a.text, err)
		}
	}
	server, err := Serve(listener, ServerConfig{
		Size: m.Size, Host: &m.Rank, Job: m.Job, Key: key, PeerTimeout: o.PeerTimeout, Limits: o.Limits, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	conn, err := server.connect()
	if err != nil {
		return nil, err
	}
	k, err := newClient(ctx, conn, o.connection(m, key))
	if err != nil {
		_ = server.Close()
		return nil, err
	}
	return &hosted{client: k, server: server, closeTimeout: o.CloseTimeout}, nil
}

func (o *Options) connection(m Member, key []byte) connection {
	return connection{member: m, key: key, peerTimeout: o.PeerTimeout, timeout: 5 * time.Second}
}

// dial joins a store that another process serves, which may not have begun.
func (o *Options) dial(ctx context.Context, m Member, a address, key []byte) (Store, error) {
	began, last := time.Now(), error(nil)
	for nap := newNap(500 * time.Millisecond); ; {
		k, err := o.tryDial(ctx, m, a, key)
		if err == nil {
			return k, nil
		}
		if isFinal(err) {
			return nil, &joinError{a.text, err}
		}
		if last == nil || ctx.Err() == nil {
			last = err // and not that the time is up, which says less
		}
		if nap.wait(ctx) == nil {
			continue
		}
		if a.served {
			return nil, fmt.Errorf("bootstrap: the store at %s has not answered: %w", a.text, errors.Join(context.Cause(ctx), last))
		}
		return nil, &MissingError{Name: a.text, Ranks: []int{0}, Size: m.Size, After: time.Since(began), Err: errors.Join(context.Cause(ctx), last)}
	}
}

func (o *Options) tryDial(ctx context.Context, m Member, a address, key []byte) (Store, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", a.tcp)
	if err != nil {
		return nil, err
	}
	k, err := newClient(ctx, conn, o.connection(m, key))
	if err != nil {
		return nil, err
	}
	return k, nil
}

// isFinal says that it is of no use to try again.
func isFinal(err error) bool {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return !errors.Is(refused.Kind, errEnding)
	}
	var foreign *NotStoreError
	if errors.As(err, &foreign) {
		return len(foreign.Got) > 0
	}
	return errors.Is(err, ErrProtocol) || errors.Is(err, ErrUnauthorized)
}

// nap grows, so that what comes soon is seen soon, and what comes late costs little.
type nap struct{ next, most time.Duration }

func newNap(most time.Duration) *nap { return &nap{min(time.Millisecond, most), most} }

// wait returns the cause of ctx if that ends before.
func (n *nap) wait(ctx context.Context) error {
	timer := time.NewTimer(n.next)
	defer timer.Stop()
	n.next = min(n.next+n.next/2, n.most)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
