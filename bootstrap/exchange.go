package bootstrap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxName is the length of the longest name of a barrier or of an exchange.
	MaxName = 64
	// piece is how much of the values of all ranks goes into one value.
	piece = MaxValue / 2
)

// Barrier returns when all ranks have called it with this name: for the first time
// each, for the second time each, and so on. It fails as Exchange does.
func (j *Job) Barrier(ctx context.Context, name string) error {
	_, err := j.Exchange(ctx, name, nil)
	return err
}

// Exchange gives each rank the values of all, by rank: an all-gather. It returns when
// all ranks have called it with this name, for as many times each; barriers of the
// same name count. mine has up to MaxValue bytes and is the caller's again after the
// call; what is returned is the caller's. The values go through rank 0.
//
// When the deadline of ctx or Options.Timeout, which bounds it unless it is below 0, is over
// before all have come, the error is a [MissingError] that names those that have not; if all
// have come, and their values have not, it is one that wraps context.DeadlineExceeded. Where
// ctx is cancelled it is the cause of ctx (context.Cause). It can then be called again with
// the same value.
//
// When a rank is lost the error is a [LostError]. One call of a name can be made at a time,
// or the error is ErrBusy. A name or a value that is too long is a [LimitError]; ErrFull says
// that the store has no room, and ErrProtocol that a rank left what it should not have.
func (j *Job) Exchange(ctx context.Context, name string, mine []byte) ([][]byte, error) {
	if name == "" || len(name) > MaxName {
		return nil, &LimitError{What: "the length of the name of an exchange", Got: int64(len(name)), Least: 1, Most: MaxName}
	}
	if err := CheckValue(mine); err != nil {
		return nil, err
	}
	limited, cancel := limit(ctx, j.timeout)
	defer cancel()
	return j.exchange(limited, name, name, mine)
}

// exchange is Exchange under a name, with another one for errors.
func (j *Job) exchange(ctx context.Context, name, title string, mine []byte) ([][]byte, error) {
	j.mu.Lock()
	round, busy := j.rounds[name], j.busy[name]
	j.busy[name] = true
	j.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("%w: %q", ErrBusy, printable(name))
	}
	began := time.Now()
	values, err := j.gather(ctx, name, round, mine)
	j.mu.Lock()
	delete(j.busy, name)
	if err == nil {
		j.rounds[name]++
	}
	j.mu.Unlock()
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) && err != nil && !j.isJobsEnd(err) {
		if missing := j.missing(name, round); len(missing.Ranks) > 0 {
			missing.Name, missing.After, missing.Err = title, time.Since(began), err
			return nil, missing
		}
		return nil, fmt.Errorf("bootstrap: all ranks have arrived at %s, but the values of all have not come from rank 0 within %v: %w", printable(title), time.Since(began).Round(time.Millisecond), err)
	}
	return values, err
}

// gather is one round. Each rank leaves its value; rank 0 takes them all, and leaves
// them as one. So the work grows with the number of ranks, and not with its square.
func (j *Job) gather(ctx context.Context, name string, round int, mine []byte) ([][]byte, error) {
	if err := j.Store.Set(ctx, roundKey(name, round, strconv.Itoa(j.Rank)), mine); err != nil {
		return nil, err
	}
	var values [][]byte
	var err error
	if j.Rank == 0 {
		values, err = j.collect(ctx, name, round)
	} else {
		values, err = j.receive(ctx, name, round)
	}
	if err == nil && round > 0 {
		// All are in this round, and so nobody needs the one before any more. What
		// stays there where this fails does no harm.
		_ = j.clean(ctx, name, round-1)
	}
	return values, err
}

// collect is rank 0's part.
func (j *Job) collect(ctx context.Context, name string, round int) ([][]byte, error) {
	values := make([][]byte, j.Size)
	var all []byte
	for rank := range values {
		value, err := j.Store.Get(ctx, roundKey(name, round, strconv.Itoa(rank)))
		if err != nil {
			return nil, err
		}
		values[rank] = value
		all = append(binary.AppendUvarint(all, uint64(len(value))), value...)
	}
	n := 0
	for part := range slices.Chunk(all, piece) {
		if err := j.Store.Set(ctx, roundKey(name, round, "part"+strconv.Itoa(n)), part); err != nil {
			return nil, err
		}
		n++
	}
	// How many parts there are is said when they are there.
	return values, j.Store.Set(ctx, roundKey(name, round, "parts"), []byte(strconv.Itoa(n)))
}

// receive is the part of the others.
func (j *Job) receive(ctx context.Context, name string, round int) ([][]byte, error) {
	text, err := j.Store.Get(ctx, roundKey(name, round, "parts"))
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(string(text))
	if most := (j.Size*(MaxValue+binary.MaxVarintLen64) + piece - 1) / piece; err != nil || n < 1 || n > most {
		return nil, fmt.Errorf("%w: %q parts of an exchange", ErrProtocol, printable(string(text)))
	}
	var all []byte
	for i := range n {
		part, err := j.Store.Get(ctx, roundKey(name, round, "part"+strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return unpack(all, j.Size)
}

// unpack reads the values of size ranks, as collect has packed them.
func unpack(all []byte, size int) ([][]byte, error) {
	values := make([][]byte, size)
	for rank := range values {
		length, n := binary.Uvarint(all)
		if n <= 0 || length > uint64(len(all)-n) {
			return nil, fmt.Errorf("%w: the values of an exchange end with rank %d", ErrProtocol, rank)
		}
		values[rank] = slices.Clone(all[n : n+int(length)])
		if values[rank] == nil {
			values[rank] = []byte{}
		}
		all = all[n+int(length):]
	}
	if len(all) > 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the values of an exchange", ErrProtocol, len(all))
	}
	return values, nil
}

// clean removes what this rank left in a round.
func (j *Job) clean(ctx context.Context, name string, round int) error {
	if err := j.Store.Delete(ctx, roundKey(name, round, strconv.Itoa(j.Rank))); err != nil || j.Rank != 0 {
		return err
	}
	parts, err := j.Store.Get(ctx, roundKey(name, round, "parts"))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(parts))
	for i := range n {
		err = errors.Join(err, j.Store.Delete(ctx, roundKey(name, round, "part"+strconv.Itoa(i))))
	}
	return errors.Join(err, j.Store.Delete(ctx, roundKey(name, round, "parts")))
}

// asking is how long it may take to find out who is missing.
const asking = 10 * time.Second

// missing finds out who has not come to a round, and who of those has left.
func (j *Job) missing(name string, round int) *MissingError {
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	e := &MissingError{Size: j.Size}
	here, err := j.ranksIn(ctx, roundKey(name, round, ""))
	if err != nil {
		return e
	}
	left, _ := j.ranksIn(ctx, leftPrefix) // only for the text
	for rank := range j.Size {
		text := strconv.Itoa(rank)
		if here[text] {
			continue
		}
		e.Ranks = append(e.Ranks, rank)
		if left[text] {
			e.Left = append(e.Left, rank)
		}
	}
	return e
}

// ranksIn returns what follows a prefix in the keys there are.
func (j *Job) ranksIn(ctx context.Context, prefix string) (map[string]bool, error) {
	keys, err := j.Store.Keys(ctx, prefix)
	found := make(map[string]bool, len(keys))
	for _, key := range keys {
		found[strings.TrimPrefix(key, prefix)] = true
	}
	return found, err
}

// roundKey is where something of a round is. No other name and round has it, since
// what comes behind the name has no slash.
func roundKey(name string, round int, what string) string {
	return "weft/x/" + name + "/" + strconv.Itoa(round) + "/" + what
}
