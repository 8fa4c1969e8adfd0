// Command matrix runs the tests of the package fabric and prints how many of
// them ran, passed and were unsupported, as a Markdown table of the functional
// cases of fabtests over the providers.
//
//	matrix                             runs go test -json ./fabric, and again for
//	                                   efa, on an emulated device (scripts/with-efa)
//	matrix -                           reads such a stream from its standard input
//	matrix -write docs/PROVIDERS.md    also puts the table into the file
//
// The file has a table for each version of libfabric, between markers with the
// version. Its exit code is 1 if a test failed or a case has no test; what a
// test that failed had to say is on standard error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

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
	for _, r := range results {
		if r.verdict == "fail" {
			fmt.Fprintf(os.Stderr, "%s failed:\n%s", r.test, r.output)
		}
	}
	if n := len(m.failures); n > 0 {
		return fmt.Errorf("%d tests failed", n)
	}
	return nil
}

// test runs the tests, with efa on an emulated device.
func test() ([]result, error) {
	results, err := goTest()
	if err != nil {
		return nil, err
	}
	// It is only for the tests, and not for the compiler.
	device, err := filepath.Abs("scripts/with-efa")
	if err != nil {
		return nil, err
	}
	// These look at what all the others together have tried.
	sums := "-skip=^(TestEveryMethodAfterClose|TestEveryMethodOfZeroValues|TestMethodsDuringClose)$"
	emulated, err := goTest("-exec="+device, "-vet=off", "-run=/^efa$", sums)
	if err != nil {
		return nil, fmt.Errorf("on the emulated device: %w", err)
	}
	return append(results, about("efa", emulated)...), nil
}

// about keeps the results of one provider, and failures whatever they are about.
func about(provider string, results []result) []result {
	return slices.DeleteFunc(results, func(r result) bool {
		return providerOf(r.test) != provider && r.verdict != "fail"
	})
}

// goTest runs the tests once. That some fail is seen in the stream.
func goTest(flags ...string) ([]result, error) {
	cmd := exec.Command("go", append([]string{"test", "-json", "-count=1", "./fabric"}, flags...)...)
	if len(flags) > 0 {
		cmd.Env = append(os.Environ(), "WEFT_TEST_PROVIDERS=efa", "WEFT_REQUIRE=efa", "WEFT_EFA_DEVICES=3")
	}
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
