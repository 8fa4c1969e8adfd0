//go:build linux

package hosts_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"time"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric/fabrictest"
)

// event is what a process of a host says.
type event struct {
	What  string // ready, arrived, ended, done, finished
	Layer string // of a call that has ended: efa, comm, collective, bootstrap
	Call  string
	// Error is how it ended, empty for well, and Kinds what that is.
	Error string
	Kinds []string
	Count int // messages, or rounds
	At    int64
}

// ended is an event about how something has ended.
func ended(what, layer, call string, count int, err error) event {
	e := event{What: what, Layer: layer, Call: call, Count: count, At: time.Now().UnixNano()}
	if err != nil {
		e.Error, e.Kinds = err.Error(), kinds(err)
	}
	return e
}

// kinds are the names of the documented errors that an error is.
func kinds(err error) (names []string) {
	for name, kind := range map[string]error{
		"ErrPeerLost": efa.ErrPeerLost, "ErrTransfer": efa.ErrTransfer, "ErrPeerClosed": efa.ErrPeerClosed,
		"ErrProtocol": efa.ErrProtocol, "ErrHandshake": efa.ErrHandshake, "ErrHandshakeTimeout": efa.ErrHandshakeTimeout,
		"net.ErrClosed": net.ErrClosed, "io.EOF": io.EOF, "DeadlineExceeded": os.ErrDeadlineExceeded,
		"ErrLeft": comm.ErrLeft, "not whole": errOther,
	} {
		if errors.Is(err, kind) {
			names = append(names, name)
		}
	}
	var conn *efa.ConnError
	if errors.As(err, &conn) {
		names = append(names, "ConnError")
	}
	var rank *comm.RankError
	if errors.As(err, &rank) {
		names = append(names, fmt.Sprintf("RankError %d", rank.Rank))
	}
	var aborted *collective.AbortError
	if errors.As(err, &aborted) {
		names = append(names, "AbortError")
	}
	var lost *bootstrap.LostError
	if errors.As(err, &lost) {
		names = append(names, fmt.Sprintf("LostError %d", lost.Rank))
	}
	slices.Sort(names)
	return names
}

// is says whether an event has an error of this kind.
func (e event) is(kind string) bool { return slices.Contains(e.Kinds, kind) }

// errOther is the kind of errNotWhole, which says that a message is not what was sent.
var errOther = errors.New("is another")

func errNotWhole(from string, i, size int) error {
	return fmt.Errorf("message %d of %d bytes, of %s, %w", i, size, from, errOther)
}

// fill makes the content of message i of a sender, which tells where it belongs in
// every byte.
func fill(b []byte, sender, i int) []byte {
	rng := rand.New(rand.NewPCG(uint64(sender), uint64(i)))
	for j := 0; j < len(b); j += 8 {
		v := rng.Uint64()
		for k := j; k < min(j+8, len(b)); k++ {
			b[k] = byte(v)
			v >>= 8
		}
	}
	return b
}

// holdsFirst is what there is when everything has been used once: Go's network poller
// and the emulated device keep descriptors from then on.
func holdsFirst(provider string) fabrictest.Holdings {
	if r, err := efa.Open(engine(provider)); err == nil {
		_ = r.Close()
	}
	return fabrictest.Holds()
}
