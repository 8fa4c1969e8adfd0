package suite

import (
	"fmt"
	"io"
)

// streamPingPong is a ping-pong over a stream of bytes.
func streamPingPong(o order, t talk, c io.ReadWriter) (times, error) {
	out, in := touched(make([]byte, o.size)), touched(make([]byte, o.size))
	if err := t.waitForGo(); err != nil {
		return times{}, err
	}
	total := o.warmup + o.count
	if !o.first {
		for i := range total {
			if err := readNumber(c, in, uint64(i)); err != nil {
				return times{}, err
			}
			if err := writeNumber(c, out, ^uint64(i)); err != nil {
				return times{}, err
			}
		}
		return times{}, nil
	}
	watch := newStopwatch(o, pingPongPart)
	for i := range total {
		if i == watch.next {
			watch.mark()
		}
		if err := writeNumber(c, out, uint64(i)); err != nil {
			return times{}, err
		}
		if err := readNumber(c, in, ^uint64(i)); err != nil {
			return times{}, err
		}
	}
	if total == watch.next {
		watch.mark()
	}
	return watch.stop(2)
}

func writeNumber(c io.Writer, buf []byte, number uint64) error {
	putNumber(buf, number)
	if _, err := c.Write(buf); err != nil {
		return fmt.Errorf("message %#x: %w", number, err)
	}
	return nil
}

func readNumber(c io.Reader, buf []byte, number uint64) error {
	if _, err := io.ReadFull(c, buf); err != nil {
		return fmt.Errorf("message %#x: %w", number, err)
	}
	return expectNumber(buf, number)
}
