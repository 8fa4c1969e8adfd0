//go:build linux

package fabric_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// Of several contexts, one may have something to say on the wire before another one has introduced
// them: libfabric thinks that this is done when it is begun.
func TestSecondContextSendsFirst(t *testing.T) {
	if !slices.Contains(testenv.Providers(), "sockets") {
		return
	}
	info := strewInfo(t, "sockets")
	f, d := partsOf(t, info)
	for range 20 {
		to := openStation(t, f, d, info)
		several, err := info.WithContexts(2, 1)
		require.NoError(t, err)
		v := vectorOf(t, d)
		s, err := d.OpenScalableEndpoint(several)
		require.NoError(t, err)
		require.NoError(t, s.Enable(v, nil))
		q := queueOf(t, d, 64)
		var contexts [2]*fabric.Context
		for i := range contexts {
			contexts[i], err = s.OpenSend(i)
			require.NoError(t, err)
			require.NoError(t, contexts[i].Enable(q))
			tag := uint64(i)
			to.must(t, to, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Buf: make([]byte, 8), Context: tag})
		}
		peer := insert(t, v, to.e)
		for i := range contexts {
			i = 1 - i
			op := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: peer, Tag: uint64(i), Buf: make([]byte, 8)}}
			_, err := contexts[i].Turn(op, nil, 0)
			require.NoError(t, err)
			require.NoError(t, op[0].Err)
		}
		for range contexts {
			require.NoError(t, to.await(t, to).Err)
		}
		for _, c := range contexts {
			require.NoError(t, c.Close())
		}
		require.NoError(t, s.Close())
		require.NoError(t, to.e.Close())
	}
}

// socketsHere are the sockets of this process that satisfy a condition.
func socketsHere(t *testing.T, is func(fd int) bool) (fds []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		require.NoError(t, err)
		if is(fd) {
			fds = append(fds, fd)
		}
	}
	return fds
}

// A connected endpoint of sockets has a port of its own for what is sent.
func TestStrangersCallConnectedEndpoints(t *testing.T) {
	if !slices.Contains(testenv.Providers(), "sockets") {
		return
	}
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.Connected, Capabilities: fabric.Messages, MemoryMode: everyMemoryMode, Source: "127.0.0.1",
	})
	require.NoError(t, err)
	x := openOffice(t, infos[0])
	_, at := x.listen(t)
	passive := int(at[2])<<8 | int(at[3])
	a := x.caller(t)
	require.NoError(t, a.e.Connect(at, nil))
	b := x.answer(t, x.request(t))
	require.NoError(t, b.e.Accept(nil))
	x.connected(t, a)
	x.connected(t, b)
	called := 0
	for _, fd := range socketsHere(t, func(fd int) bool {
		listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		return err == nil && listens != 0
	}) {
		own, err := unix.Getsockname(fd)
		require.NoError(t, err)
		ip, is := own.(*unix.SockaddrInet4)
		if !is || ip.Port == passive {
			continue
		}
		called++
		for i, words := range strangersWords(rand.New(rand.NewPCG(1, 1))) {
			c, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: ip.Port})
			require.NoError(t, err)
			defer c.Close()
			_, _ = c.Write(words)
			if i%3 == 0 {
				_ = c.CloseWrite()
			}
		}
	}
	require.Equal(t, 2, called)
	got := make([]byte, 8)
	_, err = b.Turn([]fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got}}, nil, 0)
	require.NoError(t, err)
	_, err = a.Turn([]fabric.Op{{Kind: fabric.OpSend, Buf: []byte("12345678")}}, nil, 0)
	require.NoError(t, err)
	done := make([]fabric.Completion, 4)
	n := 0
	for deadline := time.Now().Add(30 * time.Second); n == 0; {
		require.True(t, time.Now().Before(deadline), "nothing comes")
		n, err = b.TurnWait(nil, done, 10)
		require.NoError(t, err)
	}
	require.NoError(t, done[0].Err)
	require.Equal(t, "12345678", string(got))
}

