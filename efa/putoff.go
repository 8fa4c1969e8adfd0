package efa

import "time"

// A payload for which no reader waits can be received to the shelf, and be copied to the
// reader who comes later. Of a long one, that costs about as much as receiving it. So
// where readers have come soon, its receive is put off: until one comes, or the device
// has nothing else to do, or a while has passed in which it always had. Until then it is
// in the provider's or the sender's memory.
// What goes in pieces is copied by the provider if there is no receive for it, and is not
// put off.

// putOffFrom is the shortest payload that is put off, in bytes.
const putOffFrom = 32 << 10

// putsOff says whether the receive of a payload is put off.
func (r *Reactor) putsOff(c *Conn, in *inbound) bool {
	if !c.attended || in.length < putOffFrom || in.length > int64(c.piece) || c.locallyClosed {
		return false
	}
	if !c.putOff {
		c.putOff, c.overdue = true, false
		r.putOff = append(r.putOff, c)
	}
	return true
}

// receivePutOff posts the receives that were put off, but not those of a connection of
// which somebody has a message received just now: he may want the next one too. If the
// device is not idle, it looks from time to time, and goes by whether somebody has read
// since it last did: who writes without end may be all that the device is busy with. It
// says of how many connections there are receives to be posted now.
func (r *Reactor) receivePutOff(idle bool) (count int) {
	if !idle {
		now := time.Now()
		if now.Before(r.putOffLook) {
			return 0
		}
		r.putOffLook = now.Add(r.config.readersTime)
	}
	// What is put off meanwhile joins a new list.
	all := r.putOff
	r.putOff = nil
	kept := all[:0]
	for _, c := range all {
		if _, in, arrived, finished, _ := c.reads.Front(); arrived && !finished && in.reader != nil && c.failure == nil {
			kept = append(kept, c)
			continue
		}
		if !idle && !c.overdue {
			c.overdue = true
			kept = append(kept, c)
			continue
		}
		c.putOff = false
		// Not only where one is at the front: what is before it may be on its way to
		// the shelf, or its length may come late.
		if c.reads.Len() > 0 {
			c.attended, c.unposted = false, true
			receiving := c.receiving
			if r.receiveMore(c); c.receiving > receiving {
				count++
			}
		}
	}
	clear(all[len(kept):])
	r.putOff = append(kept, r.putOff...)
	return count
}
