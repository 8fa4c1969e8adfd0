package survey

import (
	"fmt"
	"slices"

	"github.com/weft-go/weft/cmd/weft/internal/chart"
)

// Sheet has a chart for each collective and number of ranks: time over bytes.
func (r *Report) Sheet() chart.Sheet {
	s := chart.Sheet{Title: fmt.Sprintf("Collectives on %s, commit %s", r.Provider, r.Environment.Commit)}
	if r.Simulated != "" {
		s.Title = fmt.Sprintf("What collectives would cost on %s, by the simulator of commit %s", r.Simulated, r.Environment.Commit)
	}
	var at *Result
	for _, one := range r.Results {
		if at == nil || at.Collective != one.Collective {
			s.Rows = append(s.Rows, nil)
		}
		row := &s.Rows[len(s.Rows)-1]
		if at == nil || at.Collective != one.Collective || at.Ranks != one.Ranks {
			*row = append(*row, chart.Chart{
				Title: fmt.Sprintf("%s, %d ranks", one.Collective, one.Ranks), X: "bytes", Y: "us",
				Mark: func(x float64) string { return sizeName(int(x)) },
			})
		}
		at = one
		one.draw(&(*row)[len(*row)-1])
	}
	return s
}

// draw adds the points of a result to the lines of a chart.
func (r *Result) draw(c *chart.Chart) {
	// What has no bytes has a place of its own on the axis.
	x := float64(max(r.Bytes, 1))
	add := func(label, color string, stroke chart.Stroke, y float64) {
		i := slices.IndexFunc(c.Lines, func(l chart.Line) bool { return l.Label == label })
		if i < 0 {
			i = len(c.Lines)
			c.Lines = append(c.Lines, chart.Line{Label: label, Color: color, Stroke: stroke})
		}
		c.Lines[i].Points = append(c.Lines[i].Points, chart.Point{X: x, Y: y})
	}
	if r.Bytes == 0 {
		c.X, c.Mark = "", func(float64) string { return "" }
	}
	if len(r.Weft) > 0 {
		add("weft", "", chart.Solid, r.Weft.Median())
	}
	if r.OpenMPI != nil {
		add("Open MPI", "", chart.Dashed, r.OpenMPI.Series.Median())
	}
	if r.Bound != nil {
		add("bound", "", chart.Dotted, r.Bound.Series.Median())
	}
	for _, a := range r.Algorithms {
		if len(a.Weft) > 0 {
			add(a.Name, a.Name, chart.Solid, a.Weft.Median())
		}
		if a.Predicted > 0 {
			add(a.Name+", predicted", a.Name, chart.Dashed, a.Predicted)
		}
	}
}
