/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See link.h.
 */
#include "sim/link.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "sim/net.h"

#define CONNECT_NS	100000000000ULL		/* without a fault all are connected within this time */
#define STEP_NS		1000000ULL		/* passes are no further apart */
#define AGAIN_NS	10000000ULL		/* after a connect has failed, the next one is not before */
#define REJECTS		8			/* one in so many requests is rejected at will */
#define WORD		0x5e			/* what a node says when it rejects a request */

union event {
	struct fi_eq_cm_entry entry;
	uint8_t space[sizeof(struct fi_eq_cm_entry) + 16];	/* with the data of fi_connect() */
};

enum state { NONE, ASKING, ACCEPTED, UP, OVER };

struct end {
	enum state state;
	struct fid_ep *ep;		/* NULL: NONE */
	uint64_t again_ns;
	uint32_t up_cnt, accept_cnt;	/* connections that came up here, and that were accepted here */
};

static struct {
	struct link_node node;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct sockaddr_in addr;	/* also while the node is down */
	struct end to[NET_NODES];
} ends[NET_NODES];
static const struct program *program;
static const struct link_owner *owner;
static bool may_reject;

static void must(ssize_t ret, const char *call)
{
	if (ret)
		judge_wrong("%s: %s", call, fi_strerror((int) -ret));
}

/* A call about the connection of node n with node peer has returned ret. False: it failed, for a reason. */
static bool went_well(ssize_t ret, const char *call, unsigned n, unsigned peer)
{
	if (ret && !judge_doubts(n, peer))
		must(ret, call);
	return !ret;
}

void link_begin(const struct program *what, const struct link_owner *who)
{
	program = what;
	owner = who;
	may_reject = false;
	memset(ends, 0, sizeof(ends));
}

/* ---- endpoints ---- */

static void end_close(unsigned n, unsigned peer)
{
	struct end *end = &ends[n].to[peer];

	net_node(n);
	must(fi_close(&end->ep->fid), "fi_close of an endpoint");
	end->state = NONE;
	end->ep = NULL;
	end->again_ns = net_now_ns() + AGAIN_NS;
}

