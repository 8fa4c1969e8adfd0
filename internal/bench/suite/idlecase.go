package suite

import (
	"context"

	"github.com/weft-go/weft/internal/bench/report"
)

// idleFiguresOfSide are what an idler is asked about.
var idleFiguresOfSide = []report.Figure{
	{Name: "processor", Unit: "% of a core", Limit: 1},
	{Name: "heap and stacks, made", Unit: "KiB a connection", Limit: 4},
	{Name: "stacks of these", Unit: "KiB a connection"},
	{Name: "resident, made", Unit: "KiB a connection", Limit: 4},
	{Name: "heap and stacks, used", Unit: "KiB a connection", Limit: 4},
	{Name: "resident, used", Unit: "KiB a connection", Limit: 4},
}

func idleFiguresOfBoth() (all []report.Figure) {
	for _, side := range []string{"dialer", "listener"} {
		for _, f := range idleFiguresOfSide {
			f.Name = side + ", " + f.Name
			all = append(all, f)
		}
	}
	return all
}

// values are in the order of idleFiguresOfSide.
func (f idleFigures) values(connections int) []float64 {
	each := func(bytes int64) float64 { return float64(bytes) / 1024 / float64(connections-1) }
	return []float64{
		100 * f.used.Seconds() / f.watched.Seconds(),
		each(f.made.heap + f.made.stacks), each(f.made.stacks), each(f.made.resident),
		each(f.seasoned.heap + f.seasoned.stacks), each(f.seasoned.resident),
	}
}

func measureIdle(program pairProgram) measureFigures {
	return func(ctx context.Context, t *tools, o order) ([]float64, error) {
		first, second, err := program.sides(t, o)
		if err != nil {
			return nil, err
		}
		a, err := startPair(ctx, first, second, o.deadline, idleFigureCount)
		if err != nil {
			return nil, err
		}
		var all []float64
		for _, n := range a.figures {
			all = append(all, decodeIdleFigures(n).values(o.count)...)
		}
		return all, nil
	}
}
