/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See datagram.h.
 */
#include "sim/datagram.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "base/addr.h"
#include "base/bits.h"
#include "sim/net.h"

#define PORT		12000
#define GROUP_PORT	13000
#define TO_GROUP	NET_NODES		/* op->peer of a message to the group */
#define MESSAGE_MAX	65507
#define SETTLE_NS	400000000000ULL		/* after the faults, everything ends within this time */
#define PIECES		2
#define FEW		4			/* of operations that may be outstanding, in some programs */
#define MANY		1024

struct node {
	bool down;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_ep *ep;
	struct fid_mc *mc;		/* the group; NULL: it has not joined */
	bool joining;			/* the event of the join is not read yet */
	fi_addr_t addr[NET_NODES];	/* FI_ADDR_NOTAVAIL: it does not know that node */
	uint32_t posted[2];		/* sends and receives that have not ended */
	uint32_t last[2];		/* the latest one that has ended without a cancel, + 1 */
	uint32_t taken, received;	/* datagrams: from the kernel, and by completions */
};

static const struct program *program;
static struct node nodes[NET_NODES];
static bool was_down[NET_NODES];	/* at any time */
static bool lacks;			/* memory */
/* By the number of a send: datagrams that the kernel got; and by node, that were taken from it, and that completed a
 * receive. */
static uint32_t given[OPS], taken[NET_NODES][OPS], received[NET_NODES][OPS];

static void must(ssize_t ret, const char *call)
{
	if (ret)
		judge_wrong("%s: %s", call, fi_strerror((int) -ret));
}

#define MUST(call) must(call, #call)

/* ---- nodes ---- */

static size_t op_max(void)
{
	return program->seed % 2 ? FEW : MANY;
}

static struct fi_info *ask_info(unsigned n)
{
	const char *host = program->ipv6 ? "::1" : "127.0.0.1";
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	char service[8];
	int ret;

	snprintf(service, sizeof(service), "%u", PORT + n);
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->addr_format = program->ipv6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	hints->caps = FI_MSG | FI_SOURCE | (program->strangers ? FI_SOURCE_ERR : 0) |
		      (program->group ? FI_MULTICAST : 0);
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup("udp");
	ret = fi_getinfo(FI_VERSION(2, 6), host, service, FI_SOURCE, hints, &info);
	fi_freeinfo(hints);
	must(ret, "fi_getinfo");
	return info;
}

static union fab_sockaddr address_of(unsigned n)
{
	union fab_sockaddr addr = { 0 };

	if (program->ipv6)
		addr.sin6 = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	else
		addr.sin = (struct sockaddr_in) {
			.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		};
	fab_addr_set_port(&addr.sa, (uint16_t) (PORT + n));
	return addr;
}

static union fab_sockaddr group_address(void)
{
	union fab_sockaddr addr = { 0 };

	if (program->ipv6)
		addr.sin6 = (struct sockaddr_in6) {
			.sin6_family = AF_INET6, .sin6_addr = { .s6_addr = { 0xff, 0x15, [15] = 1 } },
		};
	else
		addr.sin = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010203) };
	fab_addr_set_port(&addr.sa, GROUP_PORT);
	return addr;
}

/* From now on this node knows node i; or, where there is no memory, still not. */
static void know(struct node *node, unsigned i)
{
	union fab_sockaddr addr = address_of(i);

	if (fi_av_insert(node->av, &addr, 1, &node->addr[i], 0, NULL) == 1)
		return;
	if (!lacks)
		judge_wrong("fi_av_insert");
	node->addr[i] = FI_ADDR_NOTAVAIL;
}

static void insert_all(struct node *node)
{
	for (unsigned i = 0; i < program->nodes; i++) {
		node->addr[i] = FI_ADDR_NOTAVAIL;
		if (!program->strangers || net_random(2))
			know(node, i);
	}
}

