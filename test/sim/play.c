/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See play.h.
 */
#include "sim/play.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "base/bits.h"
#include "seeds/seeds.h"
#include "sim/net.h"
#include "tcp/params/params.h"

#define PORT		10000
#define OPS		(ACTIONS_MAX + 4096)
#define SLOTS		4
#define SLOT_LEN	100000
#define KEY		7
#define LEN_MIN		sizeof(uint32_t)	/* a message begins with the number of its operation */
#define SETTLE_NS	400000000000ULL		/* after the faults, everything ends within this time */
#define QUIET_NS	500000000ULL		/* where nothing moves for so long, nothing will */

struct op {
	uint8_t kind;			/* enum action_kind */
	uint8_t node, peer, way;
	bool posted, ended, gone;	/* gone: its process was killed */
	int err;
	uint32_t life, len, tag, ignore, slot;
	uint32_t seq;			/* of its node, for sends: of its node and peer; order of the calls */
	uint32_t got;			/* receive: the send that it took, + 1. Send: the receive, + 1 */
	uint8_t *buf;
};

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t addr[NET_NODES];
	uint32_t life, seq;
	/* slots that each node writes; and a number that it adds to */
	uint8_t (*region)[SLOTS][SLOT_LEN];
	uint64_t *sums;
};

/* What a node knows of its slot at another. */
struct slot {
	uint32_t writer;		/* the operation whose bytes are there, + 1 */
	bool unknown, busy;
};

static struct op ops[OPS];
static uint32_t op_cnt;
static uint32_t open_cnt;		/* operations that have not ended, other than receives */
static uint32_t takers[NET_NODES][2];	/* a receive that takes every message, + 1; a tagged one */
static struct node nodes[NET_NODES];
static struct slot slots[NET_NODES][NET_NODES][SLOTS];
static uint64_t sums[NET_NODES][NET_NODES];
static bool sum_busy[NET_NODES][NET_NODES], sum_unknown[NET_NODES][NET_NODES];
static bool unsure[NET_NODES][NET_NODES];	/* a fault may have failed operations between them */
static unsigned node_cnt;
static uint32_t lack;			/* one in so many sockets cannot be had */
static jmp_buf failed;
static char why[512];

static _Noreturn void __attribute__((format(printf, 1, 2))) wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	longjmp(failed, 1);
}

static void must(int ret, const char *call)
{
	if (ret)
		wrong("%s: %s", call, fi_strerror(-ret));
}

#define MUST(call) must(call, #call)

/* ---- nodes ---- */

