//go:build linux

package cgo

/*
#cgo noescape weft_take_turn
#cgo nocallback weft_take_turn
#cgo noescape weft_cancel
#cgo noescape weft_cancel_directed
#include "directed.h"
#include "pause.h"
#include "shim.h"
*/
import "C"

import "unsafe"

// Completion is the end of one operation, laid out like struct weft_completion.
type Completion struct {
	Token         uint64 // all ones: libfabric gave no context
	Kind          uint64
	Flags         uint64
	Len           uint64
	Tag           uint64
	Data          uint64
	Source        uint64
	Excess        uint64
	Err           int32 // 0: success; else positive
	ProviderErrno int32
	text          int32
	dataLength    uint32
	Buf           uintptr // where a message of a multi-receive is
}

// NoToken is the token of a completion that has no context.
const NoToken = ^uint64(0)

// The two sides must agree on every layout: the compiler refuses a negative
// array size on either inequality.
var (
	_ [unsafe.Sizeof(Completion{}) - C.sizeof_struct_weft_completion]byte
	_ [C.sizeof_struct_weft_completion - unsafe.Sizeof(Completion{})]byte
)

// Slots are the contexts of operations in flight, in C memory: libfabric keeps
// their addresses.
type Slots struct {
	base  unsafe.Pointer
	count int
}

// NewSlots makes count contexts. ok is false when there is no memory.
func NewSlots(count int) (s Slots, ok bool) {
	base := allocate(PurposeSlots, count, C.sizeof_struct_weft_slot)
	return Slots{base, count}, base != nil
}

// Free releases the contexts; no operation may be in flight.
func (s Slots) Free() {
	release(PurposeSlots, s.base, s.count, C.sizeof_struct_weft_slot)
}

// Address is what Op.Slot takes for the context with the index.
func (s Slots) Address(index int) uintptr {
	return uintptr(s.base) + uintptr(index)*C.sizeof_struct_weft_slot
}

// Cancel asks for the end of the operation that uses the context.
//
// Implements: int fi_cancel(fid_t fid, void *context)
func (s Slots) Cancel(e Endpoint, index int) Code {
	return codeOf(C.weft_cancel(e.p, unsafe.Add(s.base, uintptr(index)*C.sizeof_struct_weft_slot)))
}

// Refusal is a receive that libfabric has no more: that of a context, and why, laid out like struct
// weft_refusal.
type Refusal struct {
	context uintptr
	Error   uint64
}

// CancelDirected ends the untagged receive from a peer that uses the context, or all of the peer's if index
// is -1, where fi_cancel of libfabric 2 ends the process; refusals has as much room as there are such
// receives. gone is how many have ended, of which nothing more is heard. To end one, libfabric gets the
// others anew, and those that it did not take are the first of refusals. The code is NoSystem
// where the endpoint has its receives in another way.
func (s Slots) CancelDirected(e Endpoint, index int, peer uint64, refusals []Refusal) (gone, refused int, code Code) {
	var context unsafe.Pointer
	if index >= 0 {
		context = unsafe.Add(s.base, uintptr(index)*C.sizeof_struct_weft_slot)
	}
	ended := C.weft_cancel_directed(e.p, C.uint64_t(peer), context, C.uint64_t(len(refusals)),
		(*C.struct_weft_refusal)(unsafe.Pointer(unsafe.SliceData(refusals))))
	if ended.count < 0 {
		return 0, 0, codeOf(C.int(ended.count))
	}
	return int(ended.count), int(ended.refusals), 0
}

// Refused is whose receive it is: the index of the context.
func (s Slots) Refused(r Refusal) int {
	return int((r.context - uintptr(s.base)) / C.sizeof_struct_weft_slot)
}

// Turn posts operations and reads completions in one crossing. It lives in C
// memory, and belongs to one endpoint and one queue.
type Turn struct {
	c *C.struct_weft_turn
	// address is c as a number: a pointer would be inspected at each call.
	address C.uintptr_t
	// Ops and Completions are the two arrays in C memory.
	Ops         []Op
	Extras      []Extra // Ops[i].Extra may point to Extras[i]
	Completions []Completion
}

