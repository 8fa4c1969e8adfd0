// Command matrix runs the tests of the package fabric and prints how many of
// them ran, passed and were unsupported, as a Markdown table of the functional
// cases of fabtests over the providers.
//
//	matrix                             runs go test -json ./fabric
//	matrix -                           reads such a stream from its standard input
//	matrix -write docs/PROVIDERS.md    also puts the table into the file
//
// The file has a table for each version of libfabric, between markers with the
// version. Its exit code is 1 if a test failed or a case has no test.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/weft-go/weft/fabric"
)

func main() {
	write := flag.String("write", "", "put the table into this `file`, in the place of this version's")
	flag.Parse()
	if err := run(*write, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(file string, args []string) error {
	topics, err := readTopics(topicList)
	if err != nil {
		return err
	}
	var results []result
	switch {
	case len(args) == 0:
		results, err = test()
	case len(args) == 1 && args[0] == "-":
		results, err = readStream(os.Stdin)
	default:
		err = errors.New("the only argument may be - for a stream of go test -json")
	}
	if err != nil {
		return err
	}
	m, err := newMatrix(topics, results)
	if err != nil {
		return err
	}
	section := m.markdown(fabric.LibraryVersion().String())
	fmt.Print(section)
	if file != "" {
		old, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		text, err := place(string(old), fabric.LibraryVersion().String(), section)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if n := len(m.failures); n > 0 {
		return fmt.Errorf("%d tests failed", n)
	}
	return nil
}

// test runs the tests. That some fail is seen in the stream.
func test() ([]result, error) {
	cmd := exec.Command("go", "test", "-json", "-count=1", "./fabric")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	results, failure := readStream(out)
	// Nobody is to be left waiting for a reader.
	_, drained := io.Copy(io.Discard, out)
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(results) > 0 {
		err = nil
	}
	return results, errors.Join(failure, drained, err)
}
