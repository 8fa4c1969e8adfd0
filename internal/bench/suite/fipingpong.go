package suite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/internal/bench"
)

const fiPingpongProgram = "fi_pingpong"

// fiPingpong runs libfabric's own program, which sends short messages by
// fi_tinject, and returns the seconds of half a round trip.
func fiPingpong(ctx context.Context, _ *tools, o order) (bench.Sample, error) {
	program, err := exec.LookPath(fiPingpongProgram)
	if err != nil {
		return bench.Sample{}, bench.NotHereError{Err: err}
	}
	port, err := freePort()
	if err != nil {
		return bench.Sample{}, err
	}
	ctx, stop := context.WithTimeout(ctx, o.deadline+grace)
	defer stop()
	common := []string{
		program, "-p", o.provider, "-e", "rdm", "-m", "tagged",
		"-I", strconv.Itoa(o.count), "-S", strconv.Itoa(o.size),
	}
	server, err := startProcess(ctx, append(common, "-B", port))
	if err != nil {
		return bench.Sample{}, err
	}
	text, err := pingUntilHeard(ctx, append(common, "-P", port, "127.0.0.1"))
	if err != nil {
		stop()
		return bench.Sample{}, errors.Join(err, server.wait())
	}
	if err := server.wait(); err != nil {
		return bench.Sample{}, fmt.Errorf("server: %w", err)
	}
	seconds, err := parseFiPingpong(text)
	return bench.Sample{Mean: seconds}, err
}

// pingUntilHeard starts the client again while its server is not listening yet,
// which nothing but a connection can tell, and the server takes only one.
func pingUntilHeard(ctx context.Context, command []string) (string, error) {
	const tries = 50
	for try := 1; ; try++ {
		client, err := startProcess(ctx, command)
		if err != nil {
			return "", err
		}
		var text strings.Builder
		_, err = client.stdout.WriteTo(&text)
		err = errors.Join(err, client.wait())
		if err == nil || try == tries || ctx.Err() != nil {
			return text.String(), err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// parseFiPingpong reads the line under the heading
//
//	bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
//
// Of its figures MB/sec has the most digits for short messages.
func parseFiPingpong(text string) (float64, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 8 || fields[0] == "bytes" {
			continue
		}
		size, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return 0, fmt.Errorf("bytes of fi_pingpong: %w", err)
		}
		rate, err := strconv.ParseFloat(fields[5], 64)
		if err != nil || rate <= 0 {
			return 0, fmt.Errorf("MB/sec of fi_pingpong: %q", fields[5])
		}
		return size / (rate * 1e6), nil
	}
	return 0, fmt.Errorf("no figures in what fi_pingpong said: %q", text)
}

// freePort is a TCP port of the loopback interface that nobody listens at.
func freePort() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
