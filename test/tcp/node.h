/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An RDM endpoint on the loopback address, with all that it needs: its own fabric, domain, address vector and queue.
 */
#ifndef TEST_TCP_NODE_H
#define TEST_TCP_NODE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "base/unit.h"

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;		/* of FI_CQ_FORMAT_DATA, for both directions */
	struct fid_eq *eq;		/* with FI_COLLECTIVE; else NULL */
	struct fid_ep *ep;
	struct sockaddr_in addr;	/* that it listens at */
};

/* Of whom: "tcp", unless a test says otherwise. */
extern const char *node_provider;
/* How it makes progress: manual, unless a test says otherwise. */
extern enum fi_progress node_progress;
/* Open all of it; threading as of domain_attr (0: any). */
void node_open(struct node *node, uint64_t caps, enum fi_threading threading);
/* The same at this port, which must be free, and with a queue that has a descriptor. */
void node_open_at(struct node *node, uint64_t caps, uint16_t port);
/* The same with these FI_ORDER_* bits asked for, on both sides. False, and nothing is open: they are not offered. */
bool node_open_ordered(struct node *node, uint64_t caps, uint64_t msg_order);
/* Another endpoint in the place of one that was closed. */
void node_open_ep(struct node *node);
/* The same on the best interface, as a program gets it that does not name any. */
void node_open_best(struct node *node, uint64_t caps);
void node_close(struct node *node);
/* Have this process advertise what FI_TCP_ADVERTISE would say (NULL: nothing). list stays the caller's. */
void advertise(char *list);
/* Put an address into its address vector. */
fi_addr_t node_insert(struct node *node, const struct sockaddr_in *addr);

#endif
