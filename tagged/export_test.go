package tagged

import (
	"errors"
	"fmt"
)

// Seed gives a matcher that was not used yet a hash of the test's choice. With
// all multipliers 0 every key has the same hash.
func (m *Matcher[R, M]) Seed(multipliers [5]uint64) {
	m.start()
	*m.receives.seed = hashSeed{multipliers[0], multipliers[1], multipliers[2], multipliers[3], multipliers[4]}
}

// Chains is the number of entries that have a chain of their own, in the class
// of messages by source and tag, and the length of all walks to them.
func (m *Matcher[R, M]) Chains() (entries, steps int) {
	c := &m.messages.standard[0]
	for slot := range c.slots {
		length := 0
		for l := *c.head(slot); l != nil; l = l.chain {
			length++
			steps += length
		}
		entries += length
	}
	return entries, steps
}

// Check says what is wrong inside of a matcher.
func (m *Matcher[R, M]) Check() error {
	receives := 0
	for n, c := range m.receives.classes {
		count, err := c.check()
		if err != nil {
			return err
		}
		if count != c.receives || n >= standardClasses && count == 0 {
			return fmt.Errorf("receives of class %d: %d, want %d", n, count, c.receives)
		}
		receives += count
	}
	if receives != m.Posted() {
		return fmt.Errorf("%d receives in classes, want %d", receives, m.Posted())
	}
	for n := range m.messages.standard {
		if err := m.messages.standard[n].want(m.Unexpected()); err != nil {
			return fmt.Errorf("messages of class %d: %w", n, err)
		}
	}
	for n, c := range m.messages.masks {
		want := 0
		if n < m.messages.active {
			want = m.Unexpected()
		}
		if err := c.want(want); err != nil {
			return fmt.Errorf("messages of mask %d: %w", n, err)
		}
	}
	if m.Unexpected() == 0 && m.messages.active != 0 {
		return fmt.Errorf("%d masks with no message", m.messages.active)
	}
	if err := errors.Join(m.receives.spares.check(), m.messages.spares.check(), m.messages.maskedSpares.check()); err != nil {
		return err
	}
	if want := m.messages.active * m.Unexpected(); m.messages.maskedCount != want {
		return fmt.Errorf("%d messages in masks, want %d", m.messages.maskedCount, want)
	}
	return nil
}

// check says if a spare keeps another alive that may have been let go.
func (s *spares[E]) check() error {
	count := 0
	for l := s.first; l != nil; l = l.next {
		count++
		if l.prev != nil || l.chain != nil {
			return fmt.Errorf("spare %+v is linked", l)
		}
	}
	if count != s.count {
		return fmt.Errorf("%d spares, want %d", count, s.count)
	}
	return nil
}

func (c *class[E]) want(entries int) error {
	got, err := c.check()
	if err == nil && got != entries {
		err = fmt.Errorf("%d entries, want %d", got, entries)
	}
	return err
}

func (c *class[E]) check() (entries int, err error) {
	leaders := 0
	for slot := range c.slots {
		for first := *c.head(slot); first != nil; first = first.chain {
			leaders++
			if first.follows || c.slot(first.hash) != c.head(slot) {
				return 0, fmt.Errorf("%+v is in slot %d of %d", first, slot, c.slots)
			}
			previous := first
			for l := first.next; ; l = l.next {
				if l.prev != previous {
					return 0, fmt.Errorf("%+v is behind %+v", l, previous)
				}
				entries++
				if l == first {
					break
				}
				if !l.follows || l.key != first.key {
					return 0, fmt.Errorf("%+v is no follower of %+v", l, first)
				}
				previous = l
			}
		}
	}
	if leaders != c.leaders {
		return 0, fmt.Errorf("%d leaders, want %d", leaders, c.leaders)
	}
	return entries, nil
}
