package transfer

import (
	"context"
	"errors"
)

// errStopped says that the stream was ended from elsewhere, where the reason
// is to be found.
var errStopped = errors.New("stream stopped")

// outbox packs records into messages, which a goroutine of its own writes to
// the connection. Its methods are for one goroutine.
type outbox struct {
	ctx        context.Context
	free, full chan []byte
	current    []byte
	closed     chan struct{}
	err        error // of the writer, valid after closed
}

// newOutbox starts the writer. stop is called when the connection fails.
func newOutbox(ctx context.Context, conn Conn, options Options, stop func()) *outbox {
	o := &outbox{
		ctx:     ctx,
		free:    make(chan []byte, buffersAhead),
		full:    make(chan []byte, buffersAhead),
		closed:  make(chan struct{}),
		current: make([]byte, 0, MaxMessage),
	}
	for range buffersAhead - 1 {
		o.free <- nil // allocated when it is needed: small transfers need one
	}
	go func() {
		defer close(o.closed)
		for message := range o.full {
			if o.err != nil {
				continue
			}
			limited, cancel := context.WithTimeout(ctx, options.timeout())
			err := conn.WriteMessage(limited, message)
			cancel()
			if err != nil {
				o.err = connectionError(ctx, err)
				stop()
				continue
			}
			o.free <- message[:0]
		}
	}()
	return o
}

// need makes room for n more bytes, at most MaxMessage.
func (o *outbox) need(n int) error {
	if cap(o.current)-len(o.current) >= n {
		return nil
	}
	return o.flush()
}

// flush hands the current message to the writer and takes another buffer.
func (o *outbox) flush() error {
	if len(o.current) == 0 {
		return nil
	}
	select {
	case o.full <- o.current:
	case <-o.ctx.Done():
		return errStopped
	}
	o.current = nil
	select {
	case o.current = <-o.free:
		if o.current == nil {
			o.current = make([]byte, 0, MaxMessage)
		}
		return nil
	case <-o.ctx.Done():
		return errStopped
	}
}

// record packs a whole record.
func (o *outbox) record(kind recordKind, payload []byte) error {
	if err := o.need(recordPrefix + len(payload)); err != nil {
		return err
	}
	o.current = appendRecord(o.current, kind, payload)
	return nil
}

// entry packs the header of a file or folder.
func (o *outbox) entry(kind recordKind, e entry) error {
	if err := o.need(recordPrefix + entryPrefix + len(e.name)); err != nil {
		return err
	}
	o.current = e.append(o.current, kind)
	return nil
}

// speech packs a record that is JSON.
func (o *outbox) speech(kind recordKind, speech any) error {
	if err := o.need(recordPrefix + maxSpeech); err != nil {
		return err
	}
	o.current = appendSpeech(o.current, kind, speech)
	return nil
}

// minimumData is the least room that is worth starting a data record in.
const minimumData = 4 << 10

// data packs one data record of what read puts into its argument, which is at
// most limit bytes long. read must return at least one byte or an error.
func (o *outbox) data(limit int64, read func([]byte) (int, error)) error {
	if err := o.need(recordPrefix + int(min(limit, minimumData))); err != nil {
		return err
	}
	start := len(o.current)
	room := o.current[start+recordPrefix : cap(o.current)]
	n, err := read(room[:min(limit, int64(len(room)))])
	if err != nil {
		return err
	}
	o.current = startRecord(o.current, recordData, n)[:start+recordPrefix+n]
	return nil
}

// close flushes, waits for the writer and returns its error.
func (o *outbox) close() error {
	_ = o.flush()
	close(o.full)
	<-o.closed
	return o.err
}
