package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// The wait descriptor becomes readable for each message, when TryWait has said
// that it is safe to wait.
func TestWaitDescriptor(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		hints := fabric.Hints{Provider: provider, MemoryMode: everyMemoryMode, Capabilities: fabric.TaggedMessages}
		// In domains of their own, for each is used by another goroutine.
		a, b := openDomain(t, hints).open(t, nil), openDomain(t, hints).open(t, nil)
		a.peer, b.peer = a.insert(t, b), b.insert(t, a)
		if b.q.WaitDescriptor() < 0 {
			_, err := b.e.TurnWait(nil, nil, 0)
			require.Error(t, err)
			testenv.Need(t, provider+" with a wait descriptor", err)
		}
		const count = 100
		next, ended := make(chan int), make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- sendOnDemand(ctx, a, next) }()
		for i := range count {
			got := make([]byte, 32)
			posts := []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(i), Buf: got}}
			b.turn(t, posts)
			require.Equal(t, fabric.Posted, posts[0].Result)
			select {
			case next <- i:
			case err := <-ended:
				stop()
				require.NoError(t, err)
			}
			for len(b.got) == 0 {
				safe, err := b.q.TryWait()
				require.NoError(t, err)
				if safe {
					readable(t, b.q.WaitDescriptor())
				}
				b.turn(t, nil)
			}
			c := b.got[0]
			b.got = nil
			require.NoError(t, c.Err)
			require.Equal(t, fmt.Sprintf("message %d", i), string(got[:c.Len]))
		}
		stop()
		require.NoError(t, <-ended)
	})
}

// readable waits for a descriptor.
func readable(t *testing.T, fd int) {
	t.Helper()
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 30_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 1, n, "a message is on its way, and the descriptor does not say so")
		require.EqualValues(t, unix.POLLIN, fds[0].Revents)
		return
	}
}

// sendOnDemand sends one message for each number, and drives the sender until
// the context ends.
func sendOnDemand(ctx context.Context, a *station, next <-chan int) error {
	var posts []fabric.Op
	var buf [8]fabric.Completion
	for {
		select {
		case <-ctx.Done():
			return nil
		case i := <-next:
			posts = append(posts, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: uint64(i), Buf: fmt.Appendf(nil, "message %d", i)})
		default:
		}
		if _, err := a.e.Turn(posts, buf[:], 0); err != nil {
			return err
		}
		if len(posts) > 0 && posts[0].Result != fabric.Refused {
			if err := posts[0].Err; err != nil {
				return err
			}
			posts = posts[1:]
		}
	}
}