static bool end_bind(unsigned n, unsigned peer)
{
	const struct link_node *node = &ends[n].node;
	struct fid_ep *ep = ends[n].to[peer].ep;

	return went_well(fi_ep_bind(ep, &ends[n].eq->fid, 0), "fi_ep_bind", n, peer) &&
	       went_well(fi_ep_bind(ep, &node->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind", n, peer) &&
	       (!node->stx || went_well(fi_ep_bind(ep, &node->stx->fid, 0), "fi_ep_bind", n, peer)) &&
	       (!node->srx || went_well(fi_ep_bind(ep, &node->srx->fid, 0), "fi_ep_bind", n, peer));
}

/* Open the endpoint of node n for a connection with node peer. False: it cannot be had, for a reason. */
static bool end_open(unsigned n, unsigned peer, struct fi_info *info)
{
	struct end *end = &ends[n].to[peer];

	if (!went_well(fi_endpoint(ends[n].node.domain, info, &end->ep, NULL), "fi_endpoint", n, peer)) {
		end->ep = NULL;
		return false;
	}
	if (end_bind(n, peer) && went_well(fi_enable(end->ep), "fi_enable", n, peer))
		return true;
	end_close(n, peer);
	return false;
}

/* The info of an endpoint of node a that will ask node b. */
static struct fi_info *info_to(unsigned a, unsigned b)
{
	struct fi_info *info = fi_dupinfo(ends[a].node.info);

	if (!info)
		return NULL;
	free(info->src_addr);
	info->src_addr = NULL;
	info->src_addrlen = 0;
	info->dest_addrlen = sizeof(ends[b].addr);
	info->dest_addr = net_alloc(info->dest_addrlen);
	memcpy(info->dest_addr, &ends[b].addr, info->dest_addrlen);
	return info;
}

static void ask(unsigned a, unsigned b)
{
	struct fi_info *info;
	uint8_t who = (uint8_t) a;

	if (net_now_ns() < ends[a].to[b].again_ns)
		return;
	ends[a].to[b].again_ns = net_now_ns() + AGAIN_NS;
	net_node(a);
	info = info_to(a, b);
	if (!info || !end_open(a, b, info)) {
		fi_freeinfo(info);
		return;
	}
	if (went_well(fi_connect(ends[a].to[b].ep, info->dest_addr, &who, 1), "fi_connect", a, b))
		ends[a].to[b].state = ASKING;
	else
		end_close(a, b);
	fi_freeinfo(info);
}

/* ---- events ---- */

static void request(unsigned n, const union event *event)
{
	struct fi_info *info = event->entry.info;
	uint8_t who = event->entry.data[0], word = WORD;
	struct end *end = &ends[n].to[who];

	if (who >= n)
		judge_wrong("node %u gets the request of a node %u", n, who);
	if (end->ep || (may_reject && !net_random(REJECTS)) || !end_open(n, who, info)) {
		went_well(fi_reject(ends[n].pep, info->handle, &word, sizeof(word)), "fi_reject", n, who);
	} else {
		end->state = ACCEPTED;
		end->accept_cnt++;
		if (!went_well(fi_accept(end->ep, NULL, 0), "fi_accept", n, who))
			end_close(n, who);
	}
	fi_freeinfo(info);
}

static unsigned peer_of(unsigned n, const struct fid *fid)
{
	for (unsigned i = 0; i < NET_NODES; i++) {
		if (ends[n].to[i].ep && fid == &ends[n].to[i].ep->fid)
			return i;
	}
	judge_wrong("node %u: an event of an endpoint that it has not", n);
}

static void came_up(unsigned n, const struct fid *fid)
{
	unsigned peer = peer_of(n, fid);
	struct end *end = &ends[n].to[peer];

	if (end->state != ASKING && end->state != ACCEPTED)
		judge_wrong("node %u: FI_CONNECTED in state %d", n, end->state);
	if (++end->up_cnt > ends[peer].to[n].accept_cnt && n < peer)
		judge_wrong("node %u is connected, and node %u has not accepted", n, peer);
	end->state = UP;
}

static void went_down(unsigned n, const struct fid *fid, const char *event, bool was_up)
{
	unsigned peer = peer_of(n, fid);
	struct end *end = &ends[n].to[peer];

	if (was_up != (end->state == UP) || end->state == OVER)
		judge_wrong("node %u: %s in state %d", n, event, end->state);
	if (!judge_doubts(n, peer))
		judge_wrong("the connection of node %u with node %u ends without a reason", n, peer);
	end->state = OVER;
}

static void read_error(unsigned n)
{
	uint8_t word = 0;
	struct fi_eq_err_entry error = { .err_data = &word, .err_data_size = sizeof(word) };

	if (fi_eq_readerr(ends[n].eq, &error, 0) <= 0)
		judge_wrong("node %u: no error where fi_eq_read() has said so", n);
	if (error.err == FI_EOVERRUN) {
		if (!program->lack_memory)
			judge_wrong("the event queue of node %u is overrun", n);
		owner->overrun(n);
		return;
	}
	if (error.err_data_size && word != WORD)
		judge_wrong("node %u was rejected with other data", n);
	went_down(n, error.fid, "an error", false);
}

bool link_pass(unsigned n)
{
	union event event;
	uint32_t kind;
	ssize_t ret;

	net_node(n);
	ret = fi_eq_read(ends[n].eq, &kind, &event, sizeof(event), 0);
	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL)
		read_error(n);
	else if (ret == sizeof(event.entry) && kind == FI_SHUTDOWN)
		went_down(n, event.entry.fid, "FI_SHUTDOWN", true);
	else if (ret == sizeof(event.entry) && kind == FI_CONNECTED)
		came_up(n, event.entry.fid);
	else if (ret == sizeof(event.entry) + 1 && kind == FI_CONNREQ)
		request(n, &event);
	else
		judge_wrong("fi_eq_read of node %u returns %zd", n, ret);
	return true;
}

/* ---- all nodes ---- */

void link_open(unsigned n, const struct link_node *node)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	ends[n].node = *node;
	memcpy(&ends[n].addr, node->info->src_addr, sizeof(ends[n].addr));
	must(fi_eq_open(node->fabric, &attr, &ends[n].eq, NULL), "fi_eq_open");
	must(fi_passive_ep(node->fabric, node->info, &ends[n].pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(ends[n].pep, &ends[n].eq->fid, 0), "fi_pep_bind");
	must(fi_listen(ends[n].pep), "fi_listen");
}

void link_close(unsigned n)
{
	for (unsigned i = 0; i < NET_NODES; i++) {
		if (ends[n].to[i].ep)
			end_close(n, i);
	}
	must(fi_close(&ends[n].pep->fid), "fi_close of a passive endpoint");
	must(fi_close(&ends[n].eq->fid), "fi_close of an event queue");
}

static bool all_are_up(unsigned cnt)
{
	for (unsigned a = 0; a < cnt; a++) {
		for (unsigned b = 0; b < cnt; b++) {
			if (a != b && ends[a].to[b].state != UP)
				return false;
		}
	}
	return true;
}

void link_connect_all(unsigned cnt)
{
	uint64_t end_ns = net_now_ns() + CONNECT_NS, step_ns = 1000;

	for (unsigned b = 0; b < cnt; b++) {
		for (unsigned a = 0; a < b; a++)
			ask(a, b);
	}
	while (!all_are_up(cnt)) {
		uint64_t moved = net_moved();

		for (unsigned n = 0; n < cnt; n++)
			link_pass(n);
		step_ns = moved == net_moved() ? fab_min(2 * step_ns, STEP_NS) : 1000;
		net_pass_ns(step_ns);
		if (net_now_ns() > end_ns)
			judge_wrong("not all nodes are connected");
	}
	may_reject = program->faults;
}

void link_renew(unsigned n, unsigned peer)
{
	struct end *end = &ends[n].to[peer];

	if (end->state == OVER) {
		owner->closing(n, peer);
		/* the events that were read meanwhile may have ended this process */
		if (end->state == OVER)
			end_close(n, peer);
	} else if (end->state == NONE && n < peer) {
		ask(n, peer);
	}
}

void link_shutdown(unsigned n, unsigned peer)
{
	if (ends[n].to[peer].state == UP)
		went_well(fi_shutdown(ends[n].to[peer].ep, 0), "fi_shutdown", n, peer);
}

bool link_any(unsigned n)
{
	bool any = false;

	for (unsigned i = 0; i < NET_NODES; i++)
		any |= ends[n].to[i].ep != NULL;
	return any;
}

struct fid_ep *link_ep(unsigned a, unsigned b)
{
	return ends[a].to[b].state >= UP ? ends[a].to[b].ep : NULL;
}
