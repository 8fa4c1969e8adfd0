package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// chart is a drawing of lines, ready for the template of its SVG.
type chart struct {
	Title, X, Y    string
	XTicks, YTicks []tick
	Lines          []drawn
}

// tick is a mark of an axis: where it is, and what it says.
type tick struct {
	At   float64
	Text string
}

// drawn is a line: its corners, and a dot for each with the spread of its rounds.
type drawn struct {
	Label, Class string
	Corners      string
	Dots         []dot
}

type dot struct {
	X, Y, Least, Most float64
	Says              string
}

// line is one before it is drawn.
type line struct {
	label  string
	points []point
}

type point struct {
	x      float64
	values []float64 // by round
}

// axis turns values into places along it, from 0 to 1, and says what they are.
type axis struct {
	label string
	place func(x float64) float64
	text  func(x float64) string
}

// axes are those that curves name.
var axes = map[string]axis{
	"bytes":      {"bytes of a message", math.Log2, binary},
	"window":     {"messages in flight", math.Log2, decimal},
	"depth":      {"others that are waiting", math.Log2, decimal},
	"ranks":      {"ranks", func(x float64) float64 { return x }, decimal},
	"percentile": {"% of the messages are within", nines, scaled()},
}

// nines is how many nines a percentile has: as far as from 90 to 99 it is from 99 to 99.9. The
// longest of all is beyond any axis.
func nines(percentile float64) float64 { return -math.Log10(1 - percentile/100) }

type scale struct {
	name string
	size float64
}

