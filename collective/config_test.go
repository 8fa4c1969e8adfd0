package collective

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
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
		{
			list: "allreduce/3/65537=ring,bcast=tree", given: Config{Choices: []Choice{{schedule.CollectiveBcast, 4, 0, schedule.Tree}}},
			want: Config{Fanout: 2, CachePages: 32, Chunk: 256 << 10, Choices: []Choice{
				{schedule.CollectiveAllreduce, 3, 65537, schedule.Ring},
				{schedule.CollectiveBcast, 4, 0, schedule.Tree},
			}},
		},
		{list: "allreduce/3=ring", fault: `choice "allreduce/3=ring", want COLLECTIVE/RANKS/BYTES=ALGORITHM`},
		{list: "allreduce/3/many=ring", fault: `"allreduce/3/many=ring", want COLLECTIVE/RANKS/BYTES=ALGORITHM`},
		{list: "allreduce/few/3=ring", fault: `want COLLECTIVE/RANKS/BYTES=ALGORITHM`},
		{list: "allreduce/3/-1=ring", fault: `at least 0 ranks and 0 bytes`},
		{list: "allsum/3/1=ring", fault: `"allsum"`},
		{list: "allreduce/3/1", fault: `COLLECTIVE/RANKS/BYTES=ALGORITHM (`},
		{list: "bcast/3/1=ring", fault: "ring, want one of [tree scatter-allgather], for bcast"},
		{given: Config{Choices: []Choice{{schedule.CollectiveBarrier, 0, 0, schedule.Ring}}}, fault: "want one of [dissemination]"},
		{given: Config{Choices: []Choice{{}}}, fault: "collective 0, want one of [barrier"},
		{list: "fan-out=4", fault: `"fan-out", want fanout, cache-pages, chunk, or a collective`},
		{list: "fanout", fault: `"fanout", want fanout=NUMBER`},
		{list: "fanout=two", fault: `"fanout=two", want fanout=NUMBER`},
		{list: "allreduce=rings", fault: `allreduce=rings: `},
		{list: "bcast=ring", fault: "bcast=ring: "},
		{given: Config{Fanout: -1}, fault: "Fanout: -1, want 1 to"},
		{list: "fanout=-1", fault: Variable + ": fanout=-1, want 1 to"},
		{list: "chunk=2147483648", fault: Variable + ": chunk=2147483648, want 1 to"},
		{list: "cache-pages=2147483648", fault: Variable + ": cache-pages=2147483648, want 1 to 1048576, or 0 for 32, or less for none"},
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

