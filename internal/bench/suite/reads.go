package suite

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// What a rendezvous of ranks cannot be faster than: the second side reads the memory of the
// first one by the calls of package fabric, in the pieces in which package comm reads it,
// so many of a message at a time, and so many messages. Nobody announces them, and nobody
// hears that they were read.

// The pieces of comm.Config, where it says nothing else.
const (
	readPiece  = 1 << 20
	readWindow = 4
)

// remoteSize is what it takes to tell where memory is, and its key.
const remoteSize = 16

// meetForReads tells the peer where this side's memory is too, and notes where its is.
func (s *side) meetForReads() error {
	device, ok := any(s.port).(fabric.RemoteDevice)
	if !ok || !s.port.Attributes().RemoteReads {
		return fmt.Errorf("%s does not read memory of peers", s.provider)
	}
	registration, err := device.RegisterRemote(s.memory)
	if err != nil {
		return err
	}
	s.exposed, s.descriptor = registration, registration.Descriptor()
	own, err := registration.RemoteOf(s.memory)
	if err != nil {
		return err
	}
	card := binary.LittleEndian.AppendUint64(s.port.LocalAddress(), own.Address)
	card = binary.LittleEndian.AppendUint64(card, own.Key)
	theirs, err := s.talk.exchange(deviceOf(s.port.Attributes()), card)
	if err != nil {
		return err
	}
	end := len(theirs) - remoteSize
	if end < 0 {
		return errors.New("the peer does not say where its memory is")
	}
	s.remote = fabric.Remote{Address: binary.LittleEndian.Uint64(theirs[end:]), Key: binary.LittleEndian.Uint64(theirs[end+8:])}
	s.peer, err = s.port.Insert(theirs[:end])
	return err
}

// read has the second side read the messages of the first.
func (s *side) read() (times, error) {
	if !s.first {
		return s.readAll()
	}
	for i := range s.window {
		putNumber(s.buffer(i), sourceNumber(i))
	}
	if err := s.talk.waitForGo(); err != nil {
		return times{}, err
	}
	// Its turns carry the reads on, where the provider needs that.
	return times{}, s.complete([]fabric.Op{s.operation(fabric.OpTaggedReceive, s.window, endTag)}, 0, 1)
}

// sourceNumber is what the message in a buffer of the first side says: not what fresh
// memory does.
func sourceNumber(index int) uint64 { return uint64(index) + 1<<32 }

// reading is a message that is being read.
type reading struct{ offset, underWay int }

func (s *side) readAll() (times, error) {
	if err := s.talk.waitForGo(); err != nil {
		return times{}, err
	}
	total := s.warmup + s.count
	begun, received := min(s.window, total), 0
	messages := make([]reading, begun)
	watch := newStopwatch(s.order, s.floodPart())
	var posts []fabric.Op
	for i := range messages {
		posts = s.readOn(posts, i, &messages[i])
	}
	for received < total {
		done, err := s.turn(posts, s.spins)
		if err != nil {
			return times{}, err
		}
		if posts, err = refused(posts); err != nil {
			return times{}, err
		}
		for i := range done {
			index := int(done[i].Context)
			m := &messages[index]
			m.underWay--
			posts = s.readOn(posts, index, m)
			if m.underWay > 0 {
				continue
			}
			if err := expectNumber(s.buffer(index), sourceNumber(index)); err != nil {
				return times{}, err
			}
			if received++; received == watch.next {
				watch.mark()
			}
			if begun < total {
				begun++
				*m = reading{}
				posts = s.readOn(posts, index, m)
			}
		}
		if len(done) == 0 {
			if err := s.idle(len(posts) == 0); err != nil {
				return times{}, err
			}
		}
	}
	return s.endFlood(watch)
}

// readOn has the next pieces of a message read. Those that are refused stay under way.
func (s *side) readOn(posts []fabric.Op, index int, m *reading) []fabric.Op {
	buf := s.buffer(index)
	if m.offset == 0 {
		putNumber(buf, 0)
	}
	for m.underWay < readWindow && m.offset < len(buf) {
		piece := buf[m.offset:min(m.offset+readPiece, len(buf))]
		from := fabric.Remote{Address: s.remote.Address + uint64(index*s.size+m.offset), Key: s.remote.Key}
		posts = append(posts, fabric.Op{
			Kind: fabric.OpRead, Peer: s.peer, Buf: piece, Remote: from,
			Descriptor: s.descriptor, Fixed: true, Context: uint64(index),
		})
		m.offset += len(piece)
		m.underWay++
	}
	return posts
}