// scaled names a number in the largest unit that it fills.
func scaled(units ...scale) func(x float64) string {
	return func(x float64) string {
		for _, u := range units {
			if x >= u.size {
				return strconv.FormatFloat(x/u.size, 'f', -1, 64) + u.name
			}
		}
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
}

var (
	binary  = scaled(scale{" MiB", 1 << 20}, scale{" KiB", 1 << 10})
	decimal = scaled(scale{"M", 1e6}, scale{"k", 1e3})
)

// charts are those of all curves, in the order in which they were measured.
func (r *Report) charts() []chart {
	type draft struct {
		title, axis, unit string
		lines             []line
	}
	var drafts []*draft
	for i := range r.Results {
		result := &r.Results[i]
		c := result.Curve
		if c == nil || result.Failure != "" || result.NotHere != "" {
			continue
		}
		i := slices.IndexFunc(drafts, func(d *draft) bool { return d.title == c.Chart })
		if i < 0 {
			i = len(drafts)
			drafts = append(drafts, &draft{title: c.Chart, axis: c.Axis, unit: result.Unit})
		}
		d := drafts[i]
		add := func(label string, x float64, values []float64) {
			if len(values) == 0 {
				return
			}
			i := slices.IndexFunc(d.lines, func(l line) bool { return l.label == label })
			if i < 0 {
				i = len(d.lines)
				d.lines = append(d.lines, line{label: label})
			}
			d.lines[i].points = append(d.lines[i].points, point{x, values})
		}
		for _, f := range result.Figures {
			d.unit = f.Unit
			add(c.Line, f.Percentile, f.Weft)
			add(result.Baseline, f.Percentile, f.Baseline)
		}
		add(c.Line, c.X, result.Weft.values())
		for _, other := range result.Comparisons {
			if c.Alone {
				break
			}
			add(other.Baseline, c.X, other.values())
		}
	}
	var all []chart
	for _, d := range drafts {
		if drawing, drawn := draw(d.title, d.axis, d.unit, d.lines); drawn {
			all = append(all, drawing)
		}
	}
	return all
}

// The plane of a chart, as in the template.
const (
	left, right, top, bottom = 56.0, 448.0, 12.0, 232.0
)

// draw lays the lines out. What is not above 0, or beyond the axis, has no place there.
func draw(title, along, unit string, lines []line) (c chart, something bool) {
	a, known := axes[along]
	if !known {
		a = axes["ranks"]
	}
	c = chart{Title: title, X: a.label, Y: unit}
	var xs, ys []float64
	for i := range lines {
		l := &lines[i]
		l.points = slices.DeleteFunc(l.points, func(p point) bool {
			place := a.place(p.x)
			return slices.Min(p.values) <= 0 || math.IsNaN(place) || math.IsInf(place, 0)
		})
		slices.SortStableFunc(l.points, func(p, q point) int { return cmp.Compare(p.x, q.x) })
		for _, p := range l.points {
			xs, ys = append(xs, p.x), append(append(ys, slices.Min(p.values)), slices.Max(p.values))
		}
	}
	if len(xs) == 0 {
		return c, false
	}
	xs = slices.Compact(slices.Sorted(slices.Values(xs)))
	first, last := a.place(xs[0]), a.place(xs[len(xs)-1])
	across := func(x float64) float64 {
		if first == last {
			return (left + right) / 2
		}
		return left + 14 + (right-left-28)*(a.place(x)-first)/(last-first)
	}
	marks := decades(slices.Min(ys), slices.Max(ys))
	low, high := math.Log(marks[0]), math.Log(marks[len(marks)-1])
	up := func(y float64) float64 { return bottom - (bottom-top)*(math.Log(y)-low)/(high-low) }
	c.XTicks = ticks(xs, across, a.text)
	for _, y := range marks {
		c.YTicks = append(c.YTicks, tick{up(y), strconv.FormatFloat(y, 'g', -1, 64)})
	}
	others := 0
	for _, l := range lines {
		if len(l.points) == 0 {
			continue
		}
		d := drawn{Label: l.label, Class: baselineClasses[l.label]}
		if d.Class == "" {
			d.Class = weftClasses[others%len(weftClasses)]
			others++
		}
		var corners []string
		for _, p := range l.points {
			x, y := across(p.x), up(median(p.values))
			corners = append(corners, fmt.Sprintf("%.1f,%.1f", x, y))
			d.Dots = append(d.Dots, dot{
				x, y, up(slices.Min(p.values)), up(slices.Max(p.values)),
				fmt.Sprintf("%s, %s %s: %s %s (%s to %s, %d rounds)", l.label, a.text(p.x), a.label, number(median(p.values)), unit,
					number(slices.Min(p.values)), number(slices.Max(p.values)), len(p.values)),
			})
		}
		d.Corners = strings.Join(corners, " ")
		c.Lines = append(c.Lines, d)
	}
	return c, true
}

// The classes of lines, which have a color each: a baseline looks the same in all charts.
var (
	baselineClasses = map[string]string{"C": "line1", "Go net TCP": "line2", "Open MPI": "line4"}
	weftClasses     = []string{"line0", "line3", "line5"}
)

// ticks are those of the points for which there is room.
func ticks(xs []float64, across func(float64) float64, text func(float64) string) (marks []tick) {
	const letter, gap = 6.5, 8
	end := math.Inf(-1)
	for _, x := range xs {
		half := letter * float64(len(text(x))) / 2
		if at := across(x); at-half > end {
			marks = append(marks, tick{at, text(x)})
			end = at + half + gap
		}
	}
	return marks
}

// decades are marks of 1, 2 and 5, or of 1 alone where the values are far apart, from below the
// least to above the most.
func decades(least, most float64) (marks []float64) {
	steps := []float64{1, 2, 5}
	if most/least > 1000 {
		steps = steps[:1]
	}
	for power := math.Floor(math.Log10(least)); ; power++ {
		for i, step := range steps {
			mark := step * math.Pow(10, power)
			next := 10 * math.Pow(10, power)
			if i+1 < len(steps) {
				next = steps[i+1] * math.Pow(10, power)
			}
			if next > least {
				marks = append(marks, mark)
			}
			if mark > most && len(marks) > 1 {
				return marks
			}
		}
	}
}
