// Package storetest is what a bootstrap.Store must do, as tests.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-go/weft/bootstrap"
)

// Suite tests one kind of store.
type Suite struct {
	// Open opens the store of a new job, once for each of its ranks, and returns
	// them by rank. It closes them in a cleanup, all at the same time, since a rank
	// may wait for the others.
	Open func(t *testing.T, size int) []bootstrap.Store
	// Kill ends a rank as the end of its process would.
	Kill func(t *testing.T, s bootstrap.Store)
}

// patience is far beyond what any store needs.
const patience = time.Minute

// Run runs all tests.
func (s Suite) Run(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s Suite)
	}{
		{"Values", values},
		{"GetWaits", getWaits},
		{"GetIsCancelled", getIsCancelled},
		{"ManyGets", manyGets},
		{"Sums", sums},
		{"NotNumbers", notNumbers},
		{"Delete", remove},
		{"Keys", keys},
		{"ManyKeys", manyKeys},
		{"Limits", limits},
		{"Memory", memory},
		{"Close", closeOne},
		{"Lost", lost},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, s bootstrap.Store, key, value string) {
	t.Helper()
	got, err := s.Get(deadline(t), key)
	check(t, err)
	if string(got) != value {
		t.Fatalf("%q is %q, want %q", key, got, value)
	}
}

func values(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 2), deadline(t)
	check(t, s[0].Set(ctx, "one", []byte("first")))
	want(t, s[0], "one", "first")
	want(t, s[1], "one", "first")
	check(t, s[1].Set(ctx, "one", []byte("second")))
	want(t, s[0], "one", "second")
	check(t, s[1].Set(ctx, "empty", nil))
	want(t, s[0], "empty", "")
	// Any bytes will do as a key.
	odd := "/../%\x00\n é" + string([]byte{0xff})
	check(t, s[0].Set(ctx, odd, []byte("odd")))
	want(t, s[1], odd, "odd")
	all, err := s[1].Keys(ctx, "/..")
	check(t, err)
	if !slices.Equal(all, []string{odd}) {
		t.Fatalf("keys are %q", all)
	}
}

