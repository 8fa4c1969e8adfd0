package tagged_test

import (
	"fmt"
	"strconv"

	"github.com/weft-go/weft/tagged"
)

// scriptMatcher runs:
//
//	post NAME CONTEXT SOURCE TAG [IGNORE]    a receive
//	arrive NAME CONTEXT SOURCE TAG           a message
//	cancel NAME                              a receive
//	probe CONTEXT SOURCE TAG [IGNORE]
//	take CONTEXT SOURCE TAG [IGNORE]         a matched probe
//	len
//
// The source and the tag of all but a message may be any.
type scriptMatcher struct {
	m       tagged.Matcher[string, string]
	tickets map[string]tagged.ReceiveTicket[string]
}

func (s *scriptMatcher) run(command string, arguments []string) ([]string, error) {
	name := ""
	switch command {
	case "post", "arrive", "cancel":
		name, arguments = arguments[0], arguments[1:]
	}
	var p tagged.Pattern
	switch command {
	case "post", "arrive", "probe", "take":
		var err error
		if p, err = parsePattern(arguments); err != nil {
			return nil, err
		}
	}
	switch command {
	case "post":
		ticket, message, matched := s.m.Post(p, name)
		if matched {
			return []string{name + " takes " + describe(message)}, nil
		}
		s.tickets[name] = ticket
		return []string{name + " waits"}, nil
	case "arrive":
		e := tagged.Envelope{Context: p.Context, Source: p.Source, Tag: p.Tag}
		if receive, matched := s.m.Arrive(e, name); matched {
			return []string{receive + " takes " + name}, nil
		}
		return []string{name + " is unexpected"}, nil
	case "cancel":
		if receive, ok := s.m.Cancel(s.tickets[name]); ok {
			return []string{receive + " is cancelled"}, nil
		}
		return []string{name + " is not posted"}, nil
	case "probe":
		return found(s.m.Probe(p)), nil
	case "take":
		return found(s.m.Take(p)), nil
	case "len":
		return []string{fmt.Sprintf("%d posted, %d unexpected", s.m.Posted(), s.m.Unexpected())}, nil
	}
	return nil, fmt.Errorf("no command %q", command)
}

func parsePattern(arguments []string) (p tagged.Pattern, err error) {
	if len(arguments) < 3 || len(arguments) > 4 {
		return p, fmt.Errorf("want CONTEXT SOURCE TAG [IGNORE]")
	}
	if p.Context, err = parseUint32(arguments[0]); err != nil {
		return p, err
	}
	if arguments[1] == "any" {
		p.Source = tagged.AnySource
	} else if p.Source, err = parseUint32(arguments[1]); err != nil {
		return p, err
	}
	if arguments[2] == "any" {
		p.Ignore = tagged.AnyTag
		return p, nil
	}
	if p.Tag, err = strconv.ParseUint(arguments[2], 0, 64); err != nil || len(arguments) == 3 {
		return p, err
	}
	p.Ignore, err = strconv.ParseUint(arguments[3], 0, 64)
	return p, err
}

func parseUint32(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 0, 32)
	return uint32(n), err
}

func describe(m tagged.Message[string]) string {
	return fmt.Sprintf("%s from %d with tag %#x", m.Value, m.Source, m.Tag)
}

func found(m tagged.Message[string], ok bool) []string {
	if !ok {
		return []string{"nothing"}
	}
	return []string{describe(m)}
}
