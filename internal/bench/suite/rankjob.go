package suite

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/job"
)

// rankCommand, as the first argument, makes this program a rank of a job.
const rankCommand = "rank"

// rankMain runs a rank of a job and returns the exit code of its process.
func rankMain(args []string, stdout, stderr io.Writer) int {
	if err := job.Play(args, stdout); err != nil {
		fmt.Fprintln(stderr, "rank:", err)
		return 1
	}
	return 0
}

// rankJob is a job of ranks that do what an order says.
func rankJob(size int, t *tools, o order) job.Ranks {
	return job.Ranks{
		Command: []string{os.Args[0], rankCommand}, Folder: t.folder, Provider: o.provider,
		Size: size, Time: time.Second, Limit: o.deadline + grace, Profile: t.profile,
	}
}

// allreduce is what the order of an Allreduce stands for.
func (o order) allreduce() []job.Case {
	return []job.Case{{Work: schedule.CollectiveAllreduce.String(), Bytes: o.size, Calls: o.count}}
}

func only(samples []bench.Sample, err error) (bench.Sample, error) {
	if err != nil {
		return bench.Sample{}, err
	}
	return samples[0], nil
}

// allreduceBound measures the least that an Allreduce takes by the alpha-beta-gamma model: of
// latency alpha and time beta for a byte from ping-pongs of two of the ranks, and of time
// gamma to combine a byte. Every rank has to hear of all, in log2(size) rounds at least; and
// it receives, sends and combines (size-1)/size of all bytes at least.
func allreduceBound(size int) measure {
	return func(ctx context.Context, t *tools, o order) (s bench.Sample, err error) {
		cases := []job.Case{{Work: job.PingPong, Bytes: 8, Calls: o.count}}
		if o.size > 8 {
			cases = append(cases, job.Case{Work: job.PingPong, Bytes: o.size, Calls: o.count},
				job.Case{Work: job.Combine, Bytes: o.size, Calls: o.count})
		}
		took, err := rankJob(size, t, o).Measure(ctx, cases)
		if err != nil {
			return s, err
		}
		rounds := math.Ceil(math.Log2(float64(size)))
		share := float64(size-1) / float64(size)
		bound := func(of func(bench.Sample) float64) float64 {
			latency := of(took[0])
			if len(took) == 1 {
				return rounds * latency
			}
			return rounds*latency + share*(2*(of(took[1])-latency)+of(took[2]))
		}
		s.Mean = bound(func(s bench.Sample) float64 { return s.Mean })
		s.Typical = bound(func(s bench.Sample) float64 { return s.Typical })
		return s, nil
	}
}

// allreduceBenchmark is P9: an Allreduce of some ranks on shm, beside Open MPI's and what
// the network allows. weft bench collective has the other collectives.
func allreduceBenchmark(size, bytes, count int, arena bool) benchmark {
	work := fmt.Sprintf("Allreduce of %d B, %d ranks", bytes, size)
	if arena {
		work += ", in arenas"
	}
	return benchmark{
		id: "P9", provider: "shm", unit: microseconds, work: work,
		order: order{provider: "shm", warmup: max(count/10, 1), count: count, size: bytes, deadline: 2 * time.Minute},
		weft: func(ctx context.Context, t *tools, o order) (bench.Sample, error) {
			cases := o.allreduce()
			cases[0].Arena = arena
			return only(rankJob(size, t, o).Measure(ctx, cases))
		},
		baselines: []baseline{
			{"Open MPI", func(ctx context.Context, t *tools, o order) (bench.Sample, error) {
				return only(t.openMPI(size, o).Measure(ctx, o.allreduce()))
			}, 1.2},
			{"alpha-beta-gamma", allreduceBound(size), 1.2},
		},
	}
}
