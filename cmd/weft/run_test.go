package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// playMember is a program that joins its job and prints what the ranks tell each
// other; with an argument, what it hears of the job's end.
func playMember() {
	if len(os.Args) > 1 && os.Args[1] == "share" {
		playSharer()
		return
	}
	if len(os.Args) > 1 {
		signal.Ignore(syscall.SIGTERM) // it is to end by what it hears
	}
	err := func() error {
		ctx := context.Background()
		j, err := bootstrap.Join(ctx, bootstrap.Options{})
		if err != nil {
			return err
		}
		defer j.Close()
		all, err := j.Exchange(ctx, "name", []byte("of "+strconv.Itoa(j.Rank)))
		if len(os.Args) > 1 && os.Args[1] == "desert" && j.Rank == 1 {
			os.Exit(0)
		}
		var texts []string
		for _, text := range all {
			texts = append(texts, string(text))
		}
		fmt.Println(strings.Join(texts, ", "))
		if len(os.Args) > 1 {
			<-j.Context().Done()
			return context.Cause(j.Context())
		}
		return errors.Join(err, j.Close())
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// needShell is for jobs of shell scripts: the root with libfabric 2.1 has no shell.
func needShell(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("sh")
	testenv.Need(t, "sh", err)
}

func TestRunScripts(t *testing.T) {
	needShell(t)
	testscript.Run(t, scripts("testdata/run", nil))
}

// startJob starts a job of a shell script, and returns the first line of each rank.
func startJob(t *testing.T, size int, script string, flags ...string) (*process, []string) {
	t.Helper()
	needShell(t)
	args := append([]string{"run", "-n", strconv.Itoa(size)}, flags...)
	p := start(t, append(args, "--", "sh", "-c", script)...)
	lines := make([]string, size)
	for range size {
		line, err := p.stdout.ReadString('\n')
		require.NoError(t, err, "%s", p.stderr)
		number, text, found := strings.Cut(strings.TrimSuffix(line, "\n"), "] ")
		require.True(t, found, line)
		rank, err := strconv.Atoi(number[1:])
		require.NoError(t, err)
		lines[rank] = text
	}
	return p, lines
}

// requireGone waits until processes have ended. Those that nobody waits for are
// zombies, which is an end.
func requireGone(t *testing.T, pids []string) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool {
			state, err := os.ReadFile("/proc/" + pid + "/stat")
			return err != nil || strings.Contains(string(state), ") Z ")
		}, generous, time.Millisecond, pid)
	}
}

func TestRunPassesSignalsOn(t *testing.T) {
	// The shell starts nothing while signals come: a child that one ends is reported.
	const idle = `trap "" INT USR1; sleep 1000 & trap - INT; trap "%s" %s; echo ready; while :; do wait; done`
	// What handles the signal may end in order.
	p, _ := startJob(t, 2, fmt.Sprintf(idle, "echo told; exit 0", "INT"))
	require.NoError(t, p.Process.Signal(os.Interrupt))
	p.await(t, generous)
	require.Zero(t, p.ProcessState.ExitCode(), "%s", p.stderr)
	rest := readAll(t, p)
	require.Contains(t, rest, "[0] told\n")
	require.Contains(t, rest, "[1] told\n")

	p, _ = startJob(t, 2, fmt.Sprintf(idle, "echo told", "USR1"))
	for range 2 {
		require.NoError(t, p.Process.Signal(syscall.SIGUSR1))
		for range 2 {
			line, err := p.stdout.ReadString('\n')
			require.NoError(t, err)
			require.Regexp(t, `^\[[01]\] told\n$`, line)
		}
	}
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	p.await(t, generous)
	p.requireOneLine(t, exitInterrupted, "weft: interrupted\n")
}

// A second signal ends those that do not listen to the first.
func TestRunIsInterruptedTwice(t *testing.T) {
	p, pids := startJob(t, 2, `trap "echo told" INT; echo $$; while :; do sleep 0.01; done`, "--grace", "1h")
	require.NoError(t, p.Process.Signal(os.Interrupt))
	for range 2 {
		_, err := p.stdout.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, p.Process.Signal(os.Interrupt))
	p.await(t, generous)
	p.requireOneLine(t, exitInterrupted, "weft: interrupted\n")
	requireGone(t, pids)
}

// Whatever ends weft run, nothing is left of the job, and of what it has started.
func TestRunIsKilled(t *testing.T) {
	p, lines := startJob(t, 3, `trap "" HUP INT TERM; sleep 1000 & echo $$ $!; wait`)
	var pids []string
	for _, line := range lines {
		pids = append(pids, strings.Fields(line)...)
	}
	require.Len(t, pids, 6)
	for _, pid := range pids {
		require.FileExists(t, "/proc/"+pid+"/stat")
	}
	require.NoError(t, p.Process.Kill())
	requireGone(t, pids)
}

// A failed rank takes with it what the others have started.
func TestRunEndsGroups(t *testing.T) {
	p, lines := startJob(t, 2, `sleep 1000 & echo $$ $!; test $RANK = 1 || wait; sleep 0.1; exit 9`)
	var pids []string
	for _, line := range lines {
		pids = append(pids, strings.Fields(line)...)
	}
	p.await(t, generous)
	p.requireOneLine(t, 9, "weft: rank 1 exited with code 9; the other rank was ended\n")
	for _, pid := range pids {
		require.NoFileExists(t, "/proc/"+pid+"/stat")
	}
}

