package testenv

import (
	"slices"
	"strings"
)

// lacks are the things that a provider cannot do in one of the versions of libfabric that
// the tests run with, by words of what tests say that they need. What a required provider
// lacks beside these is a failure: a skip would hide that it has lost it.
var lacks = map[string][]string{
	"sockets": {
		"FI_HMEM", "FI_DOUBLE_COMPLEX", "complex128", "regions of endpoints", "shared send contexts",
		"types that Go does not have",  // with libfabric 2.1, which has more of them
		"queues without a wait object", // they have one
		"datagrams with an end",        // it says that they may have any length
	},
	"tcp": {
		"FI_EP_DGRAM", "FI_FENCE", "FI_TRIGGER", "FI_HMEM", "FI_NAMED_RX_CTX", "FI_RMA_EVENT", "FI_GETOPSFLAG",
		"fi_ep_alias", "aliases", "an alias", "scalable endpoints", "contexts", "regions of endpoints", "counters of regions", "several buffers",
		"shared address vectors", "events of domains", "FI_DOUBLE_COMPLEX", "complex128", "types that Go does not have",
		"failed reads", "errors of one remote access", // the connection ends with one
		"queues without a wait object", "FI_PEEK of messages without a tag", "sources of what came from somebody who has ended",
	},
	"shm": {
		"FI_EP_DGRAM", "FI_EP_MSG", "FI_FENCE", "FI_TRIGGER", "FI_NAMED_RX_CTX", "FI_GETOPSFLAG",
		"fi_ep_alias", "aliases", "an alias", "scalable endpoints", "contexts", "regions of endpoints", "counters of regions",
		"shared address vectors", "fi_av_insertsvc", "fi_av_insertsym", "events of domains", "a wait descriptor",
		"FI_DOUBLE_COMPLEX", "complex128", "types that Go does not have",
		"failed reads", "errors of remote access", "peek", "FI_PEEK", "FI_PEEK of messages without a tag", "Attach",
		"directed receives of what came before", // with libfabric 1.17
		// Of peers that were killed.
		"long messages back", "long messages to others", "killed in the middle",
	},
	"efa": {
		"FI_EP_MSG", "FI_FENCE", "FI_TRIGGER", "FI_HMEM", "FI_NAMED_RX_CTX", "FI_RMA_EVENT", "FI_GETOPSFLAG",
		"fi_ep_alias", "aliases", "an alias", "contexts", "regions of endpoints", "several buffers", "fi_setname",
		"FI_PEEK of messages without a tag", "shared address vectors", "fi_av_insertsvc", "fi_av_insertsym", "events of domains", "a wait descriptor",
		"FI_DOUBLE_COMPLEX", "complex128", "types that Go does not have",
		// It registers what is local, and its keys are its own, always.
		"memory mode FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED", "memory mode FI_MR_VIRT_ADDR",
		"memory mode FI_MR_LOCAL, FI_MR_ALLOCATED, FI_MR_PROV_KEY", "memory mode FI_MR_PROV_KEY",
		"errors of a remote", // a success is told when it is on its way
		"failed reads",       // in libfabric 2.1, where it reads; one never completes
		// Of peers that were killed, or stopped.
		"long messages back", "stopped in the middle",
	},
}

// ofProvider takes what a provider does apart: "tcp with aliases", or "an alias on tcp".
// Anything else is of none.
func ofProvider(what string) (provider, capability string) {
	if provider, capability, ok := strings.Cut(what, " with "); ok {
		return provider, capability
	}
	if on := strings.LastIndex(what, " on "); on >= 0 {
		return what[on+len(" on "):], what[:on]
	}
	return "", ""
}

// knownLack says whether a provider is known to lack something.
func knownLack(provider, capability string) bool {
	core, _, _ := strings.Cut(provider, ";")
	return slices.ContainsFunc(lacks[core], func(words string) bool { return strings.Contains(capability, words) })
}
