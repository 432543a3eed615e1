/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Nodes that are connected by MSG endpoints: a connection for each pair of them, fi_cm(3). The node with the lower
 * number asks, the other one listens, and accepts unless it has an endpoint of an earlier connection, whose end it does
 * not know yet: then it rejects, and sometimes at will. An end whose connection is over is closed, and made anew, when
 * link_renew() is called.
 *
 *   NONE --fi_connect--> ASKING --FI_CONNECTED--> UP --FI_SHUTDOWN--> OVER --renewed--> NONE
 *        --fi_accept--> ACCEPTED --^       ASKING, ACCEPTED --error event--^
 *
 * No other event of an endpoint is legal, and each end of a connection has to have a reason.
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
	struct fid_stx *stx;		/* of all endpoints; NULL: each has its own contexts */
	struct fid_ep *srx;
};

struct link_owner {
	/* An endpoint of node n that leads to node peer is about to be closed. */
	void (*closing)(unsigned n, unsigned peer);
	/* Events of node n are lost, for lack of memory. */
	void (*overrun)(unsigned n);
};

/* At the beginning of a program. owner: borrowed. */
void link_begin(const struct program *program, const struct link_owner *owner);
/* Open an event queue, and listen at the source address of node->info. */
void link_open(unsigned n, const struct link_node *node);
void link_close(unsigned n);
/* Connect all nodes, 0 to cnt - 1, each of which listens. Time passes. */
void link_connect_all(unsigned cnt);
/* The endpoint of node a whose connection leads, or led, to node b, which is another one. NULL: there is none. */
struct fid_ep *link_ep(unsigned a, unsigned b);
/* True if node n has an endpoint. */
bool link_any(unsigned n);
/* Read an event of node n. False: there was none. */
bool link_pass(unsigned n);
/* Node n: close an endpoint whose connection with node peer is over; if there is none, ask for one. */
void link_renew(unsigned n, unsigned peer);
/* Node n ends its connection with node peer, if it is up. */
void link_shutdown(unsigned n, unsigned peer);

#endif
