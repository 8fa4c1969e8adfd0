package suite

import (
	"fmt"
	"strconv"
	"time"
)

// What there is to do.
const (
	pingPongWork = "pingpong" // one message each way in flight
	floodWork    = "flood"    // messages in one direction
	readWork     = "read"     // reads of the first side's memory by the second
	idleWork     = "idle"     // connections on which nothing is sent
	latencyWork  = "latency"  // a ping-pong of which each message is timed
)

// order is what a side of a benchmark is told to do. The C twins take the same
// arguments in the same place.
type order struct {
	work     string // one of the above
	provider string
	source   string // address to bind to; empty is libfabric's choice
	first    bool   // pings, or floods; the other side answers
	inject   bool   // send by inject, without a completion
	two      bool   // a message is two: its length, and then its payload
	warmup   int    // messages that are not counted, at least 1
	count    int    // messages that are
	window   int    // most operations in flight
	size     int    // bytes of a message, at least the 8 of its number
	deadline time.Duration
}

// pingPongs says that messages go to and fro.
func (o order) pingPongs() bool { return o.work == pingPongWork || o.work == latencyWork }

// The arguments' limits, as in twin.c.
const (
	mostMessages = 1 << 30
	mostWindow   = 1024
	leastSize    = 8
	mostSize     = 1 << 26
)

func (o order) args() []string {
	part, send := "second", "send"
	if o.first {
		part = "first"
	}
	switch {
	case o.inject:
		send = "inject"
	case o.two:
		send = "two"
	}
	return []string{
		o.work, o.provider, o.source, part, send,
		strconv.Itoa(o.warmup), strconv.Itoa(o.count), strconv.Itoa(o.window),
		strconv.Itoa(o.size), strconv.Itoa(int(o.deadline / time.Second)),
	}
}

func parseOrder(args []string) (o order, err error) {
	const count = 10
	if len(args) != count {
		return o, fmt.Errorf("a side takes %d arguments, not %d", count, len(args))
	}
	o = order{
		work: args[0], provider: args[1], source: args[2],
		first: args[3] == "first", inject: args[4] == "inject", two: args[4] == "two",
	}
	var seconds int
	for i, n := range []struct {
		into        *int
		least, most int
	}{
		{&o.warmup, 1, mostMessages},
		{&o.count, 1, mostMessages},
		{&o.window, 1, mostWindow},
		{&o.size, leastSize, mostSize},
		{&seconds, 1, 3600},
	} {
		text := args[5+i]
		if *n.into, err = strconv.Atoi(text); err != nil || *n.into < n.least || *n.into > n.most {
			return o, fmt.Errorf("argument %d is %q, and is to be from %d to %d", 6+i, text, n.least, n.most)
		}
	}
	o.deadline = time.Duration(seconds) * time.Second
	return o, nil
}
