package kernelcopy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMeasure(t *testing.T) {
	m := Measure()
	t.Logf("%+v", m)
	require.Equal(t, m, Measure(), "once in a process")
	require.Positive(t, m.Copy)
	require.Less(t, m.Copy, time.Minute)
}
