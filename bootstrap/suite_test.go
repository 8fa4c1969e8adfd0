package bootstrap

import (
	"sync"
	"testing"
	"time"

	"github.com/weft-go/weft/internal/keepalive"
)

// testStores opens the stores of all ranks, and closes them in the end.
func testStores(t *testing.T, size int, open func(m Member) (Store, error)) []Store {
	t.Helper()
	stores := make([]Store, size)
	each(size, func(rank int) {
		var err error
		if stores[rank], err = open(Member{Rank: rank, Size: size}); err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		var closing sync.WaitGroup
		for _, s := range stores {
			closing.Go(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closing.Wait()
	})
	return stores
}

// openTCP opens stores over TCP, which rank 0 serves.
func openTCP(key []byte) func(t *testing.T, size int) []Store {
	return func(t *testing.T, size int) []Store {
		at := freeAddress(t)
		return testStores(t, size, func(m Member) (Store, error) {
			o, err := optionsOf(m.Rank, m.Size, at).withDefaults()
			if err != nil {
				return nil, err
			}
			o.Key = key
			s, _, err := o.open(deadline(t), m)
			return s, err
		})
	}
}

// shortTimeout is the shortest there is.
const shortTimeout = keepalive.Least

func openFolders(t *testing.T, size int) []Store {
	folder := t.TempDir()
	return testStores(t, size, func(m Member) (Store, error) {
		return openFolder(deadline(t), folder, m, shortTimeout, 20*time.Second)
	})
}

// killClient ends a connection as the end of the process would.
func killClient(_ *testing.T, s Store) {
	switch s := s.(type) {
	case *client:
		_ = s.conn.Close()
	case *hosted:
		_ = s.server.listener.Close()
		_ = s.client.conn.Close()
	}
}

// killFolder stops the signs of life.
func killFolder(_ *testing.T, s Store) {
	f := s.(*folder)
	f.end(errKilled)
	f.running.Wait()
}