static struct sockaddr_in address_of(unsigned n)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET, .sin_port = htons((uint16_t) (PORT + n)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static void node_info(struct node *node, unsigned n)
{
	struct fi_info *hints = fi_allocinfo();
	char service[8];
	int ret;

	snprintf(service, sizeof(service), "%u", PORT + n);
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup("tcp");
	ret = fi_getinfo(FI_VERSION(2, 6), "127.0.0.1", service, FI_SOURCE, hints, &node->info);
	fi_freeinfo(hints);
	must(ret, "fi_getinfo");
}

static void node_open(unsigned n)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct node *node = &nodes[n];

	net_node(n);
	node_info(node, n);
	node->region = calloc(NET_NODES, sizeof(*node->region));
	node->sums = calloc(NET_NODES, sizeof(*node->sums));
	MUST(fi_fabric(node->info->fabric_attr, &node->fabric, NULL));
	MUST(fi_domain(node->fabric, node->info, &node->domain, NULL));
	MUST(fi_av_open(node->domain, &av_attr, &node->av, NULL));
	MUST(fi_cq_open(node->domain, &cq_attr, &node->cq, NULL));
	MUST(fi_endpoint(node->domain, node->info, &node->ep, NULL));
	MUST(fi_ep_bind(node->ep, &node->av->fid, 0));
	MUST(fi_ep_bind(node->ep, &node->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_enable(node->ep));
	for (unsigned i = 0; i < node_cnt; i++) {
		struct sockaddr_in addr = address_of(i);

		if (fi_av_insert(node->av, &addr, 1, &node->addr[i], 0, NULL) != 1)
			wrong("fi_av_insert");
	}
	MUST(fi_mr_regv(node->domain, (struct iovec[]) {
				{ node->region, NET_NODES * sizeof(*node->region) },
				{ node->sums, NET_NODES * sizeof(*node->sums) } }, 2,
			FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &node->mr, NULL));
}

static void node_close(unsigned n)
{
	struct node *node = &nodes[n];

	net_node(n);
	MUST(fi_close(&node->ep->fid));
	MUST(fi_close(&node->mr->fid));
	MUST(fi_close(&node->cq->fid));
	MUST(fi_close(&node->av->fid));
	MUST(fi_close(&node->domain->fid));
	MUST(fi_close(&node->fabric->fid));
	fi_freeinfo(node->info);
	free(node->region);
	free(node->sums);
}

/* ---- contents ---- */

static uint8_t byte_at(uint32_t id, uint32_t i)
{
	return (uint8_t) (id * 31 + i * 7 + (i >> 8));
}

static void fill(uint8_t *buf, uint32_t id, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		buf[i] = byte_at(id, i);
	memcpy(buf, &id, fab_min(len, (uint32_t) sizeof(id)));
}

static bool is_filled(const uint8_t *buf, uint32_t id, uint32_t len)
{
	if (memcmp(buf, &id, fab_min(len, (uint32_t) sizeof(id))))
		return false;
	for (uint32_t i = sizeof(id); i < len; i++) {
		if (buf[i] != byte_at(id, i))
			return false;
	}
	return true;
}

static uint32_t id_of(const struct op *op)
{
	return (uint32_t) (op - ops);
}

/* ---- what may happen ---- */

static bool is_recv(const struct op *op)
{
	return op->kind == ACT_RECV || op->kind == ACT_TRECV;
}

static bool is_send(const struct op *op)
{
	return op->kind == ACT_SEND || op->kind == ACT_TSEND;
}

static bool fits(const struct op *recv, const struct op *send)
{
	return (recv->kind == ACT_TRECV) == (send->kind == ACT_TSEND) && send->peer == recv->node &&
	       (recv->peer == recv->node || recv->peer == send->node) &&
	       (recv->kind == ACT_RECV || !((recv->tag ^ send->tag) & ~recv->ignore));
}

static void took(struct op *recv, const struct fi_cq_tagged_entry *entry)
{
	struct op *send;
	uint32_t id;

	if (entry->len < LEN_MIN)
		wrong("receive %u: a message of %zu bytes", id_of(recv), entry->len);
	memcpy(&id, recv->buf, sizeof(id));
	if (id >= op_cnt || !is_send(&ops[id]))
		wrong("receive %u: bytes that nobody has sent", id_of(recv));
	send = &ops[id];
	if (!fits(recv, send))
		wrong("receive %u took message %u, which does not match", id_of(recv), id);
	if (send->got)
		wrong("message %u was received twice, by %u and %u", id, send->got - 1, id_of(recv));
	if (entry->len != send->len || !is_filled(recv->buf, id, send->len))
		wrong("receive %u: message %u has other bytes or another length", id_of(recv), id);
	if (recv->kind == ACT_TRECV && entry->tag != send->tag)
		wrong("receive %u: the tag of message %u is another", id_of(recv), id);
	send->got = id_of(recv) + 1;
	recv->got = id + 1;
}

static void wrote(const struct op *op)
{
	struct slot *slot = &slots[op->node][op->peer][op->slot];

	slot->busy = false;
	slot->writer = id_of(op) + 1;
	slot->unknown = op->err || op->life != nodes[op->node].life;
	if (!op->err && op->way == DELIVERED && !unsure[op->node][op->peer] &&
	    !is_filled(nodes[op->peer].region[op->node][op->slot], id_of(op), op->len))
		wrong("write %u is delivered, and its bytes are not there", id_of(op));
}

static void was_read(const struct op *op)
{
	struct slot *slot = &slots[op->node][op->peer][op->slot];

	slot->busy = false;
	if (!op->err && !slot->unknown && slot->writer && !unsure[op->node][op->peer] &&
	    !is_filled(op->buf, slot->writer - 1, fab_min(op->len, ops[slot->writer - 1].len)))
		wrong("read %u does not see write %u", id_of(op), slot->writer - 1);
}

static void fetched(const struct op *op)
{
	uint64_t value;

	sum_busy[op->node][op->peer] = false;
	if (op->err) {
		sum_unknown[op->node][op->peer] = true;
		return;
	}
	memcpy(&value, op->buf, sizeof(value));
	if (!sum_unknown[op->node][op->peer] && !unsure[op->node][op->peer] && value != sums[op->node][op->peer])
		wrong("fetch %u has %llu, and the sum is %llu", id_of(op), (unsigned long long) value,
		      (unsigned long long) sums[op->node][op->peer]);
	sums[op->node][op->peer] = value + 1;
}

/* A receive fails if it is cancelled, or if its sender goes away in the middle of the message. */
static bool may_fail(const struct op *op)
{
	bool any = false;

	for (unsigned n = 0; n < node_cnt; n++)
		any |= unsure[op->node][n];
	return is_recv(op) ? any || op->err == FI_ECANCELED : unsure[op->node][op->peer];
}

static void op_ends(struct op *op, int err, const struct fi_cq_tagged_entry *entry)
{
	if (op < ops || op >= ops + op_cnt || !op->posted)
		wrong("a completion of nothing that was posted");
	if (op->gone)
		wrong("operation %u ends after its process", id_of(op));
	if (op->ended)
		wrong("operation %u ends twice", id_of(op));
	net_event((uint64_t) id_of(op) << 8 ^ (uint64_t) err);
	op->ended = true;
	op->err = err;
	open_cnt -= !is_recv(op);
	if (err && !may_fail(op))
		wrong("operation %u fails without a reason: %s", id_of(op), fi_strerror(err));
	if (is_recv(op) && !err)
		took(op, entry);
	else if (op->kind == ACT_WRITE)
		wrote(op);
	else if (op->kind == ACT_READ)
		was_read(op);
	else if (op->kind == ACT_FETCH)
		fetched(op);
	free(op->buf);
	op->buf = NULL;
}

/* ---- actions ---- */

static void read_error(struct node *node)
{
	struct fi_cq_err_entry entry = { 0 };

	if (fi_cq_readerr(node->cq, &entry, 0) != 1)
		wrong("no error where fi_cq_read() has said so");
	if (entry.op_context)
		op_ends(entry.op_context, entry.err, NULL);
}

static bool act_pass(unsigned n)
{
	struct fi_cq_tagged_entry entries[4];
	struct node *node = &nodes[n];
	ssize_t ret;

	net_node(n);
	ret = fi_cq_read(node->cq, entries, 4);
	if (ret == -FI_EAVAIL) {
		read_error(node);
		return true;
	}
	for (ssize_t i = 0; i < ret; i++)
		op_ends(entries[i].op_context, 0, &entries[i]);
	if (ret < 0 && ret != -FI_EAGAIN)
		wrong("fi_cq_read: %s", fi_strerror((int) -ret));
	return ret > 0;
}

static struct op *op_new(const struct action *action)
{
	struct op *op = &ops[op_cnt];

	if (op_cnt == OPS)
		wrong("the simulator has too few operations");
	*op = (struct op) {
		.kind = action->kind, .node = action->a, .peer = action->b, .life = nodes[action->a].life,
		.len = action->c, .tag = action->e, .seq = nodes[action->a].seq++,
	};
	op->buf = malloc(fab_max(op->len, 8U));
	return op;
}

/* The call has returned ret. */
static void op_called(struct op *op, ssize_t ret)
{
	if (!ret) {
		op->posted = true;
		op_cnt++;
		open_cnt += !is_recv(op);
		return;
	}
	if (ret != -FI_EAGAIN && !unsure[op->node][op->peer])
		wrong("a call fails without a reason: %s", fi_strerror((int) -ret));
	free(op->buf);
	op->buf = NULL;
}

/* An inject has no completion. */
static void op_injected(struct op *op, ssize_t ret)
{
	op_called(op, ret);
	if (ret)
		return;
	op->ended = true;
	open_cnt--;
	free(op->buf);
	op->buf = NULL;
}

#define PIECES	3

/* The buffer of an operation in pieces, where its number says so. Returns how many. */
static size_t cut_buffer(const struct op *op, struct iovec iov[PIECES])
{
	size_t first = op->len / 3, second = op->len / 4;

	iov[0] = (struct iovec) { op->buf, op->len };
	if (op_cnt % 3 || op->len < LEN_MIN * PIECES)
		return 1;
	iov[0].iov_len = first;
	iov[1] = (struct iovec) { op->buf + first, second };
	iov[2] = (struct iovec) { op->buf + first + second, op->len - first - second };
	return PIECES;
}

static void act_send(const struct action *action)
{
	const struct node *node = &nodes[action->a];
	struct op *op = op_new(action);
	struct iovec iov[PIECES];
	size_t cnt = cut_buffer(op, iov);
	struct fi_msg msg = { .msg_iov = iov, .iov_count = cnt, .addr = node->addr[op->peer], .context = op };
	struct fi_msg_tagged tmsg = { .msg_iov = iov, .iov_count = cnt, .addr = node->addr[op->peer],
				      .tag = op->tag, .context = op };
	bool tagged = op->kind == ACT_TSEND;
	bool inject = action->d == INJECT && op->len <= node->info->tx_attr->inject_size;

	fill(op->buf, op_cnt, op->len);
	op->way = action->d;
	if (inject)
		op_injected(op, tagged ? fi_tinject(node->ep, op->buf, op->len, tmsg.addr, op->tag) :
			    fi_inject(node->ep, op->buf, op->len, msg.addr));
	else
		op_called(op, tagged ? fi_tsendmsg(node->ep, &tmsg, op->way == DELIVERED ? FI_DELIVERY_COMPLETE : 0) :
			  fi_sendmsg(node->ep, &msg, op->way == DELIVERED ? FI_DELIVERY_COMPLETE : 0));
}

static void act_recv(const struct action *action)
{
	const struct node *node = &nodes[action->a];
	struct op *op = op_new(action);
	fi_addr_t from = op->peer == op->node ? FI_ADDR_UNSPEC : node->addr[op->peer];
	struct iovec iov[PIECES];
	size_t cnt = cut_buffer(op, iov);

	op->ignore = action->d;
	op_called(op, op->kind == ACT_TRECV ?
		  fi_trecvv(node->ep, iov, NULL, cnt, from, op->tag, op->ignore, op) :
		  fi_recvv(node->ep, iov, NULL, cnt, from, op));
}

static void act_cancel(const struct action *action)
{
	uint32_t left = action->b;

	for (uint32_t i = 0; i < op_cnt; i++) {
		if (is_recv(&ops[i]) && ops[i].node == action->a && !ops[i].ended && !ops[i].gone && !left--) {
			int ret = fi_cancel(&nodes[action->a].ep->fid, &ops[i]);

			if (ret && ret != -FI_ENOENT)
				wrong("fi_cancel: %s", fi_strerror(-ret));
			return;
		}
	}
}

static void act_rma(const struct action *action)
{
	const struct node *node = &nodes[action->a];
	uint32_t slot = action->e % SLOTS;
	struct slot *state = &slots[action->a][action->b][slot];
	struct op *op;
	struct iovec iov[PIECES];
	struct fi_rma_iov rma;
	struct fi_msg_rma msg;

	if (state->busy)
		return;
	op = op_new(action);
	op->slot = slot;
	op->way = action->d;
	op->len = fab_min(op->len, (uint32_t) SLOT_LEN);
	rma = (struct fi_rma_iov) { (op->node * SLOTS + slot) * SLOT_LEN, op->len, KEY };
	msg = (struct fi_msg_rma) { .msg_iov = iov, .iov_count = cut_buffer(op, iov), .addr = node->addr[op->peer],
				    .rma_iov = &rma, .rma_iov_count = 1, .context = op };
	fill(op->buf, op_cnt, op->len);
	op_called(op, op->kind == ACT_READ ? fi_readmsg(node->ep, &msg, 0) :
		  fi_writemsg(node->ep, &msg, op->way == DELIVERED ? FI_DELIVERY_COMPLETE : 0));
	state->busy = op->posted;
}

static void act_fetch(const struct action *action)
{
	static uint64_t one = 1;
	const struct node *node = &nodes[action->a];
	struct op *op;

	if (sum_busy[action->a][action->b])
		return;
	op = op_new(action);
	op_called(op, fi_fetch_atomic(node->ep, &one, 1, NULL, op->buf, NULL, node->addr[op->peer],
				      NET_NODES * sizeof(*node->region) + op->node * sizeof(uint64_t), KEY, FI_UINT64,
				      FI_SUM, op));
	sum_busy[action->a][action->b] = op->posted;
}

static void act_restart(unsigned n)
{
	net_node(n);
	net_kill(n);
	for (unsigned i = 0; i < node_cnt; i++) {
		unsure[n][i] = unsure[i][n] = true;
		for (unsigned s = 0; s < SLOTS; s++) {
			slots[i][n][s].unknown = true;
			slots[n][i][s] = (struct slot) { .unknown = true };
		}
		sum_busy[n][i] = false;
	}
	node_close(n);
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (ops[i].node != n || ops[i].gone)
			continue;
		ops[i].gone = true;
		open_cnt -= !ops[i].ended && !is_recv(&ops[i]);
		free(ops[i].buf);
		ops[i].buf = NULL;
	}
	nodes[n].life++;
	net_lack_files(0);
	node_open(n);
	net_lack_files(lack);
}

