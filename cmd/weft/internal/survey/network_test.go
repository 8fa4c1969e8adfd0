package survey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
)

func TestParseNetwork(t *testing.T) {
	want := cost.EFA()
	got, err := ParseNetwork("efa", "")
	require.NoError(t, err)
	require.Equal(t, want, got)
	want.Latency, want.Bandwidth, want.RanksPerNode, want.LinksPerNode = 5*time.Microsecond, 25e9, 4, 2
	want.LocalByCore, want.Handed, want.Slot = false, false, 0
	got, err = ParseNetwork("efa", "latency=5us,bandwidth=25e9, ranks=4,links=2,local-by-core=false,handed=false,slot=0")
	require.NoError(t, err)
	require.Equal(t, want, got)

	// What a report has of a network makes that network.
	all := ""
	for name, value := range assumed(want) {
		all += "," + name + "=" + value
	}
	got, err = ParseNetwork("efa", all[1:])
	require.NoError(t, err)
	require.Equal(t, want, got)

	for settings, fault := range map[string]string{
		"latency":               `setting "latency", want NAME=VALUE of latency, overhead, `,
		"speed=1":               `setting "speed=1", want NAME=VALUE of latency, `,
		"latency=13us,":         `setting "", want NAME=VALUE of `,
		"latency=13":            `setting "latency=13", want a time such as 13us`,
		"latency=-1us":          `setting "latency=-1us", want 0 to an hour`,
		"bandwidth=fast":        `setting "bandwidth=fast", want a number, such as 12.5e9 of bytes per second`,
		"bandwidth=0.5":         `setting "bandwidth=0.5", want at least 1 byte per second, or 0 for no time at all`,
		"bandwidth=NaN":         `setting "bandwidth=NaN", want at least 1 byte`,
		"ranks=8,ranks=4":       `setting "ranks=4", want ranks only once`,
		"ranks=many":            `setting "ranks=many", want a number`,
		"links=70000":           `setting "links=70000", want 0 to 65536`,
		"slot=-1":               `setting "slot=-1", want at least 0`,
		"handed=maybe":          `setting "handed=maybe", want true or false`,
		"latency=13us,links= 2": `setting "links= 2", want a number`,
	} {
		_, err := ParseNetwork("efa", settings)
		var setting *SettingError
		require.ErrorAs(t, err, &setting, settings)
		require.ErrorContains(t, err, fault)
	}
}

// A network that is twice as slow is so in what is reckoned.
func TestReckonWithSettings(t *testing.T) {
	c := Config{Collectives: []schedule.Collective{schedule.CollectiveBarrier}, Ranks: []int{64}}
	predicted := func(settings string) float64 {
		r, err := Reckon(context.Background(), c, "efa", settings)
		require.NoError(t, err)
		return r.Results[0].Algorithms[0].Predicted
	}
	usual := predicted("")
	require.InDelta(t, 6*13, predicted("ranks=1,latency=26us")-predicted("ranks=1"), 0.01, "six rounds between nodes")
	require.InDelta(t, usual, predicted("ranks=8"), 0)
	r, err := Reckon(context.Background(), c, "efa", "ranks=16")
	require.NoError(t, err)
	require.Equal(t, "efa with ranks=16", r.Simulated)
	require.Equal(t, "16", r.Assumed["ranks"])
	require.Equal(t, "13\u00b5s", r.Assumed["latency"])
}
