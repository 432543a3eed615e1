/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A node: all that a process has opened, and the objects that its operations are posted to. A program has one kind of
 * these (enum contexts): an endpoint; the contexts of a scalable endpoint; or endpoints that share a transmit context
 * and a receive context. With MSG endpoints there is one for each peer (link.h).
 */
#ifndef TEST_SIM_NODE_H
#define TEST_SIM_NODE_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "sim/judge.h"

#define KEY		7			/* of a node's memory */
#define SLOTS_LEN	sizeof(((struct memory *) 0)->slots)
#define REGION_LEN	(SLOTS_LEN + offsetof(struct memory, cells.guard) - offsetof(struct memory, cells))

struct node {
	bool down;			/* killed, and not started again */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_mr *mr;
	struct fid_ep *sep, *srx;	/* with SCALABLE, and with SHARED; NULL otherwise */
	struct fid_stx *stx;
	struct fid_ep *tx[CONTEXTS], *rx[CONTEXTS];	/* for transmits and for receives; rx may be tx */
	fi_addr_t addr[NET_NODES][CONTEXTS];		/* of the receive contexts of each node */
};

extern struct node nodes[NET_NODES];

void node_begin(const struct program *program);
/* Open node n, which has all that it needs meanwhile. */
void node_start(unsigned n);
void node_close(unsigned n);

/* The object that an operation is posted to. NULL: there is no connection. */
struct fid_ep *node_ep_of(const struct op *op);
/* The address that an operation goes to. */
fi_addr_t node_dest(const struct op *op);
/* The source that a receive is for. */
fi_addr_t node_source(const struct op *op);
/* The node with this address at node n; NET_NODES: none. */
unsigned node_at(unsigned n, fi_addr_t addr);

#endif
