package bootstrap

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// wires are the words of ranks that do all there is, and of some that do not.
func wires(f *testing.F) [][]byte {
	f.Helper()
	h := hello{rank: 1, size: 2, job: "job"}
	greeting := appendHello(nil, typeHello, h.encode())
	frames := func(all ...frame) []byte {
		b := bytes.NewBuffer(bytes.Clone(greeting))
		for _, fr := range all {
			if err := writeFrame(b, fr, nil); err != nil {
				f.Fatal(err)
			}
		}
		return b.Bytes()
	}
	add := append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, "sum"...)
	return [][]byte{
		greeting,
		frames(frame{kindSet, 1, pair("key", []byte("value"))}, frame{kindGet, 2, []byte("key")}, frame{kindBye, 3, nil}),
		frames(frame{kindGet, 1, []byte("never")}, frame{kindCancel, 1, nil}, frame{kindCancel, 9, nil}),
		frames(frame{kindAdd, 1, add}, frame{kindAdd, 2, add}, frame{kindKeys, 3, pair("", nil)}, frame{kindDelete, 4, []byte("sum")}),
		frames(frame{kindGet, 1, []byte("late")}, frame{kindSet, 2, pair("late", nil)}, frame{99, 3, nil}),
		append(bytes.Clone(greeting), 0xff, 0xff, 0xff, 0xff),
		appendHello(nil, typeHello, append(h.encode(), 0)),
		[]byte("GET / HTTP/1.1\r\n\r\n"),
	}
}

// Whatever a rank says, the server goes on, lets it go in the end, and keeps no more
// than its limits.
func FuzzServer(f *testing.F) {
	for _, words := range wires(f) {
		f.Add(words)
	}
	f.Fuzz(func(t *testing.T, words []byte) {
		s, err := Serve(nil, ServerConfig{Size: 2, Job: "job", Limits: Limits{Keys: 4, Bytes: 1000}, Logger: quiet, HandshakeTimeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := s.connect()
		if err != nil {
			t.Fatal(err)
		}
		heard := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			close(heard)
		}()
		_ = conn.SetWriteDeadline(time.Now().Add(patience))
		_, err = conn.Write(words)
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Fatal("the server has stopped reading")
		}
		_ = conn.Close()
		<-heard
		if err := s.Drain(deadline(t)); err != nil {
			t.Fatalf("it has not let go: %v", err)
		}
		if len(s.table.values) > 4 || s.table.bytes > 1000 || len(s.table.waiting) > 0 {
			t.Fatalf("it keeps %d values of %d bytes, and %d waits", len(s.table.values), s.table.bytes, len(s.table.waiting))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Whatever a server says, a rank's calls end.
func FuzzClient(f *testing.F) {
	welcome := appendHello(nil, typeWelcome, putRank(nil, 0))
	say := func(fr frame) []byte {
		b := bytes.NewBuffer(bytes.Clone(welcome))
		if err := writeFrame(b, fr, nil); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	f.Add(welcome)
	f.Add(say(frame{kindOK, 1, []byte("value")}))
	f.Add(say(frame{kindOK, 1, pair("keys", pair("more", nil))}))
	f.Add(say(frame{kindError, 1, encodeError(ErrNotNumber)}))
	f.Add(say(frame{kindLost, 0, append(putRank(nil, 1), "why"...)}))
	f.Add(say(frame{kindClosed, 0, []byte("why\x1b[2J")}))
	f.Add(say(frame{kindOK, 77, nil}))
	f.Add(appendHello(nil, typeRefusal, encodeError(ErrRankTaken)))
	f.Add(appendHello(nil, typeChallenge, nil))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, words []byte) {
		mine, theirs := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			_, _ = theirs.Write(words)
			_ = theirs.Close()
		}()
		k, err := newClient(deadline(t), mine, connection{member: Member{Rank: 1, Size: 2}, timeout: patience})
		if err == nil {
			ctx := deadline(t)
			_, _ = k.Get(ctx, "key")
			_, _ = k.Keys(ctx, "")
			_, _ = k.Add(ctx, "key", 1)
			<-k.ctx.Done()
			if ctx.Err() != nil {
				t.Fatal("a call has not ended")
			}
			if context.Cause(k.ctx) == nil {
				t.Fatal("no cause")
			}
			_ = k.Close()
		}
		<-done
	})
}

// Values of an exchange that come from others are taken apart, or refused.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte{1, 'a', 0, 2, 'b', 'c'}, 3)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 1)
	f.Add([]byte{5}, 2)
	f.Fuzz(func(t *testing.T, all []byte, size int) {
		if size < 1 || size > 1000 {
			return
		}
		values, err := unpack(all, size)
		if err != nil {
			return
		}
		total := 0
		for _, value := range values {
			total += len(value)
		}
		if len(values) != size || total > len(all) {
			t.Fatalf("%d values of %d bytes, from %d", len(values), total, len(all))
		}
	})
}

// What another process has written into a folder is no path that leads elsewhere.
func FuzzParseSession(f *testing.F) {
	s := &folder{}
	f.Add(s.session("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", []string{"", "a"}))
	f.Add([]byte("weft session 1\n../../etc\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		name, _ := parseSession(text)
		for _, c := range name {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				t.Fatalf("the name is %q", name)
			}
		}
	})
}
