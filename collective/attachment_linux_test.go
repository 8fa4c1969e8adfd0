package collective

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// sleeper is a process that does nothing until it is ended.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command("cat")
	_, err := c.StdinPipe() // never written to
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

func TestAttachmentWrites(t *testing.T) {
	const cookie = 1<<63 + 7
	memory := make([]byte, 3*pageSize)
	binary.LittleEndian.PutUint64(memory, cookie)
	a, err := attach(uint64(os.Getpid()), uint64(address(memory)), cookie)
	require.NoError(t, err)
	again, err := attach(uint64(os.Getpid()), uint64(address(memory)), cookie)
	require.NoError(t, err)
	require.Same(t, a, again)
	require.NoError(t, again.close())
	data := bytes.Repeat([]byte{1, 2, 3}, pageSize/2)
	require.NoError(t, a.write(uint64(address(memory[5:])), data))
	require.Equal(t, data, memory[5:][:len(data)])
	require.NoError(t, a.write(1, nil))
	require.Error(t, a.write(1, data))
	require.NoError(t, a.close())
	require.Empty(t, attachments.all)
}

// What is not the process that was meant, or ended long ago, is not written to.
func TestOthersAreNotAttached(t *testing.T) {
	memory := make([]byte, 8)
	here, at := uint64(os.Getpid()), uint64(address(memory))
	for name, of := range map[string][3]uint64{
		"cookie":  {here, at, 1},
		"address": {here, 8, 0},
		"none":    {1<<31 - 1, at, 0},
		"number":  {1 << 32, at, 0},
		"process": {uint64(sleeper(t).Process.Pid), at, 0},
	} {
		_, err := attach(of[0], of[1], of[2])
		require.Error(t, err, name)
	}
	require.Empty(t, attachments.all)

	other := sleeper(t)
	a, err := attachmentOf(other.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, a.lives())
	require.NoError(t, other.Process.Kill())
	require.Error(t, other.Wait())
	require.ErrorIs(t, a.write(at, memory), errEnded)
	require.NoError(t, a.close())
}

func BenchmarkAttachment(b *testing.B) {
	for _, n := range []int{8, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKi", n>>10), func(b *testing.B) {
			memory, data := make([]byte, n), make([]byte, n)
			a, err := attachmentOf(os.Getpid())
			require.NoError(b, err)
			b.SetBytes(int64(n))
			for b.Loop() {
				if err := a.write(uint64(address(memory)), data); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, a.close())
		})
	}
}
