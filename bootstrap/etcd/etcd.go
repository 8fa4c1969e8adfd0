// Package etcd has the ranks of a job find each other in etcd: it is a store for
// package bootstrap, in a module of its own, so that who does not use it needs
// nothing of it.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
//	...
//	job, err := bootstrap.Join(ctx, bootstrap.Options{Open: etcd.Open(client, etcd.Config{})})
//
// Everything that a job leaves has a lease that its ranks keep alive, so that it goes
// with them, however they end.
package etcd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weft-go/weft/bootstrap"
)

// Config says how to use etcd. The zero value works.
type Config struct {
	// Prefix is where all keys are; empty means "weft/". Jobs at the same time need
	// another one each, unless they have names.
	Prefix string
	// PeerTimeout is after how long without a sign of life a rank is lost: whole
	// seconds, at least 4. 0 means 10 s.
	PeerTimeout time.Duration
}

// Open opens the stores of jobs, as Options.Open of package bootstrap. The client
// stays the caller's, and must be open for as long as the job is.
func Open(client *clientv3.Client, config Config) func(context.Context, bootstrap.Member) (bootstrap.Store, error) {
	return func(ctx context.Context, m bootstrap.Member) (bootstrap.Store, error) {
		if config.Prefix == "" {
			config.Prefix = "weft/"
		}
		if config.PeerTimeout == 0 {
			config.PeerTimeout = 10 * time.Second
		}
		if config.PeerTimeout < 4*time.Second || config.PeerTimeout > 24*time.Hour {
			return nil, &bootstrap.ConfigError{Field: "PeerTimeout", Detail: fmt.Sprintf("%v, it must be from 4s to 24h", config.PeerTimeout)}
		}
		return open(ctx, client, config, m)
	}
}

// store is a job's. Below the prefix and the name of the job there are
//
//	hello/RANK            who is that rank now: a nonce of its own
//	session               what rank 0 says: the name of the session, its lease, and
//	                      all nonces
//	s/NAME/alive/RANK     lives as long as the rank
//	s/NAME/left/RANK      the rank has left in order
//	s/NAME/v/KEY          a value
//
// A rank goes by a session only if its own nonce is in it, so that what a job before
// has left does not count.
type store struct {
	client *clientv3.Client
	member bootstrap.Member
	nonce  string
	root   string // of the job
	base   string // of the session

	seconds        int64 // of each lease
	alive, session clientv3.LeaseID

	ctx     context.Context
	end     context.CancelCauseFunc
	stop    context.CancelFunc // of what runs beside
	running sync.WaitGroup
	close   sync.Once
}

func open(ctx context.Context, client *clientv3.Client, config Config, m bootstrap.Member) (_ *store, err error) {
	s := &store{client: client, member: m, nonce: newNonce(), root: config.Prefix, seconds: int64(math.Ceil(config.PeerTimeout.Seconds()))}
	if m.Job != "" {
		s.root += hex.EncodeToString([]byte(m.Job)) + "/"
	}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	beside, stop := context.WithCancel(context.Background())
	s.stop = stop
	defer func() {
		if err != nil {
			s.abandon()
		}
	}()
	if s.alive, err = s.lease(ctx, beside); err != nil {
		return nil, err
	}
	if m.Rank == 0 {
		if s.session, err = s.lease(ctx, beside); err != nil {
			return nil, err
		}
		s.base = s.root + "s/" + s.nonce + "/"
	} else if err = s.findSession(ctx, beside); err != nil {
		return nil, err
	}
	if _, err = client.Put(ctx, s.rankKey("alive", m.Rank), s.nonce, clientv3.WithLease(s.alive)); err != nil {
		return nil, s.failed(ctx, err)
	}
	if m.Rank == 0 {
		s.running.Go(func() { s.convene(beside) })
	}
	s.running.Go(func() { s.watch(beside) })
	return s, nil
}

// abandon takes back what open has begun.
func (s *store) abandon() {
	s.end(net.ErrClosed)
	s.stop()
	s.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), mostLeaving)
	defer cancel()
	for _, lease := range []clientv3.LeaseID{s.alive, s.session} {
		if lease != clientv3.NoLease && (lease == s.alive || s.member.Rank == 0) {
			_, _ = s.client.Revoke(ctx, lease) // or it ends by itself
		}
	}
}

func newNonce() string {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return hex.EncodeToString(nonce[:])
}

// lease makes a lease and keeps it alive.
func (s *store) lease(ctx, beside context.Context) (clientv3.LeaseID, error) {
	granted, err := s.client.Grant(ctx, s.seconds)
	if err != nil {
		return clientv3.NoLease, s.failed(ctx, err)
	}
	return granted.ID, s.keep(beside, granted.ID)
}

// keep keeps a lease alive. If that does not work any more, the store is lost.
func (s *store) keep(beside context.Context, lease clientv3.LeaseID) error {
	kept, err := s.client.KeepAlive(beside, lease)
	if err != nil {
		return err
	}
	s.running.Go(func() {
		for range kept {
		}
		if beside.Err() == nil {
			s.end(&bootstrap.LostError{Rank: -1, Cause: fmt.Errorf("etcd has not kept a lease of %d s alive", s.seconds)})
		}
	})
	return nil
}

func (s *store) rankKey(what string, rank int) string {
	return s.base + what + "/" + strconv.Itoa(rank)
}
func (s *store) helloKey(rank int) string { return s.root + "hello/" + strconv.Itoa(rank) }

