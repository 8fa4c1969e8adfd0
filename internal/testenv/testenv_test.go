package testenv_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weft-go/weft/internal/testenv"
)

func TestNeed(t *testing.T) {
	missing := errors.New("no such device")
	for _, c := range []struct {
		name, require, what string
		err                 error
		want                string
	}{
		{"there", "efa", "efa", nil, ""},
		{"nothing required", "", "efa", missing, "skip: efa: no such device"},
		{"another required", "sockets,shm", "efa", missing, "skip: efa: no such device"},
		{"required", "sockets, efa", "efa", missing, "fail: efa is missing, but WEFT_REQUIRE requires it: no such device"},
		{"required by its core", "tcp", "tcp;ofi_rxm", missing, "fail: tcp;ofi_rxm is missing, but WEFT_REQUIRE requires it: no such device"},
		{"part of a name", "efa-direct", "efa", missing, "skip: efa: no such device"},
		{"known of one that is required", "tcp", "tcp;ofi_rxm with aliases", missing, "skip: tcp;ofi_rxm with aliases: no such device"},
		{"known, said otherwise", "tcp", "an alias on tcp", missing, "skip: an alias on tcp: no such device"},
		{"not known of one that is required", "tcp", "tcp with messages", missing, "fail: tcp with messages is missing, which is not known of this provider (internal/testenv/lacks.go): no such device"},
		{"not known, said otherwise", "shm", "a queue on a line on shm", missing, "fail: a queue on a line on shm is missing, which is not known of this provider (internal/testenv/lacks.go): no such device"},
		{"not known of one that is not", "tcp", "shm with messages", missing, "skip: shm with messages: no such device"},
		{"nothing of a provider", "tcp", "multicast on the loopback interface", missing, "skip: multicast on the loopback interface: no such device"},
		{"empty name", ",", "", missing, "skip: : no such device"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(testenv.Require, c.require)
			recorder := &recorder{TB: t}
			testenv.Need(recorder, c.what, c.err)
			if recorder.verdict != c.want {
				t.Errorf("got %q, want %q", recorder.verdict, c.want)
			}
		})
	}
}

func TestProviders(t *testing.T) {
	for value, want := range map[string][]string{
		"":           {"sockets", "tcp", "shm"},
		" ,":         {"sockets", "tcp", "shm"},
		"efa":        {"efa"},
		"efa, tcp,,": {"efa", "tcp"},
	} {
		t.Setenv(testenv.Only, value)
		if got := testenv.Providers(); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

// recorder notes how a test would have ended.
type recorder struct {
	testing.TB
	verdict string
}

func (r *recorder) Skipf(format string, args ...any) {
	r.verdict = "skip: " + fmt.Sprintf(format, args...)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.verdict = "fail: " + fmt.Sprintf(format, args...)
}
