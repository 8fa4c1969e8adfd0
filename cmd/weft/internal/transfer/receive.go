package transfer

import (
	"context"
	"errors"
	"os"
	"time"
)

// Receive takes files and folders from the sender at the other end of conn
// into root and tells the sender its verdict. It writes nowhere else. What was
// there under the same name is replaced when the new file is whole and
// verified. Receive does not close conn or root; the verdict has reached the
// sender only after a graceful close of conn.
//
// When it fails, files that were complete stay, and nothing else is left. The
// errors are ErrLost, ErrProtocol, ErrMismatch, *FileError for a file of this
// side, and *PeerError for what went wrong at the sender.
//
// Several transfers may write to one root at the same time.
func Receive(ctx context.Context, conn Conn, root *os.Root, options Options) (Summary, error) {
	start := time.Now()
	in := newIntake(ctx, conn, options)
	defer in.close()
	s := &session{sink: newSink(root), options: options}
	err := s.run(in)
	s.sink.abandon()

	summary := Summary{Elapsed: time.Since(start), Verified: err == nil}
	summary.set(s.sink.have)
	var peer *PeerError
	said := verdict{Verified: s.sink.have}
	switch {
	case err == nil:
		err = s.tell(ctx, conn, said)
		summary.Verified = err == nil
	case errors.Is(err, ErrLost) && !errors.As(err, &peer):
		// There is nobody to tell.
	default:
		said.Failure = failureOf(err)
		if s.tell(ctx, conn, said) == nil {
			in.drain(min(grace, options.timeout()))
		}
	}
	return summary, err
}

// session works on the records of one sender.
type session struct {
	sink    *sink
	options Options
	greeted bool
	ended   bool
}

func (s *session) run(in *intake) error {
	for !s.ended {
		message, err := in.next()
		if err != nil {
			return err
		}
		if len(message) == 0 {
			return protocolError("an empty message")
		}
		for len(message) > 0 {
			kind, payload, rest, err := cutRecord(message)
			if err != nil {
				return err
			}
			if err := s.record(kind, payload); err != nil {
				return err
			}
			message = rest
		}
	}
	return nil
}

func (s *session) record(kind recordKind, payload []byte) error {
	if s.greeted == (kind == recordHello) || s.ended {
		return protocolError("a record of kind %d out of turn", kind)
	}
	switch kind {
	case recordHello:
		return s.hello(payload)
	case recordFile, recordFolder:
		e, err := parseEntry(payload)
		if err != nil {
			return err
		}
		if kind == recordFolder {
			return s.sink.openFolder(e)
		}
		return s.sink.openFile(e)
	case recordData:
		if err := s.sink.write(payload); err != nil {
			return err
		}
		s.options.progress(len(payload))
		return nil
	case recordFileEnd:
		return s.sink.closeFile(payload)
	case recordFolderEnd:
		return s.sink.closeFolder()
	case recordEnd:
		return s.end(payload)
	case recordAbort:
		var f failure
		if err := parseSpeech(payload, &f); err != nil {
			return err
		}
		return f.toError("sender")
	}
	return protocolError("a record of unknown kind %d", kind)
}

func (s *session) hello(payload []byte) error {
	var h hello
	if err := parseSpeech(payload, &h); err != nil {
		return err
	}
	if h.Protocol != protocolName {
		return protocolError("the peer speaks %q, a receiver needs %q; connect with weft send", printable(h.Protocol), protocolName)
	}
	if h.Version != protocolVersion {
		return protocolError("the sender speaks version %d, the receiver version %d; use the same weft on both sides", h.Version, protocolVersion)
	}
	s.greeted = true
	return nil
}

func (s *session) end(payload []byte) error {
	var sent totals
	if err := parseSpeech(payload, &sent); err != nil {
		return err
	}
	if s.sink.busy() {
		return protocolError("the end in the middle of a file or folder")
	}
	s.sink.have.Skipped = sent.Skipped // only the sender can know
	if s.sink.have != sent {
		return protocolError("the sender counts %+v, but %+v arrived", sent, s.sink.have)
	}
	s.ended = true
	return nil
}

// tell writes the verdict, also when ctx has ended: the sender is to learn
// that it was this side that gave up.
func (s *session) tell(ctx context.Context, conn Conn, said verdict) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(grace, s.options.timeout()))
	defer cancel()
	if err := conn.WriteMessage(limited, appendSpeech(nil, recordVerdict, said)); err != nil {
		return connectionError(context.WithoutCancel(ctx), err)
	}
	return nil
}
