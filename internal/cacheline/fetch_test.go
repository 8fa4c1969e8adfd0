package cacheline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Memory is as it was, and any address will do.
func TestFetch(t *testing.T) {
	line := []byte("a line, which stays as it is, whoever has it")
	Fetch(&line[0])
	Fetch(&line[len(line)-1])
	require.Equal(t, "a line, which stays as it is, whoever has it", string(line))
	Fetch(nil)
}