static void act(const struct action *action)
{
	net_node(action->a);
	switch (action->kind) {
	case ACT_PASS:
		act_pass(action->a);
		break;
	case ACT_TIME:
		net_pass_ns(action->c);
		break;
	case ACT_SEND:
	case ACT_TSEND:
		act_send(action);
		break;
	case ACT_RECV:
	case ACT_TRECV:
		act_recv(action);
		break;
	case ACT_CANCEL:
		act_cancel(action);
		break;
	case ACT_WRITE:
	case ACT_READ:
		act_rma(action);
		break;
	case ACT_FETCH:
		act_fetch(action);
		break;
	case ACT_CUT:
		unsure[action->a][action->b] = unsure[action->b][action->a] = true;
		net_cut(action->a, action->b, action->c);
		break;
	case ACT_RESET:
		unsure[action->a][action->b] = unsure[action->b][action->a] = true;
		net_reset(action->a, action->b);
		break;
	case ACT_RESTART:
		act_restart(action->a);
		break;
	}
}

/* ---- the end ---- */

/* Messages that have not been received, and should be. */
static uint32_t missing_cnt(void)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < op_cnt; i++)
		cnt += is_send(&ops[i]) && !ops[i].got && !ops[i].gone && !unsure[ops[i].node][ops[i].peer];
	return cnt;
}

