package report

import (
	"context"
	"encoding/json"
	"image"
	"image/color"
	_ "image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/weft-go/weft/internal/testenv"
)

// tellDrawn has a browser say of each line of the plots where it is, how long and in which
// colour. The page itself has no scripts.
const tellDrawn = `<script>
const lines = [...document.querySelectorAll("figure svg polyline")].map(p => {
	const at = p.getBoundingClientRect();
	return {
		Length: p.getTotalLength(), Left: at.left, Top: at.top, Right: at.right, Bottom: at.bottom,
		Colour: getComputedStyle(p).stroke.match(/\d+/g).map(Number),
	};
});
document.body.append(Object.assign(document.createElement("pre"), {id: "drawn", textContent: JSON.stringify(lines)}));
</script>`

// A browser draws the plots: each line is somewhere on the page, and in the picture of that
// it has its colour there.
func TestBrowserDrawsPlots(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	testenv.Need(t, "chromium", err)
	_, source := pageOf(t, sample(), nil)
	dir := t.TempDir()
	page, picture := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.png")
	require.NoError(t, os.WriteFile(page, []byte(strings.Replace(source, "</body>", tellDrawn+"</body>", 1)), 0o600))

	// A browser that hangs ends the test, and not the run.
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	command := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--force-device-scale-factor=1", "--window-size=1280,2400", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--dump-dom", "--screenshot="+picture, "file://"+page)
	command.WaitDelay = 10 * time.Second
	dom, err := command.Output()
	require.NoError(t, err, "%s", dom)

	root, err := html.Parse(strings.NewReader(string(dom)))
	require.NoError(t, err)
	var lines []struct {
		Length, Left, Top, Right, Bottom float64
		Colour                           []uint8
	}
	for _, pre := range all(root, "pre") {
		if strings.Contains(said(pre), "Length") {
			require.NoError(t, json.Unmarshal([]byte(said(pre)), &lines))
		}
	}
	charts := sample().charts()
	require.Len(t, lines, len(charts[0].Lines)+len(charts[1].Lines))

	file, err := os.Open(picture)
	require.NoError(t, err)
	defer file.Close()
	shot, _, err := image.Decode(file)
	require.NoError(t, err)
	for _, l := range lines {
		require.Greater(t, l.Length, 50.0)
		place := image.Rect(int(l.Left)-2, int(l.Top)-2, int(l.Right)+2, int(l.Bottom)+2)
		require.True(t, place.In(shot.Bounds()), "%v in %v", place, shot.Bounds())
		want := color.RGBA{l.Colour[0], l.Colour[1], l.Colour[2], 255}
		found := 0
		for y := place.Min.Y; y < place.Max.Y; y++ {
			for x := place.Min.X; x < place.Max.X; x++ {
				if color.RGBAModel.Convert(shot.At(x, y)) == want {
					found++
				}
			}
		}
		require.Greater(t, found, 50, "%v at %v", want, place)
	}
}
