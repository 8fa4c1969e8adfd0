package chart

import (
	"encoding/xml"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var sheet = Sheet{
	Title: "all of it",
	Rows: [][]Chart{
		{
			{Title: "first", X: "bytes", Y: "us", Mark: func(float64) string { return "here" }, Lines: []Line{
				{Label: "weft", Points: []Point{{8, 0.5}, {4096, 2}, {1 << 24, 3000}}},
				{Label: "Open & <MPI>", Stroke: Dashed, Points: []Point{{8, 0.5}, {4096, 0}, {0, 1}}},
				{Label: "nothing", Stroke: Dotted},
			}},
			{Title: "one point", Lines: []Line{{Label: "weft", Points: []Point{{1, 1}}}}},
		},
		{{Title: "empty"}},
	},
}

func TestPNG(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.PNG")
	require.NoError(t, sheet.Write(file))
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	// Two tiles beside each other and two below, of which the last is empty.
	size := picture.Bounds().Size()
	require.InDelta(t, 2*4.6*resolution, size.X, 50)
	require.InDelta(t, 6.4*resolution, size.Y, 60)
	colored := func(r image.Rectangle) (n int) {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				if r, g, b, _ := picture.At(x, y).RGBA(); r != g || g != b {
					n++
				}
			}
		}
		return n
	}
	half := size.X / 2
	require.Positive(t, colored(image.Rect(0, 0, half, size.Y/2)))
	require.Positive(t, colored(image.Rect(half, 0, size.X, size.Y/2)))
	require.Zero(t, colored(image.Rect(0, size.Y*2/3, size.X, size.Y)))
}

func TestSVG(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.svg")
	require.NoError(t, sheet.Write(file))
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var text strings.Builder
	names := map[string]int{}
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch v := token.(type) {
		case xml.StartElement:
			names[v.Name.Local]++
		case xml.CharData:
			text.Write(v)
		}
	}
	require.Equal(t, 1, names["svg"])
	require.Greater(t, names["path"], 5)
	for _, want := range []string{"all of it", "first", "one point", "weft", "Open & <MPI>", "here"} {
		require.Contains(t, text.String(), want)
	}
	require.NotContains(t, text.String(), "nothing")
}

func TestNoChart(t *testing.T) {
	var format *FormatError
	require.ErrorAs(t, sheet.Write("a.pdf"), &format)
	require.EqualError(t, format, `"a.pdf" is neither a .svg nor a .png`)
	require.Error(t, Sheet{}.Write(filepath.Join(t.TempDir(), "a.svg")))
	require.Error(t, sheet.Write(filepath.Join(t.TempDir(), "none", "a.svg")))
}
