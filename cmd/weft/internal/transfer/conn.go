package transfer

import (
	"context"
	"time"
)

// Conn is a connection of ordered messages. One goroutine reads and one writes
// at the same time.
type Conn interface {
	// WriteMessage delivers b reliably and in order. It returns when b may be
	// changed again, which may be before the peer has it; after an error b
	// must be left alone until the connection is closed.
	WriteMessage(ctx context.Context, b []byte) error
	// ReadMessage takes the next message and returns its length. If b is too
	// small it returns an error and keeps the message. The error is io.EOF
	// when the peer has closed the connection.
	ReadMessage(ctx context.Context, b []byte) (int, error)
	// MessageSize waits for the next message and returns its length without
	// taking it.
	MessageSize(ctx context.Context) (int, error)
}

// Options apply to both sides. The zero value works.
type Options struct {
	// Timeout is how long the peer may take over one message; 0 is 2 minutes.
	Timeout time.Duration
	// Progress, if set, is told how many more bytes of content went through.
	// It is called from one goroutine at a time.
	Progress func(bytes int)
	// Skipped, if set, is told what the sender leaves out, and why.
	Skipped func(path, reason string)
}

func (o Options) timeout() time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return 2 * time.Minute
}

func (o Options) progress(bytes int) {
	if o.Progress != nil {
		o.Progress(bytes)
	}
}

// grace is how long a side that fails waits for the other to take note.
const grace = 10 * time.Second

// Summary is what a transfer carried.
type Summary struct {
	Files   int64
	Folders int64
	Bytes   int64 // of the files' content
	Skipped int64 // links and special files that the sender left out
	// Verified says that the receiver compared the sha256 of every file.
	Verified bool
	Elapsed  time.Duration
}

func (s *Summary) set(t totals) {
	s.Files, s.Folders, s.Bytes, s.Skipped = t.Files, t.Folders, t.Bytes, t.Skipped
}

// buffersAhead is how many messages wait between files and connection, so that
// reading and hashing go on while a message is under way.
const buffersAhead = 4
