/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See link.h.
 */
#include "sim/link.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "sim/net.h"

#define CONNECT_NS	100000000000ULL		/* all are connected within this time */
#define STEP_NS		1000000ULL		/* passes are no further apart */

union event {
	struct fi_eq_cm_entry entry;
	uint8_t space[sizeof(struct fi_eq_cm_entry) + 16];	/* with the data of fi_connect() */
};

static struct {
	struct link_node node;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_ep *to[NET_NODES];
	bool over[NET_NODES];		/* this end knows that the connection has ended */
} ends[NET_NODES];

static void must(ssize_t ret, const char *call)
{
	if (ret)
		judge_wrong("%s: %s", call, fi_strerror((int) -ret));
}

void link_open(unsigned n, const struct link_node *node)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	memset(&ends[n], 0, sizeof(ends[n]));
	ends[n].node = *node;
	must(fi_eq_open(node->fabric, &attr, &ends[n].eq, NULL), "fi_eq_open");
	must(fi_passive_ep(node->fabric, node->info, &ends[n].pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(ends[n].pep, &ends[n].eq->fid, 0), "fi_pep_bind");
	must(fi_listen(ends[n].pep), "fi_listen");
}

static struct fid_ep *ep_open(unsigned n, struct fi_info *info)
{
	struct fid_ep *ep;

	must(fi_endpoint(ends[n].node.domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &ends[n].eq->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &ends[n].node.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	return ep;
}

static void ask(unsigned a, unsigned b)
{
	struct fi_info *info = fi_dupinfo(ends[a].node.info);
	const struct fi_info *other = ends[b].node.info;
	uint8_t who = (uint8_t) a;

	free(info->src_addr);
	info->src_addr = NULL;
	info->src_addrlen = 0;
	info->dest_addr = malloc(other->src_addrlen);
	info->dest_addrlen = other->src_addrlen;
	memcpy(info->dest_addr, other->src_addr, other->src_addrlen);
	net_node(a);
	ends[a].to[b] = ep_open(a, info);
	must(fi_connect(ends[a].to[b], info->dest_addr, &who, 1), "fi_connect");
	fi_freeinfo(info);
}

static void accept_from(unsigned n, const union event *event)
{
	uint8_t who = event->entry.data[0];

	if (who >= n || ends[n].to[who])
		judge_wrong("node %u gets the request of a node %u", n, who);
	ends[n].to[who] = ep_open(n, event->entry.info);
	fi_freeinfo(event->entry.info);
	must(fi_accept(ends[n].to[who], NULL, 0), "fi_accept");
}

/* A connection of node n is over: there has to be a reason. */
static void note_end(unsigned n, const struct fid *fid)
{
	for (unsigned i = 0; i < NET_NODES; i++) {
		if (!ends[n].to[i] || fid != &ends[n].to[i]->fid)
			continue;
		if (!judge_doubts(n, i))
			judge_wrong("the connection of node %u with node %u ends without a reason", n, i);
		ends[n].over[i] = true;
		return;
	}
	judge_wrong("node %u: the end of a connection that it has not", n);
}

/* Read an event. Returns the number of connections that it says are up. connects: requests may come. */
static unsigned read_event(unsigned n, bool connects)
{
	struct fi_eq_err_entry error = { 0 };
	union event event;
	uint32_t kind;
	ssize_t ret;

	net_node(n);
	ret = fi_eq_read(ends[n].eq, &kind, &event, sizeof(event), 0);
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL && fi_eq_readerr(ends[n].eq, &error, 0) > 0)
		note_end(n, error.fid);
	else if (ret == sizeof(event.entry) && kind == FI_SHUTDOWN)
		note_end(n, event.entry.fid);
	else if (ret == sizeof(event.entry) && kind == FI_CONNECTED && connects)
		return 1;
	else if (ret == sizeof(event.entry) + 1 && kind == FI_CONNREQ && connects)
		accept_from(n, &event);
	else
		judge_wrong("fi_eq_read of node %u returns %zd", n, ret);
	return 0;
}

/* Let time pass until so many ends of connections have come up, among all nodes. */
static void connect_ends(unsigned cnt, unsigned wanted)
{
	uint64_t end_ns = net_now_ns() + CONNECT_NS, step_ns = 1000;
	unsigned up = 0;

	while (up < wanted) {
		uint64_t moved = net_moved();

		for (unsigned n = 0; n < cnt; n++)
			up += read_event(n, true);
		step_ns = moved == net_moved() ? fab_min(2 * step_ns, STEP_NS) : 1000;
		net_pass_ns(step_ns);
		if (net_now_ns() > end_ns)
			judge_wrong("%u of %u ends of connections are up", up, wanted);
	}
}

void link_connect_all(unsigned cnt)
{
	for (unsigned b = 0; b < cnt; b++) {
		for (unsigned a = 0; a < b; a++)
			ask(a, b);
	}
	connect_ends(cnt, cnt * (cnt - 1));
}

static void close_end(unsigned n, unsigned peer)
{
	net_node(n);
	must(fi_close(&ends[n].to[peer]->fid), "fi_close of an endpoint");
	ends[n].to[peer] = NULL;
	ends[n].over[peer] = false;
}

void link_mend(unsigned cnt, void (*closing)(unsigned n, unsigned peer))
{
	for (unsigned b = 0; b < cnt; b++) {
		for (unsigned a = 0; a < b; a++) {
			if (ends[a].over[b]) {
				closing(a, b);
				close_end(a, b);
			}
			if (ends[b].over[a]) {
				closing(b, a);
				close_end(b, a);
			}
			if (ends[a].to[b] || ends[b].to[a])
				continue;
			ask(a, b);
			connect_ends(cnt, 2);
		}
	}
}

struct fid_ep *link_ep(unsigned a, unsigned b)
{
	return ends[a].to[b];
}

void link_pass(unsigned n)
{
	read_event(n, false);
}

void link_close(unsigned n)
{
	for (unsigned i = 0; i < NET_NODES; i++) {
		if (ends[n].to[i])
			must(fi_close(&ends[n].to[i]->fid), "fi_close of an endpoint");
	}
	must(fi_close(&ends[n].pep->fid), "fi_close of a passive endpoint");
	must(fi_close(&ends[n].eq->fid), "fi_close of an event queue");
}
