package suite

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"
)

// sideCommand, as the first argument, makes this program a side of a benchmark.
const sideCommand = "side"

// sideOptions are what only the Go sides have, as flags in front of the order.
type sideOptions struct {
	// over is what carries the messages.
	over string
	// sender is the way in which package efa's connections send a flood.
	sender string
	// ungathered keeps package efa from gathering short messages.
	ungathered bool
	// idle is how long a side that does nothing is watched.
	idle time.Duration
	// profile is the beginning of the names of profiles; empty for none.
	profile string
}

// What may carry messages.
const (
	overFabric = "fabric"
	overConn   = "conn"   // connections of package efa
	overStream = "stream" // the same, as streams of bytes
	overComm   = "comm"   // ranks of package comm
	overNet    = "net"    // TCP of package net
)

func (o *sideOptions) flags(stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(sideCommand, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.over, "over", overFabric, "fabric, conn, stream, comm or net")
	f.StringVar(&o.sender, "sender", senderWrite, "how conn sends a flood: write, try, async or fragments")
	f.BoolVar(&o.ungathered, "ungathered", false, "conn does not gather short messages")
	f.DurationVar(&o.idle, "idle", time.Second, "how long to watch what is idle")
	f.StringVar(&o.profile, "profile", "", "the beginning of the names of profiles to write")
	return f
}

// args are the flags that say what differs from the defaults.
func (o sideOptions) args() []string {
	var all []string
	for _, a := range []struct{ name, value, otherwise string }{
		{"over", o.over, ""},
		{"sender", o.sender, ""},
		{"ungathered", fmt.Sprint(o.ungathered), "false"},
		{"idle", o.idle.String(), "0s"},
		{"profile", o.profile, ""},
	} {
		if a.value != a.otherwise {
			all = append(all, "-"+a.name+"="+a.value)
		}
	}
	return all
}

// sideMain runs a side and returns the exit code of its process.
func sideMain(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var options sideOptions
	flags := options.flags(stderr)
	if err := flags.Parse(args); err != nil {
		return 2
	}
	o, err := parseOrder(flags.Args())
	if err == nil {
		t := newTalk(stdin, stdout, stderr, newProfile(options.profile, o))
		switch options.over {
		case overFabric:
			err = (&side{order: o, talk: t}).run()
		case overConn, overStream:
			err = (&connSide{order: o, sideOptions: options, talk: t}).run()
		case overComm:
			err = (&commSide{order: o, talk: t}).run()
		case overNet:
			err = (&netSide{order: o, sideOptions: options, talk: t}).run()
		default:
			err = fmt.Errorf("-over is fabric, conn, stream, comm or net, not %q", options.over)
		}
	}
	if err == nil {
		return 0
	}
	var told toldError
	if !errors.As(err, &told) {
		fmt.Fprintf(stderr, "side: %v\n", err)
	}
	return 1
}

// weftSide is weft's program of a side.
func weftSide(options sideOptions) pairProgram {
	return func(t *tools) []string {
		options.profile = t.profile
		return slices.Concat(t.weft, options.args())
	}
}
