package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// generous is for what is to happen soon, on whatever machine.
const generous = 2 * time.Minute

// A receiver serves senders at the same time, and when it is told to end it
// lets those finish that are connected.
func TestSendersAtTheSameTime(t *testing.T) {
	onEachProvider(t, func(t *testing.T, provider string) {
		from, dir := t.TempDir(), t.TempDir()
		receiver := start(t, "recv", "--dir", dir, "--listen", "127.0.0.1:0", "--provider", provider, "--require")
		address := receiver.address(t)
		var senders []*process
		for i := range 4 {
			name := filepath.Join(from, fmt.Sprintf("file%d", i))
			require.NoError(t, os.WriteFile(name, bytes.Repeat([]byte{byte(i), 7}, 6<<20), 0o644))
			senders = append(senders, start(t, "send", "--provider", provider, "--require", name, address))
		}
		// Each is connected, or done, when its file is there under its own
		// or under a temporary name.
		require.Eventually(t, func() bool {
			names, _ := os.ReadDir(dir)
			return len(names) == len(senders)
		}, generous, time.Millisecond)
		require.NoError(t, receiver.Process.Signal(syscall.SIGTERM))
		for i, sender := range senders {
			sender.await(t, generous)
			require.Zero(t, sender.ProcessState.ExitCode(), "%s", sender.stderr)
			name := fmt.Sprintf("file%d", i)
			got, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.True(t, bytes.Equal(bytes.Repeat([]byte{byte(i), 7}, 6<<20), got), name)
		}
		receiver.await(t, generous)
		require.Zero(t, receiver.ProcessState.ExitCode(), "%s", receiver.stderr)
		require.Empty(t, receiver.stderr.String())
		names, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, names, len(senders))
	})
}
