package efa

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// onEFA runs a test where the efa provider is tested.
func onEFA(t *testing.T, test func(t *testing.T, b *bed)) {
	eachProcess(t, func(t *testing.T, b *bed) {
		if b.Provider == "efa" {
			test(t, b)
		}
	})
}

// A receiver that has no room for longer than EFARetries ends the connections to it,
// and no others. Its provider waits for what was lost: another endpoint is needed.
func TestReceiverIsNotReady(t *testing.T) {
	const notReady = fabric.Errno(269) // FI_ENORX
	onEFA(t, func(t *testing.T, b *bed) {
		other := startProcess(t, "peer", b.Provider, "127.0.0.1:0").hear(t, "listening")
		peer := startProcess(t, "peer", b.Provider, "127.0.0.1:0")
		address := peer.hear(t, "listening")
		for i, size := range []int{0, 10, 5000, 100_000} {
			r := b.open(t, *mortal(&Config{EFARetries: 6}))
			w := watchOver(t, asked(t, r, other, echoes))
			idle, c := asked(t, r, address, echoes), asked(t, r, address, echoes)
			require.NoError(t, c.WriteMessage(deadline(t), message(i, 0, size)))
			c.expect(t, i, 0, 1, size)
			testenv.Order(t, peer.Process.Pid, "rnr 1000000000")
			var err error
			for err == nil {
				err = c.WriteMessage(deadline(t), message(i, 1, size))
			}
			for _, c := range []*Conn{c, idle} {
				require.ErrorIs(t, err, ErrPeerLost)
				var typed *ConnError
				require.ErrorAs(t, err, &typed)
				var cause *fabric.Error
				require.ErrorAs(t, err, &cause)
				require.Equal(t, notReady, cause.Errno)
				_, err = c.ReadMessage(deadline(t), nil)
			}
			w.goesOn(t)
			testenv.Order(t, peer.Process.Pid, "rnr 0")
			_, err = r.Dial(deadline(t), address)
			require.ErrorIs(t, err, ErrHandshake)
			require.ErrorContains(t, err, "open another reactor")
			w.goesOn(t)
			w.end(t)
			require.EqualValues(t, 2, r.Stats().Ended.PeerLost)
		}
	})
}

// A peer that is cut off while this side answers it is lost, and no other is; it is
// not forgotten that something was lost on the way to it.
func TestPeerIsCutOff(t *testing.T) {
	onEFA(t, func(t *testing.T, b *bed) {
		t.Setenv("WEFT_EFA_TIMEOUT_MS", "300")
		server := startProcess(t, "peer", b.Provider, "127.0.0.1:0")
		address := server.hear(t, "listening")
		w := watchOver(t, asked(t, b.open(t, *mortal(&Config{})), address, echoes))
		w.goesOn(t)
		r := b.open(t, *mortal(&Config{}))
		testenv.Order(t, server.Process.Pid, "hold")
		c := asked(t, r, address, echoes)
		require.NoError(t, c.WriteMessage(deadline(t), message(1, 0, 10)))
		require.NoError(t, c.Flush(deadline(t), FlushLocal))
		testenv.Order(t, server.Process.Pid, "drop 127.0.0.1:%d", queuePair(r))
		testenv.Order(t, server.Process.Pid, "release")
		_, err := c.ReadMessage(deadline(t), nil)
		require.ErrorIs(t, err, ErrPeerLost)
		w.goesOn(t)
		testenv.Order(t, server.Process.Pid, "heal")
		_, err = r.Dial(deadline(t), address)
		require.ErrorIs(t, err, ErrHandshake)
		again := asked(t, b.open(t, *mortal(&Config{})), address, echoes)
		require.NoError(t, again.WriteMessage(deadline(t), message(1, 0, 10)))
		again.expect(t, 1, 0, 1, 10)
		w.end(t)
	})
}

// queuePair is the number of a reactor's queue pair, which is a port of UDP there.
func queuePair(r *Reactor) uint16 {
	return binary.LittleEndian.Uint16(r.address[16:])
}

