package tagged_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tagged"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts of testdata/tagged gave as what they should give")

// TestScripts runs the scripts of testdata/tagged. A script is made of cases,
// with an empty line between them: commands, one a line, then ----, then what
// they are to print. Lines that begin with # say what it is about.
//
// In writes_*.txt the commands are those of scriptWrites, in reads_*.txt those
// of scriptReads, in matcher_*.txt those of scriptMatcher.
func TestScripts(t *testing.T) {
	for prefix, newSubject := range map[string]func() scriptSubject{
		"writes":  func() scriptSubject { return &scriptWrites{} },
		"reads":   func() scriptSubject { return &scriptReads{} },
		"matcher": func() scriptSubject { return &scriptMatcher{tickets: map[string]tagged.ReceiveTicket[string]{}} },
	} {
		paths, err := filepath.Glob(filepath.Join("..", "testdata", "tagged", prefix+"_*.txt"))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
				runScript(t, path, newSubject())
			})
		}
	}
}

// scriptSubject runs one command, and returns what it prints, a line or more.
type scriptSubject interface {
	run(command string, arguments []string) ([]string, error)
}

func runScript(t *testing.T, path string, d scriptSubject) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var result []string
	cases := 0
	for block := range strings.SplitSeq(strings.TrimSpace(string(content)), "\n\n") {
		input, want, found := strings.Cut(block+"\n", "----\n")
		if !found && strings.TrimSpace(withoutComments(block)) != "" {
			t.Fatalf("%s: no ---- after:\n%s", path, block)
		}
		if !found {
			result = append(result, block+"\n")
			continue
		}
		var output strings.Builder
		for line := range strings.Lines(withoutComments(input)) {
			fields := strings.Fields(line)
			lines, err := d.run(fields[0], fields[1:])
			require.NoError(t, err, "%s: %s", path, line)
			output.WriteString(strings.Join(lines, "\n") + "\n")
		}
		if !*rewrite {
			require.Equal(t, want, output.String(), "%s:\n%s", path, input)
		}
		cases++
		result = append(result, input+"----\n"+output.String())
	}
	require.Positive(t, cases, "%s: no cases", path)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(result, "\n")), 0o644))
	}
}

func withoutComments(block string) string {
	var b strings.Builder
	for line := range strings.Lines(block) {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// outcome prints an error, or ok.
func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// failure is the error that the words of a command name, or nil.
func failure(words []string) error {
	if len(words) == 0 {
		return nil
	}
	return errors.New(strings.Join(words, " "))
}

func number(arguments []string, index int) (uint64, error) {
	if index >= len(arguments) {
		return 0, fmt.Errorf("want a number as argument %d", index+1)
	}
	return strconv.ParseUint(arguments[index], 10, 64)
}

// scriptWrites runs:
//
//	push NAME PARTS          a write, finished by so many completions
//	complete TICKET [ERROR]  one completion
//	abandon ERROR
//	pop                      the finished front, as long as there is one
//	len
type scriptWrites struct{ d tagged.WriteDeque[string] }

func (s *scriptWrites) run(command string, arguments []string) ([]string, error) {
	switch command {
	case "push":
		parts, err := number(arguments, 1)
		if err != nil {
			return nil, err
		}
		return []string{fmt.Sprintf("ticket %d", s.d.Push(arguments[0], int(parts)))}, nil
	case "complete":
		ticket, err := number(arguments, 0)
		if err != nil {
			return nil, err
		}
		return []string{outcome(s.d.Complete(tagged.Ticket(ticket), failure(arguments[1:])))}, nil
	case "abandon":
		s.d.Abandon(failure(arguments))
		return []string{"ok"}, nil
	case "pop":
		return popAll(s.d.Pop), nil
	case "len":
		return []string{strconv.Itoa(s.d.Len())}, nil
	}
	return nil, fmt.Errorf("no command %q", command)
}

// scriptReads runs:
//
//	new FIRST WINDOW      an empty deque
//	arrive ID NAME        a length
//	finish ID [ERROR]     a complete payload
//	front                 what is next
//	pop                   the finished front, as long as there is one
//	drop                  all that has arrived
//	len
type scriptReads struct{ d *tagged.ReadDeque[string] }

func (s *scriptReads) run(command string, arguments []string) ([]string, error) {
	var id uint64
	switch command {
	case "new", "arrive", "finish":
		var err error
		if id, err = number(arguments, 0); err != nil {
			return nil, err
		}
	}
	switch command {
	case "new":
		window, err := number(arguments, 1)
		s.d = tagged.NewReadDeque[string](uint32(id), int(window))
		return []string{"ok"}, err
	case "arrive":
		_, err := s.d.Arrive(uint32(id), strings.Join(arguments[1:], " "))
		return []string{outcome(err)}, nil
	case "finish":
		return []string{outcome(s.d.Finish(uint32(id), failure(arguments[1:])))}, nil
	case "front":
		id, value, arrived, finished, err := s.d.Front()
		switch {
		case !arrived:
			return []string{fmt.Sprintf("%d has not arrived", id)}, nil
		case !finished:
			return []string{fmt.Sprintf("%d %s is not finished", id, *value)}, nil
		}
		return []string{fmt.Sprintf("%d %s: %s", id, *value, outcome(err))}, nil
	case "pop":
		return popAll(s.d.Pop), nil
	case "drop":
		var lines []string
		s.d.Drop(func(id uint32, value string) { lines = append(lines, fmt.Sprintf("%d %s", id, value)) })
		return append(lines, fmt.Sprintf("%d left", s.d.Len())), nil
	case "len":
		return []string{strconv.Itoa(s.d.Len())}, nil
	}
	return nil, fmt.Errorf("no command %q", command)
}

func popAll(pop func() (string, error, bool)) (lines []string) {
	for {
		name, err, ok := pop()
		if !ok {
			break
		}
		lines = append(lines, name+": "+outcome(err))
	}
	if lines == nil {
		return []string{"nothing"}
	}
	return lines
}
