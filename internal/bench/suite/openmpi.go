package suite

import (
	"context"
	"time"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/job"
)

// openMPI has two ranks of Open MPI send each other messages, and returns the seconds
// of half a round trip.
func openMPI(ctx context.Context, t *tools, o order) (bench.Sample, error) {
	return t.openMPI(2, o).PingPong(ctx, o.warmup, o.count, o.size)
}

func (t *tools) openMPI(ranks int, o order) job.OpenMPI {
	return job.OpenMPI{Folder: t.folder, Size: ranks, Limit: o.deadline + grace, Time: time.Second}
}
