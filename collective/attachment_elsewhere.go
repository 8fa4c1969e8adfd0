//go:build !linux

package collective

import "errors"

// attachment is another process whose memory this one writes to. There is none here.
type attachment struct{}

var errNoAttachment = errors.New("collective: no writing to other processes on this system")

func attach(_, _, _ uint64) (*attachment, error) { return nil, errNoAttachment }

func (*attachment) write(uint64, []byte) error { return errNoAttachment }

func (*attachment) close() error { return nil }

func (*attachment) lives() error { return errNoAttachment }