func getWaits(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 2), deadline(t)
	var gets sync.WaitGroup
	began := make(chan struct{}, 4)
	for i := range 4 {
		gets.Go(func() {
			began <- struct{}{}
			got, err := s[i%2].Get(ctx, "late")
			if err != nil || string(got) != "value" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	for range 4 {
		<-began
	}
	check(t, s[0].Set(ctx, "late", []byte("value")))
	gets.Wait()
}

func getIsCancelled(t *testing.T, suite Suite) {
	s := suite.Open(t, 2)
	cause := errors.New("the cause")
	// More than can be open at a time, so that places must come back.
	for range 300 {
		ctx, cancel := context.WithCancelCause(deadline(t))
		done := make(chan error)
		go func() {
			_, err := s[1].Get(ctx, "never")
			done <- err
		}()
		cancel(cause)
		if err := <-done; !errors.Is(err, cause) {
			t.Fatalf("the error is %v", err)
		}
	}
	check(t, s[1].Set(deadline(t), "never", []byte("now")))
	want(t, s[1], "never", "now")
}

func manyGets(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 2), deadline(t)
	var gets sync.WaitGroup
	for i := range 200 {
		gets.Go(func() {
			got, err := s[1].Get(ctx, fmt.Sprint("many", i))
			if err != nil || string(got) != fmt.Sprint(i) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	// From the last one on, and those that wait need not be the first.
	for i := range 200 {
		check(t, s[0].Set(ctx, fmt.Sprint("many", 199-i), []byte(fmt.Sprint(199-i))))
	}
	gets.Wait()
}

func sums(t *testing.T, suite Suite) {
	const each = 25
	s, ctx := suite.Open(t, 4), deadline(t)
	seen := make([][]int64, len(s))
	var adds sync.WaitGroup
	for rank := range s {
		adds.Go(func() {
			for range each {
				sum, err := s[rank].Add(ctx, "sum", 3)
				if err != nil {
					t.Error(err)
					return
				}
				seen[rank] = append(seen[rank], sum)
			}
		})
	}
	adds.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(seen...)))
	if len(all) != each*len(s) {
		t.Fatalf("%d sums", len(all))
	}
	for i, sum := range all {
		if sum != int64(3*(i+1)) {
			t.Fatalf("sum %d is %d", i, sum)
		}
	}
	want(t, s[1], "sum", fmt.Sprint(3*each*len(s)))
	sum, err := s[0].Add(ctx, "sum", -1000)
	check(t, err)
	if sum != 3*each*4-1000 {
		t.Fatalf("the sum is %d", sum)
	}
	want(t, s[1], "sum", fmt.Sprint(sum))
	// It may begin with a value.
	check(t, s[0].Set(ctx, "begun", []byte("40")))
	sum, err = s[1].Add(ctx, "begun", 2)
	check(t, err)
	if sum != 42 {
		t.Fatalf("the sum is %d", sum)
	}
	check(t, s[0].Delete(ctx, "begun"))
	sum, err = s[0].Add(ctx, "begun", 7)
	check(t, err)
	if sum != 7 {
		t.Fatalf("the sum is %d", sum)
	}
}

func notNumbers(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 1), deadline(t)
	check(t, s[0].Set(ctx, "text", []byte("no number")))
	check(t, s[0].Set(ctx, "most", []byte("9223372036854775807")))
	for key, delta := range map[string]int64{"text": 1, "most": 1} {
		if _, err := s[0].Add(ctx, key, delta); !errors.Is(err, bootstrap.ErrNotNumber) {
			t.Fatalf("adding to %s: %v", key, err)
		}
	}
	want(t, s[0], "text", "no number")
	want(t, s[0], "most", "9223372036854775807")
}

func remove(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 2), deadline(t)
	check(t, s[0].Delete(ctx, "not there"))
	check(t, s[0].Set(ctx, "key", []byte("value")))
	check(t, s[1].Delete(ctx, "key"))
	all, err := s[0].Keys(ctx, "")
	check(t, err)
	if slices.Contains(all, "key") {
		t.Fatal("it is still there")
	}
	got := make(chan string)
	go func() {
		value, err := s[0].Get(ctx, "key")
		if err != nil {
			t.Error(err)
		}
		got <- string(value)
	}()
	check(t, s[1].Set(ctx, "key", []byte("again")))
	if value := <-got; value != "again" {
		t.Fatalf("it is %q", value)
	}
}

func keys(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 2), deadline(t)
	for _, key := range []string{"b/2", "a", "b/10", "b", "c"} {
		check(t, s[0].Set(ctx, key, []byte("value")))
	}
	_, err := s[1].Add(ctx, "b/sum", 1)
	check(t, err)
	for prefix, expected := range map[string][]string{
		"b/": {"b/10", "b/2", "b/sum"},
		"b":  {"b", "b/10", "b/2", "b/sum"},
		"d":  nil,
	} {
		got, err := s[1].Keys(ctx, prefix)
		check(t, err)
		if !slices.Equal(got, expected) {
			t.Fatalf("%q has %q, want %q", prefix, got, expected)
		}
	}
}

