//go:build linux

package cgo

/*
#include "fetch.h"
*/
import "C"

// GuardFetches has an enabled endpoint of ofi_rxm say in Op.Result how many messages a
// receive got whose sender is gone; without it they end the process. It says whether
// libfabric has what that needs.
func (e Endpoint) GuardFetches() bool { return C.weft_guard_fetches(e.p) != 0 }

// MarkMessages has a domain of ofi_rxm, of which nothing was opened yet, know by which
// connection a message came, so that GuardFetches also finds those whose connection's place
// another has. It says whether the domain below was found.
func (d Domain) MarkMessages() bool { return C.weft_mark_messages(d.p) != 0 }
