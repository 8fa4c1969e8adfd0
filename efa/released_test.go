package efa

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever waits for the buffers of an error waits for all of them.
func TestReleased(t *testing.T) {
	require.NotNil(t, Released(nil))
	<-Released(nil)
	<-Released(errors.New("no buffer"))

	one, other := make(chan struct{}), make(chan struct{})
	first := &InFlightError{Err: errors.New("first"), Released: one}
	require.Equal(t, first.Released, Released(fmt.Errorf("wrapped: %w", first)))

	both := Released(errors.Join(errors.New("why"), fmt.Errorf("in: %w", errors.Join(first, &InFlightError{Err: first, Released: other}))))
	close(one)
	select {
	case <-both:
		t.Fatal("one of them is in use")
	default:
	}
	close(other)
	<-both
}
