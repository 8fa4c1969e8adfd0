package suite

import (
	"encoding/binary"
	"fmt"
)

// numberSize is what a number takes: a message begins with its number, and ends
// with it if it is long enough for both, as in c/twin.h.
const numberSize = 8

func putNumber(message []byte, number uint64) {
	binary.LittleEndian.PutUint64(message, number)
	if len(message) >= 2*numberSize {
		binary.LittleEndian.PutUint64(message[len(message)-numberSize:], number)
	}
}

// expectNumber compares the number of a message with the one that is due.
func expectNumber(message []byte, number uint64) error {
	if got := binary.LittleEndian.Uint64(message); got != number {
		return fmt.Errorf("message %#x instead of %#x", got, number)
	}
	if len(message) < 2*numberSize {
		return nil
	}
	if got := binary.LittleEndian.Uint64(message[len(message)-numberSize:]); got != number {
		return fmt.Errorf("message %#x ends as %#x", number, got)
	}
	return nil
}

// touched writes to all of the memory, because pages that nobody has written to
// are all the same one, which the processor keeps at hand.
func touched(memory []byte) []byte {
	for i := range memory {
		memory[i] = 1
	}
	return memory
}