// Without EFARetries nothing ends because a receiver is busy.
func TestReceiverIsNotReadyForLong(t *testing.T) {
	onEFA(t, func(t *testing.T, b *bed) {
		r := b.open(t, Config{})
		peer := startProcess(t, "peer", b.Provider, "127.0.0.1:0")
		c := asked(t, r, peer.hear(t, "listening"), echoes)
		for i, size := range []int{0, 10, 5000, 100_000} {
			testenv.Order(t, peer.Process.Pid, "rnr 50")
			require.NoError(t, c.WriteMessage(deadline(t), message(1, i, size)))
			c.expect(t, 1, i, 1, size)
		}
		require.NoError(t, c.Close())
	})
}

const messagesAlone = 200

func init() { roles["alone"] = playAlone }

// playAlone has two reactors of its own exchange messages, and then waits.
func playAlone(orders *bufio.Scanner, arguments []string) error {
	config := Config{Providers: []string{"efa"}, Require: true, Logger: quiet, EFAOnly: arguments[0] == "only"}
	a, err := Open(&config)
	if errors.Is(err, fabric.ErrNotSupported) {
		fmt.Println("unsupported", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := Open(&config)
	if err != nil {
		return err
	}
	defer b.Close()
	ctx := context.Background()
	l, err := a.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go servePeers(l, servePeer)
	c, err := b.Dial(ctx, l.Addr().String())
	if err != nil {
		return err
	}
	defer func() { _ = c.CloseNow() }()
	if err := c.WriteMessage(ctx, []byte(echoes)); err != nil {
		return err
	}
	for range messagesAlone {
		if err := c.WriteMessage(ctx, make([]byte, 1000)); err != nil {
			return err
		}
		if _, err := c.ReadMessage(ctx, make([]byte, 1000)); err != nil {
			return err
		}
	}
	fmt.Println("done", os.Getpid())
	orders.Scan()
	return nil
}

// Within a host the provider goes through shared memory, unless it must not.
func TestSharedMemoryOrTheDevice(t *testing.T) {
	onEFA(t, func(t *testing.T, b *bed) {
		t.Setenv("FI_EFA_ENABLE_SHM_TRANSFER", "1")
		alone := startProcess(t, "alone", "any")
		alone.hear(t, "done")
		require.Less(t, packetsOf(t, alone.Process.Pid), messagesAlone)
		if v := fabric.LibraryVersion(); v.Major < 2 {
			alone = startProcess(t, "alone", "only")
			require.Contains(t, alone.hear(t, "unsupported"), "FI_OPT_SHARED_MEMORY_PERMITTED")
			t.Setenv("FI_EFA_ENABLE_SHM_TRANSFER", "0")
		}
		alone = startProcess(t, "alone", "only")
		alone.hear(t, "done")
		require.Greater(t, packetsOf(t, alone.Process.Pid), 2*messagesAlone)
	})
}

// A reactor with nothing to do looks once a nap, and naps grow; the device is silent.
func TestIdleOnTheDevice(t *testing.T) {
	onEFA(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		require.NoError(t, dialed.WriteMessage(deadline(t), make([]byte, 10)))
		accepted.expectBytes(t, 10)
		r := dialed.reactor
		after := func(naps uint64) Stats {
			first := r.Stats().Waits
			require.Eventually(t, func() bool { return r.Stats().Waits >= first+naps }, patience, 10*time.Millisecond)
			return r.Stats()
		}
		// Naps of 2 ms and more come after some 40 shorter ones.
		before, packets := after(100), packetsOf(t, os.Getpid())
		now := after(100)
		require.Equal(t, packets, packetsOf(t, os.Getpid()))
		require.Zero(t, now.Posts-before.Posts)
		// Asking for the counts drives the device, too.
		looks := uint64(2 * 100)
		require.LessOrEqual(t, now.Turns-before.Turns, 2*(now.Waits-before.Waits)+looks)
		closeBoth(t, dialed, accepted)
	})
}

// packetsOf is how many packets the device of a process has sent.
func packetsOf(t *testing.T, process int) int {
	t.Helper()
	for word := range strings.FieldsSeq(testenv.Order(t, process, "counters")) {
		if count, ok := strings.CutPrefix(word, "packets_sent="); ok {
			n, err := strconv.Atoi(count)
			require.NoError(t, err)
			return n
		}
	}
	t.Fatal("the device does not say what it has sent")
	return 0
}
