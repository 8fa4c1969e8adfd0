// Package job has the ranks of a job on this machine measure what they do together: the
// collectives of weft, each as a process of the program itself, and those of Open MPI beside
// them.
package job

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-go/weft/collective/schedule"
)

// The works of ranks beside the collectives, which go by their names.
const (
	// PingPong is half a round trip of a message between ranks 0 and 1.
	PingPong = "pingpong"
	// Combine adds up as many bytes of floats, on each rank for itself.
	Combine = "combine"
	// Copy copies as many bytes, on each rank for itself.
	Copy = "copy"
	// Empty is a call that gives nothing to anybody: what a call takes beside its puts.
	Empty = "empty"
	// Stream is a Bcast of which the next begins when the root is done with it: what it takes
	// a rank to begin a put, or to have one.
	Stream = "stream"
)

// Case is something to measure.
type Case struct {
	// Work is the name of a collective, or one of the constants.
	Work string
	// Algorithm of a collective; schedule.Default is what is chosen by size.
	Algorithm schedule.Algorithm
	// Bytes are those that one rank gives to another: all of a Bcast, Reduce or Allreduce,
	// and otherwise the block of a rank.
	Bytes int
	// Calls is how many; 0 is as many as fit into the job's time.
	Calls int
	// Arena: ranks of weft have the data of a collective in an arena.
	Arena bool
	// Pair: ranks 0 and 1 of weft do it by themselves, and the others wait.
	Pair bool
}

// String is the case as an argument of a rank.
func (c Case) String() string {
	text := fmt.Sprintf("%s/%v/%d/%d", c.Work, c.Algorithm, c.Bytes, c.Calls)
	if c.Arena {
		text += inArena
	}
	if c.Pair {
		text += byPair
	}
	return text
}

const inArena, byPair = "/arena", "/pair"

// elementSize is that of what is combined, which is float32 everywhere.
const elementSize = 4

// most is the most bytes, and calls, of a case.
const most = 1 << 30

func parseCase(text string) (c Case, err error) {
	rest, pair := strings.CutSuffix(text, byPair)
	rest, arena := strings.CutSuffix(rest, inArena)
	c.Pair, c.Arena = pair, arena
	fields := strings.Split(rest, "/")
	if len(fields) != 4 {
		return c, fmt.Errorf("case %q, want WORK/ALGORITHM/BYTES/CALLS, and /arena and /pair or not", text)
	}
	c.Work = fields[0]
	if c.Algorithm, err = schedule.ParseAlgorithm(fields[1]); err != nil {
		return c, fmt.Errorf("case %q: %w", text, err)
	}
	if c.Bytes, err = strconv.Atoi(fields[2]); err != nil || c.Bytes < 0 || c.Bytes > most || c.Bytes%elementSize != 0 {
		return c, fmt.Errorf("case %q: want 0 to %d bytes, a multiple of %d", text, most, elementSize)
	}
	if c.Calls, err = strconv.Atoi(fields[3]); err != nil || c.Calls < 0 || c.Calls > most {
		return c, fmt.Errorf("case %q: want 0 to %d calls", text, most)
	}
	return c, nil
}

// Memory is about how many bytes all ranks need for a case: what they give and get, and as
// much again that is registered.
func (c Case) Memory(ranks int) int {
	each := 2 * c.Bytes
	switch c.Work {
	case schedule.CollectiveGather.String(), schedule.CollectiveScatter.String():
		return 2 * (ranks*c.Bytes + ranks*ranks*c.Bytes)
	case schedule.CollectiveAllgather.String(), schedule.CollectiveReduceScatter.String():
		each = (ranks + 1) * c.Bytes
	case schedule.CollectiveAlltoall.String():
		each = 2 * ranks * c.Bytes
	}
	return 2 * ranks * each
}
