package bootstrap

import (
	"context"
	"math"
	"strconv"
	"strings"
)

// What any store takes. A server has bounds on the sum, too; see [Limits].
const (
	// MaxKey is the length of the longest key, in bytes.
	MaxKey = 120
	// MaxValue is the length of the longest value, in bytes.
	MaxValue = 1 << 20
	// MaxSize is the size of the largest job.
	MaxSize = 1 << 16
)

// Store is what the ranks of a job have in common: values by key. Keys have 1 to
// MaxKey bytes and values up to MaxValue, or the call fails with a [LimitError].
// Those that begin with "weft/" are the job's own.
//
// All calls may be made at the same time. They end with the context's cause when ctx
// ends, and with that of Context when the job ends. Neither keys nor values are kept
// by the store beyond the call; what it returns is the caller's.
//
// What a store must do is what the suite of package storetest asks.
type Store interface {
	// Set gives a key a value, whether or not it had one.
	Set(ctx context.Context, key string, value []byte) error
	// Get returns the value of a key, and waits until there is one.
	Get(ctx context.Context, key string) ([]byte, error)
	// Add adds to a number, which is 0 where the key has no value, and returns the
	// sum; each call counts once, whoever else adds. The value is the number in
	// decimal; one that is no number, and a sum beyond 64 bits, are an
	// [ErrNotNumber]. Nobody should Set or Delete the key at the same time, and a
	// store may refuse to Set it afterwards, with errors.ErrUnsupported.
	Add(ctx context.Context, key string, delta int64) (int64, error)
	// Delete removes a key, if it is there.
	Delete(ctx context.Context, key string) error
	// Keys returns the keys there are that begin with a prefix, sorted. The prefix
	// may be empty.
	Keys(ctx context.Context, prefix string) ([]string, error)
	// Context ends when the job does. Its cause is a *[LostError] where a rank, or
	// the store, was lost, and net.ErrClosed after Close.
	Context() context.Context
	// Close leaves the job in order: this rank is not lost. Where this rank serves
	// the store, Close waits until all others have left as well, for as long as it
	// was told at most. All calls after the first return nil.
	Close() error
}

// Limits bounds what the server of a store keeps. A Set or Add beyond that fails
// with [ErrFull].
type Limits struct {
	// Keys is the number of keys. 0 means 262144.
	Keys int
	// Bytes is the sum of the lengths of keys and values. 0 means 256 MiB.
	Bytes int64
}

func (l Limits) withDefaults() Limits {
	if l.Keys == 0 {
		l.Keys = 1 << 18
	}
	if l.Bytes == 0 {
		l.Bytes = 256 << 20
	}
	return l
}

// CheckKey returns a [LimitError] for a key that no store takes. It is for those who
// write one, as are CheckPrefix, CheckValue and AddTo.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return &LimitError{What: "the length of a key", Got: int64(len(key)), Least: 1, Most: MaxKey}
	}
	return nil
}

// CheckPrefix is CheckKey for a prefix, which may be empty.
func CheckPrefix(prefix string) error {
	if len(prefix) > MaxKey {
		return &LimitError{What: "the length of a prefix", Got: int64(len(prefix)), Most: MaxKey}
	}
	return nil
}

// CheckValue returns a [LimitError] for a value that no store takes.
func CheckValue(value []byte) error {
	if len(value) > MaxValue {
		return &LimitError{What: "the length of a value", Got: int64(len(value)), Most: MaxValue}
	}
	return nil
}

// AddTo is what Add does to a value: it returns the sum, and that as a value. nil is
// no value.
func AddTo(value []byte, delta int64) (int64, []byte, error) {
	var n int64
	if value != nil {
		var err error
		if n, err = strconv.ParseInt(string(value), 10, 64); err != nil {
			return 0, nil, ErrNotNumber
		}
	}
	if delta > 0 && n > math.MaxInt64-delta || delta < 0 && n < math.MinInt64-delta {
		return 0, nil, ErrNotNumber
	}
	n += delta
	return n, strconv.AppendInt(nil, n, 10), nil
}

// printable keeps text from elsewhere from doing things to a terminal.
func printable(text string) string {
	quoted := strconv.QuoteToASCII(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
