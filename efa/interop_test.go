package efa

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testprocess"
)

// foreigner is testdata/interop at work: a program in C that knows libfabric and
// the plain form, and nothing of weft.
type foreigner struct {
	t       *testing.T
	process *exec.Cmd
	in      io.WriteCloser
	lines   chan string
	address []byte
}

// buildStranger compiles it, with more flags for gcc.
func buildStranger(t *testing.T, flags ...string) (program string) {
	t.Helper()
	found, err := exec.Command("pkg-config", "--cflags", "--libs", "libfabric").Output()
	require.NoError(t, err)
	program = filepath.Join(t.TempDir(), "interop")
	arguments := append([]string{"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-O1"}, flags...)
	arguments = append(arguments, "-o", program, "../testdata/interop/interop.c")
	out, err := exec.Command("gcc", append(arguments, strings.Fields(string(found))...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// start runs it. local and remote are the ids of connections as it sees them.
func start(t *testing.T, program, provider string, local, remote, first uint32) *foreigner {
	t.Helper()
	s := &foreigner{t: t, lines: make(chan string, 10000)}
	s.process = testprocess.Command(t, program, provider, fmt.Sprint(local), fmt.Sprint(remote), fmt.Sprint(first))
	// What libfabric keeps for good is not a leak of the program's.
	s.process.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0", "UBSAN_OPTIONS=print_stacktrace=1")
	s.process.Stderr = os.Stderr
	var err error
	s.in, err = s.process.StdinPipe()
	require.NoError(t, err)
	out, err := s.process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.process.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(s.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		s.in.Close()
		_ = s.process.Process.Kill()
		<-ended
		_ = s.process.Wait()
	})
	text, found := strings.CutPrefix(s.line(), "address ")
	require.True(t, found)
	s.address, err = hex.DecodeString(text)
	require.NoError(t, err)
	return s
}

// line waits for the next line that it says.
func (s *foreigner) line() string {
	s.t.Helper()
	select {
	case line, ok := <-s.lines:
		require.True(s.t, ok, "the program has ended")
		return line
	case <-deadline(s.t).Done():
		require.Fail(s.t, "the program says nothing")
		return ""
	}
}

func (s *foreigner) tell(format string, values ...any) {
	s.t.Helper()
	_, err := fmt.Fprintf(s.in, format+"\n", values...)
	require.NoError(s.t, err)
}

// write has it write messages of these sizes, with the content of foreign.
func (s *foreigner) write(seed int, sizes []int) {
	words := make([]string, len(sizes))
	for i, size := range sizes {
		words[i] = strconv.Itoa(size)
	}
	s.tell("write %d %s", seed, strings.Join(words, " "))
}

// expect has it say that it read messages of the sender, from an id on.
func (s *foreigner) expect(sender int, first uint32, sizes []int) {
	s.t.Helper()
	for i, size := range sizes {
		s.expectOne(sender, i, first+uint32(i), size)
	}
}

// expectOne is expect for message i of the sender.
func (s *foreigner) expectOne(sender, i int, id uint32, size int) {
	s.t.Helper()
	h := fnv.New64a()
	h.Write(message(sender, i, size))
	line := s.line()
	for strings.HasPrefix(line, "written") {
		line = s.line()
	}
	require.Equal(s.t, fmt.Sprintf("read %d %d %016x", id, size, h.Sum64()), line, "message %d", i)
}

// end has it end by itself, without an error.
func (s *foreigner) end() {
	s.t.Helper()
	require.NoError(s.t, s.in.Close())
	for range s.lines {
	}
	require.NoError(s.t, s.process.Wait())
}

// foreign is the content that the program gives to its messages.
func foreign(seed, number, size int) []byte {
	x := (uint64(seed)<<32|uint64(number))*0x9e3779b97f4a7c15 + 1
	b := make([]byte, size)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 32)
	}
	return b
}

// readForeign reads messages of the program.
func readForeign(t *testing.T, c *Conn, seed int, sizes []int) {
	t.Helper()
	ctx := deadline(t)
	for i, size := range sizes {
		n, err := c.MessageSize(ctx)
		require.NoError(t, err)
		require.Equal(t, size, n, "message %d", i)
		buf := make([]byte, n)
		n, err = c.ReadMessage(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, size, n)
		// Not Equal, which prints what differs.
		require.True(t, string(foreign(seed, i, size)) == string(buf), "message %d, of %d bytes", i, size)
	}
}

// meet attaches a reactor to a new program, and the program to it.
func meetForeigner(t *testing.T, r *Reactor, program string, config AttachConfig) (*Conn, *foreigner) {
	t.Helper()
	s := start(t, program, r.Provider(), config.RemoteID, config.LocalID, config.FirstRead)
	config.Address = s.address
	c, err := r.Attach(deadline(t), config)
	require.NoError(t, err)
	s.tell("peer %s", hex.EncodeToString(r.LocalAddress()))
	return c, s
}

