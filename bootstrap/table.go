package bootstrap

import (
	"slices"
	"strings"
	"sync"
)

// table is what a server keeps: values by key, within limits, and who waits for one.
type table struct {
	limits Limits

	mu      sync.Mutex
	values  map[string][]byte
	bytes   int64
	waiting map[string]map[*waiter]struct{}
}

// waiter waits for the value of a key. deliver must not block.
type waiter struct {
	key     string
	deliver func(value []byte)
}

func newTable(limits Limits) *table {
	return &table{limits: limits, values: map[string][]byte{}, waiting: map[string]map[*waiter]struct{}{}}
}

// set keeps value, which nobody may change any more.
func (t *table) set(key string, value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.put(key, value)
}

func (t *table) put(key string, value []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := CheckValue(value); err != nil {
		return err
	}
	old, there := t.values[key]
	keys, bytes := len(t.values), t.bytes+int64(len(value)-len(old))
	if !there {
		keys, bytes = keys+1, bytes+int64(len(key))
	}
	if keys > t.limits.Keys {
		return &LimitError{What: "the number of keys in the store", Got: int64(keys), Most: int64(t.limits.Keys), full: true}
	}
	if bytes > t.limits.Bytes {
		return &LimitError{What: "the number of bytes in the store", Got: bytes, Most: t.limits.Bytes, full: true}
	}
	if value == nil {
		value = []byte{}
	}
	t.values[key], t.bytes = value, bytes
	for w := range t.waiting[key] {
		w.deliver(value)
	}
	delete(t.waiting, key)
	return nil
}

// get has the value delivered, now or once it is there. The waiter is nil if it
// was delivered.
func (t *table) get(key string, deliver func(value []byte)) (*waiter, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if value, there := t.values[key]; there {
		deliver(value)
		return nil, nil
	}
	w := &waiter{key, deliver}
	if t.waiting[key] == nil {
		t.waiting[key] = map[*waiter]struct{}{}
	}
	t.waiting[key][w] = struct{}{}
	return w, nil
}

// forget ends a wait. It says whether nothing was delivered, and nothing will be.
func (t *table) forget(w *waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, waits := t.waiting[w.key][w]
	delete(t.waiting[w.key], w)
	if len(t.waiting[w.key]) == 0 {
		delete(t.waiting, w.key)
	}
	return waits
}

func (t *table) add(key string, delta int64) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum, value, err := AddTo(t.values[key], delta)
	if err != nil {
		return 0, err
	}
	return sum, t.put(key, value)
}

func (t *table) remove(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if value, there := t.values[key]; there {
		t.bytes -= int64(len(key) + len(value))
		delete(t.values, key)
	}
}

// keys returns those with a prefix that come after a key, sorted, while their
// lengths, with two bytes for each, are at most most together.
func (t *table) keys(prefix, after string, most int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []string
	for key := range t.values {
		if strings.HasPrefix(key, prefix) && key > after {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	for i, key := range found {
		if most -= len(key) + 2; most < 0 {
			return found[:i]
		}
	}
	return found
}

// clear forgets all values, and nobody must be waiting.
func (t *table) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.values)
	t.bytes = 0
}
