// What the first words on a connection of sockets' endpoints must be.
#ifndef WEFT_INTRODUCTIONS_H
#define WEFT_INTRODUCTIONS_H

#include "shim.h"

#include <sys/socket.h>

// These are fi_enable of an endpoint of sockets, or a context of one, fi_connect, fi_accept and
// fi_setname of an endpoint: each may have it listen.
int weft_enable_listening(struct fid_ep *ep);
int weft_connect_listening(struct fid_ep *ep, const void *address, const void *data, uint64_t length);
int weft_accept_listening(struct fid_ep *ep, const void *data, uint64_t length);
int weft_name_listening(struct fid_ep *ep, const void *address, uint64_t length);

// These are for whoever has libfabric's calls (callers.c): after listen, for accept, before connect,
// and for recv.
void weft_is_listened_at(int fd);
int weft_accept_introduced(int fd, struct sockaddr *from, socklen_t *from_length);
int weft_is_dialed(int fd, const struct sockaddr *to);
ssize_t weft_recv_introduced(int fd, void *buf, size_t length, int flags);

#endif
