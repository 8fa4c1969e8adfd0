package suite

import (
	"fmt"
	"time"
)

// The benchmarks of package efa's connections.

func connSideOf() pairProgram { return weftSide(sideOptions{over: overConn}) }

// orderedBenchmark is a ping-pong of messages that go as two, for lack of an
// eager limit, and in C as two as well.
func orderedBenchmark(count int, limit float64) benchmark {
	b := eagerBenchmark("P3", "shm", count, limit)
	b.work = fmt.Sprintf("%d B connection ping-pong, length and payload", messageSize)
	b.order.two = true
	return b
}

// eagerBenchmark is a ping-pong of messages with the payload in the length
// message, and in C of plain messages.
func eagerBenchmark(id, provider string, count int, limit float64) benchmark {
	return benchmark{
		id: id, provider: provider, work: fmt.Sprintf("%d B connection ping-pong, eager", messageSize),
		order:     orderFor(pingPongWork, provider, count, 1),
		unit:      microseconds,
		weft:      perOperation(connSideOf()),
		baselines: []baseline{{"C", perOperation(twinPair), limit}},
	}
}

// largeBenchmark is large writes in one direction.
func largeBenchmark(provider string, count int, c, tcp float64) benchmark {
	const size = 1 << 20
	b := benchmark{
		id: "P4", provider: provider, work: "1 MiB connection writes by SendZeroCopy",
		order: orderFor(floodWork, provider, count, 4),
		unit:  bytesPerSecond(size),
		weft:  operationsPerSecond(weftSide(sideOptions{over: overConn, sender: senderFragments})),
		baselines: []baseline{
			{"C", operationsPerSecond(twinPair), c},
			{"Go net TCP", operationsPerSecond(weftSide(sideOptions{over: overNet})), tcp},
		},
	}
	b.order.size = size
	return b
}

// singleBenchmark is a flood in which a message is one of the device's. Writing
// each and waiting for room is the fastest way there, and handing them over in
// batches where they are gathered.
func singleBenchmark(provider string, count int, limit float64) benchmark {
	b := floodBenchmark("P5", provider, count, limit)
	b.work = fmt.Sprintf("%d B connection flood by WriteMessage, not gathered", messageSize)
	b.weft = operationsPerSecond(weftSide(sideOptions{over: overConn, sender: senderWrite, ungathered: true}))
	return b
}

// gatheredBenchmark is a flood of which a device's message carries what fits.
func gatheredBenchmark(provider string, count int, limit float64) benchmark {
	b := floodBenchmark("P5", provider, count, limit)
	b.work = fmt.Sprintf("%d B connection flood by SendZeroCopy, gathered", messageSize)
	b.weft = operationsPerSecond(weftSide(sideOptions{over: overConn, sender: senderFragments}))
	return b
}

// unattendedBenchmark is a flood of a sender that does not wait for room, but is
// called when there is some, compared with one that waits.
func unattendedBenchmark(provider string, count int) benchmark {
	b := floodBenchmark("P5", provider, count, 0)
	b.work = fmt.Sprintf("%d B connection flood by TrySend and OnReady", messageSize)
	b.weft = operationsPerSecond(weftSide(sideOptions{over: overConn, sender: senderTry}))
	b.baselines = []baseline{{"WriteMessage", operationsPerSecond(weftSide(sideOptions{over: overConn, sender: senderWrite})), 0}}
	return b
}

// echoBenchmark is a ping-pong of a net.Conn's reads and writes.
func echoBenchmark(count int, limit float64) benchmark {
	return benchmark{
		id: "P6", provider: "shm", work: fmt.Sprintf("%d B net.Conn echo", messageSize),
		order: orderFor(pingPongWork, "shm", count, 1),
		// Of the two operations of each.
		unit:      unit{name: "k/s", scale: 1e-3 / 2, rate: true},
		weft:      operationsPerSecond(weftSide(sideOptions{over: overStream})),
		baselines: []baseline{{"Go net TCP", operationsPerSecond(weftSide(sideOptions{over: overNet})), limit}},
	}
}

// idleBenchmark is many connections between two reactors that send nothing.
// They are watched for some time.
func idleBenchmark(provider string, connections int, watched time.Duration) benchmark {
	over := func(carrier string) measureFigures {
		return measureIdle(weftSide(sideOptions{over: carrier, idle: watched}))
	}
	return benchmark{
		id: "P11", provider: provider, work: "idle connections",
		order:   orderFor(idleWork, provider, connections, 1),
		figures: &figureSet{idleFiguresOfBoth(), "Go net TCP", over(overConn), over(overNet)},
	}
}
