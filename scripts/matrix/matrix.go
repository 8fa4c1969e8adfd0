package main

import (
	"fmt"
	"slices"
	"strings"
)

// matrix counts results by topic and provider.
type matrix struct {
	topics      []topic
	columns     []string
	cells       map[[2]string]count
	failures    []string
	unsupported []unsupported
}

type count struct{ passed, failed, unsupported int }

// unsupported stands for the tests that one provider cannot run for one reason.
type unsupported struct {
	topic, provider, reason string
	tests                   []string
}

// newMatrix sorts results by topic. A topic without any is an error: its test
// was renamed, or did not run.
func newMatrix(topics []topic, results []result) (*matrix, error) {
	m := &matrix{topics: append(slices.Clip(topics), topic{name: other}), cells: map[[2]string]count{}}
	for _, r := range results {
		m.add(topicOf(topics, r.test), providerOf(r.test), r)
	}
	var missing []string
	for _, t := range topics {
		if m.total(t.name, "") == (count{}) {
			missing = append(missing, t.name+" ("+strings.Join(t.patterns, " ")+")")
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("no test for: %s", strings.Join(missing, "; "))
	}
	for _, p := range append(slices.Clip(providers), noProvider) {
		if m.total("", p) != (count{}) {
			m.columns = append(m.columns, p)
		}
	}
	return m, nil
}

func (m *matrix) add(topic, provider string, r result) {
	c := m.cells[[2]string{topic, provider}]
	switch r.verdict {
	case "pass":
		c.passed++
	case "fail":
		c.failed++
		m.failures = append(m.failures, r.test)
	case "skip":
		c.unsupported++
		i := slices.IndexFunc(m.unsupported, func(u unsupported) bool {
			return u.topic == topic && u.provider == provider && u.reason == r.reason
		})
		if i < 0 {
			i = len(m.unsupported)
			m.unsupported = append(m.unsupported, unsupported{topic: topic, provider: provider, reason: r.reason})
		}
		m.unsupported[i].tests = append(m.unsupported[i].tests, r.test)
	}
	m.cells[[2]string{topic, provider}] = c
}

// total sums a topic, a provider, or with both empty everything.
func (m *matrix) total(topic, provider string) count {
	var sum count
	for key, c := range m.cells {
		if (topic == "" || key[0] == topic) && (provider == "" || key[1] == provider) {
			sum.passed += c.passed
			sum.failed += c.failed
			sum.unsupported += c.unsupported
		}
	}
	return sum
}