/* Each node has a receive of each kind that takes everything. */
static void post_takers(void)
{
	for (unsigned n = 0; n < node_cnt; n++) {
		for (uint8_t kind = ACT_RECV; kind <= ACT_TRECV; kind++) {
			uint32_t *taker = &takers[n][kind == ACT_TRECV];

			if (*taker && !ops[*taker - 1].ended)
				continue;
			act_recv(&(struct action) { .kind = kind, .a = (uint8_t) n, .b = (uint8_t) n, .c = SLOT_LEN,
						    .d = 0xff });
			*taker = op_cnt;
		}
	}
}

static const struct op *first_open(void)
{
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (!ops[i].gone && ((!ops[i].ended && !is_recv(&ops[i])) ||
				     (is_send(&ops[i]) && !ops[i].got && !unsure[ops[i].node][ops[i].peer])))
			return &ops[i];
	}
	return NULL;
}

/* Every node runs, and time passes: little where bytes move, more and more where none do. */
static void run_all(uint64_t *idle_ns)
{
	uint64_t moved = net_moved();
	bool any = false;

	for (unsigned n = 0; n < node_cnt; n++)
		any |= act_pass(n);
	*idle_ns = any || moved != net_moved() ? 1000 : fab_min(2 * *idle_ns, 1000000000UL);
	net_pass_ns(*idle_ns);
}

