//go:build linux

package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// namespace is a network of its own. It has no name: whatever becomes of this process,
// it goes when nobody has it open and no process is in it, and its interfaces with it.
type namespace struct{ file *os.File }

func newNamespace() (*namespace, error) {
	var n *namespace
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare a network: %w", err)
		}
		file, err := os.Open(threadNetwork)
		n = &namespace{file}
		return err
	})
	return n, err
}

const threadNetwork = "/proc/thread-self/ns/net"

// do calls f on a thread that is in the namespace. What f starts is in it for good.
func (n *namespace) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network: %w", err)
		}
		return f()
	})
}

// onThread calls f, which may change the network that its thread is in.
func onThread(f func() error) error {
	runtime.LockOSThread()
	before, err := os.Open(threadNetwork)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer before.Close()
	err = f()
	// The thread goes on: children that are to die with it do not die now.
	if back := unix.Setns(int(before.Fd()), unix.CLONE_NEWNET); back != nil {
		panic(fmt.Sprintf("a thread cannot go back to its network: %v", back))
	}
	runtime.UnlockOSThread()
	return err
}

// path is a name of the namespace for ip, while this process runs.
func (n *namespace) path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd())
}

func (n *namespace) close() error { return n.file.Close() }

// run runs a command of the system in the namespace, with text on its standard input.
func (n *namespace) run(input, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	// The emulated device is for what is tested.
	cmd.Env = without(os.Environ(), "LD_PRELOAD")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	err := n.do(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(append([]string{name}, args...), " "), err, strings.TrimSpace(said.String()))
	}
	return nil
}

// batch runs lines as commands of ip.
func (n *namespace) batch(lines ...string) error {
	err := n.run(strings.Join(lines, "\n")+"\n", "ip", "-batch", "-")
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(lines, "; "), err)
	}
	return nil
}

func without(settings []string, name string) (rest []string) {
	for _, s := range settings {
		if !strings.HasPrefix(s, name+"=") {
			rest = append(rest, s)
		}
	}
	return rest
}
