package main

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/sharedmemory"
	"github.com/weft-go/weft/internal/testenv"
)

func needProvider(t *testing.T, provider string) {
	t.Helper()
	_, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true, Logger: slog.New(slog.DiscardHandler)})
	testenv.Need(t, provider, err)
}

// onEachProvider runs a test on every provider that is tested.
func onEachProvider(t *testing.T, test func(t *testing.T, provider string)) {
	for _, provider := range testenv.Providers() {
		t.Run(provider, func(t *testing.T) {
			needProvider(t, provider)
			test(t, provider)
		})
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, scripts("testdata/script", map[string]string{"PROVIDER": "sockets"}))
}

func TestScriptsOnEachProvider(t *testing.T) {
	onEachProvider(t, func(t *testing.T, provider string) {
		testscript.Run(t, scripts("testdata/provider", map[string]string{"PROVIDER": provider}))
	})
}

func TestScriptsWithSmallDisk(t *testing.T) {
	disk := t.TempDir()
	err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256k")
	testenv.Need(t, "mount", err)
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	// In a subtest, so that the scripts have ended before the disk goes.
	t.Run("run", func(t *testing.T) {
		testscript.Run(t, scripts("testdata/mount", map[string]string{"PROVIDER": "sockets", "DISK": disk}))
	})
}

// inherited are the settings of this process that scripts run with too: what the
// dynamic linker goes by, and the emulated EFA device.
func inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return name != "LD_LIBRARY_PATH" && name != "LD_PRELOAD" && name != "GOCOVERDIR" &&
			!strings.HasPrefix(name, "FI_EFA_") && !strings.HasPrefix(name, "WEFT_EFA_")
	})
}

// scripts gives the scripts of a folder these commands beside testscript's own:
//
//	exits N COMMAND...     runs a command, which must exit with code N
//	serve ARGUMENT...      starts weft, and sets ADDRESS to where it listens
//	served N               waits for it, or interrupts it if N is "interrupt";
//	                       its output is in the files served.out and served.err
//	httpserver             sets ADDRESS to a server that is not weft
//	closedport             sets ADDRESS to a port where nothing listens
//	bannerserver           the same, but it speaks first
//	silentserver           the same, but it says nothing
//	shutserver             the same, but it hangs up at once
//	certificates NAME...   makes certificates, see makeCertificates
func scripts(dir string, env map[string]string) testscript.Params {
	return testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			for _, setting := range inherited() {
				name, value, _ := strings.Cut(setting, "=")
				e.Setenv(name, value)
			}
			e.Values[servedKey{}] = new(served)
			e.Setenv("IPATH_NO_BACKTRACE", "1")
			for name, value := range env {
				e.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":        runToExit,
			"serve":        serveWeft,
			"served":       awaitServed,
			"httpserver":   startHTTP,
			"closedport":   closePort,
			"bannerserver": func(ts *testscript.TestScript, _ bool, _ []string) { startServer(ts, "220 mail.invalid ready\r\n") },
			"silentserver": func(ts *testscript.TestScript, _ bool, _ []string) { startServer(ts, "") },
			"shutserver":   startShutServer,
			"certificates": makeCertificates,
		},
	}
}

func runToExit(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := codeOf(ts, ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("%s exits with %d, want %d", args[1], got, want)
	}
}

func codeOf(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

// served is the process that serve has started last, a value of each script.
type served struct {
	*exec.Cmd
	rest chan error // its output is copied
}

type servedKey struct{}

var listeningAt = regexp.MustCompile(`listening on (\S+) provider=|"address":"([^"]+)"`)

func serveWeft(ts *testscript.TestScript, _ bool, args []string) {
	path, err := exec.LookPath("weft")
	ts.Check(err)
	s := ts.Value(servedKey{}).(*served)
	*s = served{Cmd: exec.Command(path, args...), rest: make(chan error, 1)}
	s.Dir = ts.Getenv("WORK")
	s.Env = append(inherited(), "IPATH_NO_BACKTRACE=1", "TMPDIR="+ts.Getenv("TMPDIR"))
	stderr, err := os.Create(filepath.Join(s.Dir, "served.err"))
	ts.Check(err)
	s.Stderr = stderr
	stdout, err := s.StdoutPipe()
	ts.Check(err)
	ts.Check(s.Start())
	process := s.Cmd
	ts.Defer(func() {
		_ = process.Process.Kill()
		_ = process.Wait() // an error where it was served to its end
		_ = stderr.Close()
		sharedmemory.Remove(process.Process.Pid)
	})
	lines := bufio.NewReader(stdout)
	first, err := lines.ReadString('\n')
	at := listeningAt.FindStringSubmatch(first)
	if at == nil {
		said, _ := os.ReadFile(stderr.Name())
		ts.Fatalf("weft %q said %q (%v) and %s", args, first, err, said)
	}
	ts.Setenv("ADDRESS", at[1]+at[2])
	out, err := os.Create(filepath.Join(s.Dir, "served.out"))
	ts.Check(err)
	_, err = out.WriteString(first)
	ts.Check(err)
	rest := s.rest
	go func() {
		_, err := io.Copy(out, lines)
		rest <- errors.Join(err, out.Close())
	}()
}

func awaitServed(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(servedKey{}).(*served)
	want := 0
	if args[0] == "interrupt" {
		ts.Check(s.Process.Signal(os.Interrupt))
	} else {
		var err error
		want, err = strconv.Atoi(args[0])
		ts.Check(err)
	}
	ts.Check(<-s.rest)
	if got := codeOf(ts, s.Wait()); got != want {
		said, _ := os.ReadFile(filepath.Join(s.Dir, "served.err"))
		ts.Fatalf("the weft that serves exits with %d, want %d: %s", got, want, said)
	}
}

func startHTTP(ts *testscript.TestScript, _ bool, _ []string) {
	server := httptest.NewServer(http.NotFoundHandler())
	ts.Defer(server.Close)
	ts.Setenv("ADDRESS", server.Listener.Addr().String())
}

func closePort(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv("ADDRESS", l.Addr().String())
	ts.Check(l.Close())
}

// startServer starts a server that says one thing to each who connects.
func startServer(ts *testscript.TestScript, banner string) {
	serveEach(ts, func(conn net.Conn) {
		_, _ = io.WriteString(conn, banner)
		// Only when the peer has gone: a reset would take the banner along.
		_, _ = io.Copy(io.Discard, conn)
	})
}

// startShutServer starts a server that reads what weft says first, so that its
// end is no reset, and hangs up.
func startShutServer(ts *testscript.TestScript, _ bool, _ []string) {
	serveEach(ts, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<10)) })
}

// serveEach starts a server that does something with each who connects, and
// hangs up.
func serveEach(ts *testscript.TestScript, serve func(conn net.Conn)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv("ADDRESS", l.Addr().String())
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
}