// findSession says hello, and waits until rank 0 has this rank in its session.
func (s *store) findSession(ctx, beside context.Context) error {
	hello := s.helloKey(s.member.Rank)
	if _, err := s.client.Put(ctx, hello, s.nonce, clientv3.WithLease(s.alive)); err != nil {
		return s.failed(ctx, err)
	}
	began := time.Now()
	var lease clientv3.LeaseID
	err := s.observe(ctx, s.root+"session", func(found *clientv3.GetResponse) (bool, error) {
		if len(found.Kvs) > 0 {
			name, of, nonces := parseSession(string(found.Kvs[0].Value))
			if s.member.Rank < len(nonces) && nonces[s.member.Rank] == s.nonce {
				if len(nonces) != s.member.Size {
					return false, fmt.Errorf("%w: it has %d ranks, and this rank's has %d", bootstrap.ErrOtherJob, len(nonces), s.member.Size)
				}
				s.base, lease = s.root+"s/"+name+"/", of
				return true, nil
			}
		}
		mine, err := s.client.Get(ctx, hello)
		if err == nil && (len(mine.Kvs) == 0 || string(mine.Kvs[0].Value) != s.nonce) {
			err = fmt.Errorf("%w: another process says below %s that it is rank %d", bootstrap.ErrRankTaken, s.root, s.member.Rank)
		}
		return false, err
	})
	if err != nil {
		if ctx.Err() != nil {
			return &bootstrap.MissingError{Name: s.root, Ranks: []int{0}, Size: s.member.Size, After: time.Since(began), Err: err}
		}
		return err
	}
	// Everybody keeps it alive, so that it goes with the last one.
	s.session = lease
	return s.keep(beside, lease)
}

// sessionText is what rank 0 says of its session.
func sessionText(name string, lease clientv3.LeaseID, nonces []string) string {
	return name + "\n" + strconv.FormatInt(int64(lease), 10) + "\n" + strings.Join(nonces, "\n")
}

func parseSession(text string) (name string, lease clientv3.LeaseID, nonces []string) {
	lines := strings.Split(text, "\n")
	if len(lines) < 3 || lines[0] == "" {
		return "", 0, nil
	}
	id, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return "", 0, nil
	}
	return lines[0], clientv3.LeaseID(id), lines[2:]
}

// convene is what rank 0 does: it tells who is in the session, until all are in it.
func (s *store) convene(ctx context.Context) {
	nonces := make([]string, s.member.Size)
	told := ""
	err := s.observe(ctx, s.root, func(*clientv3.GetResponse) (bool, error) {
		here, err := s.ranks(ctx, s.base+"alive/")
		if err != nil {
			return false, err
		}
		hellos, err := s.ranks(ctx, s.root+"hello/")
		if err != nil {
			return false, err
		}
		all := true
		for rank := 1; rank < s.member.Size; rank++ {
			if here[rank] == "" {
				all = false
				if hellos[rank] != "" {
					nonces[rank] = hellos[rank]
				}
			}
		}
		text := sessionText(s.nonce, s.session, nonces)
		if told != "" {
			now, err := s.client.Get(ctx, s.root+"session")
			if err != nil {
				return false, err
			}
			if len(now.Kvs) == 0 || string(now.Kvs[0].Value) != told {
				return false, fmt.Errorf("%w: another process says below %s that it is rank 0", bootstrap.ErrRankTaken, s.root)
			}
		}
		if !all && text != told {
			_, err = s.client.Put(ctx, s.root+"session", text, clientv3.WithLease(s.session))
			told = text
		}
		return all, err
	}, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil && ctx.Err() == nil {
		s.end(err)
	}
}

// ranks returns the values below a prefix by rank.
func (s *store) ranks(ctx context.Context, prefix string) (map[int]string, error) {
	found, err := s.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	ranks := map[int]string{}
	for _, kv := range found.Kvs {
		if rank, err := strconv.Atoi(strings.TrimPrefix(string(kv.Key), prefix)); err == nil {
			ranks[rank] = string(kv.Value)
		}
	}
	return ranks, nil
}

// observe looks at something now and whenever it has changed, until check is done.
func (s *store) observe(ctx context.Context, key string, check func(*clientv3.GetResponse) (bool, error), options ...clientv3.OpOption) error {
	for {
		found, err := s.client.Get(ctx, key, options...)
		if err != nil {
			return s.failed(ctx, err)
		}
		if done, err := check(found); done || err != nil {
			return err
		}
		watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
		changes := s.client.Watch(watching, key, append(options[:len(options):len(options)], clientv3.WithRev(found.Header.Revision+1))...)
		_, open := <-changes // whatever it was: the next look tells
		stop()
		if !open && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// watch ends the job when a rank is lost.
func (s *store) watch(ctx context.Context) {
	prefix := s.base + "alive/"
	seen := map[int]bool{}
	err := s.observe(ctx, prefix, func(*clientv3.GetResponse) (bool, error) {
		here, err := s.ranks(ctx, prefix)
		if err != nil {
			return false, err
		}
		for rank := range here {
			seen[rank] = true
		}
		for rank := range seen {
			if here[rank] != "" {
				continue
			}
			left, err := s.client.Get(ctx, s.rankKey("left", rank))
			if err != nil {
				return false, err
			}
			if len(left.Kvs) == 0 {
				return false, &bootstrap.LostError{Rank: rank, Cause: fmt.Errorf("it has given no sign of life for %d s", s.seconds)}
			}
			delete(seen, rank)
		}
		return false, nil
	}, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err == nil || ctx.Err() != nil {
		return
	}
	var loss *bootstrap.LostError
	if !errors.As(err, &loss) {
		err = &bootstrap.LostError{Rank: -1, Cause: err}
	}
	s.end(err)
}
