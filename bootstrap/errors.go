package bootstrap

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	// ErrNoEnvironment says that nothing tells the rank of this process: it was
	// started by none of the launchers, and Options.Size is 0. It comes as an
	// [EnvironmentError].
	ErrNoEnvironment = errors.New("bootstrap: nothing says which rank this is")
	// ErrUnauthorized says that one side has not the other's key.
	ErrUnauthorized = errors.New("bootstrap: not authorized")
	// ErrRankTaken says that another process is this rank already.
	ErrRankTaken = errors.New("bootstrap: the rank is taken")
	// ErrOtherJob says that the store is that of a job of another size or name.
	ErrOtherJob = errors.New("bootstrap: the store is of another job")
	// ErrProtocol says that the other side broke the protocol, or that it is no
	// store of weft's.
	ErrProtocol = errors.New("bootstrap: protocol error")
	// ErrNotNumber says that Add cannot add: the value is not a number, or the sum is
	// not one of 64 bits.
	ErrNotNumber = errors.New("bootstrap: not a number of 64 bits")
	// ErrFull says that the server of a store keeps as much as its [Limits] let it.
	ErrFull = errors.New("bootstrap: the store is full")
	// ErrBusy says that an exchange of this name is under way in this process.
	ErrBusy = errors.New("bootstrap: an exchange of this name is under way")
	// errEnding says that a job is over, and its store not free yet for the next.
	errEnding = errors.New("bootstrap: the ranks of the job before have not all left")
)

// EnvironmentError says which variables of the environment are wrong.
type EnvironmentError struct {
	// Launcher is whose variables they are, if it is one's.
	Launcher Launcher
	// Variables are the names of those that are missing, wrong or disagree.
	Variables []string
	// Detail says what is wrong, and what would be right.
	Detail string
	// Err is ErrNoEnvironment, or nil.
	Err error
}

func (e *EnvironmentError) Error() string { return "bootstrap: " + e.Detail }

// Unwrap returns Err.
func (e *EnvironmentError) Unwrap() error { return e.Err }

// ConfigError says what is wrong with [Options] or with the address of a store.
type ConfigError struct {
	Field  string // such as "Rank"
	Detail string
}

func (e *ConfigError) Error() string { return "bootstrap: " + e.Field + ": " + e.Detail }

// LimitError says that something is too long, or too much.
type LimitError struct {
	What        string
	Got         int64
	Least, Most int64
	full        bool // see ErrFull
}

func (e *LimitError) Error() string {
	bound := "at most " + strconv.FormatInt(e.Most, 10)
	if e.Got < e.Least {
		bound = "at least " + strconv.FormatInt(e.Least, 10)
	}
	return fmt.Sprintf("bootstrap: %s is %d, it must be %s", e.What, e.Got, bound)
}

// Is makes the error ErrFull, if it is about what a server keeps.
func (e *LimitError) Is(target error) bool { return e.full && target == ErrFull }

// LostError says that the job has ended because a rank is gone.
type LostError struct {
	// Rank is who is lost; negative if it is the store, and no rank served that.
	Rank int
	// Cause says how it showed.
	Cause error
}

func (e *LostError) Error() string {
	who := "the store"
	if e.Rank >= 0 {
		who = "rank " + strconv.Itoa(e.Rank)
	}
	return fmt.Sprintf("bootstrap: %s is lost: %s", who, bare(e.Cause))
}

// Unwrap returns Cause.
func (e *LostError) Unwrap() error { return e.Cause }

// MissingError says which ranks have not come.
type MissingError struct {
	// Name is where they have not come: the name of a barrier or of an exchange, or
	// the address of the store when they have not joined.
	Name string
	// Ranks are those, in order, of Size.
	Ranks []int
	Size  int
	// Left are those among them that have left the job in order.
	Left []int
	// After is how long they were waited for; 0 if not known.
	After time.Duration
	// Err is what ended the wait, such as context.DeadlineExceeded.
	Err error
}

func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "bootstrap: %s of %d %s not arrived at %s", ranksText(e.Ranks), e.Size, plural(len(e.Ranks), "has", "have"), printable(e.Name))
	if e.After > 0 {
		fmt.Fprintf(&b, " within %v", e.After.Round(time.Millisecond))
	}
	if len(e.Left) > 0 {
		fmt.Fprintf(&b, "; %s %s left the job", ranksText(e.Left), plural(len(e.Left), "has", "have"))
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %s", bare(e.Err))
	}
	return b.String()
}

// Unwrap returns Err.
func (e *MissingError) Unwrap() error { return e.Err }

// RefusedError carries the reason that the server of a store gave for not letting
// this rank in.
type RefusedError struct {
	// Kind is ErrUnauthorized, ErrRankTaken, ErrOtherJob or ErrProtocol; or nil.
	Kind error
	// Reason is the server's own text, made printable.
	Reason string
}

func (e *RefusedError) Error() string { return "bootstrap: the store refuses: " + e.Reason }

// Unwrap returns Kind.
func (e *RefusedError) Unwrap() error { return e.Kind }

// NotStoreError says that what listens at the address is no store of weft's. It is
// ErrProtocol.
type NotStoreError struct {
	// Got is the beginning of what it sent.
	Got []byte
}

func (e *NotStoreError) Error() string {
	return "bootstrap: what answers there is not the store of a weft job: it sent " + strconv.QuoteToASCII(string(e.Got))
}

// Is makes the error ErrProtocol.
func (e *NotStoreError) Is(target error) bool { return target == ErrProtocol }

// bare is the text of an error without this package's name in front, for where that
// has been said.
func bare(err error) string { return strings.TrimPrefix(err.Error(), "bootstrap: ") }

// joinError is why a rank is not let in, with the address of the store.
type joinError struct {
	address string
	err     error
}

func (e *joinError) Error() string {
	return "bootstrap: cannot join the store at " + e.address + ": " + bare(e.err)
}
func (e *joinError) Unwrap() error { return e.err }

// mostNamed is how many ranks, or ranges of them, an error names.
const mostNamed = 20

// ranksText is "rank 3", or "ranks 3, 5 to 8 and 12".
func ranksText(ranks []int) string {
	ranks = slices.Sorted(slices.Values(ranks))
	var names []string
	named := 0
	for i := 0; i < len(ranks) && len(names) < mostNamed; {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if j < i+2 { // two in a row are named one by one
			j = i
			names = append(names, strconv.Itoa(ranks[i]))
		} else {
			names = append(names, strconv.Itoa(ranks[i])+" to "+strconv.Itoa(ranks[j]))
		}
		named, i = named+j-i+1, j+1
	}
	if rest := len(ranks) - named; rest > 0 {
		names = append(names, strconv.Itoa(rest)+" more")
	}
	text := plural(len(ranks), "rank ", "ranks ")
	for i, name := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			text += " and "
		default:
			text += ", "
		}
		text += name
	}
	return text
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
