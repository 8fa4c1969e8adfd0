package collective

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/fabric"
)

// errClosed is the error of calls after Close of the communicator.
var errClosed = fmt.Errorf("collective: closed: %w", net.ErrClosed)

// ArgumentError says which argument of a call is wrong.
type ArgumentError struct {
	Name  string // such as "recv"
	Value string
	Want  string // what would be right
}

func (e *ArgumentError) Error() string {
	return "collective: " + e.Name + " " + e.Value + ", want " + e.Want
}

// argumentError is why there is no plan for a call, as the program is to hear it.
func argumentError(err error) error {
	var argument *schedule.ArgumentError
	var algorithm *schedule.AlgorithmError
	switch {
	case errors.As(err, &argument):
		return &ArgumentError{argument.Name, strconv.Itoa(argument.Value), argument.Want}
	case errors.As(err, &algorithm):
		return &ArgumentError{"algorithm", algorithm.Algorithm.String(), algorithm.Want}
	}
	return err
}

// AbortError says that another rank has given up a call, and with it all that are under way
// anywhere: also one before it that has ended on that rank already, and not yet on this one.
type AbortError struct {
	Rank   int
	Reason AbortReason
	Lost   int // the rank that was lost to it, with ReasonLost
}

func (e *AbortError) Error() string {
	if e.Reason == ReasonLost {
		return fmt.Sprintf("collective: rank %d has given up: rank %d is lost to it", e.Rank, e.Lost)
	}
	return fmt.Sprintf("collective: rank %d has given up: %v", e.Rank, e.Reason)
}

// AbortReason is why a rank gives up.
type AbortReason uint8

// The reasons.
const (
	ReasonFailed   AbortReason = iota + 1 // an error that is none of the others
	ReasonContext                         // the context of the call has ended
	ReasonOperator                        // the operator has failed
	ReasonLost                            // another rank is lost
	ReasonClosed                          // the communicator was closed
	ReasonMismatch                        // another rank makes another call
	ReasonConfig                          // its Config is wrong, or another rank has another
	ReasonArgument                        // the call was refused there, and made elsewhere
)

func (r AbortReason) String() string {
	switch r {
	case ReasonFailed:
		return "an error of its own"
	case ReasonContext:
		return "its context has ended"
	case ReasonOperator:
		return "its operator has failed"
	case ReasonLost:
		return "another rank is lost to it"
	case ReasonClosed:
		return "it has closed the communicator"
	case ReasonMismatch:
		return "another rank makes another call"
	case ReasonConfig:
		return "its Config is wrong, or another rank has another"
	case ReasonArgument:
		return "the call was refused there"
	}
	return "a reason that is not known here"
}

// MismatchError says that two ranks make different calls: of another kind, with another
// root, length, size of an element, operator with its type, algorithm or blocks. It is
// noticed where a rank puts to another in a call that does not go through the cache (Config.CachePages), and of the others
// if one puts something where the other waits for nothing. Short calls that differ otherwise
// are not compared: their results are wrong, and those of the calls that follow. Nor are
// calls in which nobody puts, such as those without elements; ranks whose calls have other
// senders, as those of another kind or root often have, may wait for each other for ever.
type MismatchError struct {
	Rank       int                 // the other rank
	Collective schedule.Collective // of this rank's call, or 0 if that is done
}

func (e *MismatchError) Error() string {
	if e.Collective == 0 {
		return fmt.Sprintf("collective: rank %d has not made the same call as this one before, with the same root, length, type, operator, algorithm and blocks", e.Rank)
	}
	return fmt.Sprintf("collective: rank %d does not make the same %v with the same root, length, type, operator, algorithm and blocks", e.Rank, e.Collective)
}

// ProviderError says that the provider of a communicator cannot write to the memory of
// other ranks, which all calls need where there is more than one.
type ProviderError struct{ Provider string }

func (e *ProviderError) Error() string {
	return "collective: " + e.Provider + " does not write to the memory of other ranks"
}

// Unwrap returns fabric.ErrNotSupported.
func (e *ProviderError) Unwrap() error { return fabric.ErrNotSupported }

// ConfigError is about a Config that cannot be used, or that is another one than that of
// another rank. Field is that of Config, or [Variable].
type ConfigError struct{ Field, Detail string }

func (e *ConfigError) Error() string {
	if e.Field == Variable {
		return "collective: " + Variable + ": " + e.Detail
	}
	if e.Field == "" {
		return "collective: Configure: " + e.Detail
	}
	return "collective: Config." + e.Field + ": " + e.Detail
}