/* Join the group; nothing else than a lack prevents that. */
static void join(struct node *node)
{
	union fab_sockaddr addr = group_address();
	int ret = fi_join(node->ep, &addr, 0, &node->mc, NULL);

	node->joining = !ret;
	if (ret)
		node->mc = NULL;
	if (ret && ret != -FI_ENOBUFS && !(program->lack_memory && (ret == -FI_ENOMEM || ret == -FI_EOVERRUN)))
		judge_wrong("fi_join: %s", fi_strerror(-ret));
}

static void leave(struct node *node)
{
	if (node->mc)
		MUST(fi_close(&node->mc->fid));
	node->mc = NULL;
	node->joining = false;
}

static void start(unsigned n)
{
	static struct fi_info *infos[NET_NODES][8];
	unsigned kind = program->ipv6 | program->group << 1 | program->strangers << 2;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct node *node = &nodes[n];

	net_lack_memory(0);
	net_node(n);
	*node = (struct node) { 0 };
	if (!infos[n][kind])
		infos[n][kind] = ask_info(n);
	node->info = fi_dupinfo(infos[n][kind]);
	node->info->tx_attr->size = node->info->rx_attr->size = op_max();
	MUST(fi_fabric(node->info->fabric_attr, &node->fabric, NULL));
	MUST(fi_domain(node->fabric, node->info, &node->domain, NULL));
	MUST(fi_cq_open(node->domain, &cq_attr, &node->cq, NULL));
	MUST(fi_eq_open(node->fabric, &eq_attr, &node->eq, NULL));
	MUST(fi_av_open(node->domain, &av_attr, &node->av, NULL));
	MUST(fi_endpoint(node->domain, node->info, &node->ep, NULL));
	MUST(fi_ep_bind(node->ep, &node->av->fid, 0));
	MUST(fi_ep_bind(node->ep, &node->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_ep_bind(node->ep, &node->eq->fid, 0));
	MUST(fi_enable(node->ep));
	insert_all(node);
	if (program->group)
		join(node);
	net_lack_memory(lacks ? program->lack_memory : 0);
}

static void node_close(unsigned n)
{
	struct node *node = &nodes[n];

	net_node(n);
	node->down = true;
	leave(node);
	MUST(fi_close(&node->ep->fid));
	MUST(fi_close(&node->av->fid));
	MUST(fi_close(&node->eq->fid));
	MUST(fi_close(&node->cq->fid));
	MUST(fi_close(&node->domain->fid));
	MUST(fi_close(&node->fabric->fid));
	fi_freeinfo(node->info);
}

static void stop(unsigned n)
{
	if (nodes[n].down)
		return;
	was_down[n] = true;
	net_node(n);
	net_kill(n);
	node_close(n);
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (ops[i].node != n || ops[i].gone)
			continue;
		ops[i].gone = true;
		op_free(&ops[i]);
	}
}

/* ---- the judge ---- */

/* The kernel got a datagram of this node, or the node took it. */
static void note_datagram(enum net_fate fate, unsigned n, const uint8_t *buf, size_t len)
{
	uint32_t id;

	if (len < sizeof(id))
		judge_wrong("node %u: a datagram of %zu bytes", n, len);
	memcpy(&id, buf, sizeof(id));
	/* the one that is being posted, too */
	if (id > op_cnt || ops[id].kind != ACT_SEND)
		judge_wrong("node %u: a datagram of no send", n);
	if (fate == NET_READ) {
		taken[n][id]++;
		nodes[n].taken++;
	} else if (ops[id].node != n || ops[id].len != len || given[id]++) {
		judge_wrong("send %u gives the kernel another datagram, or one twice", id);
	}
}

