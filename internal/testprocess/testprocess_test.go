package testprocess

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const standing = "WEFT_TEST_STANDING"

func TestMain(m *testing.M) {
	if os.Getenv(standing) != "" {
		fmt.Println("ready")
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// A process that stands still says where, when its time is over.
func TestProcessThatStandsStillSaysWhere(t *testing.T) {
	p := Command(t, os.Args[0])
	p.Env = append(os.Environ(), standing+"=1")
	var said bytes.Buffer
	p.Stderr = &said
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	// As at the end of its time.
	require.NoError(t, p.Cancel())
	require.Error(t, p.Wait())
	require.Contains(t, said.String(), "SIGQUIT")
}

// A process is ended with its test, though nobody waits for it.
func TestProcessEndsWithItsTest(t *testing.T) {
	var p *exec.Cmd
	ended := make(chan struct{})
	t.Run("test", func(t *testing.T) {
		p = Command(t, "sleep", "3600")
		require.NoError(t, p.Start())
		go func() {
			_ = p.Wait()
			close(ended)
		}()
	})
	select {
	case <-ended:
		require.Equal(t, syscall.SIGQUIT, p.ProcessState.Sys().(syscall.WaitStatus).Signal())
	case <-time.After(time.Minute):
		require.Fail(t, strings.Join(p.Args, " ")+" still runs")
	}
}
