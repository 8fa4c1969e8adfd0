// Package chart draws charts of lines over logarithmic axes, many on a sheet, as SVG and
// PNG.
package chart

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sheet has charts in rows, which need not be of one length.
type Sheet struct {
	Title string
	Rows  [][]Chart
}

// Chart has lines over two axes. Those of X are marked where there are points, and named by
// Mark.
type Chart struct {
	Title, X, Y string
	Mark        func(x float64) string
	Lines       []Line
}

// Line is a row of points from left to right. What is not above 0 is left out.
type Line struct {
	Label string
	// Color is a name that the lines of a sheet with one color have in common; without it the
	// label is.
	Color  string
	Stroke Stroke
	Points []Point
}

// Point is one of a line.
type Point struct{ X, Y float64 }

// Stroke is how a line is drawn.
type Stroke int

// The strokes.
const (
	Solid Stroke = iota
	Dashed
	Dotted
)

func (s Stroke) dashes() []vg.Length {
	switch s {
	case Dashed:
		return []vg.Length{vg.Points(5), vg.Points(3)}
	case Dotted:
		return []vg.Length{vg.Points(1.5), vg.Points(2)}
	}
	return nil
}

// FormatError says that a file has a name by which it is none of the formats.
type FormatError struct{ File string }

func (e *FormatError) Error() string {
	return fmt.Sprintf("%q is neither a .svg nor a .png", e.File)
}

// Check says whether a file can be written by its name. The error is a *FormatError.
func Check(file string) error {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".svg", ".png":
		return nil
	}
	return &FormatError{file}
}

const (
	tileWidth, tileHeight = 4.6 * vg.Inch, 3 * vg.Inch
	gap                   = 0.15 * vg.Inch
	titleHeight           = 0.4 * vg.Inch
	resolution            = 96 // dots per inch
)

// Write draws the sheet into a file, as its name says.
func (s Sheet) Write(file string) error {
	if err := Check(file); err != nil {
		return err
	}
	columns := 0
	for _, row := range s.Rows {
		columns = max(columns, len(row))
	}
	if columns == 0 {
		return errors.New("there is nothing to draw")
	}
	width := vg.Length(columns)*(tileWidth+gap) + gap
	height := vg.Length(len(s.Rows))*(tileHeight+gap) + gap + titleHeight
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	if strings.EqualFold(filepath.Ext(file), ".svg") {
		canvas = vgsvg.New(width, height)
	} else {
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(resolution), vgimg.UseBackgroundColor(color.White))}
	}
	if err := s.draw(draw.New(canvas), columns); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return errors.Join(err, f.Close())
}

func (s Sheet) draw(c draw.Canvas, columns int) error {
	colors := s.colors()
	plots := make([][]*plot.Plot, len(s.Rows))
	for i, row := range s.Rows {
		plots[i] = make([]*plot.Plot, columns)
		for j, chart := range row {
			var err error
			if plots[i][j], err = chart.plot(colors); err != nil {
				return fmt.Errorf("%s: %w", chart.Title, err)
			}
		}
	}
	head := plot.New().Title.TextStyle
	head.Font.Size = font.Points(14)
	head.XAlign, head.YAlign = draw.XCenter, draw.YTop
	c.FillText(head, vg.Point{X: c.Center().X, Y: c.Max.Y - gap}, s.Title)
	tiles := draw.Tiles{
		Rows: len(s.Rows), Cols: columns, PadTop: titleHeight + gap, PadBottom: gap, PadLeft: gap, PadRight: gap, PadX: gap, PadY: gap,
	}
	for i, row := range plot.Align(plots, tiles, c) {
		for j, tile := range row {
			if plots[i][j] != nil {
				plots[i][j].Draw(tile)
			}
		}
	}
	return nil
}

func (l Line) color() string {
	if l.Color != "" {
		return l.Color
	}
	return l.Label
}

// palette has colors that can be told apart.
var palette = []color.Color{
	color.RGBA{R: 24, G: 90, B: 169, A: 255},
	color.RGBA{R: 238, G: 46, B: 47, A: 255},
	color.RGBA{R: 0, G: 140, B: 72, A: 255},
	color.RGBA{R: 244, G: 125, B: 35, A: 255},
	color.RGBA{R: 102, G: 44, B: 145, A: 255},
	color.RGBA{R: 90, G: 60, B: 30, A: 255},
	color.RGBA{R: 180, G: 56, B: 148, A: 255},
	color.RGBA{R: 0, G: 170, B: 190, A: 255},
	color.RGBA{R: 130, G: 130, B: 0, A: 255},
	color.RGBA{R: 110, G: 110, B: 110, A: 255},
	color.RGBA{R: 150, G: 190, B: 60, A: 255},
	color.RGBA{R: 230, G: 150, B: 180, A: 255},
	color.RGBA{R: 40, G: 40, B: 80, A: 255},
}

// colors gives each name one.
func (s Sheet) colors() map[string]color.Color {
	colors := map[string]color.Color{}
	for _, row := range s.Rows {
		for _, chart := range row {
			for _, line := range chart.Lines {
				if _, known := colors[line.color()]; !known {
					colors[line.color()] = palette[len(colors)%len(palette)]
				}
			}
		}
	}
	return colors
}

// plot is nil where there are no points.
func (c Chart) plot(colors map[string]color.Color) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	p.Title.TextStyle.Font.Size = font.Points(11)
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = font.Points(8)
	var xs, ys []float64
	p.Add(plotter.NewGrid())
	for _, line := range c.Lines {
		var points plotter.XYs
		for _, at := range line.Points {
			if at.X > 0 && at.Y > 0 && !math.IsInf(at.X+at.Y, 0) {
				points = append(points, plotter.XY(at))
				xs, ys = append(xs, at.X), append(ys, at.Y)
			}
		}
		if len(points) == 0 {
			continue
		}
		l, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		l.Color, l.Width, l.Dashes = colors[line.color()], vg.Points(1.5), line.Stroke.dashes()
		dots.Color, dots.Shape, dots.Radius = l.Color, draw.CircleGlyph{}, vg.Points(2)
		p.Add(l, dots)
		p.Legend.Add(line.Label, l, dots)
	}
	if len(xs) == 0 {
		return nil, nil
	}
	// Room around the points, for the legend at the right, and an axis where there is only one.
	least, most := slices.Min(xs), slices.Max(xs)
	p.X.Min, p.X.Max = least/1.3, most*1.3*math.Pow(max(most/least, 2), 0.6)
	p.Y.Min, p.Y.Max = slices.Min(ys)/2, slices.Max(ys)*2
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker = plot.ConstantTicks(c.marks(xs))
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	return p, nil
}

func (c Chart) marks(xs []float64) []plot.Tick {
	var ticks []plot.Tick
	for _, x := range slices.Compact(slices.Sorted(slices.Values(xs))) {
		text := fmt.Sprint(x)
		if c.Mark != nil {
			text = c.Mark(x)
		}
		ticks = append(ticks, plot.Tick{Value: x, Label: text})
	}
	return ticks
}
