package operator

import (
	"errors"
	"fmt"
)

// ErrNoOperator is the error of the zero [Op], and of a [Func] without a function.
var ErrNoOperator = errors.New("operator: there is no operator: the zero Op, or a function that is nil")

// TypeError says that values of a type cannot be elements.
type TypeError struct {
	Type string // of the elements, such as "main.Particle"
	// Path leads to what is wrong: ".Cells[].Name" is field Name of an element of
	// array Cells. It is empty if that is the type itself.
	Path string
	// Found is what is there, a type such as "string"; empty if the type has no size.
	Found string
}

func (e *TypeError) Error() string {
	if e.Found == "" {
		return "operator: " + e.Type + " has size 0, want at least a byte"
	}
	return "operator: " + e.Type + e.Path + " is " + e.Found + ", want memory of a fixed size without pointers"
}

// LengthError says that the slices of an Apply are not of one length.
type LengthError struct {
	Operator         string // such as "sum/float64"
	Dst, Left, Right int    // bytes
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("operator: %s: dst has %d bytes, left %d and right %d, want one length", e.Operator, e.Dst, e.Left, e.Right)
}

// OverlapError says that dst of an Apply is neither all nor nothing of an operand.
type OverlapError struct {
	Operator string // such as "sum/float64"
	Operand  string // "left" or "right"
}

func (e *OverlapError) Error() string {
	return "operator: " + e.Operator + ": dst overlaps with a part of " + e.Operand + ", want the same memory or none of it"
}

// ViewError says that memory does not begin or end as elements do.
type ViewError struct {
	Type       string // of the elements, such as "float64"
	Length     int    // of the memory, in bytes
	Size       int    // of an element, in bytes
	Misaligned int    // how far the memory begins behind a multiple of Alignment, in bytes
	Alignment  int    // of elements, in bytes
}

func (e *ViewError) Error() string {
	if e.Length%e.Size != 0 {
		return fmt.Sprintf("operator: %d bytes for elements of %s, want a multiple of %d", e.Length, e.Type, e.Size)
	}
	return fmt.Sprintf("operator: memory for elements of %s begins %d bytes behind a multiple of %d, want none", e.Type, e.Misaligned, e.Alignment)
}

// PanicError says that a function of the user's panicked.
type PanicError struct {
	Operator string // such as "matmul/main.Matrix"
	Value    any    // what it panicked with
	Stack    []byte // of the goroutine, as runtime/debug.Stack has it
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("operator: %s panicked: %v", e.Operator, e.Value)
}

// Unwrap returns what the function panicked with, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