// The last line that fits counts, and keeps the order where that matters.
func TestOptions(t *testing.T) {
	const small, large = 64 << 10, 64<<10 + 1
	mine := []Choice{
		{schedule.CollectiveAllreduce, 0, 0, schedule.ReduceBcast},
		{schedule.CollectiveAllreduce, 4, 100, schedule.Ring},
	}
	for _, c := range []struct {
		config      Config
		kind        schedule.Collective
		size, bytes int
		ordered     bool
		want        schedule.Algorithm
	}{
		{kind: schedule.CollectiveAllreduce, size: 8, bytes: small, want: schedule.RecursiveDoubling},
		{kind: schedule.CollectiveAllreduce, size: 3, bytes: large, want: schedule.Ring},
		{kind: schedule.CollectiveAllreduce, size: 2, bytes: large, want: schedule.Rabenseifner},
		{kind: schedule.CollectiveAllreduce, size: 8, bytes: large, ordered: true, want: schedule.Rabenseifner},
		{kind: schedule.CollectiveBcast, size: 4, bytes: large, want: schedule.Tree},
		{kind: schedule.CollectiveBcast, size: 5, bytes: large, want: schedule.ScatterAllgather},
		{kind: schedule.CollectiveReduce, size: 5, bytes: large, want: schedule.Tree},
		{kind: schedule.CollectiveReduce, size: 5, bytes: large, ordered: true, want: schedule.Binomial},
		{kind: schedule.CollectiveGather, size: 2, bytes: large, want: schedule.Direct},
		{kind: schedule.CollectiveReduceScatter, size: 3, bytes: large, ordered: true, want: schedule.Pairwise},
		{kind: schedule.CollectiveBarrier, size: 5, want: schedule.Dissemination},
		{config: Config{Choices: mine}, kind: schedule.CollectiveAllreduce, size: 3, bytes: large, want: schedule.ReduceBcast},
		{config: Config{Choices: mine}, kind: schedule.CollectiveAllreduce, size: 4, bytes: 99, want: schedule.ReduceBcast},
		{config: Config{Choices: mine}, kind: schedule.CollectiveAllreduce, size: 4, bytes: 100, want: schedule.Ring},
		{config: Config{Choices: mine}, kind: schedule.CollectiveAllreduce, size: 4, bytes: large, ordered: true, want: schedule.ReduceBcast},
	} {
		got, err := c.config.Options(c.kind, c.size, c.bytes, 4, !c.ordered, true)
		require.NoError(t, err)
		require.Equal(t, c.want, got.Algorithm, "%+v", c)
		require.Equal(t, 2, got.Fanout)
		require.Zero(t, got.Chunk)
	}
	_, err := Config{}.Options(0, 2, 8, 4, true, false)
	var argument *ArgumentError
	require.ErrorAs(t, err, &argument)
	_, err = Config{Fanout: -1}.Options(schedule.CollectiveBcast, 2, 8, 4, true, false)
	var config *ConfigError
	require.ErrorAs(t, err, &config)
	o, err := Config{Chunk: 1000}.Options(schedule.CollectiveBcast, 2, 2000, 4, true, true)
	require.NoError(t, err)
	require.Equal(t, 250, o.Chunk)
	for sameHost, want := range map[bool]int{false: 250, true: 0} {
		o, err := Config{Chunk: 1000}.Options(schedule.CollectiveAllgather, 2, 2000, 4, true, sameHost)
		require.NoError(t, err)
		require.Equal(t, want, o.Chunk)
	}
	// Pieces of long calls within a host are copied past the caches.
	for _, c := range []struct {
		size, bytes, element int
		sameHost             bool
		want                 int
	}{
		{3, leastPast - 1, 1, true, 256 << 10},
		{3, leastPast, 1, true, 1 << 20},
		{2, leastPast, 1, true, 256 << 10},
		{3, leastPast, 1, false, 256 << 10},
		{2, 3 * leastPast, 3, true, 1<<20/3 + 1},
		{2, 128 << 20, 4, true, 512 << 10},
	} {
		o, err := Config{}.Options(schedule.CollectiveReduce, c.size, c.bytes, c.element, true, c.sameHost)
		require.NoError(t, err)
		require.Equal(t, c.want, o.Chunk, "%+v", c)
	}
	// What goes directly to a root, or from it, is cut on shm only.
	for _, c := range []struct {
		algorithm schedule.Algorithm
		sameHost  bool
		want      int
	}{{schedule.Direct, true, 256 << 10}, {schedule.Direct, false, 0}, {schedule.Binomial, true, 0}} {
		config := Config{Algorithms: map[schedule.Collective]schedule.Algorithm{schedule.CollectiveGather: c.algorithm, schedule.CollectiveScatter: c.algorithm}}
		for kind := range config.Algorithms {
			o, err := config.Options(kind, 2, 1<<20, 1, true, c.sameHost)
			require.NoError(t, err)
			require.Equal(t, c.want, o.Chunk, "%v by %+v", kind, c)
		}
	}
	// An option may take an algorithm by which pieces are handed on, and may say how long they are.
	g := group{size: 2, sameHost: true, table: newTable(Config{}, 2), config: Config{Chunk: 1000, Fanout: 2}}
	for want, adjust := range map[int][]Option{
		0: {WithAlgorithm(schedule.Ring)}, 250: {WithAlgorithm(schedule.ReduceBcast)}, 7: {func(o *schedule.Options) { o.Chunk = 7 }},
	} {
		o, err := g.options(schedule.CollectiveAllreduce, 2000, 4, true, adjust)
		require.NoError(t, err)
		require.Equal(t, want, o.Chunk)
	}
	for _, line := range append(mine, usual...) {
		got, err := ParseChoice(line.String())
		require.NoError(t, err)
		require.Equal(t, line, got)
	}
}

// Whatever follows from the table and the parameters, there is a plan.
func TestOptionsHaveAPlan(t *testing.T) {
	for _, kind := range schedule.Collectives() {
		for _, size := range []int{2, 1000, 1025, 4096, schedule.MaxSize} {
			for _, length := range []int{0, 1 << 16, 1<<16 + 1, 1<<24 + 7, 1 << 26} {
				for _, chunk := range []int{0, 1000} {
					for _, sameHost := range []bool{false, true} {
						o, err := Config{Chunk: chunk}.Options(kind, size, length, 1, true, sameHost)
						require.NoError(t, err)
						c := schedule.Call{Collective: kind, Size: size, Length: length, Options: o}
						if kind == schedule.CollectiveBarrier {
							c.Length = 0
						}
						require.NoError(t, c.Check(), "%+v", c)
					}
				}
			}
		}
	}
}

// The simulator has what communicators have without a Config.
func TestSimulatedDefaults(t *testing.T) {
	config, err := Config{}.withDefaults()
	require.NoError(t, err)
	network := cost.EFA()
	require.Equal(t, config.CachePages*pageSize/slots, network.Slot)
	require.Equal(t, mostWordSource, network.Telling)
	require.Equal(t, leastDirect, cost.DirectInArena)
	require.Equal(t, leastExposed, cost.DirectAnywhere)
	require.Equal(t, mostCopied+1, cost.DirectMapped)
	require.Equal(t, largestWindow, cost.MostMapped)
}
