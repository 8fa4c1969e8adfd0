// What the files of the probe share: a question is a function that says what it
// finds out, in a process of its own.
#ifndef WEFT_PROBE_H
#define WEFT_PROBE_H

#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

// A name of this program's own, where providers take any.
#define PROBE_NODE "weft-probe"
// An address that no machine has.
#define FOREIGN_NODE "192.0.2.1"

struct question {
	const char *name;
	void (*ask)(void);
};

// Each ends with one that has no name.
extern const struct question attribute_questions[], waiting_questions[], process_questions[],
	address_questions[], misuse_questions[], message_questions[], end_questions[];

// The provider that is asked.
extern const char *provider;

// Shared with the process that asks.
enum { ANSWER = 2048, PIDS = 16 };
struct shared {
	char answer[ANSWER];
	int count;
	pid_t pids[PIDS]; // who opened something
};
extern struct shared *shared;

// answer.c: say appends to the answer, and must ends the question with it where
// a call has failed.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *code(long ret);
void must(const char *call, long ret);
double seconds(void);

// side.c: the two ends that questions are about, and what moves them on.
struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	char name[512];
	size_t name_size;
};

enum { CONTEXTS = 8192 };
extern struct side a, b;
extern fi_addr_t to_a, to_b;
extern struct fi_context2 contexts[CONTEXTS];
extern struct fi_cq_tagged_entry entry;
extern struct fi_cq_err_entry error;

int is_shm(void);
struct fi_info *look(uint64_t caps, const char *node, int *ret);
void open_rest(struct side *s);
void open_side_for(struct side *s, uint64_t caps);
void open_side(struct side *s);
void pair(void);
pid_t child_with_side(struct side *s);
fi_addr_t insert(struct side *s, const struct side *peer);
int reap(struct side *s, struct side *other, double limit,
	 struct fi_cq_tagged_entry *entry, struct fi_cq_err_entry *error);
ssize_t send_to(struct side *s, struct side *other, const void *buf, size_t size,
		fi_addr_t to, uint64_t tag, void *context, double limit);

#endif
