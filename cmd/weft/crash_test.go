package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/sharedmemory"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// noticeLimit is within what time a side must have noticed that the other one
// was killed.
const noticeLimit = 10 * time.Second

// process is a weft of its own.
type process struct {
	*exec.Cmd
	stdout *bufio.Reader
	stderr *bytes.Buffer
	ended  chan struct{} // closed after Wait
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startCommand(t, testprocess.Command(t, "weft", args...))
}

func startCommand(t *testing.T, command *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: command, stderr: new(bytes.Buffer), ended: make(chan struct{})}
	p.Env = append(os.Environ(), "IPATH_NO_BACKTRACE=1")
	p.Stderr = p.stderr
	read, write, err := os.Pipe()
	require.NoError(t, err)
	p.Stdout, p.stdout = write, bufio.NewReader(read)
	require.NoError(t, p.Start())
	require.NoError(t, write.Close())
	go func() {
		_ = p.Wait() // the exit code is what tests look at
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		_ = read.Close()
		sharedmemory.Remove(p.Process.Pid)
	})
	return p
}

// await waits until the process has ended.
func (p *process) await(t *testing.T, limit time.Duration) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		t.Fatalf("weft %q has not ended", p.Args)
	}
}

// underWay starts a receiver and a sender, and returns when content arrives.
// The transfer would take far longer than any test runs.
func underWay(t *testing.T, provider string) (sender, receiver *process, dir string) {
	t.Helper()
	sender, receiver, dir, _ = underWayTo(t, provider, "--once")
	return sender, receiver, dir
}

// underWayTo is underWay to a receiver with more flags. It returns also where
// the receiver listens.
func underWayTo(t *testing.T, provider string, flags ...string) (sender, receiver *process, dir, address string) {
	t.Helper()
	needProvider(t, provider)
	source, dir := filepath.Join(t.TempDir(), "large"), t.TempDir()
	// It has no blocks on the disk.
	require.NoError(t, os.WriteFile(source, nil, 0o600))
	require.NoError(t, os.Truncate(source, 1<<40))
	receiver = start(t, append([]string{"recv", "--dir", dir, "--listen", "127.0.0.1:0", "--provider", provider, "--require"}, flags...)...)
	address = receiver.address(t)
	sender = start(t, "send", "--provider", provider, "--require", source, address)
	receiver.awaitContent(t, dir)
	return sender, receiver, dir, address
}

// address is where a receiver says that it listens.
func (p *process) address(t *testing.T) string {
	t.Helper()
	first, err := p.stdout.ReadString('\n')
	require.NoError(t, err, "%s", p.stderr)
	at := listeningAt.FindStringSubmatch(first)
	require.NotNil(t, at, first)
	return at[1]
}

// awaitContent waits until the receiver has written some of a large file.
func (p *process) awaitContent(t *testing.T, dir string) {
	t.Helper()
	require.Eventually(t, func() bool { return sizeIn(dir) > 4<<20 }, time.Minute, time.Millisecond, "no transfer")
}

// requireOneLine asserts that a process that has ended said one thing only.
func (p *process) requireOneLine(t *testing.T, code int, prefix string) {
	t.Helper()
	said := p.stderr.String()
	require.Equal(t, code, p.ProcessState.ExitCode(), said)
	require.True(t, strings.HasPrefix(said, prefix), said)
	require.Equal(t, 1, strings.Count(said, "\n"), said)
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, names)
}

// killAmid kills a process in the middle of messages with another one. shm of libfabric
// 1.17 would leave what the two share locked for good if the process was killed while it
// holds that lock (docs/PROVIDERS.md): there it is stopped outside of it before, which
// shows in that the other one comes to rest.
func (p *process) killAmid(t *testing.T, provider string, other *process) {
	t.Helper()
	amid := provider != "shm" || fabric.LibraryVersion().Major >= 2
	for tries := 0; !amid; tries++ {
		require.Less(t, tries, 20, "the other side does not come to rest")
		require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
		if amid = other.rests(t); !amid {
			require.NoError(t, p.Process.Signal(syscall.SIGCONT))
		}
	}
	require.NoError(t, p.Process.Kill())
}