// writeAll writes without waiting, and says on the channel when all are done.
func writeAll(t *testing.T, c *Conn, sender int, sizes []int) <-chan error {
	t.Helper()
	done := make(chan error, len(sizes))
	all := make(chan error, 1)
	for i, size := range sizes {
		require.NoError(t, c.WriteMessageAsync(message(sender, i, size), func(err error) { done <- err }))
	}
	go func() {
		var failed error
		for range sizes {
			failed = errors.Join(failed, <-done)
		}
		all <- failed
	}()
	return all
}

func TestInterop(t *testing.T) {
	for _, variant := range []struct {
		name      string
		flags     []string
		providers []string
	}{
		{"plain", nil, []string{"sockets", "tcp"}},
		{"sanitized", []string{"-fsanitize=address,undefined", "-fno-sanitize-recover"}, []string{"tcp"}},
	} {
		t.Run(variant.name, func(t *testing.T) {
			program := buildStranger(t, variant.flags...)
			for _, provider := range variant.providers {
				t.Run(provider, func(t *testing.T) {
					b := newBed(t, setting{Name: provider, Provider: provider})
					for _, test := range []struct {
						name string
						run  func(t *testing.T, b *bed, program string)
					}{
						{"sizes", interopSizes},
						{"writes before reads", interopWritesFirst},
						{"reads before writes", interopReadsFirst},
						{"interleaved", interopInterleaved},
						{"slow reader", interopSlowReader},
						{"ids", interopIDs},
						{"same id", interopSameID},
						{"killed", interopKilled},
					} {
						t.Run(test.name, func(t *testing.T) { test.run(t, b, program) })
					}
				})
			}
		})
	}
}

func interopSizes(t *testing.T, b *bed, program string) {
	r := b.open(t, Config{})
	c, s := meetForeigner(t, r, program, AttachConfig{})
	inject := r.attributes.MaxInject
	sizes := []int{0, 1, inject - 1, inject, inject + 1, 4096, 64 << 10, 1 << 20, 8 << 20, 0, 3, 0}
	for round := range 2 {
		rand.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
		// Both ways at the same time.
		written := writeAll(t, c, 1, sizes)
		s.write(round, sizes)
		s.tell("read %d", len(sizes))
		readForeign(t, c, round, sizes)
		s.expect(1, uint32(round*len(sizes)), sizes)
		require.NoError(t, <-written)
	}
	require.NoError(t, c.Close())
	s.end()
}

// ramp has sizes from 0 on, some of them longer than what any provider keeps.
func ramp(count, step int) []int {
	sizes := make([]int, count)
	for i := range sizes {
		sizes[i] = i * step % 70000
	}
	return sizes
}

func interopWritesFirst(t *testing.T, b *bed, program string) {
	c, s := meetForeigner(t, b.open(t, Config{}), program, AttachConfig{})
	sizes := ramp(60, 1999)
	written := writeAll(t, c, 1, sizes)
	s.write(5, sizes)
	// The program obeys in order, so that its writes are posted by now.
	s.tell("read 1")
	s.expect(1, 0, sizes[:1])
	s.tell("read %d", len(sizes)-1)
	readForeign(t, c, 5, sizes)
	for i := range sizes[1:] {
		s.expectOne(1, i+1, uint32(i+1), sizes[i+1])
	}
	require.NoError(t, <-written)
	require.NoError(t, c.Close())
	s.end()
}

func interopReadsFirst(t *testing.T, b *bed, program string) {
	r := b.open(t, Config{})
	c, s := meetForeigner(t, r, program, AttachConfig{})
	sizes := ramp(40, 2999)
	s.tell("read %d", len(sizes))
	read := make(chan struct{})
	go func() {
		defer close(read)
		readForeign(t, c, 6, sizes)
	}()
	require.Eventually(t, func() (waits bool) {
		r.do(func() { waits = len(c.readers) > 0 })
		return waits
	}, patience, 1e6)
	s.write(6, sizes)
	written := writeAll(t, c, 1, sizes)
	s.expect(1, 0, sizes)
	<-read
	require.NoError(t, <-written)
	require.NoError(t, c.Close())
	s.end()
}

func interopInterleaved(t *testing.T, b *bed, program string) {
	c, s := meetForeigner(t, b.open(t, Config{}), program, AttachConfig{})
	sizes := ramp(200, 737)
	ctx := deadline(t)
	for i, size := range sizes {
		// Now the one first, now the other.
		if i%3 == 0 {
			s.tell("read 1")
		}
		require.NoError(t, c.WriteMessageAsync(message(2, i, size), nil))
		s.write(i, []int{size})
		if i%3 != 0 {
			s.tell("read 1")
		}
		if i%2 == 1 {
			for k := i - 1; k <= i; k++ {
				buf := make([]byte, sizes[k])
				n, err := c.ReadMessage(ctx, buf)
				require.NoError(t, err)
				require.True(t, string(foreign(k, 0, sizes[k])) == string(buf[:n]), "message %d", k)
			}
		}
	}
	s.expect(2, 0, sizes)
	require.NoError(t, c.Close())
	s.end()
}

