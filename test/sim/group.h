/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives of a program: all nodes are one group, and each calls the same ones in the same order
 * (fi_collective(3)). The seed tells the kind, the length and the root of each. A call ends with the values of a plain
 * computation, and not before the nodes that it needs have called theirs.
 *
 * Where there are faults a group may fail, and with it the calls. Then a node closes it, and joins anew; so does a node
 * that was killed. Calls that end without an error have the result of one group all the same: each node has given to it
 * what it gave to this group, not to an earlier one.
 */
#ifndef TEST_SIM_GROUP_H
#define TEST_SIM_GROUP_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "sim/judge.h"

void group_begin(const struct program *program);
/* Bind an event queue to the endpoint of node n, which is not enabled yet. */
void group_bind(unsigned n, struct fid_fabric *fabric, struct fid_ep *ep);
/* Node n has this address vector, and in it all nodes. av: borrowed. */
void group_know(unsigned n, struct fid_av *av, const fi_addr_t *addr);
/* Ask to join. */
void group_join(unsigned n);
/* Leave, and ask to join the next group. */
void group_join_again(unsigned n);
/* Close the group; and after the endpoint its event queue. */
void group_close(unsigned n);
void group_close_queue(unsigned n);

/* Read an event. */
enum group_event {
	GROUP_NOTHING,
	GROUP_JOINED,			/* the join has ended */
	GROUP_LOST,			/* events are lost, for lack of memory */
};
enum group_event group_pass(unsigned n);
/* True: node n has joined, so that it may call. */
bool group_joined(unsigned n);
/* True: the group of node n has failed, or it has none. */
bool group_failed(unsigned n);
/* True: node n has to go on, since it has called fewer collectives than another node, or since it is joining and there
 * is no fault. */
bool group_behind(unsigned n);
/* Bytes of the result of the next collective of node n. */
uint32_t group_len(unsigned n);
/* Call it. Returns what the call returns. */
ssize_t group_call(struct op *op);
/* A collective has ended, with this error or 0. */
void group_ended(const struct op *op, int err);

#endif