// rests says whether the process does next to nothing for a while, soon.
func (p *process) rests(t *testing.T) bool {
	t.Helper()
	const while = 50 * time.Millisecond
	took := func() time.Duration {
		var ts unix.Timespec
		// The clock of another process' time, as clock_getcpuclockid(3) makes it.
		require.NoError(t, unix.ClockGettime(int32(^p.Process.Pid<<3|2), &ts))
		return time.Duration(ts.Nano())
	}
	for range 40 {
		before := took()
		time.Sleep(while)
		if took()-before < while/10 {
			return true
		}
	}
	return false
}

func TestSenderIsKilled(t *testing.T) {
	onEachProvider(t, func(t *testing.T, provider string) {
		sender, receiver, dir := underWay(t, provider)
		sender.killAmid(t, provider, receiver)
		receiver.await(t, noticeLimit)
		receiver.requireOneLine(t, exitPeer, "weft: connection lost: ")
		requireEmpty(t, dir)
	})
}

func TestReceiverIsKilled(t *testing.T) {
	onEachProvider(t, func(t *testing.T, provider string) {
		sender, receiver, dir := underWay(t, provider)
		receiver.killAmid(t, provider, sender)
		sender.await(t, noticeLimit)
		sender.requireOneLine(t, exitPeer, "weft: connection lost: ")
		names, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, names, 1)
		require.Regexp(t, `^\.weft-.*\.part$`, names[0].Name())
	})
}

func TestSenderIsInterrupted(t *testing.T) {
	sender, receiver, dir := underWay(t, "sockets")
	require.NoError(t, sender.Process.Signal(os.Interrupt))
	sender.await(t, noticeLimit)
	receiver.await(t, noticeLimit)
	sender.requireOneLine(t, exitInterrupted, "weft: interrupted\n")
	receiver.requireOneLine(t, exitPeer, "weft: connection lost: ")
	requireEmpty(t, dir)
}

func TestReceiverIsInterrupted(t *testing.T) {
	onEachProvider(t, func(t *testing.T, provider string) {
		sender, receiver, dir := underWay(t, provider)
		require.NoError(t, receiver.Process.Signal(os.Interrupt))
		sender.await(t, noticeLimit)
		receiver.await(t, noticeLimit)
		receiver.requireOneLine(t, exitInterrupted, "weft: interrupted\n")
		sender.requireOneLine(t, exitFailed, "weft: the receiver says: interrupted\n")
		requireEmpty(t, dir)
	})
}

// A receiver that serves waits for its senders at the first signal. The second
// one cuts them off, which is not success.
func TestServingReceiverIsInterruptedTwice(t *testing.T) {
	sender, receiver, dir, address := underWayTo(t, "sockets")
	require.NoError(t, receiver.Process.Signal(os.Interrupt))
	// Two signals at once would be taken for one.
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, generous, time.Millisecond)
	require.NoError(t, receiver.Process.Signal(os.Interrupt))
	receiver.await(t, noticeLimit)
	sender.await(t, noticeLimit)
	require.Equal(t, exitInterrupted, receiver.ProcessState.ExitCode(), receiver.stderr)
	require.Contains(t, receiver.stderr.String(), ": interrupted\n")
	sender.requireOneLine(t, exitFailed, "weft: the receiver says: interrupted\n")
	requireEmpty(t, dir)
}

// The end of a login session leaves nothing behind: no half file, no names of
// shared memory.
func TestReceiverLosesItsTerminal(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		testenv.Need(t, "SIGHUP", errors.New("ignored here, and so by what is started here"))
	}
	sender, receiver, dir := underWay(t, "shm")
	require.NoError(t, receiver.Process.Signal(syscall.SIGHUP))
	receiver.await(t, noticeLimit)
	sender.await(t, noticeLimit)
	receiver.requireOneLine(t, exitInterrupted, "weft: interrupted\n")
	requireEmpty(t, dir)
	names, err := filepath.Glob(fmt.Sprintf("/dev/shm/%d:*", receiver.Process.Pid))
	require.NoError(t, err)
	require.Empty(t, names)
}

// sizeIn is the size of the first file in dir, 0 while there is none.
func sizeIn(dir string) int64 {
	names, _ := os.ReadDir(dir)
	for _, name := range names {
		if info, err := name.Info(); err == nil {
			return info.Size()
		}
	}
	return 0
}
