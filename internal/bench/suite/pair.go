package suite

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
	device device
}

// account is what the two sides of a pair had to say.
type account struct {
	device  device
	figures [2][]int64
}

// grace is what a pair gets on top of its own deadline for starting and ending.
const grace = 10 * time.Second

// runPair has two sides work, the first of which pings or floods, and returns
// what they measured.
func runPair(ctx context.Context, first, second []string, limit time.Duration) (measurement, error) {
	a, err := startPair(ctx, first, second, limit, len(order{}.figures(times{})))
	if err != nil {
		return measurement{}, err
	}
	return a.measured()
}

// measured adds up what the sides measured: one of them did.
func (a account) measured() (m measurement, err error) {
	m.device = a.device
	for _, n := range a.figures {
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

// startPair starts the two sides, makes them known to each other, and returns
// what they had to say, so many figures each. The limit is for all of it; the
// sides have deadlines of their own.
func startPair(ctx context.Context, first, second []string, limit time.Duration, figures int) (a account, err error) {
	ctx, stop := context.WithTimeout(ctx, limit+grace)
	defer stop()
	var pair [2]*process
	for i, command := range [2][]string{first, second} {
		if pair[i], err = startProcess(ctx, command); err != nil {
			stop()
			if i == 1 {
				err = errors.Join(err, pair[0].wait())
			}
			return a, err
		}
	}
	a, err = converse(stop, pair, figures)
	if err != nil {
		stop()
	}
	for i, p := range pair {
		if ended := p.wait(); ended != nil {
			err = errors.Join(err, fmt.Errorf("side %d: %w", i+1, ended))
		}
	}
	return a, err
}

// sides are the commands of two sides that a program plays both.
func (o order) sides(program []string) (first, second []string) {
	o.first = true
	first = slices.Concat(program, o.args())
	o.first = false
	return first, slices.Concat(program, o.args())
}

// converse is the runner's half of the conversation in talk.go.
func converse(stop context.CancelFunc, pair [2]*process, figures int) (a account, err error) {
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
	const addressField = len(a.device)
	if err := expect("open", &opened, addressField+1); err != nil {
		return a, err
	}
	for i := range opened {
		if device := opened[i][:addressField]; !slices.Equal(device, opened[0][:addressField]) {
			return a, fmt.Errorf("the two sides opened %q and %q", opened[0][:addressField], device)
		}
	}
	a.device = device(opened[0][:addressField])
	if err := say(func(i int) string { return "peer\t" + opened[1-i][addressField] }); err != nil {
		return a, err
	}
	var nothing [2][]string
	if err := expect("ready", &nothing, 0); err != nil {
		return a, err
	}
	if err := say(func(int) string { return "go" }); err != nil {
		return a, err
	}
	if err := expect("done", &done, figures); err != nil {
		return a, err
	}
	if err := say(func(int) string { return "end" }); err != nil {
		return a, err
	}
	for side, fields := range done {
		for _, text := range fields {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return a, fmt.Errorf("figures of a side: %w", err)
			}
			a.figures[side] = append(a.figures[side], n)
		}
	}
	return a, nil
}
