package metrics

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/testenv"
)

// Prometheus itself scrapes what is exposed, as docs/metrics.md has it configured, and has
// something to draw for every query of the dashboard.
func TestPrometheusAnswersDashboard(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	testenv.Need(t, "prometheus", err)
	registry := prometheus.NewPedanticRegistry()
	busy := fakeSys(t)
	for _, d := range driverCounts {
		busy[counters+d.file] = &fstest.MapFile{Data: []byte("7\n")}
	}
	for _, c := range all(t, busy) {
		require.NoError(t, registry.Register(c))
	}
	exposed := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer exposed.Close()

	page, err := os.ReadFile("../docs/metrics.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```yaml\n(scrape_configs:.*?)```").FindSubmatch(page)
	require.NotNil(t, block)
	config := strings.Replace(string(block[1]), "127.0.0.1:9465", exposed.Listener.Addr().String(), 1)
	require.NotEqual(t, string(block[1]), config)
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte("global:\n  scrape_interval: 500ms\n"+config), 0o600))

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	defer log.Close()
	server := exec.CommandContext(t.Context(), program, "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	server.Stdout, server.Stderr = log, log
	require.NoError(t, server.Start())
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	}()

	filled := strings.NewReplacer("$__rate_interval", "10s", "$reactor", ".*", "$instance", ".*")
	queries := 0
	for _, p := range dashboard(t).Panels {
		for _, target := range p.Targets {
			queries++
			query := filled.Replace(target.Expr)
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				series, err := seriesOf("http://"+address, query)
				require.NoError(c, err)
				require.NotZero(c, series)
			}, patience, 200*time.Millisecond, query)
		}
	}
	require.Greater(t, queries, 20)
}

// seriesOf is how many series Prometheus has for a query.
func seriesOf(server, query string) (int, error) {
	answer, err := http.Get(server + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var told struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil {
		return 0, err
	}
	if told.Status != "success" {
		return 0, fmt.Errorf("%s: %s", query, told.Error)
	}
	return len(told.Data.Result), nil
}