// What somebody has said a part of, and does not go on with, is not looked at until there is more:
// the thread of sockets would never rest.
func TestHalfAnAnswerIsNotLookedAt(t *testing.T) {
	if !slices.Contains(testenv.Providers(), "sockets") {
		return
	}
	info := strewInfo(t, "sockets")
	f, d := partsOf(t, info)
	a, b := openStation(t, f, d, info), openStation(t, f, d, info)
	toB, toA := a.insert(t, b), b.insert(t, a)
	call := <-answering(t, [][]byte{{2, 2, 0}})
	peer, err := a.v.Insert(call.address())
	require.NoError(t, err)
	a.must(t, b, fabric.Op{Kind: fabric.OpInject, Peer: peer, Buf: make([]byte, 8)})
	for !call.answered() {
		a.turn(t, nil)
	}
	a.got = nil
	port := int(call.address()[2])<<8 | int(call.address()[3])
	dialed := socketsHere(t, func(fd int) bool {
		at, err := unix.Getpeername(fd)
		ip, is := at.(*unix.SockaddrInet4)
		return err == nil && is && ip.Port == port
	})
	require.Len(t, dialed, 1)
	// After each of them fabric may look at the sockets of its peers.
	for range 20 {
		orderly(t, a, b, toB, toA)
	}
	for deadline := time.Now().Add(30 * time.Second); ; a.turn(t, nil) {
		bytes, err := unix.GetsockoptInt(dialed[0], unix.SOL_SOCKET, unix.SO_RCVLOWAT)
		require.NoError(t, err)
		if bytes > 3 {
			break
		}
		require.True(t, time.Now().Before(deadline), "three bytes are looked at each time")
	}
}

// Nobody is hung up on for a caller that has had the same descriptor before.
func TestCallersComeAndGo(t *testing.T) {
	const few = "WEFT_TEST_FEW_DESCRIPTORS"
	if !slices.Contains(testenv.Providers(), "sockets") {
		return
	}
	if os.Getenv(few) == "" {
		child := testprocess.Command(t, os.Args[0], "-test.run=^TestCallersComeAndGo$", "-test.count=1", "-test.timeout=2m")
		child.Env = append(os.Environ(), few+"=yes")
		said, err := child.CombinedOutput()
		require.NoError(t, err, "%s", said)
		return
	}
	// Of so many, 101 may say nothing.
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: 200}))
	info := strewInfo(t, "sockets")
	f, d := partsOf(t, info)
	a := openStation(t, f, d, info)
	introduction := append([]byte{2, 12}, make([]byte, 70)...)
	introduction[23], introduction[24] = 72, 2
	for range 300 {
		c, err := net.DialTCP("tcp4", nil, a.portOf(t))
		require.NoError(t, err)
		_, err = c.Write(introduction)
		require.NoError(t, err)
		// It has been let through when one byte is enough.
		mine := c.LocalAddr().(*net.TCPAddr).Port
		let := func(fd int) bool {
			at, err := unix.Getpeername(fd)
			ip, is := at.(*unix.SockaddrInet4)
			if err != nil || !is || ip.Port != mine {
				return false
			}
			bytes, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT)
			return err == nil && bytes == 1
		}
		for deadline := time.Now().Add(10 * time.Second); len(socketsHere(t, let)) == 0; a.turn(t, nil) {
			require.True(t, time.Now().Before(deadline), "a peer was not let through")
		}
		require.NoError(t, c.Close())
	}
	b := openStation(t, f, d, info)
	toB, toA := a.insert(t, b), b.insert(t, a)
	orderly(t, b, a, toA, toB)
}

// Callers that say nothing do not use up the descriptors of the process.
func TestSilentCallersLeaveDescriptors(t *testing.T) {
	const called = "WEFT_TEST_CALLED"
	if !slices.Contains(testenv.Providers(), "sockets") {
		return
	}
	if os.Getenv(called) != "" {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: 200}))
		info := strewInfo(t, "sockets")
		f, d := partsOf(t, info)
		a := openStation(t, f, d, info)
		fmt.Println(a.portOf(t).Port)
		lines := bufio.NewScanner(os.Stdin)
		require.True(t, lines.Scan())
		b := openStation(t, f, d, info)
		toB, toA := a.insert(t, b), b.insert(t, a)
		orderly(t, b, a, toA, toB)
		return
	}
	child := testprocess.Command(t, os.Args[0], "-test.run=^TestSilentCallersLeaveDescriptors$", "-test.count=1", "-test.timeout=1m")
	child.Env = append(os.Environ(), called+"=yes")
	orders, err := child.StdinPipe()
	require.NoError(t, err)
	answers, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	said := bufio.NewScanner(answers)
	require.True(t, said.Scan())
	port, err := strconv.Atoi(said.Text())
	require.NoError(t, err)
	for range 400 {
		c, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		require.NoError(t, err)
		defer c.Close()
	}
	_, err = fmt.Fprintln(orders, "go on")
	require.NoError(t, err)
	var rest []string
	for said.Scan() {
		rest = append(rest, said.Text())
	}
	require.NoError(t, child.Wait(), "%s", rest)
}