static void settle(void)
{
	uint64_t end_ns = net_now_ns() + SETTLE_NS, idle_ns = 1000;
	const struct op *op;

	net_heal();
	while (open_cnt || missing_cnt()) {
		post_takers();
		run_all(&idle_ns);
		if (net_now_ns() > end_ns) {
			op = first_open();
			wrong("operation %u of node %u %s", id_of(op), op->node,
			      op->ended ? "was sent, and does not arrive" : "does not end");
		}
	}
}

/* Receives end when they are cancelled. */
static void cancel_all(void)
{
	uint64_t idle_ns = 1000;

	for (uint32_t i = 0; i < op_cnt; i++) {
		if (is_recv(&ops[i]) && !ops[i].ended && !ops[i].gone) {
			net_node(ops[i].node);
			fi_cancel(&nodes[ops[i].node].ep->fid, &ops[i]);
		}
	}
	while (idle_ns < QUIET_NS)
		run_all(&idle_ns);
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (!ops[i].ended && !ops[i].gone)
			wrong("receive %u was cancelled, and does not end", i);
	}
}

/* Of two messages of a sender the first goes to the first receive that fits both. */
static void check_order(void)
{
	for (uint32_t i = 0; i < op_cnt; i++) {
		const struct op *later = &ops[i], *recv = later->got ? &ops[later->got - 1] : NULL;

		if (!is_send(later) || !recv)
			continue;
		for (uint32_t j = 0; j < i; j++) {
			const struct op *first = &ops[j];

			if (!is_send(first) || first->node != later->node || first->life != later->life ||
			    first->peer != later->peer || !fits(recv, first))
				continue;
			if (first->got ? ops[first->got - 1].life == recv->life && first->got - 1 > id_of(recv) :
			    !unsure[first->node][first->peer])
				wrong("receive %u took message %u, and message %u, sent before, fits too", id_of(recv),
				      i, j);
		}
	}
}

