/* Scalable Reliable Datagram: everything that was sent arrives once, in any
 * order. srd_send.c and flow.c are the side of the posted work, srd_receive.c the other.
 * Everything here is under the engine's lock. */
#ifndef SRD_H
#define SRD_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/uio.h>

#include "queue_pair.h"
#include "status.h"
#include "timers.h"
#include "udp.h"

/* srd_post takes over a posted work. */
void srd_post(struct work *work);

/* srd_drain deals with all packets that are there, and with the news of refused
 * ones if errors says that there are any. */
void srd_drain(struct queue_pair *qp, uint32_t errors);

/* srd_flush completes all posted work with the status for it; srd_free drops it,
 * and everything known about peers. */
void srd_flush(struct queue_pair *qp);
void srd_free(struct queue_pair *qp);

/* srd_release sends what was held back. */
void srd_release(struct queue_pair *qp);

/* srd_part is [offset, offset+length) of the work's local memory. It returns how
 * many entries it filled in, -1 if a key does not allow it. */
int srd_part(const struct work *work, uint64_t offset, uint32_t length, unsigned access, struct iovec *into);

/* Between the two files: */

/* srd_answered is the answer to a packet of this queue pair's. */
void srd_answered(struct queue_pair *qp, const struct udp_packet *packet);

/* srd_refused ends the packets to a port that nobody listens at. */
void srd_refused(struct queue_pair *qp, struct in_addr ip, uint16_t port);

/* srd_forget_sources frees what the receiver knows of the senders. */
void srd_forget_sources(struct queue_pair *qp);

/* srd_header begins a header of this queue pair's. */
struct wire_header srd_header(const struct queue_pair *qp, enum wire_kind kind);

#endif
