/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives of a program: all nodes are one group, and each calls the same ones in the same order
 * (fi_collective(3)). The seed tells the kind, the length and the root of each. A call ends with the values of a plain
 * computation, and not before the nodes that it needs have called theirs.
 */
#ifndef TEST_SIM_GROUP_H
#define TEST_SIM_GROUP_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "sim/judge.h"

void group_begin(const struct program *program);
/* Bind an event queue to the endpoint of node n, which is not enabled yet. */
void group_bind(unsigned n, struct fid_fabric *fabric, struct fid_ep *ep);
/* Ask to join. addr: of all nodes. */
void group_join(unsigned n, struct fid_av *av, const fi_addr_t *addr);
/* Close the group, and after the endpoint its event queue. */
void group_close(unsigned n);
void group_close_queue(unsigned n);

/* Read the event of the join. True if it was there. */
bool group_pass(unsigned n);
/* True: node n has joined, so that it may call. */
bool group_joined(unsigned n);
/* True: node n has called fewer collectives than another node, or has not joined. */
bool group_behind(unsigned n);
/* Bytes of the result of the next collective of node n. */
uint32_t group_len(unsigned n);
/* Call it. Returns what the call returns. */
ssize_t group_call(struct op *op);
/* A collective has ended without an error. */
void group_ended(const struct op *op);

#endif