func interopSlowReader(t *testing.T, b *bed, program string) {
	r := b.open(t, Config{WindowMessages: 4, WindowBytes: 64 << 10})
	c, s := meetForeigner(t, r, program, AttachConfig{})
	sizes := ramp(150, 1777)
	s.write(7, sizes)
	for i := range sizes {
		if i%10 == 0 {
			// A reader that is behind: the window is full before it goes on.
			var held int64
			var messages int
			require.Eventually(t, func() (full bool) {
				r.do(func() {
					held, messages = max(held, c.plain.held), max(messages, c.reads.Len())
					full = c.plain.full
				})
				return full
			}, patience, 1e6)
			require.LessOrEqual(t, held, int64(64<<10))
			require.LessOrEqual(t, messages, 4)
		}
		buf := make([]byte, sizes[i])
		n, err := c.ReadMessage(deadline(t), buf)
		require.NoError(t, err)
		require.True(t, string(foreign(7, i, sizes[i])) == string(buf[:n]), "message %d", i)
	}
	require.Equal(t, "written 150", s.line())
	require.NoError(t, c.Close())
	s.end()
}

// Ids of connections, and ids of messages that wrap.
func interopIDs(t *testing.T, b *bed, program string) {
	const first = 1<<32 - 3
	c, s := meetForeigner(t, b.open(t, Config{}), program, AttachConfig{LocalID: 5, RemoteID: 1<<30 - 1, FirstRead: first, FirstWrite: first})
	sizes := []int{10, 0, 5000, 70000, 0, 1, 2, 3}
	s.tell("read %d", len(sizes))
	s.write(8, sizes)
	written := writeAll(t, c, 1, sizes)
	readForeign(t, c, 8, sizes)
	s.expect(1, first, sizes)
	require.NoError(t, <-written)
	require.NoError(t, c.Close())
	s.end()
}

// Programs that know of no connection id, at one endpoint.
func interopSameID(t *testing.T, b *bed, program string) {
	r := b.open(t, Config{})
	const most = 40000
	var conns []*Conn
	var peers []*foreigner
	for range 3 {
		c, s := meetForeigner(t, r, program, AttachConfig{Shared: true, MaxRead: most})
		conns, peers = append(conns, c), append(peers, s)
	}
	sizes := func(k int) []int {
		all := make([]int, 50)
		for i := range all {
			all[i] = (i*991 + k*13007) % most
		}
		return all
	}
	for k, s := range peers {
		s.write(k, sizes(k))
		s.tell("read 50")
	}
	for k, c := range conns {
		written := writeAll(t, c, k, sizes(k))
		readForeign(t, c, k, sizes(k))
		peers[k].expect(k, 0, sizes(k))
		require.NoError(t, <-written)
	}
	for k, c := range conns {
		require.NoError(t, c.Close())
		peers[k].end()
	}
}

// The other program is killed in the middle: there is nothing that says so but
// the provider, and every call ends by its context, or with that.
func interopKilled(t *testing.T, b *bed, program string) {
	r := b.open(t, Config{DrainTimeout: 1e8})
	c, s := meetForeigner(t, r, program, AttachConfig{})
	other, left := meetForeigner(t, r, program, AttachConfig{LocalID: 1, RemoteID: 2})
	s.write(9, []int{100})
	readForeign(t, c, 9, []int{100})
	// It is announced and on its way, but nobody takes it.
	size := 1 << 20
	ctx, cancel := context.WithCancel(deadline(t))
	ended := make(chan error, 2)
	go func() {
		_, err := c.ReadMessage(ctx, make([]byte, 100))
		ended <- err
	}()
	go func() {
		for {
			if err := c.WriteMessage(ctx, make([]byte, size)); err != nil {
				ended <- err
				return
			}
		}
	}()
	require.Eventually(t, func() (begun bool) {
		r.do(func() { begun = c.sent > 0 && len(c.readers) > 0 })
		return begun
	}, patience, 1e6)
	require.NoError(t, s.process.Process.Kill())
	for range s.lines {
	}
	cancel()
	var buffers []*InFlightError
	for range 2 {
		err := <-ended
		require.True(t, errors.Is(err, context.Canceled) || errors.Is(err, ErrPeerLost), "%v", err)
		var in *InFlightError
		if errors.As(err, &in) {
			buffers = append(buffers, in)
		}
	}
	// The other connection does not mind.
	left.tell("read 1")
	require.NoError(t, other.WriteMessage(deadline(t), message(3, 0, 5000)))
	left.expect(3, 0, []int{5000})
	if err := c.Close(); err != nil {
		require.True(t, errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrPeerLost), "%v", err)
	}
	require.NoError(t, other.Close())
	left.end()
	require.NoError(t, r.Close())
	for _, in := range buffers {
		<-in.Released
	}
}
