package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

var metricsAt = regexp.MustCompile(`^metrics at (http://\S+/metrics)\n$`)

// scrape gets a page of metrics, and has Prometheus' own parser read it.
func scrape(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	client := http.Client{Timeout: generous}
	defer client.CloseIdleConnections()
	answer, err := client.Get(address)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	require.NoError(t, err)
	return families
}

// value is that of the series of a metric that has all these labels.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	require.Contains(t, families, name)
series:
	for _, m := range families[name].Metric {
		for _, l := range labels {
			if !strings.Contains(m.String(), `value:"`+l+`"`) {
				continue series
			}
		}
		return m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	require.Fail(t, "no such series", "%s %q", name, labels)
	return 0
}

// A receiver is scraped while it receives and afterwards: counts rise, and are at the end
// what the transfer itself says.
func TestMetricsDuringTransfer(t *testing.T) {
	const provider = "tcp"
	needProvider(t, provider)
	const size = 512 << 20
	source, dir := filepath.Join(t.TempDir(), "large"), t.TempDir()
	require.NoError(t, os.WriteFile(source, nil, 0o600))
	require.NoError(t, os.Truncate(source, size))
	receiver := start(t, "recv", "--dir", dir, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--provider", provider, "--require", "--json")
	said := json.NewDecoder(receiver.stdout)
	var listening, serving struct{ Event, Address string }
	require.NoError(t, said.Decode(&listening), "%s", receiver.stderr)
	require.NoError(t, said.Decode(&serving), "%s", receiver.stderr)
	require.Equal(t, "metrics", serving.Event)
	address := "http://" + serving.Address + "/metrics"
	const received = "weft_messages_received_bytes_total"
	before := scrape(t, address)
	require.Zero(t, value(t, before, received))

	sender := start(t, "send", "--provider", provider, "--require", source, listening.Address)
	receiver.awaitContent(t, dir)
	// Stopped in the middle, so that it is the middle whatever the machine.
	require.NoError(t, sender.Process.Signal(syscall.SIGSTOP))
	during := scrape(t, address)
	require.NoError(t, sender.Process.Signal(syscall.SIGCONT))
	require.Greater(t, value(t, during, received), float64(4<<20))
	require.Less(t, value(t, during, received), float64(size))
	require.EqualValues(t, 1, value(t, during, "weft_connections"))
	require.Positive(t, value(t, during, "weft_memory_bytes"))
	var last float64
	for running := true; running; {
		select {
		case <-sender.ended:
			running = false
		default:
		}
		now := value(t, scrape(t, address), received)
		require.GreaterOrEqual(t, now, last)
		last = now
	}
	require.Zero(t, sender.ProcessState.ExitCode(), "%s", sender.stderr)

	var result event
	require.NoError(t, said.Decode(&result))
	require.True(t, result.Verified)
	require.EqualValues(t, size, result.Bytes)
	after := scrape(t, address)
	require.GreaterOrEqual(t, value(t, after, received), float64(size))
	require.EqualValues(t, result.Messages.ReceivedBytes, value(t, after, received))
	require.EqualValues(t, result.Messages.Received, value(t, after, "weft_messages_received_total"))
	require.EqualValues(t, result.Messages.SentBytes, value(t, after, "weft_messages_sent_bytes_total"))
	require.EqualValues(t, 1, value(t, after, "weft_connections_ended_total", "in_order"))
	require.EqualValues(t, 1, value(t, after, "weft_handshakes_total", "accepting", "succeeded"))
	require.Zero(t, value(t, after, "weft_connections"))
	require.EqualValues(t, 1, value(t, after, "weft_reactor_info", result.Provider))

	var families []*dto.MetricFamily
	for _, f := range after {
		families = append(families, f)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)

	require.NoError(t, receiver.Process.Signal(syscall.SIGTERM))
	receiver.await(t, generous)
	require.Zero(t, receiver.ProcessState.ExitCode(), "%s", receiver.stderr)
	_, err = http.Get(address) //nolint:bodyclose // there is none
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// A server of pings has metrics as well, and nothing else at its address.
func TestMetricsOfPing(t *testing.T) {
	needProvider(t, "sockets")
	server := start(t, "ping", "--serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--provider", "sockets")
	address := server.address(t)
	line, err := server.stdout.ReadString('\n')
	require.NoError(t, err, "%s", server.stderr)
	at := metricsAt.FindStringSubmatch(line)
	require.NotNil(t, at, line)
	client := start(t, "ping", "--count", "10", "--provider", "sockets", address)
	client.await(t, generous)
	require.Zero(t, client.ProcessState.ExitCode(), "%s", client.stderr)
	const pings = 1 + 2 + 10 // the greeting and what warms up
	require.EqualValues(t, pings, value(t, scrape(t, at[1]), "weft_messages_received_total"))

	for path, code := range map[string]int{"": http.StatusNotFound, "metrics/more": http.StatusNotFound} {
		answer, err := http.Get(strings.TrimSuffix(at[1], "metrics") + path)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, code, answer.StatusCode, path)
	}
	answer, err := http.Post(at[1], "text/plain", strings.NewReader("weft_messages_received_total 0\n"))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
	require.NoError(t, server.Process.Signal(os.Interrupt))
	server.await(t, generous)
	require.Zero(t, server.ProcessState.ExitCode(), "%s", server.stderr)
}
