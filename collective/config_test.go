package collective

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
)

func TestConfig(t *testing.T) {
	ring := map[schedule.Collective]schedule.Algorithm{schedule.CollectiveAllreduce: schedule.Ring}
	for _, c := range []struct {
		list  string
		given Config
		want  Config
		fault string
	}{
		{want: Config{Fanout: 2, CachePages: 32, Chunk: 256 << 10}},
		{list: " fanout=4, cache-pages=0,chunk=1000,", want: Config{Fanout: 4, CachePages: 0, Chunk: 1000}},
		{list: "fanout=4,allreduce=ring", given: Config{Fanout: 3}, want: Config{Fanout: 3, CachePages: 32, Chunk: 256 << 10, Algorithms: ring}},
		{list: "allreduce=direct", given: Config{CachePages: -5, Algorithms: ring}, want: Config{Fanout: 2, Chunk: 256 << 10, Algorithms: ring}},
		{list: "fan-out=4", fault: `"fan-out", want fanout, cache-pages, chunk, or a collective`},
		{list: "fanout", fault: `"fanout", want fanout=NUMBER`},
		{list: "fanout=two", fault: `"fanout=two", want fanout=NUMBER`},
		{list: "allreduce=rings", fault: `allreduce=rings: `},
		{list: "bcast=ring", fault: "bcast=ring: "},
		{given: Config{Fanout: -1}, fault: "Fanout: -1, want 1 to"},
		{given: Config{CachePages: 1 << 30}, fault: "CachePages: "},
		{given: Config{Chunk: -1}, fault: "Chunk: -1"},
		{given: Config{Algorithms: map[schedule.Collective]schedule.Algorithm{schedule.CollectiveBarrier: schedule.Ring}}, fault: "ring, want one of [dissemination], for barrier"},
	} {
		t.Setenv(Variable, c.list)
		got, err := c.given.withDefaults()
		if c.fault != "" {
			require.ErrorContains(t, err, c.fault, "%q", c.list)
			continue
		}
		require.NoError(t, err, "%q", c.list)
		if c.want.Algorithms == nil {
			require.Empty(t, got.Algorithms)
			got.Algorithms = nil
		}
		require.Equal(t, c.want, got, "%q", c.list)
	}
}
