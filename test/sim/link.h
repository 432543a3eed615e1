/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Nodes that are connected by MSG endpoints: a connection for each pair of them, fi_cm(3). The node with the lower
 * number asks, the other one listens. No fault happens until all are connected.
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
/* The endpoint of node a whose connection leads to node b, which is another one. */
struct fid_ep *link_ep(unsigned a, unsigned b);
/* Read the events of node n: there must be none. */
void link_pass(unsigned n);
void link_close(unsigned n);

#endif
