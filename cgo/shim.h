// The C side of weft's one door to libfabric. Structs of libfabric are filled
// here, zeroed and sized by the headers at hand, because they grow between
// versions and some of their members cannot be named from Go.
#ifndef WEFT_SHIM_H
#define WEFT_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

// Around a call that may load or start a provider (handlers.c).
void weft_save_handlers(void);
void weft_restore_handlers(void);

uint64_t weft_highest_version(void);

int weft_fabric(struct fi_info *info, struct fid_fabric **fabric);
int weft_domain(struct fid_fabric *fabric, struct fi_info *info,
		struct fid_domain **domain);
int weft_domain_bind(struct fid_domain *domain, struct fid *fid, uint64_t flags);
// mr_mode is what the endpoint has beyond the domain.
int weft_endpoint(struct fid_domain *domain, struct fi_info *info,
		  uint64_t mr_mode, uint64_t receive_caps, struct fid_ep **ep);
int weft_enable(struct fid_ep *ep);
int weft_cq_open(struct fid_domain *domain, int wait, int format, uint64_t *size,
		 struct fid_cq **cq);
int weft_av_open(struct fid_domain *domain, uint64_t count, struct fid_av **av);

int weft_close(struct fid *fid);
int weft_ep_bind(struct fid_ep *ep, struct fid *fid, uint64_t flags);
int weft_getname(struct fid_ep *ep, void *address, uint64_t *length);
int weft_av_insert(struct fid_av *av, const void *address, uint64_t *result);
int weft_mr_reg(struct fid_domain *domain, const void *buf, uint64_t length,
		uint64_t access, uint64_t key, struct fid_mr **mr);
int weft_mr_reg_at(struct fid_domain *domain, uintptr_t base, uint64_t length,
		   uint64_t access, uint64_t key, struct fid_mr **mr);
uintptr_t weft_mr_desc(struct fid_mr *mr);
uint64_t weft_mr_key(struct fid_mr *mr);
int weft_cancel(struct fid_ep *ep, void *context);
int weft_wait_fd(struct fid *fid, int *fd);
int weft_cq_signal(struct fid_cq *cq);
int weft_trywait(struct fid_fabric *fabric, struct fid *fid);

// What libfabric keeps of an operation in flight. The context comes first, so
// that its address is the slot's.
struct weft_slot {
	struct fi_context2 context;
	uint64_t token;
	uint64_t kind;
};

enum {
	WEFT_TSEND = 1,
	WEFT_TRECV,
	WEFT_TINJECT,
	WEFT_SEND,
	WEFT_RECV,
	WEFT_INJECT,
	WEFT_READ,
	WEFT_WRITE,
	WEFT_WRITE_INJECT,
	WEFT_ATOMIC,
	WEFT_ATOMIC_INJECT,
	WEFT_FETCH,
	WEFT_COMPARE,
};

#define WEFT_VECTORS 8

// What an operation has beyond a buffer, a peer and a tag. Laid out like Extra
// in operation.go.
struct weft_extra {
	uint64_t flags;
	uint64_t data;
	uint64_t remote_address;
	uint64_t remote_key;
	uint32_t datatype;
	uint32_t atomic;
	uintptr_t compare; // as long as the operation's buffer
	uintptr_t compare_desc;
	uintptr_t result; // likewise
	uintptr_t result_desc;
	uint64_t vectors; // how many of the following; 0: the operation's buffer
	struct iovec vector[WEFT_VECTORS];
	void *desc[WEFT_VECTORS];
	uint64_t remotes; // how many of the following; 0: the one above
	struct fi_rma_iov remote[WEFT_VECTORS];
};

// One operation to post. Laid out like Op in operation.go.
struct weft_op {
	uint32_t kind;
	// 0: posted; negative: an error of libfabric; positive: posted, a receive for
	// which so many messages came whose sender is gone, and the rest with it
	int32_t result;
	uint64_t peer;
	uint64_t tag;
	uint64_t ignore;
	uintptr_t buf;
	uint64_t len;
	uintptr_t desc;
	struct weft_slot *slot;
	uint64_t token;
	struct weft_extra *extra; // NULL: the plain form of the call
};

// more is 0, or FI_MORE with the endpoint's default flags for such operations:
// only the message form of a call takes flags, and it takes no defaults.
int weft_post(struct fid_ep *ep, struct weft_op *op, uint64_t more);

#define WEFT_TEXTS 8
#define WEFT_TEXT_SIZE 128
#define WEFT_ERROR_DATA 256
#define WEFT_BATCH 64

// One completion. Laid out like Completion in turn.go.
struct weft_completion {
	uint64_t token; // all ones: libfabric gave no context
	uint64_t kind;
	uint64_t flags;
	uint64_t len;
	uint64_t tag;
	uint64_t data;
	uint64_t source;
	uint64_t olen;
	int32_t err; // 0: success; else positive
	int32_t prov_errno;
	int32_t text; // index into texts and data, or -1
	uint32_t data_length; // bytes of that data
	uintptr_t buf; // where a message of a multi-receive is
};

// Whose words are in an error: those that the provider has for it, those of libfabric for the provider's
// number, or nobody's.
enum weft_words { WEFT_PROVIDER_WORDS, WEFT_ERRNO_WORDS, WEFT_NO_WORDS };

// One turn: what to post, where to put what is read. Laid out like turn in
// turn.go. It stays in C memory, so that a turn passes a single pointer.
struct weft_turn {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct weft_op *ops;
	struct weft_completion *completions;
	uint32_t op_count;
	uint32_t completion_limit;
	uint32_t spins;
	uint32_t wait_ms; // 0: do not block
	uint32_t posted;
	uint32_t reaped;
	int32_t error;
	uint32_t text_count;
	uint32_t rest_ns;    // between two looks at the queue
	uint32_t until_timed; // turns until one whose looks are timed
	uint32_t no_source; // the provider does not tell who sent
	uint32_t words;	    // whose are in an error: one of enum weft_words
	uint32_t batch;	    // operations that are posted together carry FI_MORE
	uint64_t send_flags; // the endpoint's defaults, for those that do
	uint64_t receive_flags;
	uint64_t stride; // of the queue's entries; 0: they are tagged ones
	// The queue's slots. An entry of the shortest format does not say whether
	// its context is one of them.
	uintptr_t slots, slots_end;
	char texts[WEFT_TEXTS][WEFT_TEXT_SIZE];
	unsigned char data[WEFT_TEXTS][WEFT_ERROR_DATA];
};

// The turn is given by its address, which cgo does not look into.
void weft_take_turn(uintptr_t turn);

#endif
