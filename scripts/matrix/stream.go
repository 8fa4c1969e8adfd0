package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action, Package, Test, Output string
}

// result is how one test without subtests ended.
type result struct {
	test    string
	verdict string // pass, fail or skip
	reason  string // of a skip
	output  string // of a failure
}

// readStream returns the results of a run, in its order. A test with subtests
// counts only as these, unless it has a verdict that none of them has.
func readStream(in io.Reader) ([]result, error) {
	verdicts, output := map[string]string{}, map[string][]string{}
	var order []string
	ended, failed := false, false
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 1<<22)
	for scan.Scan() {
		var e event
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("no event of go test -json: %q", scan.Text())
		}
		if e.Test == "" {
			ended = ended || e.Package != "" && (e.Action == "pass" || e.Action == "fail")
			failed = failed || e.Package != "" && e.Action == "fail"
			continue
		}
		switch e.Action {
		case "run":
			// Until it has another verdict: a crash ends a test without one.
			verdicts[e.Test] = "fail"
			order = append(order, e.Test)
		case "output":
			output[e.Test] = append(output[e.Test], e.Output)
		case "pass", "fail", "skip":
			verdicts[e.Test] = e.Action
		}
	}
	if err := scan.Err(); err != nil {
		return nil, err
	}
	if !ended {
		return nil, errors.New("the stream ends before the tests do")
	}
	if len(order) == 0 {
		return nil, errors.New("no test ran: the package may not build, see go vet ./fabric")
	}
	results := leaves(order, verdicts, output)
	for _, r := range results {
		failed = failed && r.verdict != "fail"
	}
	if failed {
		// Such as what TestMain found to be leaked.
		results = append(results, result{test: "the run as a whole", verdict: "fail"})
	}
	return results, nil
}

func leaves(order []string, verdicts map[string]string, output map[string][]string) []result {
	below := map[string]map[string]bool{} // the verdicts of a test's subtests
	for _, test := range order {
		for i := range test {
			if test[i] == '/' {
				if below[test[:i]] == nil {
					below[test[:i]] = map[string]bool{}
				}
				below[test[:i]][verdicts[test]] = true
			}
		}
	}
	var results []result
	for _, test := range order {
		verdict := verdicts[test]
		if subtests := below[test]; subtests[verdict] || subtests != nil && verdict == "pass" {
			continue
		}
		r := result{test: test, verdict: verdict}
		switch verdict {
		case "skip":
			r.reason = reason(output[test])
		case "fail":
			r.output = strings.Join(output[test], "")
		}
		results = append(results, r)
	}
	return results
}

// source is the place in the source that go test puts before a message.
var source = regexp.MustCompile(`^\w+\.go:\d+: `)

// reason is what a skipped test gave as its reason, in one line: from the last
// message with a place in the source on, for anybody may have written before.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if message := source.ReplaceAllString(line, ""); message != line {
			line, said = message, nil
		}
		said = append(said, line)
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}