/* A datagram is in a receive. */
static void took(const struct op *recv, const struct ending *ending)
{
	uint64_t len = ending->len + ending->olen;
	const struct node *node = &nodes[recv->node];
	const struct op *send;
	uint32_t id;

	nodes[recv->node].received++;
	if (ending->len < LEN_MIN || ending->len > recv->len)
		judge_wrong("receive %u: a message of %zu bytes", op_id(recv), (size_t) ending->len);
	memcpy(&id, recv->buf, sizeof(id));
	if (id >= op_cnt || ops[id].kind != ACT_SEND ||
	    (ops[id].peer != recv->node && ops[id].peer != TO_GROUP))
		judge_wrong("receive %u: bytes that nobody has sent to it", op_id(recv));
	send = &ops[id];
	if (len != send->len || !op_is_filled(recv->buf, id, (uint32_t) ending->len))
		judge_wrong("receive %u: message %u has other bytes or another length", op_id(recv), id);
	if (!ending->olen != (ending->err != FI_ETRUNC) || (ending->olen && ending->len != recv->len))
		judge_wrong("receive %u: message %u is cut off otherwise than FI_ETRUNC says", op_id(recv), id);
	if (!(ending->flags & FI_MULTICAST) != (send->peer != TO_GROUP))
		judge_wrong("receive %u: message %u was not sent to the group, or was", op_id(recv), id);
	if (!ending->err && ending->src != node->addr[send->node])
		judge_wrong("receive %u: message %u is not from there", op_id(recv), id);
	if (program->strangers && ending->err != FI_ETRUNC &&
	    !ending->err != (node->addr[send->node] != FI_ADDR_NOTAVAIL))
		judge_wrong("receive %u: the sender of message %u is known, or is not", op_id(recv), id);
	if (++received[recv->node][id] > taken[recv->node][id])
		judge_wrong("message %u was received more often than it came", id);
}

static bool may_fail(const struct op *op, int err)
{
	if (op->kind == ACT_RECV && (err == FI_ETRUNC || (program->strangers && err == FI_EADDRNOTAVAIL)))
		return true;
	return op->cancelled && err == FI_ECANCELED;
}

static void ended(struct op *op, const struct ending *ending)
{
	uint32_t *last;
	bool recv;

	if (op < ops || op >= ops + op_cnt || !op->posted || op->gone || op->ended)
		judge_wrong("a completion of nothing that is posted");
	recv = op->kind == ACT_RECV;
	last = &nodes[op->node].last[recv];
	net_event((uint64_t) op_id(op) << 8 ^ (uint64_t) ending->err);
	if (ending->err && !may_fail(op, ending->err))
		judge_wrong("operation %u fails without a reason: %s", op_id(op), fi_strerror(ending->err));
	if (ending->err != FI_ECANCELED) {
		if (*last > op_id(op))
			judge_wrong("operation %u ends after %u, which was posted later", op_id(op), *last - 1);
		*last = op_id(op) + 1;
		if (recv)
			took(op, ending);
	}
	if (!recv && given[op_id(op)] != !ending->err)
		judge_wrong("send %u ends (%s), and the kernel got %u datagrams", op_id(op), fi_strerror(ending->err),
			    given[op_id(op)]);
	op_check_guard(op);
	op->ended = true;
	nodes[op->node].posted[recv]--;
	op_free(op);
}

/* The network has said that a datagram did not arrive: then its receiver was away. */
static void read_event(unsigned n)
{
	union fab_sockaddr to = { 0 };
	struct fi_eq_err_entry error = { .err_data = &to, .err_data_size = sizeof(to) };
	struct fi_eq_entry entry;
	uint32_t kind;
	ssize_t ret = fi_eq_read(nodes[n].eq, &kind, &entry, sizeof(entry), 0);
	unsigned peer;

	if (ret == -FI_EAGAIN)
		return;
	if (ret == sizeof(entry) && kind == FI_JOIN_COMPLETE && nodes[n].joining && entry.fid == &nodes[n].mc->fid) {
		nodes[n].joining = false;
		return;
	}
	if (ret != -FI_EAVAIL || fi_eq_readerr(nodes[n].eq, &error, 0) <= 0)
		judge_wrong("fi_eq_read of node %u returns %zd", n, ret);
	if (error.err == FI_EOVERRUN && program->lack_memory)
		return;		/* an event was lost for lack of memory */
	peer = (unsigned) fab_addr_port(&to.sa) - PORT;
	if (error.fid != &nodes[n].ep->fid || error.err != FI_ECONNREFUSED ||
	    error.err_data_size != fab_addr_len(&to.sa) ||
	    peer >= program->nodes || !was_down[peer])
		judge_wrong("node %u: an event about a node that was not away: %s", n, fi_strerror(error.err));
}