// Who fails because another rank has ended without a word names that one, too.
func TestRunNamesWhoDoesNotLeave(t *testing.T) {
	p := start(t, "run", "-n", "2", "--", "member", "desert")
	p.await(t, generous)
	require.Equal(t, 1, p.ProcessState.ExitCode())
	require.Contains(t, p.stderr.String(), "weft: rank 0 exited with code 1 after rank 1 had exited with code 0 without leaving the job")
}

// What a rank that is told to end does not take back of shared memory is taken back for it.
func TestRunRemovesSharedMemory(t *testing.T) {
	p := start(t, "run", "-n", "2", "--", "member", "share")
	var own []string
	for range 2 {
		line, err := p.stdout.ReadString('\n')
		require.NoError(t, err, "%s", p.stderr)
		_, files, _ := strings.Cut(strings.TrimSpace(line), "] ")
		names := strings.Fields(files)
		require.Len(t, names, 3, "%s", line)
		for _, name := range names {
			require.FileExists(t, name)
		}
		own = append(own, names[:2]...)
		// A file of the same number that is not the rank's.
		pid, _, _ := strings.Cut(filepath.Base(names[0]), ":")
		other := "/dev/shm/" + pid + ":0:8"
		require.NoError(t, os.WriteFile(other, nil, 0o600))
		t.Cleanup(func() {
			require.NoError(t, os.Remove(other))
			require.NoError(t, os.Remove(names[2]), "it was a peer's")
		})
	}
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	p.await(t, generous)
	for _, name := range own {
		require.NoFileExists(t, name)
	}
}

// playSharer is a program that is ended by a signal, and leaves shared memory behind: as
// shm names it, as efa does, and as efa has mapped that of a peer.
func playSharer() {
	pid := os.Getpid()
	memory := func(owner int) []byte {
		header := binary.NativeEndian.AppendUint32([]byte{4, 0, 1, 0}, uint32(owner)) //nolint:gosec // as in C
		return append(header, make([]byte, 4096)...)
	}
	address := fmt.Sprintf("/dev/shm/fe80::8ff:fe2e:f00_%04x_1f2e3d4c_", pid)
	names := []string{fmt.Sprintf("/dev/shm/%d:0:9", pid), address + "0000", address + "03e8"}
	for i, content := range [][]byte{nil, memory(pid), memory(os.Getppid())} {
		err := os.WriteFile(names[i], content, 0o600)
		file, openErr := os.OpenFile(names[i], os.O_RDWR, 0)
		if err = errors.Join(err, openErr); err == nil {
			_, err = unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(strings.Join(names, " "))
	select {}
}

func readAll(t *testing.T, p *process) string {
	t.Helper()
	var text strings.Builder
	_, err := p.stdout.WriteTo(&text)
	require.NoError(t, err)
	return text.String()
}

// Lines come whole, and those of a rank in order, however they are written.
func TestRunPrintsWholeLines(t *testing.T) {
	needShell(t)
	const size, lines = 4, 2000
	p := start(t, "run", "-n", strconv.Itoa(size), "--", "sh", "-c",
		`i=0; while test $i -lt `+strconv.Itoa(lines)+`; do printf "begin $i "; echo end; i=$((i+1)); done`)
	next := make([]int, size)
	for range size * lines {
		line, err := p.stdout.ReadString('\n')
		require.NoError(t, err)
		var rank, number int
		_, err = fmt.Sscanf(line, "[%d] begin %d end\n", &rank, &number)
		require.NoError(t, err, "%q", line)
		require.Equal(t, next[rank], number)
		next[rank]++
	}
	p.await(t, generous)
	require.Zero(t, p.ProcessState.ExitCode(), "%s", p.stderr)
}

// A line of 1 MB comes in pieces that make the line, and so does one without an end.
func TestRunPrintsLongLines(t *testing.T) {
	needShell(t)
	for _, end := range []string{"", "echo; echo short"} {
		p := start(t, "run", "-n", "2", "--", "sh", "-c", `head -c 1000000 /dev/zero | tr '\0' $RANK; `+end)
		var got [2]strings.Builder
		short := 0
		lines := bufio.NewScanner(p.stdout)
		lines.Buffer(nil, 1<<20)
		for pieces := [2]int{}; lines.Scan(); {
			line := lines.Text()
			require.LessOrEqual(t, len(line), 1<<16+10)
			rank := int(line[1] - '0')
			if strings.HasSuffix(line, "] short") {
				short++
				continue
			}
			prefix := fmt.Sprintf("[%d]+ ", rank)
			if pieces[rank] == 0 {
				prefix = fmt.Sprintf("[%d] ", rank)
			}
			pieces[rank]++
			text, found := strings.CutPrefix(line, prefix)
			require.True(t, found, "%.20s", line)
			got[rank].WriteString(text)
			if got[0].Len() == 1000000 && got[1].Len() == 1000000 && (end == "" || short == 2) {
				break
			}
		}
		p.await(t, generous)
		require.Zero(t, p.ProcessState.ExitCode(), "%s", p.stderr)
		for rank := range got {
			require.Equal(t, strings.Repeat(strconv.Itoa(rank), 1000000), got[rank].String())
		}
	}
}

// Output that nobody takes is an error, and ends the job.
func TestRunCannotPrint(t *testing.T) {
	needShell(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	var said strings.Builder
	c := testprocess.Command(t, "weft", "run", "-n", "2", "--", "sh", "-c", "while echo line; do sleep 0.01; done")
	c.Stdout, c.Stderr = full, &said
	err = c.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, exitFailed, exit.ExitCode())
	require.Contains(t, said.String(), "weft: cannot write what the ranks print: ")
	require.Contains(t, said.String(), "no space left on device")
}