static void check_slots(void)
{
	for (unsigned a = 0; a < node_cnt; a++) {
		for (unsigned b = 0; b < node_cnt; b++) {
			for (unsigned s = 0; s < SLOTS; s++) {
				const struct slot *slot = &slots[a][b][s];

				if (slot->writer && !slot->unknown && !unsure[a][b] &&
				    !is_filled(nodes[b].region[a][s], slot->writer - 1, ops[slot->writer - 1].len))
					wrong("write %u has ended, and its bytes are not there", slot->writer - 1);
			}
		}
	}
}

/* ---- programs ---- */

static void set_params(uint64_t seed)
{
	static const size_t eager[] = { 64, 1000, 10000, TCP_EAGER_MAX }, credit[] = { 4096, 65536, TCP_CREDIT };

	tcp_params.local = false;
	tcp_params.eager_max = eager[seed % 4];
	tcp_params.credit = credit[seed / 4 % 3];
	tcp_params.tx_size = seed / 12 % 2 ? 8 : TCP_TX_SIZE;
	tcp_params.max_conn = seed / 24 % 4 ? 0 : 2;
}

static struct net_attr attr_of(uint64_t seed)
{
	static const uint32_t segment[] = { 1 << 20, 1460, 100, 7 }, room[] = { 200000, 5000, 300 };
	static const uint64_t delay[] = { 0, 20000, 1000000, 50000000 };

	return (struct net_attr) {
		.segment = segment[seed / 96 % 4], .room = room[seed / 384 % 3], .delay_ns = delay[seed / 1152 % 4],
		.short_io = seed / 4608 % 2 ? 5 : 0,
	};
}

