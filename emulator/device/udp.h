/* The sockets under the queue pairs. */
#ifndef UDP_H
#define UDP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire.h"

struct answer;
struct queue_pair;

/* udp_open binds a socket to the address, and says which port it got and how many
 * bytes of packets it can keep until they are read. It returns 0 or a positive
 * errno. */
int udp_open(struct in_addr address, int *socket, uint16_t *port, uint32_t *room);

/* udp_send sends a header and what is in the other parts; parts[0] is for the
 * header. It returns 0 or a positive errno: EFAULT if the memory of a part is not
 * there, EAGAIN if the socket is full. */
int udp_send(const struct queue_pair *qp, struct in_addr ip, uint16_t port, const struct wire_header *header,
	     struct iovec *parts, int count);

/* udp_answer sends acknowledgements; those that do not fit are lost. */
void udp_answer(const struct queue_pair *qp, struct answer *answers, unsigned count);

struct udp_packet {
	struct sockaddr_in from;
	struct wire_header header;
	const uint8_t *payload;
	uint32_t length; /* of the payload */
};

enum { UDP_BATCH = 16 };

/* udp_receive returns how many packets are there now, at most UDP_BATCH; in each
 * of them the header is whole and its magic and version are right, or header.kind
 * is 0. The payloads are valid until the next call. Under the engine's lock. */
int udp_receive(const struct queue_pair *qp, struct udp_packet *packets);

/* udp_refused returns whether a packet that the socket sent was refused, and
 * whose port it was that nobody listens at. */
bool udp_refused(int socket, struct in_addr *ip, uint16_t *port);

#endif