/* ---- calls ---- */

/* The error of a receive from a node that is not known says who that is. */
static void check_stranger(const struct op *recv, const union fab_sockaddr *from)
{
	union fab_sockaddr want;
	uint32_t id;

	memcpy(&id, recv->buf, sizeof(id));
	if (id >= op_cnt)
		judge_wrong("receive %u: bytes that nobody has sent", op_id(recv));
	want = address_of(ops[id].node);
	if (!fab_addr_equal(&from->sa, &want.sa))
		judge_wrong("receive %u: the sender of message %u has another address", op_id(recv), id);
}

static void read_error(unsigned n)
{
	union fab_sockaddr from = { 0 };
	struct fi_cq_err_entry entry = { .err_data = &from, .err_data_size = sizeof(from) };

	if (fi_cq_readerr(nodes[n].cq, &entry, 0) != 1)
		judge_wrong("no error where fi_cq_read() has said so");
	if (entry.err == FI_EOVERRUN && program->lack_memory) {
		/* completions are lost, perhaps before memory was there again: for its program that is the end */
		stop(n);
		start(n);
		return;
	}
	/* without memory an error has no data */
	if (entry.err == FI_EADDRNOTAVAIL && (entry.err_data_size || !program->lack_memory))
		check_stranger(entry.op_context, &from);
	ended(entry.op_context, &(struct ending) {
		.err = entry.err, .len = entry.len, .olen = entry.olen, .flags = entry.flags,
	});
}

static bool act_pass(unsigned n)
{
	struct fi_cq_msg_entry entries[4];
	fi_addr_t srcs[4];
	ssize_t ret;

	if (nodes[n].down)
		return false;
	net_node(n);
	read_event(n);
	ret = fi_cq_readfrom(nodes[n].cq, entries, 4, srcs);
	if (ret == -FI_EAVAIL) {
		read_error(n);
		return true;
	}
	for (ssize_t i = 0; i < ret; i++)
		ended(entries[i].op_context, &(struct ending) {
			.len = entries[i].len, .src = srcs[i], .flags = entries[i].flags,
		});
	if (ret < 0 && ret != -FI_EAGAIN)
		judge_wrong("fi_cq_read: %s", fi_strerror((int) -ret));
	return ret > 0;
}

static struct op *op_new(uint8_t kind, unsigned n, unsigned peer, uint32_t len)
{
	struct op *op = &ops[op_cnt];

	if (op_cnt == OPS)
		judge_wrong("the simulator has too few operations");
	*op = (struct op) { .kind = kind, .node = (uint8_t) n, .peer = (uint8_t) peer, .len = len };
	op->buf = net_alloc(len + GUARD_LEN);
	memset(op->buf + len, 0xa5, GUARD_LEN);
	return op;
}