/* Each member is drawn for every action, so that the kind of one does not change what follows. */
static void action_make(struct action *action, uint64_t *state, unsigned node_cnt, bool faults)
{
	static const uint8_t kinds[] = {
		ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_TIME, ACT_TIME,
		ACT_TIME, ACT_SEND, ACT_SEND, ACT_TSEND, ACT_TSEND, ACT_TSEND, ACT_RECV, ACT_RECV, ACT_TRECV,
		ACT_TRECV, ACT_TRECV, ACT_CANCEL, ACT_WRITE, ACT_WRITE, ACT_READ, ACT_FETCH,
	};
	static const uint32_t lens[] = { 4, 8, 40, 128, 129, 1000, 4072, 9999, 30000, 99999 };
	uint32_t fault = seeds_draw(state, 60), range, number;

	action->kind = kinds[seeds_draw(state, sizeof(kinds))];
	action->a = (uint8_t) seeds_draw(state, node_cnt);
	action->b = (uint8_t) seeds_draw(state, node_cnt);
	range = seeds_draw(state, 3) ? 6 : 10;
	action->c = lens[seeds_draw(state, range)];
	action->d = (uint8_t) seeds_draw(state, WAYS);
	action->e = seeds_draw(state, 4);
	range = seeds_draw(state, 4) ? 22 : 32;
	number = seeds_draw(state, range);
	if (faults && !fault)
		action->kind = (uint8_t) (ACT_CUT + number % 3);
	if (action->kind == ACT_TIME)
		action->c = 1U << number;
	if (action->kind == ACT_CUT)
		action->c = number & 8;
	if (action->kind == ACT_RECV || action->kind == ACT_TRECV) {
		action->c = SLOT_LEN;
		action->d = (uint8_t) (number & 4 ? number % 4 : 0);
	}
}

void play_make(struct program *program, uint64_t seed, bool faults)
{
	uint64_t state = fab_mix64(seed ^ 0x5eed);
	uint32_t most = seeds_draw(&state, 8) ? 180 : ACTIONS_MAX - 20;

	program->seed = fab_mix64(seed);
	program->faults = faults;
	program->nodes = 2 + seeds_draw(&state, 3);
	program->cnt = 20 + seeds_draw(&state, most);
	for (uint32_t i = 0; i < program->cnt; i++)
		action_make(&program->actions[i], &state, program->nodes, faults);
}

static void begin(const struct program *program)
{
	struct net_attr attr = attr_of(program->seed);

	memset(slots, 0, sizeof(slots));
	memset(sums, 0, sizeof(sums));
	memset(sum_busy, 0, sizeof(sum_busy));
	memset(sum_unknown, 0, sizeof(sum_unknown));
	memset(unsure, 0, sizeof(unsure));
	lack = program->faults && program->seed / 9216 % 4 == 0 ? 4 : 0;
	if (lack)
		memset(unsure, 1, sizeof(unsure));
	memset(takers, 0, sizeof(takers));
	op_cnt = open_cnt = 0;
	node_cnt = program->nodes;
	set_params(program->seed);
	net_begin(program->seed, &attr);
	memset(nodes, 0, sizeof(nodes));
	for (unsigned n = 0; n < node_cnt; n++)
		node_open(n);
	net_lack_files(lack);
}

const char *play_run(const struct program *program, uint64_t *hash)
{
	unsigned left;

	if (setjmp(failed))
		return why;
	begin(program);
	for (uint32_t i = 0; i < program->cnt; i++)
		act(&program->actions[i]);
	settle();
	cancel_all();
	check_order();
	check_slots();
	*hash = net_hash();
	for (unsigned n = 0; n < node_cnt; n++)
		node_close(n);
	left = net_end();
	if (left)
		wrong("%u descriptors are left", left);
	return NULL;
}

void play_print(const struct program *program, FILE *out)
{
	static const char *const names[ACT_KINDS] = {
		"pass", "time", "send", "tsend", "recv", "trecv", "cancel", "write", "read", "fetch", "cut", "reset",
		"restart",
	};

	fprintf(out, "# seed %llu, %u nodes\n", (unsigned long long) program->seed, program->nodes);
	for (uint32_t i = 0; i < program->cnt; i++) {
		const struct action *action = &program->actions[i];

		fprintf(out, "%s %u %u %u %u %u\n", names[action->kind], action->a, action->b, action->c, action->d,
			action->e);
	}
}
