package main

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed topics.txt
var topicList string

// other is the topic of tests that belong to none.
const other = "other"

// topic is a functional case of fabtests.
type topic struct {
	name     string
	fabtests string
	patterns []string
}

// readTopics reads a list in the form of topics.txt.
func readTopics(list string) ([]topic, error) {
	var topics []topic
	for i, line := range strings.Split(list, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "|")
		if len(fields) != 3 {
			return nil, fmt.Errorf("topics, line %d: topic | fabtests | patterns are wanted, not %q", i+1, line)
		}
		t := topic{
			name: strings.TrimSpace(fields[0]), fabtests: strings.TrimSpace(fields[1]),
			patterns: strings.Fields(fields[2]),
		}
		for _, p := range t.patterns {
			if _, err := path.Match(p, ""); err != nil {
				return nil, fmt.Errorf("topics, line %d: %w: %s", i+1, err, p)
			}
		}
		topics = append(topics, t)
	}
	return topics, nil
}

// topicOf is the name of the topic that a test belongs to.
func topicOf(topics []topic, test string) string {
	for _, t := range topics {
		if slices.ContainsFunc(t.patterns, func(p string) bool { return covers(p, test) }) {
			return t.name
		}
	}
	return other
}

// covers says whether a pattern matches a test or one that it is part of.
func covers(pattern, test string) bool {
	parts := strings.Split(test, "/")
	depth := min(strings.Count(pattern, "/")+1, len(parts))
	matched, _ := path.Match(pattern, strings.Join(parts[:depth], "/"))
	return matched
}

// providers are the columns, in their order.
var providers = []string{"sockets", "tcp", "shm", "udp", "net", "efa"}

// noProvider is the column of tests that are about none, or about several.
const noProvider = "any"

// providerOf is the part of a test's name that is a provider's.
func providerOf(test string) string {
	for part := range strings.SplitSeq(test, "/") {
		if slices.Contains(providers, part) {
			return part
		}
	}
	return noProvider
}
