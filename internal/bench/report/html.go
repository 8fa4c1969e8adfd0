package report

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// WriteHTML writes a page that needs nothing else. The changes may be nil.
func (r *Report) WriteHTML(file string, changes *Changes) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(page.Execute(f, r.content(changes)), f.Close())
}

// content is what the template has to work with.
type content struct {
	*Report
	Targets, Others, Points, Lacking []Row
	Met, Missed, Open                int
	Charts                           []chart
	Changes                          *Changes
}

// content sorts the rows: those with targets, those without, the points of curves, which the
// charts show, and what could not be measured.
func (r *Report) content(changes *Changes) content {
	c := content{Report: r, Charts: r.charts(), Changes: changes}
	rows := r.Rows()
	c.Met, c.Missed, c.Open = Tally(rows)
	for _, row := range rows {
		switch {
		case row.Verdict == Absent || row.Verdict == Failed:
			c.Lacking = append(c.Lacking, row)
		case row.Limit > 0:
			c.Targets = append(c.Targets, row)
		case row.Result.Curve != nil:
			c.Points = append(c.Points, row)
		default:
			c.Others = append(c.Others, row)
		}
	}
	return c
}

// When is the time of the start, in words.
func (c content) When() string { return c.Start.UTC().Format("2006-01-02 15:04 UTC") }

// Took is how long it took.
func (c content) Took() string {
	return time.Duration(c.Seconds * float64(time.Second)).Round(time.Second).String()
}

// How is what the row's runs were like.
func (r Row) How() string {
	var parts []string
	if length := float64(r.Result.Bytes); length >= 1<<10 {
		parts = append(parts, binary(length))
	} else if length > 0 {
		parts = append(parts, binary(length)+" B")
	}
	for _, p := range []struct {
		count int
		text  string
	}{
		{r.Result.Window, "window %d"},
		{r.Result.Messages, "%d times"},
		{len(r.Weft), "%d rounds"},
	} {
		if p.count > 0 {
			parts = append(parts, fmt.Sprintf(p.text, p.count))
		}
	}
	return strings.Join(parts, ", ")
}

// Parts cuts a value in front of its range, which stays on one line.
func (r Row) Parts(value string) [2]string {
	if at := strings.LastIndex(value, " ("); at > 0 {
		return [2]string{value[:at], value[at+1:]}
	}
	return [2]string{value}
}

// Strip draws the ratios of a row's rounds, and its target, along a line: how far apart
// they are is what one can rely on. It is nil for rows without ratios or a target.
func (r Row) Strip() *Strip {
	if len(r.Ratios) == 0 || slices.Min(r.Ratios) <= 0 || r.Limit <= 0 {
		return nil
	}
	// Half to twice the target at least, so that a little looks like a little.
	low, high := math.Log(min(slices.Min(r.Ratios), r.Limit/2)), math.Log(max(slices.Max(r.Ratios), r.Limit*2))
	place := func(v float64) float64 { return 6 + (stripWidth-12)*(math.Log(v)-low)/(high-low) }
	s := &Strip{Target: place(r.Limit), Median: place(median(r.Ratios))}
	for _, ratio := range r.Ratios {
		s.Rounds = append(s.Rounds, place(ratio))
	}
	return s
}

// Strip has places along a line of stripWidth.
type Strip struct {
	Target, Median float64
	Rounds         []float64
}

const stripWidth = 150
