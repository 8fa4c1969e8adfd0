package suite

import (
	"context"
	"fmt"

	"github.com/weft-go/weft/internal/bench"
)

// From which length on a message is better announced than sent along: the same
// ping-pong both ways. Where the ratio passes 1 is where the limit belongs. Over tcp of
// libfabric 1.17 nothing goes eagerly that is longer than 16 KiB (efa/piece.go).

func thresholdBenchmarks() []benchmark {
	var all []benchmark
	for _, form := range []struct{ carrier, one, two string }{
		{overConn, "connection ping-pong, eager", "length and payload"},
		{overComm, "ping-pong of two ranks, eager", "rendezvous"},
	} {
		for _, on := range []struct {
			provider string
			count    int
		}{{"shm", 50_000}, {"tcp", 10_000}, {"sockets", 2_000}, {"efa", 2_000}} {
			made := over(on.provider, weftSide(sideOptions{over: form.carrier}), perOperation)
			for _, size := range []int{2 << 10, 8 << 10, 16_000, 32 << 10, 65_000} {
				b := benchmark{
					id: "limit", provider: on.provider, work: fmt.Sprintf("%d B %s", size, form.one),
					order: orderFor(pingPongWork, on.provider, on.count, 1), unit: microseconds, weft: made,
					baselines: []baseline{{form.two, func(ctx context.Context, t *tools, o order) (bench.Sample, error) {
						o.two = true
						return made(ctx, t, o)
					}, 0}},
				}
				b.order.size = size
				all = append(all, b)
			}
		}
	}
	return all
}
