package etcd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/bootstrap/storetest"
	"github.com/weft-go/weft/internal/testenv"
)

const patience = time.Minute

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// freeURL is one where nobody listens.
func freeURL(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

// serve starts an etcd for one test.
func serve(t *testing.T) (url string) {
	t.Helper()
	program, err := exec.LookPath("etcd")
	testenv.Need(t, "etcd", err)
	url, peers := freeURL(t), freeURL(t)
	var said strings.Builder
	c := exec.Command(program, "--data-dir", t.TempDir(), "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers, "--unsafe-no-fsync")
	c.Stdout, c.Stderr = io.Discard, &said
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
		if t.Failed() {
			t.Log(said.String())
		}
	})
	client := connect(t, url)
	_, err = client.Get(deadline(t), "health")
	require.NoError(t, err)
	return url
}

func connect(t *testing.T, url string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: patience, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// openAll opens the store of all ranks, each with a client of its own.
func openAll(t *testing.T, url, prefix string, size int) []bootstrap.Store {
	t.Helper()
	stores := make([]bootstrap.Store, size)
	ctx := deadline(t)
	var opening sync.WaitGroup
	for rank := range size {
		client := connect(t, url)
		opening.Go(func() {
			var err error
			config := Config{Prefix: prefix, PeerTimeout: 4 * time.Second}
			if stores[rank], err = Open(client, config)(ctx, bootstrap.Member{Rank: rank, Size: size}); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return stores
}

func closeAll(t *testing.T, stores []bootstrap.Store) {
	var closing sync.WaitGroup
	for rank, s := range stores {
		closing.Go(func() {
			if err := s.Close(); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	closing.Wait()
}

// kill ends the signs of life.
func kill(_ *testing.T, s bootstrap.Store) {
	e := s.(*store)
	e.end(context.Canceled)
	e.stop()
	e.running.Wait()
}

func TestStore(t *testing.T) {
	url := serve(t)
	storetest.Suite{
		Open: func(t *testing.T, size int) []bootstrap.Store {
			stores := openAll(t, url, t.Name()+"/", size)
			t.Cleanup(func() { closeAll(t, stores) })
			return stores
		},
		Kill: kill,
	}.Run(t)
}

// A job leaves nothing behind, and what one that was killed has left does not count.
func TestJobs(t *testing.T) {
	url := serve(t)
	client := connect(t, url)
	for i := range 3 {
		stores := openAll(t, url, "jobs/", 3)
		keys, err := stores[1].Keys(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, keys)
		require.NoError(t, stores[0].Set(t.Context(), "key", []byte("value")))
		if i == 0 {
			for _, s := range stores {
				kill(t, s)
			}
			continue
		}
		closeAll(t, stores)
	}
	require.Eventually(t, func() bool {
		left, err := client.Get(t.Context(), "jobs/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		return err == nil && left.Count == 0
	}, patience, 10*time.Millisecond)
}

func TestJoin(t *testing.T) {
	url := serve(t)
	const size = 8
	var ranks sync.WaitGroup
	for rank := range size {
		client := connect(t, url)
		ranks.Go(func() {
			j, err := bootstrap.Join(t.Context(), bootstrap.Options{
				Rank: rank, Size: size, Job: "a job/of mine", Logger: slog.New(slog.DiscardHandler), Open: Open(client, Config{}),
			})
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
				return
			}
			for round := range 3 {
				all, err := j.Exchange(t.Context(), "values", fmt.Append(nil, rank, round))
				if err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
				for other, value := range all {
					if string(value) != fmt.Sprint(other, round) {
						t.Errorf("rank %d has %q", rank, all)
					}
				}
			}
			if err := j.Close(); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	ranks.Wait()
}

func TestMissing(t *testing.T) {
	url := serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := Open(connect(t, url), Config{})(ctx, bootstrap.Member{Rank: 1, Size: 2})
	var missing *bootstrap.MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []int{0}, missing.Ranks)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	stores := openAll(t, url, "other/", 2)
	defer closeAll(t, stores)
	_, err = Open(connect(t, url), Config{Prefix: "other/", PeerTimeout: time.Second})(t.Context(), bootstrap.Member{Size: 1})
	var wrong *bootstrap.ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "PeerTimeout", wrong.Field)
}
