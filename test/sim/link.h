/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Nodes that are connected by MSG endpoints: a connection for each pair of them, fi_cm(3). The node with the lower
 * number asks, the other one listens. No fault happens until all are connected. A connection that a fault has ended is
 * made again, with new endpoints: an end that knows closes its own, and the other one learns of that.
 */
#ifndef TEST_SIM_LINK_H
#define TEST_SIM_LINK_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "sim/judge.h"

/* What a node has opened; borrowed. */
struct link_node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
};

/* Open an event queue, and listen at the source address of node->info. */
void link_open(unsigned n, const struct link_node *node);
/* Connect all nodes, 0 to cnt - 1, each of which listens. Time passes. */
void link_connect_all(unsigned cnt);
/* The endpoint of node a whose connection leads to node b, which is another one; NULL: it is over, and closed. */
struct fid_ep *link_ep(unsigned a, unsigned b);
/* Read an event of node n: there is none but the end of a connection, for which there is a reason. */
void link_pass(unsigned n);
/* Close the ends of connections that are over, and connect nodes anew of which neither has an end. Time passes. No cut
 * is left. closing: called before an endpoint of node n is closed. */
void link_mend(unsigned cnt, void (*closing)(unsigned n, unsigned peer));
void link_close(unsigned n);

#endif