/* The call has returned ret. Only a queue that is full refuses an operation; inject: or a full socket. */
static void op_called(struct op *op, ssize_t ret, bool inject)
{
	bool recv = op->kind == ACT_RECV, full = inject || nodes[op->node].posted[recv] >= op_max();
	bool good = !ret || (ret == -FI_EAGAIN && full) || (ret == -FI_ENOMEM && lacks) ||
		    (ret == -FI_EMSGSIZE && op->len > MESSAGE_MAX);

	if (!good || (!ret && op->len > MESSAGE_MAX && !recv))
		judge_wrong("a call of node %u returns %s", op->node, fi_strerror((int) -ret));
	if (ret && given[op_cnt])
		judge_wrong("a send is refused, and the kernel has its datagram");
	if (!ret && inject && !given[op_cnt])
		judge_wrong("an inject has not given its datagram to the kernel");
	if (ret || inject)
		op_free(op);
	if (ret)
		return;
	op->posted = true;
	op->ended = inject;
	nodes[op->node].posted[recv] += !inject;
	op_cnt++;
}

/* A message to the group. It has gone to the kernel by the call, or is queued. */
static void act_send_all(const struct action *action)
{
	struct node *node = &nodes[action->a];
	struct op *op = op_new(ACT_SEND, action->a, TO_GROUP, action->c);
	struct iovec iov = { op->buf, op->len };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = fi_mc_addr(node->mc), .context = op };

	op_fill(op->buf, op_cnt, op->len);
	op_called(op, fi_sendmsg(node->ep, &msg, FI_MULTICAST | (action->d == FENCED ? FI_MORE : 0)), false);
}

static void act_send(const struct action *action)
{
	struct node *node = &nodes[action->a];
	struct op *op = op_new(ACT_SEND, action->a, action->b, action->c);
	uint32_t half = op_cnt % 3 ? 0 : op->len / 2;
	struct iovec iov[PIECES] = { { op->buf, half }, { op->buf + half, op->len - half } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = PIECES, .addr = node->addr[action->b], .context = op };

	op_fill(op->buf, op_cnt, op->len);
	if (action->d == INJECT)
		op_called(op, fi_inject(node->ep, op->buf, op->len, msg.addr), true);
	else if (action->d == FENCED)
		op_called(op, fi_sendmsg(node->ep, &msg, FI_MORE), false);
	else if (half)
		op_called(op, fi_sendv(node->ep, iov, NULL, PIECES, msg.addr, op), false);
	else
		op_called(op, fi_send(node->ep, op->buf, op->len, NULL, msg.addr, op), false);
}

static void post_recv(unsigned n, uint32_t len)
{
	struct op *op = op_new(ACT_RECV, n, n, len);
	uint32_t half = op_cnt % 3 ? 0 : op->len / 2;
	struct iovec iov[PIECES] = { { op->buf, half }, { op->buf + half, op->len - half } };

	if (half)
		op_called(op, fi_recvv(nodes[n].ep, iov, NULL, PIECES, FI_ADDR_UNSPEC, op), false);
	else
		op_called(op, fi_recv(nodes[n].ep, op->buf, op->len, NULL, FI_ADDR_UNSPEC, op), false);
}

static void cancel(struct op *op)
{
	net_node(op->node);
	op->cancelled = true;
	MUST((int) fi_cancel(&nodes[op->node].ep->fid, op));
}

static void act_cancel(const struct action *action)
{
	uint32_t left = action->b;

	for (uint32_t i = 0; i < op_cnt; i++) {
		struct op *op = &ops[i];

		if (op->node != action->a || op->ended || op->gone || (op->kind == ACT_SEND) != action->d)
			continue;
		if (left--)
			continue;
		cancel(op);
		return;
	}
}

static void act_send_to(const struct action *action)
{
	const struct node *node = &nodes[action->a];

	if (action->b == TO_GROUP && node->mc)
		act_send_all(action);
	else if (action->b < program->nodes && node->addr[action->b] != FI_ADDR_NOTAVAIL)
		act_send(action);
}

/* Forget a node, or know it again. What has completed before is read first, as it names sources. */
static void act_know(struct node *node, unsigned n, unsigned i)
{
	while (act_pass(n))
		continue;
	net_node(n);
	if (node->addr[i] == FI_ADDR_NOTAVAIL) {
		know(node, i);
		return;
	}
	MUST(fi_av_remove(node->av, &node->addr[i], 1, 0));
	node->addr[i] = FI_ADDR_NOTAVAIL;
}

