package fabrictest

import (
	"path"
	"slices"
	"strings"

	"github.com/weft-go/weft/fabric"
)

// Deviation is a case that a provider is known to fail, in some versions of
// libfabric.
type Deviation struct {
	// Case is the name of a case, "unexpected/5000 in order", or a pattern for
	// several, as path.Match has them: "unexpected/*". A case within a deviating
	// one is covered with it.
	Case string
	// From is the first version of libfabric that deviates, Before the first
	// one that no longer does; zero leaves that side open.
	From, Before fabric.Version
	// Reason says what the provider does that is wrong.
	Reason string
	// Says has parts of what the case says when it fails in this way: each of its
	// failures must have one of them, or it fails for another reason, and that is
	// no deviation. None stands for any failure.
	Says []string
	// Untried keeps the case from being run: it would crash, never end, or
	// spoil the cases after it.
	Untried bool
}

var version2 = fabric.Version{Major: 2}

// known is what the providers of libfabric do otherwise, as seen on 1.17 and
// 2.1. docs/PROVIDERS.md says more about each.
var known = map[string][]Deviation{
	"sockets": {
		{Case: "mr/several buffers/second", Reason: "peers reach the first buffer of a registration only", Says: []string{"Permission denied"}},
	},
	"tcp": {
		{Case: "unexpected/* in reverse", From: version2, Reason: "a receive for an unexpected message waits until earlier ones of its peer are taken (FI_TCP_MAX_SAVED)", Says: []string{"no message with tag"}},
		{Case: "tagged/claim", From: version2, Untried: true, Reason: "a second message is never found before the first one is taken (FI_TCP_MAX_SAVED)"},
		{Case: "cntr/failed operation", Reason: "failures are not counted", Says: []string{"the wait does not end"}},
		{Case: "cntr/remote *", From: version2, Reason: "accesses of a peer to memory are not counted, though the provider says that it has FI_RMA_EVENT", Says: []string{"context deadline exceeded"}},
	},
	// What "tcp" stands for before 2.0; afterwards there are both.
	"tcp;ofi_rxm": {
		{Case: "cntr/failed operation", Reason: "failures are not counted", Says: []string{"the wait does not end"}},
	},
	// In 1.17 alone; the tcp of 2.x was made of it.
	"net": {
		{Case: "unexpected/* in reverse", Reason: "a receive for one of more than 64 unexpected messages waits until earlier ones are taken", Says: []string{"no message with tag"}},
		{Case: "cntr/failed operation", Reason: "failures are not counted", Says: []string{"the wait does not end"}},
		{Case: "cntr/remote *", Reason: "accesses of a peer to memory are not counted, though the provider says that it has FI_RMA_EVENT", Says: []string{"context deadline exceeded"}},
	},
	"efa": {
		{Case: "rma/memory modes/none", Before: version2, Reason: "a mode that the provider cannot work in is taken, and no access is answered", Says: []string{"no completion in"}},
		{Case: "cntr/failed operation", Before: version2, Reason: "a write that the target must refuse is not answered", Says: []string{"no completion in"}},
		{Case: "rma/refused with an error/*, write", Before: version2, Reason: "a write that the target must refuse is not answered", Says: []string{"no completion in"}},
		{Case: "rma/refused with an error/only to be written, read", Before: version2, Reason: "memory that is for writing is for reading, too, where the device reads", Says: []string{"no error where one must be"}},
		{Case: "rma/refused without a trace/addresses/only to be written, read", Before: version2, Reason: "memory that is for writing is for reading, too, where the device reads", Says: []string{"bytes of one's own"}},
		{Case: "rma/memory modes/none", From: version2, Reason: "a mode that the provider cannot work in is taken, and every access fails", Says: []string{"not registered or does not match"}},
		{Case: "rma/refused with an error/only to be *", From: version2, Reason: "memory that is for reading or for writing is for both", Says: []string{"no error where one must be"}},
		{Case: "rma/refused without a trace/addresses/only to be *", From: version2, Reason: "memory that is for reading or for writing is for both", Says: []string{"bytes of the target that are as they were", "bytes of one's own that are as they were"}},
	},
	"shm": {
		{Case: "unexpected/[25]000 *", Before: version2, Reason: "senders get FI_EAGAIN for ever after 1024 messages that nobody has received", Says: []string{"no room after 1024 messages"}},
		{Case: "mr/several buffers/second", Reason: "a write to the second buffer of a registration does not complete", Says: []string{"no completion in"}},
		{Case: "cntr/failed operation", Reason: "an access that the target must refuse has no completion, and is not counted", Says: []string{"no completion in"}},
		{Case: "rma/refused without a trace/addresses/*", Before: version2, Reason: "with virtual addresses, a peer reaches memory that it must not: key, length and access are not looked at", Says: []string{"bytes of the target that are as they were", "bytes of one's own that are as they were"}},
		{Case: "rma/refused with an error/*", Reason: "an access that the target must refuse has no completion, or one of success", Says: []string{"no completion in", "no error where one must be"}},
	},
}

// KnownDeviations are those that the suite knows of a provider of libfabric, for
// every version. A provider with utility layers has those of its core, unless it
// has a list of its own.
func KnownDeviations(provider string) []Deviation {
	if list, ok := known[provider]; ok {
		return slices.Clone(list)
	}
	core, _, _ := strings.Cut(provider, ";")
	return slices.Clone(known[core])
}

// explains says whether what a case has failed of is the deviation.
func (d *Deviation) explains(failures []string) bool {
	if len(d.Says) == 0 {
		return true
	}
	other := func(failure string) bool {
		return !slices.ContainsFunc(d.Says, func(part string) bool { return strings.Contains(failure, part) })
	}
	return len(failures) > 0 && !slices.ContainsFunc(failures, other)
}

// covers says whether a case deviates with a version of libfabric.
func (d *Deviation) covers(name string, v fabric.Version) bool {
	matched, _ := path.Match(d.Case, name)
	return matched && !older(v, d.From) && (d.Before == fabric.Version{} || older(v, d.Before))
}

func older(v, than fabric.Version) bool {
	return v.Major < than.Major || v.Major == than.Major && v.Minor < than.Minor
}
