package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// roleVariable has a test binary play one rank of a job instead of running tests.
const roleVariable = "WEFT_TEST_RANK"

// playRank is main of such a rank. It joins by the environment, says on stdout what
// it has exchanged and, with role "wait", how the job ends.
func playRank() {
	role := os.Getenv(roleVariable)
	if role == "" {
		return
	}
	err := func() error {
		ctx := context.Background()
		j, err := Join(ctx, Options{Logger: quiet, PeerTimeout: shortTimeout})
		if err != nil {
			return err
		}
		all, err := j.Exchange(ctx, "pids", []byte(strconv.Itoa(os.Getpid())))
		if err != nil {
			return err
		}
		var pids []string
		for _, pid := range all {
			pids = append(pids, string(pid))
		}
		fmt.Println(strings.Join(pids, " "))
		if role == "wait" {
			<-j.Context().Done()
			var loss *LostError
			if !errors.As(context.Cause(j.Context()), &loss) {
				return context.Cause(j.Context())
			}
			fmt.Println("lost", loss.Rank)
			_ = j.Close()
			return nil
		}
		return j.Close()
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type rankProcess struct {
	*exec.Cmd
	out *bufio.Reader
}

// startRanks starts processes, each of them a rank, with this environment.
func startRanks(t *testing.T, role string, size int, setting func(rank int) []string) []rankProcess {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	ranks := make([]rankProcess, size)
	for rank := range ranks {
		c := exec.CommandContext(deadline(t), self)
		c.Env = append(os.Environ(), append(setting(rank), roleVariable+"="+role)...)
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait() // an error where it has been waited for
		})
		ranks[rank] = rankProcess{c, bufio.NewReader(out)}
	}
	return ranks
}

func (p rankProcess) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

func pidsOf(ranks []rankProcess) string {
	var pids []string
	for _, p := range ranks {
		pids = append(pids, strconv.Itoa(p.Process.Pid))
	}
	return strings.Join(pids, " ")
}

func weftSettings(size int, store string) func(rank int) []string {
	return func(rank int) []string {
		return []string{"WEFT_RANK=" + strconv.Itoa(rank), "WEFT_SIZE=" + strconv.Itoa(size), "WEFT_STORE=" + store}
	}
}

func TestProcesses(t *testing.T) {
	kinds(t, func(t *testing.T, address func(t *testing.T) string) {
		for _, size := range []int{1, 2, 5, 16} {
			ranks := startRanks(t, "leave", size, weftSettings(size, address(t)))
			for _, p := range ranks {
				require.Equal(t, pidsOf(ranks), p.line(t))
			}
			for _, p := range ranks {
				require.NoError(t, p.Wait())
			}
		}
	})
}

// The variables of torchrun are enough, where rank 0 can listen.
func TestProcessesOfTorchrun(t *testing.T) {
	host, port, _ := strings.Cut(strings.TrimPrefix(freeAddress(t), "tcp://"), ":")
	ranks := startRanks(t, "leave", 3, func(rank int) []string {
		return []string{"RANK=" + strconv.Itoa(rank), "WORLD_SIZE=3", "LOCAL_RANK=" + strconv.Itoa(rank), "MASTER_ADDR=" + host, "MASTER_PORT=" + port}
	})
	for _, p := range ranks {
		require.Equal(t, pidsOf(ranks), p.line(t))
		require.NoError(t, p.Wait())
	}
}

// All others learn at once which rank was killed, also when it is the one that
// serves the store.
func TestRankIsKilled(t *testing.T) {
	kinds(t, func(t *testing.T, address func(t *testing.T) string) {
		for _, victim := range []int{0, 2} {
			t.Run(strconv.Itoa(victim), func(t *testing.T) {
				t.Parallel()
				ranks := startRanks(t, "wait", 4, weftSettings(4, address(t)))
				for _, p := range ranks {
					require.Equal(t, pidsOf(ranks), p.line(t))
				}
				require.NoError(t, ranks[victim].Process.Kill())
				for rank, p := range ranks {
					if rank != victim {
						require.Equal(t, "lost "+strconv.Itoa(victim), p.line(t))
						require.NoError(t, p.Wait())
					}
				}
			})
		}
	})
}

// What a job leaves in a folder that was killed does not count for the next one.
func TestStaleFolder(t *testing.T) {
	store := "file://" + t.TempDir()
	for range 2 {
		ranks := startRanks(t, "wait", 3, weftSettings(3, store))
		for _, p := range ranks {
			require.Equal(t, pidsOf(ranks), p.line(t))
		}
		for _, p := range ranks {
			require.NoError(t, p.Process.Kill())
			require.Error(t, p.Wait())
		}
	}
	// The last one comes later than what it left before.
	ranks := startRanks(t, "leave", 2, weftSettings(3, store))
	ranks = append(ranks, startRanks(t, "leave", 1, func(int) []string { return weftSettings(3, store)(2) })...)
	for _, p := range ranks {
		require.Equal(t, pidsOf(ranks), p.line(t))
	}
	for _, p := range ranks {
		require.NoError(t, p.Wait())
	}
	left, err := os.ReadDir(strings.TrimPrefix(store, "file://"))
	require.NoError(t, err)
	require.Empty(t, left)
}
