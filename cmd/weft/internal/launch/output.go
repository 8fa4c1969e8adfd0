package launch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// mostLine is how much of a line is kept until its end has come. Longer ones are
// printed in pieces.
const mostLine = 64 << 10

// output prints what ranks print, by whole lines.
type output struct {
	failed chan error // has room for the first

	mu    sync.Mutex
	first error
}

func newOutput() *output { return &output{failed: make(chan error, 1)} }

// copy prints the lines of one rank, each with its number in front. The pieces of one
// that is too long have a + behind the number, all but the first. A last line
// without an end is given one.
func (o *output) copy(to io.Writer, number string, from io.Reader) {
	lines := bufio.NewReaderSize(from, mostLine)
	first, next := []byte("["+number+"] "), []byte("["+number+"]+ ")
	prefix := first
	var line []byte
	for {
		part, err := lines.ReadSlice('\n')
		if len(part) > 0 {
			line = append(append(line[:0], prefix...), part...)
			if !bytes.HasSuffix(part, []byte("\n")) {
				line = append(line, '\n')
			}
			o.print(to, line)
		}
		prefix = first
		if errors.Is(err, bufio.ErrBufferFull) {
			prefix = next
		} else if err != nil {
			return
		}
	}
}

// print prints one line. After the first failure it prints nothing, so that ranks do
// not wait for what nobody takes.
func (o *output) print(to io.Writer, line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.first != nil {
		return
	}
	if _, o.first = to.Write(line); o.first != nil {
		o.failed <- o.first
	}
}

func (o *output) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first
}
