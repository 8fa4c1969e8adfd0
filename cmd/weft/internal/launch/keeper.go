package launch

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// keeper is a process that outlives this one, if need be, to end the groups of the
// ranks. They end with their parent, but what they have started does not.
type keeper struct {
	command *exec.Cmd
	pipe    io.WriteCloser
}

func startKeeper(arguments []string) (*keeper, error) {
	c := &exec.Cmd{
		Path: "/proc/self/exe", Args: arguments,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // what ends this session is not for it
	}
	pipe, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the process that ends the job if this one is killed: %w", err)
	}
	return &keeper{c, pipe}, nil
}

func (k *keeper) add(group int)    { k.say("+", group) }
func (k *keeper) remove(group int) { k.say("-", group) }

// say writes a short line, which goes as a whole. A keeper that was killed is not
// missed before this process is.
func (k *keeper) say(what string, group int) {
	_, _ = io.WriteString(k.pipe, what+strconv.Itoa(group)+"\n")
}

// end ends the keeper, which is for nothing once all ranks are gone.
func (k *keeper) end() {
	_ = k.command.Process.Kill()
	_ = k.pipe.Close()
	_ = k.command.Wait()
}

// Keep is what the keeper does: it reads which groups there are, and when the pipe
// ends, because the process at its other end is gone, it kills those that are left.
func Keep(pipe io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	groups := map[int]bool{}
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		what, number := lines.Text()[:min(1, len(lines.Text()))], strings.TrimLeft(lines.Text(), "+-")
		// Never 0 or 1, which stand for more than one group.
		if group, err := strconv.Atoi(number); err == nil && group > 1 {
			if what == "+" {
				groups[group] = true
			} else {
				delete(groups, group)
			}
		}
	}
	for group := range groups {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}
