/* Posting sends and receives, by both of verbs' interfaces. */
#ifndef POST_H
#define POST_H

#include <infiniband/verbs.h>
#include <stdint.h>

int post_send(struct ibv_qp *qp, struct ibv_send_wr *work, struct ibv_send_wr **bad);
int post_receive(struct ibv_qp *qp, struct ibv_recv_wr *work, struct ibv_recv_wr **bad);

/* post_fill sets the functions of a queue pair with these operations. */
void post_fill(struct ibv_qp_ex *qp, uint64_t operations);

#endif
