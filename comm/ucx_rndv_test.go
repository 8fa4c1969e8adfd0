package comm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// rendezvous runs a case of long messages with receivers that read them, where they
// can, and with senders that send them. Nearly all messages are long.
func rendezvous(test func(t *testing.T, b *bed, zero, one *Comm)) func(*testing.T, *bed) {
	return func(t *testing.T, b *bed) {
		zero, one := b.withEager(t, leastEager)
		test(t, b, zero, one)
		if zero.engine.reactor.CanRead() {
			zero, one = b.lend(t, Config{NoRemoteReads: true}, efa.Config{EagerLimit: leastEager})
			test(t, b, zero, one)
		}
	}
}

// Nothing is a message too.
func ucxLengthZero(t *testing.T, _ *bed, zero, one *Comm) {
	for _, send := range []func([]byte, int, int) (Request, error){zero.Isend, zero.Issend} {
		q, err := send(nil, 1, 1)
		require.NoError(t, err)
		status, err := one.Recv(deadline(t), nil, AnySource, AnyTag)
		require.NoError(t, err)
		require.Equal(t, Status{Source: 0, Tag: 1}, status)
		finish(t, q)
	}
}

func ucxSynchronousLong(t *testing.T, _ *bed, zero, one *Comm) {
	synchronous(t, zero, one, leastEager)
	synchronous(t, zero, one, ucxLong)
}

// expected sends a message to a receive that is as long as room.
func expected(t *testing.T, zero, one *Comm, size, room int) {
	t.Helper()
	buf := long(9, 9, room)
	r := irecv(t, one, buf, AnySource, AnyTag)
	_, done, err := r.Test()
	require.NoError(t, err)
	require.False(t, done, "nothing was sent")
	s, err := zero.Isend(long(0, 1, size), 1, ucxTag)
	require.NoError(t, err)
	require.Equal(t, Status{Source: 0, Tag: ucxTag, Length: size}, finish(t, r))
	same(t, long(0, 1, size), buf[:size])
	same(t, long(9, 9, room)[size:], buf[size:])
	finish(t, s)
}

func ucxExpectedLong(t *testing.T, _ *bed, zero, one *Comm) {
	expected(t, zero, one, ucxLong, ucxLong)
}

func ucxUnexpectedLong(t *testing.T, _ *bed, zero, one *Comm) {
	q, err := zero.Isend(content(0, 1, ucxLong), 1, ucxTag)
	require.NoError(t, err)
	arrive(t, zero, one)
	_, done, err := q.Test()
	require.NoError(t, err)
	require.False(t, done, "there is no receive yet")
	expect(t, one, AnySource, AnyTag, Status{Source: 0, Tag: ucxTag, Length: ucxLong}, 1)
	finish(t, q)
}

func ucxTruncatedLong(t *testing.T, _ *bed, zero, one *Comm) {
	truncate(t, zero, one, ucxLong/4)
}

func ucxLargerReceive(t *testing.T, _ *bed, zero, one *Comm) {
	expected(t, zero, one, 16, 32)
	expected(t, zero, one, ucxLong, ucxLong+1024)
}

// Short ones come before the huge, as what keeps registrations would want them.
func ucxHugeMix(t *testing.T, b *bed, zero, one *Comm) {
	huge := 512 << 10
	if b.Name == "shm" {
		huge = 16 << 20
	}
	for _, size := range []int{1000, 2000, 8000, huge, huge/4 + 32} {
		expected(t, zero, one, size, size)
	}
}

// Both send to each other at once, to receives that are there.
func ucxBothWays(t *testing.T, b *bed, zero, one *Comm) {
	ranks := [2]*Comm{zero, one}
	for size, count := range map[int]int{8 << 10: 55, 128 << 10: 13, 512 << 10: 6, 2 << 20: 3} {
		if size > 128<<10 && !b.fast() {
			continue
		}
		var bufs [2][][]byte
		var receives [2][]Request
		for from := range ranks {
			for i := range count {
				buf := make([]byte, size)
				bufs[from] = append(bufs[from], buf)
				receives[from] = append(receives[from], irecv(t, ranks[1-from], buf, AnySource, AnyTag))
				isend(t, ranks[from], long(from, i, size), 1-from, ucxTag)
			}
		}
		for from := range ranks {
			for i, q := range receives[from] {
				require.Equal(t, Status{Source: from, Tag: ucxTag, Length: size}, finish(t, q))
				same(t, long(from, i, size), bufs[from][i])
			}
		}
	}
}

// A message that is announced is taken out before any of it has come.
func ucxProbeLong(t *testing.T, _ *bed, zero, one *Comm) {
	m, err := one.Improbe(AnySource, AnyTag)
	require.NoError(t, err)
	require.Nil(t, m)
	s, err := zero.Isend(content(0, 1, ucxLong), 1, ucxTag)
	require.NoError(t, err)
	arrive(t, zero, one)
	m, err = one.Improbe(AnySource, AnyTag)
	require.NoError(t, err)
	require.NotNil(t, m)
	want := Status{Source: 0, Tag: ucxTag, Length: ucxLong}
	require.Equal(t, want, m.Status)
	buf := make([]byte, ucxLong)
	r, err := m.Irecv(buf)
	require.NoError(t, err)
	require.Equal(t, want, finish(t, r))
	same(t, content(0, 1, ucxLong), buf)
	finish(t, s)
}