func manyKeys(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 1), deadline(t)
	// Of the greatest length, so that they do not fit into one answer where that has
	// a bound.
	const many = 400
	name := func(i int) string { return fmt.Sprintf("%0*d", bootstrap.MaxKey, i) }
	var sets sync.WaitGroup
	for part := range 4 {
		sets.Go(func() {
			for i := part; i < many; i += 4 {
				if err := s[0].Set(ctx, name(i), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sets.Wait()
	got, err := s[0].Keys(ctx, "0")
	check(t, err)
	if len(got) != many {
		t.Fatalf("there are %d keys", len(got))
	}
	for i, key := range got {
		if key != name(i) {
			t.Fatalf("key %d is %q", i, key)
		}
	}
}

func limits(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 2), deadline(t)
	key, value := strings.Repeat("k", bootstrap.MaxKey), bytes.Repeat([]byte("v"), bootstrap.MaxValue)
	check(t, s[0].Set(ctx, key, value))
	got, err := s[1].Get(ctx, key)
	check(t, err)
	if !bytes.Equal(got, value) {
		t.Fatalf("the longest value came as %d bytes", len(got))
	}
	for what, call := range map[string]func() error{
		"set no key":     func() error { return s[0].Set(ctx, "", nil) },
		"set long key":   func() error { return s[0].Set(ctx, key+"k", nil) },
		"set long value": func() error { return s[0].Set(ctx, "key", append(value, 'v')) },
		"get no key":     func() error { _, err := s[0].Get(ctx, ""); return err },
		"get long key":   func() error { _, err := s[0].Get(ctx, key+"k"); return err },
		"add no key":     func() error { _, err := s[0].Add(ctx, "", 1); return err },
		"add long key":   func() error { _, err := s[0].Add(ctx, key+"k", 1); return err },
		"delete no key":  func() error { return s[0].Delete(ctx, "") },
		"long prefix":    func() error { _, err := s[0].Keys(ctx, key+"k"); return err },
	} {
		var limit *bootstrap.LimitError
		if err := call(); !errors.As(err, &limit) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func memory(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 1), deadline(t)
	value := []byte("value")
	check(t, s[0].Set(ctx, "key", value))
	copy(value, "other")
	got, err := s[0].Get(ctx, "key")
	check(t, err)
	if string(got) != "value" {
		t.Fatalf("it is %q", got)
	}
	copy(got, "other")
	want(t, s[0], "key", "value")
}

func closeOne(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 3), deadline(t)
	check(t, s[0].Set(ctx, "key", []byte("value")))
	waiting := make(chan error)
	go func() {
		_, err := s[2].Get(ctx, "never")
		waiting <- err
	}()
	check(t, s[2].Close())
	check(t, s[2].Close())
	if err := <-waiting; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a call that waited: %v", err)
	}
	if cause := context.Cause(s[2].Context()); !errors.Is(cause, net.ErrClosed) {
		t.Errorf("the cause is %v", cause)
	}
	for what, call := range map[string]func() error{
		"set":    func() error { return s[2].Set(ctx, "key", nil) },
		"get":    func() error { _, err := s[2].Get(ctx, "key"); return err },
		"add":    func() error { _, err := s[2].Add(ctx, "key", 1); return err },
		"delete": func() error { return s[2].Delete(ctx, "key") },
		"keys":   func() error { _, err := s[2].Keys(ctx, "key"); return err },
	} {
		if err := call(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
	// The others go on.
	want(t, s[1], "key", "value")
	for rank := range 2 {
		if err := s[rank].Context().Err(); err != nil {
			t.Errorf("rank %d: %v", rank, context.Cause(s[rank].Context()))
		}
	}
}

func lost(t *testing.T, suite Suite) {
	s, ctx := suite.Open(t, 4), deadline(t)
	waiting := make(chan error, len(s))
	for _, rank := range []int{0, 1, 3} {
		go func() {
			_, err := s[rank].Get(ctx, "never")
			waiting <- err
		}()
	}
	suite.Kill(t, s[2])
	for range 3 {
		var loss *bootstrap.LostError
		if err := <-waiting; !errors.As(err, &loss) || loss.Rank != 2 {
			t.Fatalf("the error is %v", err)
		}
	}
	for _, rank := range []int{0, 1, 3} {
		<-s[rank].Context().Done()
		var loss *bootstrap.LostError
		if cause := context.Cause(s[rank].Context()); !errors.As(cause, &loss) || loss.Rank != 2 {
			t.Fatalf("the cause on rank %d is %v", rank, cause)
		}
		if err := s[rank].Set(ctx, "key", nil); !errors.As(err, &loss) {
			t.Fatalf("set: %v", err)
		}
	}
}