static void act(const struct action *action)
{
	switch (action->kind) {
	case ACT_TIME:
		net_pass_ns(action->c);
		return;
	case ACT_CUT:
		net_cut(action->a, action->b, action->c);
		return;
	case ACT_START:
		if (nodes[action->a].down)
			start(action->a);
		return;
	case ACT_STOP:
		stop(action->a);
		return;
	case ACT_RESTART:
		stop(action->a);
		start(action->a);
		return;
	case ACT_PASS:
		act_pass(action->a);
		return;
	}
	if (nodes[action->a].down)
		return;
	net_node(action->a);
	if (action->kind == ACT_SEND)
		act_send_to(action);
	else if (action->kind == ACT_KNOW)
		act_know(&nodes[action->a], action->a, action->b);
	else if (action->kind == ACT_JOIN && nodes[action->a].mc)
		leave(&nodes[action->a]);
	else if (action->kind == ACT_JOIN)
		join(&nodes[action->a]);
	else if (action->kind == ACT_RECV)
		post_recv(action->a, action->c);
	else
		act_cancel(action);
}

/* ---- the end ---- */

static bool is_open(uint8_t kind)
{
	bool any = false;

	for (unsigned n = 0; n < program->nodes; n++)
		any |= nodes[n].posted[kind == ACT_RECV];
	return any;
}

static void run_all(uint64_t end_ns, const char *what)
{
	bool any = false;
	uint64_t wait_ns;

	for (unsigned n = 0; n < program->nodes; n++)
		any |= act_pass(n);
	wait_ns = net_next_ns() == UINT64_MAX ? 1000000 : net_next_ns() - fab_min(net_next_ns(), net_now_ns());
	net_pass_ns(any ? 1000 : fab_max(wait_ns, (uint64_t) 1000));
	if (net_now_ns() > end_ns)
		judge_wrong("after the faults %s", what);
}

/* All sends end, and what is on its way comes into receives. Then the receives that are left are cancelled. */
static void settle(void)
{
	uint64_t end_ns = net_now_ns() + SETTLE_NS;

	net_heal();
	lacks = false;
	for (unsigned n = 0; n < program->nodes; n++) {
		if (nodes[n].down)
			start(n);
	}
	while (is_open(ACT_SEND) || net_datagrams()) {
		for (unsigned n = 0; n < program->nodes; n++) {
			net_node(n);
			if (!nodes[n].posted[1])
				post_recv(n, SLOT_LEN);
		}
		run_all(end_ns, "a send does not end, or a datagram is not received");
	}
	for (unsigned n = 0; n < program->nodes; n++) {
		while (act_pass(n))
			continue;
	}
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (!ops[i].ended && !ops[i].gone)
			cancel(&ops[i]);
	}
	while (is_open(ACT_RECV))
		run_all(end_ns, "a cancelled receive does not end");
	for (unsigned n = 0; n < program->nodes; n++) {
		if (nodes[n].taken != nodes[n].received)
			judge_wrong("node %u took %u datagrams, and %u completed a receive", n, nodes[n].taken,
				    nodes[n].received);
	}
}

void datagram_play(const struct program *what)
{
	program = what;
	memset(was_down, 0, sizeof(was_down));
	memset(given, 0, sizeof(given));
	memset(taken, 0, sizeof(taken));
	memset(received, 0, sizeof(received));
	lacks = program->lack_memory;
	net_watch_datagrams(note_datagram);
	for (unsigned n = 0; n < program->nodes; n++)
		start(n);
	for (uint32_t i = 0; i < program->cnt; i++)
		act(&program->actions[i]);
	settle();
	for (unsigned n = 0; n < program->nodes; n++)
		node_close(n);
}
