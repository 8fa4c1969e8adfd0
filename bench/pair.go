package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// measurement is what a pair did.
type measurement struct {
	times
	// device is what was opened: version, provider, fabric, domain.
	device []string
}

// grace is what a pair gets on top of its own deadline for starting and ending.
const grace = 10 * time.Second

// runPair starts the two sides, the first of which pings or floods, makes them
// known to each other, and returns what they measured. The limit is for all of
// it; the sides have deadlines of their own.
func runPair(ctx context.Context, first, second []string, limit time.Duration) (m measurement, err error) {
	ctx, stop := context.WithTimeout(ctx, limit+grace)
	defer stop()
	var pair [2]*process
	for i, command := range [2][]string{first, second} {
		if pair[i], err = startProcess(ctx, command); err != nil {
			stop()
			if i == 1 {
				err = errors.Join(err, pair[0].wait())
			}
			return m, err
		}
	}
	m, err = converse(stop, pair)
	if err != nil {
		stop()
	}
	for i, p := range pair {
		if ended := p.wait(); ended != nil {
			err = errors.Join(err, fmt.Errorf("side %d: %w", i+1, ended))
		}
	}
	return m, err
}

// sides are the commands of two sides that a program plays both.
func (o order) sides(program []string) (first, second []string) {
	o.first = true
	first = slices.Concat(program, o.args())
	o.first = false
	return first, slices.Concat(program, o.args())
}

// converse is the runner's half of the conversation in talk.go.
func converse(stop context.CancelFunc, pair [2]*process) (m measurement, err error) {
	var opened, done [2][]string
	expect := func(word string, into *[2][]string, fields int) error {
		return both(stop, func(i int) error {
			got, err := pair[i].expect(word)
			if err == nil && len(got) != fields {
				err = fmt.Errorf("%d fields after %q instead of %d", len(got), word, fields)
			}
			into[i] = got
			return err
		})
	}
	say := func(line func(i int) string) error {
		return both(stop, func(i int) error { return pair[i].say(line(i)) })
	}
	const addressField = 4
	if err := expect("open", &opened, addressField+1); err != nil {
		return m, err
	}
	for i := range opened {
		if device := opened[i][:addressField]; !slices.Equal(device, opened[0][:addressField]) {
			return m, fmt.Errorf("the two sides opened %q and %q", opened[0][:addressField], device)
		}
	}
	m.device = opened[0][:addressField]
	if err := say(func(i int) string { return "peer\t" + opened[1-i][addressField] }); err != nil {
		return m, err
	}
	var nothing [2][]string
	if err := expect("ready", &nothing, 0); err != nil {
		return m, err
	}
	if err := say(func(int) string { return "go" }); err != nil {
		return m, err
	}
	if err := expect("done", &done, 4); err != nil {
		return m, err
	}
	if err := say(func(int) string { return "end" }); err != nil {
		return m, err
	}
	for _, fields := range done {
		var n [4]int64
		for i := range n {
			if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
				return m, fmt.Errorf("figures of a side: %w", err)
			}
		}
		m.elapsed += time.Duration(n[0])
		m.operations += int(n[1])
		m.part += time.Duration(n[2])
		m.partOperations += int(n[3])
	}
	if m.elapsed <= 0 || m.operations <= 0 || m.part <= 0 || m.partOperations <= 0 {
		return m, fmt.Errorf("%d operations in %v, %d in %v: that cannot be", m.operations, m.elapsed, m.partOperations, m.part)
	}
	return m, nil
}
