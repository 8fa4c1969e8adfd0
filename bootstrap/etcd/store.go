package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weft-go/weft/bootstrap"
)

// failed is an error of etcd's, or how ctx or the job has ended meanwhile.
func (s *store) failed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("bootstrap: etcd: %w", err)
}

// both is a context that ends with ctx and with the job.
func (s *store) both(ctx context.Context) (context.Context, func()) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return both, func() { stop(); cancel(nil) }
}

// do makes calls of etcd's with a context that ends with the job as well.
func (s *store) do(ctx context.Context, call func(ctx context.Context) error) error {
	// Before anything is sent: what follows is only told of an end in its time.
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	both, done := s.both(ctx)
	defer done()
	err := call(both)
	if errors.Is(err, bootstrap.ErrNotNumber) {
		return err
	}
	return s.failed(ctx, err)
}

func (s *store) valueKey(key string) string { return s.base + "v/" + key }

func (s *store) Set(ctx context.Context, key string, value []byte) error {
	if err := errors.Join(bootstrap.CheckKey(key), bootstrap.CheckValue(value)); err != nil {
		return err
	}
	return s.do(ctx, func(ctx context.Context) error {
		_, err := s.client.Put(ctx, s.valueKey(key), string(value), clientv3.WithLease(s.session))
		return err
	})
}

func (s *store) Get(ctx context.Context, key string) (value []byte, err error) {
	if err := bootstrap.CheckKey(key); err != nil {
		return nil, err
	}
	err = s.do(ctx, func(ctx context.Context) error {
		return s.observe(ctx, s.valueKey(key), func(found *clientv3.GetResponse) (bool, error) {
			if len(found.Kvs) == 0 {
				return false, nil
			}
			value = append([]byte{}, found.Kvs[0].Value...)
			return true, nil
		})
	})
	return value, err
}

func (s *store) Add(ctx context.Context, key string, delta int64) (sum int64, err error) {
	if err := bootstrap.CheckKey(key); err != nil {
		return 0, err
	}
	name := s.valueKey(key)
	err = s.do(ctx, func(ctx context.Context) error {
		for {
			found, err := s.client.Get(ctx, name)
			if err != nil {
				return err
			}
			var value []byte
			var revision int64
			if len(found.Kvs) > 0 {
				value, revision = append([]byte{}, found.Kvs[0].Value...), found.Kvs[0].ModRevision
			}
			if sum, value, err = bootstrap.AddTo(value, delta); err != nil {
				return err
			}
			done, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(name), "=", revision)).
				Then(clientv3.OpPut(name, string(value), clientv3.WithLease(s.session))).Commit()
			if err != nil || done.Succeeded {
				return err
			}
		}
	})
	if err != nil {
		return 0, err
	}
	return sum, nil
}

func (s *store) Delete(ctx context.Context, key string) error {
	if err := bootstrap.CheckKey(key); err != nil {
		return err
	}
	return s.do(ctx, func(ctx context.Context) error {
		_, err := s.client.Delete(ctx, s.valueKey(key))
		return err
	})
}

func (s *store) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	if err := bootstrap.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	err = s.do(ctx, func(ctx context.Context) error {
		found, err := s.client.Get(ctx, s.valueKey(prefix), clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		for _, kv := range found.Kvs { // sorted
			keys = append(keys, strings.TrimPrefix(string(kv.Key), s.valueKey("")))
		}
		return nil
	})
	return keys, err
}

func (s *store) Context() context.Context { return s.ctx }

// mostLeaving is how long etcd may take when a rank leaves. If it takes longer, the
// rank is lost to the others.
const mostLeaving = 5 * time.Second

// Close leaves. The last rank removes everything.
func (s *store) Close() error {
	var err error
	s.close.Do(func() {
		lost := s.ctx.Err() != nil
		s.end(net.ErrClosed)
		if !lost {
			err = s.leave()
		}
		s.stop()
		s.running.Wait()
	})
	return err
}

func (s *store) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), mostLeaving)
	defer cancel()
	_, err := s.client.Txn(ctx).Then(
		clientv3.OpPut(s.rankKey("left", s.member.Rank), "", clientv3.WithLease(s.session)),
		clientv3.OpDelete(s.rankKey("alive", s.member.Rank)),
	).Commit()
	if err != nil {
		return fmt.Errorf("bootstrap: cannot leave the job in etcd: %w", err)
	}
	left, err := s.client.Get(ctx, s.base+"left/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err == nil && left.Count == int64(s.member.Size) {
		// Two that leave at the same time may both be the last.
		if _, err = s.client.Revoke(ctx, s.session); errors.Is(err, rpctypes.ErrLeaseNotFound) {
			err = nil
		}
	}
	_, revokeErr := s.client.Revoke(ctx, s.alive)
	if err = errors.Join(err, revokeErr); err != nil {
		return fmt.Errorf("bootstrap: cannot remove what the job left in etcd: %w", err)
	}
	return nil
}