// NewTurn makes room for ops operations and completions completions a turn.
// sources says whether the provider tells who sent a message.
func NewTurn(e Endpoint, q CompletionQueue, ops, completions int, sources bool) (*Turn, bool) {
	c := (*C.struct_weft_turn)(allocate(PurposeTurns, 1, C.sizeof_struct_weft_turn))
	o := allocate(PurposeTurns, ops, unsafe.Sizeof(Op{}))
	r := allocate(PurposeTurns, completions, unsafe.Sizeof(Completion{}))
	x := allocate(PurposeTurns, ops, unsafe.Sizeof(Extra{}))
	if c == nil || o == nil || x == nil || r == nil {
		release(PurposeTurns, unsafe.Pointer(c), 1, C.sizeof_struct_weft_turn)
		release(PurposeTurns, o, ops, unsafe.Sizeof(Op{}))
		release(PurposeTurns, x, ops, unsafe.Sizeof(Extra{}))
		release(PurposeTurns, r, completions, unsafe.Sizeof(Completion{}))
		return nil, false
	}
	t := &Turn{
		c: c, address: C.uintptr_t(uintptr(unsafe.Pointer(c))), Ops: unsafe.Slice((*Op)(o), ops), Extras: unsafe.Slice((*Extra)(x), ops),
		Completions: unsafe.Slice((*Completion)(r), completions),
	}
	c.ep, c.cq = e.p, q.p
	c.rest_ns = C.WEFT_REST_NS
	if !sources {
		c.no_source = 1
	}
	c.ops = (*C.struct_weft_op)(o)
	c.completions = (*C.struct_weft_completion)(r)
	return t, true
}

// Format says that the queue's entries are of another format than CQTagged, and
// which slots its operations have.
func (t *Turn) Format(format int, s Slots) {
	t.c.stride = 0
	switch format {
	case CQContext:
		t.c.stride = C.sizeof_struct_fi_cq_entry
	case CQMessage:
		t.c.stride = C.sizeof_struct_fi_cq_msg_entry
	case CQData:
		t.c.stride = C.sizeof_struct_fi_cq_data_entry
	}
	t.c.slots = C.uintptr_t(uintptr(s.base))
	t.c.slots_end = C.uintptr_t(s.Address(s.count))
}

// Words are whose are in an error.
type Words uint32

// ProviderWords are those that the provider has for it, ErrnoWords those of libfabric for the provider's
// number.
const (
	ProviderWords Words = C.WEFT_PROVIDER_WORDS
	ErrnoWords    Words = C.WEFT_ERRNO_WORDS
	NoWords       Words = C.WEFT_NO_WORDS
)

// Words says whose words are in an error.
func (t *Turn) Words(w Words) { t.c.words = C.uint32_t(w) }

// Free releases the memory of the turn.
func (t *Turn) Free() {
	release(PurposeTurns, unsafe.Pointer(unsafe.SliceData(t.Ops)), len(t.Ops), unsafe.Sizeof(Op{}))
	release(PurposeTurns, unsafe.Pointer(unsafe.SliceData(t.Extras)), len(t.Extras), unsafe.Sizeof(Extra{}))
	release(PurposeTurns, unsafe.Pointer(unsafe.SliceData(t.Completions)), len(t.Completions), unsafe.Sizeof(Completion{}))
	release(PurposeTurns, unsafe.Pointer(t.c), 1, C.sizeof_struct_weft_turn)
	*t = Turn{}
}

// Batch says whether operations of a turn tell the provider that more of their
// family follow at once (FI_MORE). send and receive are the endpoint's default
// flags, which those operations then have to carry.
func (t *Turn) Batch(on bool, send, receive uint64) {
	t.c.batch = 0
	if on {
		t.c.batch = 1
	}
	t.c.send_flags, t.c.receive_flags = C.uint64_t(send), C.uint64_t(receive)
}

// Take posts the first posts of Ops, in order, and fills in up to reap of
// Completions; it returns how many. While there is nothing to read it tries
// spins times more, and then blocks for up to waitMS milliseconds.
//
// Implements: ssize_t fi_cq_read(struct fid_cq *cq, void *buf, size_t count)
// Implements: ssize_t fi_cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout)
// Implements: ssize_t fi_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
// Implements: ssize_t fi_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr, const void *cond, int timeout)
// Implements: ssize_t fi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
// Implements: const char *fi_cq_strerror(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf, size_t len)
func (t *Turn) Take(posts, reap, spins, waitMS int) (reaped int, code Code) {
	c := t.c
	c.op_count = C.uint32_t(posts)
	c.completion_limit = C.uint32_t(reap)
	c.spins = C.uint32_t(spins)
	c.wait_ms = C.uint32_t(waitMS)
	C.weft_take_turn(t.address)
	return int(c.reaped), codeOf(c.error)
}

// ErrorText returns the provider's words for a failed completion of this turn.
func (t *Turn) ErrorText(c *Completion) string {
	if c.text < 0 {
		return ""
	}
	return C.GoString(&t.c.texts[c.text][0])
}

// ErrorData copies what the provider said about a failed completion of this turn in
// bytes, such as the address of an unknown sender.
func (t *Turn) ErrorData(c *Completion) []byte {
	if c.text < 0 || c.dataLength == 0 {
		return nil
	}
	data := &t.c.data[c.text]
	return C.GoBytes(unsafe.Pointer(data), C.int(c.dataLength))
}
