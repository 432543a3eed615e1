/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plays a program: nodes, and the calls that the actions are. See play.h; judge.c says what may come of them.
 */
#include "sim/play.h"

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
#include "rxm/rxm.h"
#include "seeds/seeds.h"
#include "sim/datagram.h"
#include "sim/group.h"
#include "sim/judge.h"
#include "sim/link.h"
#include "sim/net.h"
#include "sim/node.h"
#include "tcp/params/params.h"

#define SETTLE_NS	400000000000ULL		/* after the faults, everything ends within this time */
#define QUIET_NS	500000000ULL		/* where nothing moves for so long, nothing will */
#define WORDS_NS	5000000000ULL		/* between two tries to reach a node */
#define GROUP_NS	60000000000ULL		/* then a node that waits for a killed member leaves its group */
#define LEAVE_NS	30000000000ULL		/* what nodes say when they leave may need a connection first */
#define JOINS		4			/* one of so many joins in the end succeeds */
#define LAST_CALLS	3			/* collectives of the group that is made in the end */
#define LOOKS		2			/* passes of a node after the last one that did something ... */
#define LOOK_NS		20000			/* ... then it looks again after this time, */
#define LOOKS_RARE	8			/* or, one time in so many, before */
#define EVENTS_RARE	32			/* one in so many passes looks for events where none should come */

static const struct program *program;
/* By node and is_place(): a receive that takes every message, + 1; a tagged one. */
static uint32_t takers[NET_NODES][NET_NODES][2];
static bool has_takers[NET_NODES];	/* all of them, and none has ended */
static bool used[NET_NODES][NET_NODES];	/* by operations of one node at another */
static bool healed;			/* the faults are over */
/* By node: a queue of the provider below rxm was overrun, which ends the endpoints for good. */
static bool is_lost[NET_NODES];
static bool was_refused;		/* a collective, for lack of memory: the others wait for that node, too */
static bool was_killed;			/* a node, of which members of its group may wait for the next process */
static uint64_t jumped_ns;		/* by the clock, while nothing happened */
/* By node: its passes after the program. */
static struct {
	uint64_t stirs;			/* net_stirs(), after the last one */
	uint64_t next_ns;
	uint64_t done_ns;		/* until then it computes */
	unsigned idle_cnt;		/* passes since the last one that did something */
} looks[NET_NODES];
static uint64_t waited_ns;		/* after the program, while nothing was on its way or to be done */
static uint32_t claim_cnt;		/* operations whose message is to be claimed */
static jmp_buf failed;
static char why[512];

_Noreturn void judge_wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	longjmp(failed, 1);
}

/* ---- nodes ---- */

/* From now on there is a lack of what the program says. Everything can be had while a node starts. */
static void lack(bool on)
{
	net_lack_files(on ? program->lack : 0);
	net_lack_memory(on ? program->lack_memory : 0);
}

/* ---- completions ---- */

/* True for what is posted to a context that all connections of a node share: it is for messages of all. */
static bool is_for_all(uint8_t kind)
{
	return program->msg && program->contexts == SHARED && kind >= ACT_RECV && kind <= ACT_PEEK;
}

/* True if no queue could tell of an operation that is for all: calls say so. */
static bool is_mute(const struct op *op)
{
	return is_for_all(op->kind) && !link_any(op->node);
}

/* The second step of a claim: receive the message. */
static void claim(struct op *op)
{
	struct iovec iov = { op->buf, op->len };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = op };
	ssize_t ret = fi_trecvmsg(node_ep_of(op), &msg, FI_CLAIM);

	op->claimed = true;
	if (!ret)
		return;
	if (!judge_doubts(op->node, program->msg ? op->peer : op->node))
		judge_wrong("FI_CLAIM: %s", fi_strerror((int) -ret));
	op->ended = true;
	open_cnt--;
	op_free(op);
}

/* An operation at node n, or its call, has failed with err. */
static void note_loss(unsigned n, int err)
{
	if (program->rxm && program->lack_memory && err == FI_EOVERRUN)
		is_lost[n] = true;
}

static void ended(struct op *op, const struct ending *ending)
{
	bool claims = op->kind == ACT_PEEK && op->way == CLAIM && !op->claimed && !ending->err;

	note_loss(op->node, ending->err);
	has_takers[op->node] &= !op_is_recv(op);
	if (op->kind == ACT_COLL)
		group_ended(op, ending->err);
	judge_ended(op, ending);
	op->to_claim = claims;
	claim_cnt += claims;
}

/* Receive what was claimed: at any time, so that several claims are open at once. */
static void claim_some(unsigned n)
{
	for (uint32_t i = 0; claim_cnt && i < op_cnt; i++) {
		struct op *op = &ops[i];

		if (!op->to_claim || op->node != n || is_mute(op) || net_random(4))
			continue;
		op->to_claim = false;
		claim_cnt--;
		if (!op->gone)
			claim(op);
	}
}

static void stop(unsigned n);
static void start(unsigned n);

/* A queue that could not grow has lost completions, or events: for its program that is the end. */
static void overrun(unsigned n)
{
	if (!program->lack_memory)
		judge_wrong("a queue of node %u is overrun", n);
	stop(n);
	start(n);
}

/* The completion of a receive names its source. */
static bool knows_source(uint64_t flags)
{
	return program->data && !program->msg && (flags & FI_RECV);
}

static void read_error(unsigned n)
{
	struct fi_cq_err_entry entry = { 0 };
	struct op *op;

	if (fi_cq_readerr(nodes[n].cq, &entry, 0) != 1)
		judge_wrong("no error where fi_cq_read() has said so");
	if (entry.err == FI_EOVERRUN) {
		overrun(n);
		return;
	}
	op = entry.op_context;
	if (!op) {
		judge_late(n);
		return;
	}
	ended(op, &(struct ending) {
		.err = entry.err, .buf = op->kind == ACT_MRECV ? entry.buf : op->buf, .flags = entry.flags,
		.len = entry.len, .olen = entry.olen, .tag = entry.tag, .data = entry.data, .src = FI_ADDR_NOTAVAIL,
	});
}

/* Read the event queue that node n has, if it has one. True: there was something that lets it go on. */
static bool read_events(unsigned n)
{
	enum group_event event = GROUP_NOTHING;

	if (program->msg && (program->faults || !net_random(EVENTS_RARE)))
		link_pass(n);
	if (program->group && (program->faults || !group_joined(n) || !net_random(EVENTS_RARE)))
		event = group_pass(n);
	if (event == GROUP_LOST)
		overrun(n);
	return event != GROUP_NOTHING;
}

static bool act_pass(unsigned n)
{
	struct fi_cq_tagged_entry entries[4];
	fi_addr_t srcs[4] = { FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL };
	struct node *node = &nodes[n];
	ssize_t ret;

	net_node(n);
	if (is_lost[n])
		overrun(n);
	if (read_events(n))
		return true;
	net_node(n);
	claim_some(n);
	ret = program->data ? fi_cq_readfrom(node->cq, entries, 4, srcs) : fi_cq_read(node->cq, entries, 4);
	if (ret == -FI_EAVAIL) {
		read_error(n);
		return true;
	}
	for (ssize_t i = 0; i < ret; i++) {
		const struct fi_cq_tagged_entry *entry = &entries[i];
		struct op *op = entry->op_context;

		if (!op)
			judge_wrong("a completion without a context at node %u", n);
		ended(op, &(struct ending) {
			.buf = op->kind == ACT_MRECV ? entry->buf : op->buf, .flags = entry->flags, .len = entry->len,
			.tag = entry->tag, .data = entry->data,
			.src = knows_source(entry->flags) ? node_at(n, srcs[i]) : FI_ADDR_NOTAVAIL,
		});
	}
	if (ret < 0 && ret != -FI_EAGAIN)
		judge_wrong("fi_cq_read: %s", fi_strerror((int) -ret));
	return ret > 0;
}

/* ---- calls ---- */

static struct op *op_new(const struct action *action, uint32_t len)
{
	struct op *op = &ops[op_cnt];

	if (op_cnt == OPS)
		judge_wrong("the simulator has too few operations");
	*op = (struct op) {
		.kind = action->kind, .node = action->a, .peer = is_for_all(action->kind) ? action->a : action->b,
		.way = action->d, .len = len,
		.tag = action->e, .tx = action->route & 1, .rx = action->route >> 1 & 1,
		.buf = net_alloc(len + GUARD_LEN),
	};
	memset(op->buf + len, 0xa5, GUARD_LEN);
	return op;
}

/* The call has returned ret. */
static void op_called(struct op *op, ssize_t ret)
{
	note_loss(op->node, (int) -ret);
	if (!ret) {
		used[op->node][op->peer] |= !op_is_recv(op) && op->kind != ACT_PEEK;
		judge_posted(op);
		return;
	}
	if (ret != -FI_EAGAIN && !judge_doubts_op(op))
		judge_wrong("a call fails without a reason: %s", fi_strerror((int) -ret));
	op_free(op);
}

/* An inject has no completion. */
static void op_injected(struct op *op, ssize_t ret)
{
	op_called(op, ret);
	if (ret)
		return;
	op->ended = true;
	open_cnt--;
	op_free(op);
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

static uint64_t flags_of(const struct op *op)
{
	switch (op->way) {
	case DELIVERED:
		return FI_DELIVERY_COMPLETE;
	case FENCED:
		return FI_FENCE;
	case MATCHED:
		return op_is_send(op) ? FI_MATCH_COMPLETE : 0;
	}
	return 0;
}

static ssize_t inject(const struct op *op)
{
	fi_addr_t to = node_dest(op);

	if (op->kind == ACT_TSEND)
		return program->data ? fi_tinjectdata(node_ep_of(op), op->buf, op->len, op_cnt, to, op->tag) :
				       fi_tinject(node_ep_of(op), op->buf, op->len, to, op->tag);
	return program->data ? fi_injectdata(node_ep_of(op), op->buf, op->len, op_cnt, to) :
			       fi_inject(node_ep_of(op), op->buf, op->len, to);
}

/* The usual calls, where they can say it. */
static ssize_t send_plainly(struct op *op)
{
	fi_addr_t to = node_dest(op);

	if (op->kind == ACT_TSEND)
		return program->data ? fi_tsenddata(node_ep_of(op), op->buf, op->len, NULL, op_cnt, to, op->tag, op) :
				       fi_tsend(node_ep_of(op), op->buf, op->len, NULL, to, op->tag, op);
	return program->data ? fi_senddata(node_ep_of(op), op->buf, op->len, NULL, op_cnt, to, op) :
			       fi_send(node_ep_of(op), op->buf, op->len, NULL, to, op);
}

static ssize_t send_msg(struct op *op)
{
	struct iovec iov[PIECES];
	size_t cnt = cut_buffer(op, iov);
	struct fi_msg msg = { .msg_iov = iov, .iov_count = cnt, .addr = node_dest(op), .context = op,
			      .data = op_cnt };
	struct fi_msg_tagged tmsg = { .msg_iov = iov, .iov_count = cnt, .addr = node_dest(op),
				      .tag = op->tag, .context = op, .data = op_cnt };
	uint64_t flags = flags_of(op) | (program->data ? FI_REMOTE_CQ_DATA : 0);

	if (cnt == 1 && op->way == PLAIN)
		return send_plainly(op);
	return op->kind == ACT_TSEND ? fi_tsendmsg(node_ep_of(op), &tmsg, flags) :
				       fi_sendmsg(node_ep_of(op), &msg, flags);
}

static void act_send(const struct action *action)
{
	const struct node *node = &nodes[action->a];
	struct op *op = op_new(action, action->c);

	op_fill(op->buf, op_cnt, op->len);
	if (op->way == INJECT && op->len <= node->info->tx_attr->inject_size)
		op_injected(op, inject(op));
	else
		op_called(op, send_msg(op));
}

static void act_recv(const struct action *action)
{
	struct op *op = op_new(action, action->c);
	fi_addr_t from = node_source(op);
	struct iovec iov[PIECES];
	size_t cnt = cut_buffer(op, iov);

	op->ignore = action->d;
	op_called(op, op->kind == ACT_TRECV ?
		  fi_trecvv(node_ep_of(op), iov, NULL, cnt, from, op->tag, op->ignore, op) :
		  fi_recvv(node_ep_of(op), iov, NULL, cnt, from, op));
}

static void act_mrecv(const struct action *action)
{
	struct op *op = op_new(action, action->c);
	struct iovec iov = { op->buf, op->len };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = node_source(op), .context = op };

	op_called(op, fi_recvmsg(node_ep_of(op), &msg, FI_MULTI_RECV));
}

static void act_peek(const struct action *action)
{
	static const uint64_t flags[PEEKS] = { FI_PEEK, FI_PEEK | FI_CLAIM, FI_PEEK | FI_DISCARD };
	struct op *op = op_new(action, SLOT_LEN);
	struct fi_msg_tagged msg = { .addr = node_source(op), .tag = op->tag, .context = op };
	ssize_t ret;

	/* only its CQ data tells which message was dropped */
	if (op->way == DISCARD && !program->data)
		op->way = LOOK;
	ret = fi_trecvmsg(node_ep_of(op), &msg, flags[op->way]);
	if (!is_mute(op))
		op_called(op, ret);
	else if (ret == -FI_EOPBADSTATE)
		op_free(op);
	else
		judge_wrong("a look that no queue can answer: %s", fi_strerror((int) -ret));
}

static void act_cancel(const struct action *action)
{
	uint32_t left = action->b;

	for (uint32_t i = 0; i < op_cnt; i++) {
		struct op *op = &ops[i];

		if ((action->d ? op_is_send(op) : op_is_recv(op)) && op->node == action->a && !op->ended && !op->gone &&
		    !left--) {
			int ret = fi_cancel(&node_ep_of(op)->fid, op);

			op->cancelled = true;
			if (ret && ret != -FI_ENOENT && !(ret == -FI_EOPBADSTATE && is_mute(op)))
				judge_wrong("fi_cancel: %s", fi_strerror(-ret));
			return;
		}
	}
}

/* A remote access to len bytes at `at`, in two pieces where its number says so. */
static ssize_t access_memory(const struct op *op, bool reads, uint64_t at, uint64_t key)
{
	uint32_t first = op_cnt % 5 ? op->len : op->len / 2;
	struct fi_rma_iov rma[] = { { at, first, key }, { at + first, op->len - first, key } };
	struct iovec iov[PIECES];
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = cut_buffer(op, iov), .addr = node_dest(op), .rma_iov = rma,
		.rma_iov_count = first < op->len ? 2 : 1, .context = (void *) (uintptr_t) op,
	};
	bool plain = msg.iov_count == 1 && msg.rma_iov_count == 1 && !flags_of(op);

	if (reads)
		return plain ? fi_read(node_ep_of(op), op->buf, op->len, NULL, msg.addr, at, key, msg.context) :
			       fi_readmsg(node_ep_of(op), &msg, flags_of(op) & FI_FENCE);
	return plain ? fi_write(node_ep_of(op), op->buf, op->len, NULL, msg.addr, at, key, msg.context) :
		       fi_writemsg(node_ep_of(op), &msg, flags_of(op));
}

static void act_rma(const struct action *action)
{
	const struct node *node = &nodes[action->a];
	struct op *op = op_new(action, fab_min(action->c, (uint32_t) SLOT_LEN));
	uint64_t at;

	op->slot = action->e % SLOTS;
	at = (op->node * SLOTS + op->slot) * SLOT_LEN;
	op_fill(op->buf, op_cnt, op->len);
	if (op->kind == ACT_WRITE && op->way == INJECT && op->len <= node->info->tx_attr->inject_size)
		op_injected(op, fi_inject_write(node_ep_of(op), op->buf, op->len, node_dest(op), at, KEY));
	else
		op_called(op, access_memory(op, op->kind == ACT_READ, at, KEY));
}

/* The first half of it is in the region. */
static void act_bad(const struct action *action)
{
	struct op *op = op_new(action, action->c);
	bool reads = op->way == INJECT, no_key = action->e & 1;

	if (op->way != DELIVERED && !reads)
		op->way = PLAIN;
	memset(op->buf, 0x11, op->len);
	op_called(op, access_memory(op, reads, no_key ? 0 : REGION_LEN - op->len / 2, no_key ? KEY + 1 : KEY));
}

static void act_atomic(const struct action *action)
{
	static const enum fi_datatype types[] = { FI_UINT8, FI_UINT16, FI_UINT32, FI_UINT64 };
	uint8_t *operands, *compares;
	uint32_t width = 1U << action->e % 4, cnt = 1 + action->c % (CELLS_LEN / 8);
	struct op *op = op_new(action, cnt * width);
	enum fi_datatype type = types[action->e % 4];
	fi_addr_t to = node_dest(op);
	uint64_t at = SLOTS_LEN + op->node * CELLS_LEN, value;

	op->slot = action->e % 4;
	op->want = net_alloc(3 * (size_t) op->len);
	operands = op->want + op->len;		/* the library reads them until the operation ends */
	compares = operands + op->len;
	op->ignore = op_cnt / 7 % 3;				/* what it compares with */
	op->tag = op->way <= AMO_FETCH_ADD ? 1 : op_cnt % 200;	/* the operand */
	for (uint32_t i = 0; i < cnt; i++) {
		value = op->tag;
		memcpy(operands + i * width, &value, width);
		value = op->ignore;
		memcpy(compares + i * width, &value, width);
	}
	switch (op->way) {
	case AMO_ADD:
		op_called(op, fi_atomic(node_ep_of(op), operands, cnt, NULL, to, at, KEY, type, FI_SUM, op));
		return;
	case AMO_CSWAP:
		op_called(op, fi_compare_atomic(node_ep_of(op), operands, cnt, NULL, compares, NULL, op->buf, NULL, to,
						at, KEY, type, FI_CSWAP, op));
		return;
	default:
		op_called(op, fi_fetch_atomic(node_ep_of(op), operands, cnt, NULL, op->buf, NULL, to, at, KEY, type,
					      op->way == AMO_FETCH_ADD ? FI_SUM :
					      op->way == AMO_SWAP ? FI_ATOMIC_WRITE : FI_ATOMIC_READ, op));
	}
}

static void act_count(const struct action *action)
{
	static uint64_t one = 1;
	struct op *op = op_new(action, sizeof(one));

	op->way = PLAIN;
	op_called(op, fi_fetch_atomic(node_ep_of(op), &one, 1, NULL, op->buf, NULL, node_dest(op),
				      SLOTS_LEN + NET_NODES * CELLS_LEN, KEY, FI_UINT64, FI_SUM, op));
}

/* ---- faults ---- */

static bool any_of(bool (*is)(unsigned n))
{
	bool any = false;

	for (unsigned n = 0; n < program->nodes; n++)
		any |= is(n);
	return any;
}

static bool is_joining(unsigned n)
{
	return !group_joined(n) && !group_failed(n);
}

static void stop(unsigned n)
{
	if (nodes[n].down)
		return;
	net_node(n);
	net_kill(n);
	is_lost[n] = has_takers[n] = false;
	was_killed |= !program->once || any_of(is_joining);
	judge_restarted(n);
	node_close(n);
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (ops[i].node != n || ops[i].gone)
			continue;
		ops[i].gone = true;
		open_cnt -= !ops[i].ended && !op_is_recv(&ops[i]);
		op_free(&ops[i]);
	}
}

static void start(unsigned n)
{
	if (!nodes[n].down)
		return;
	lack(false);
	node_start(n);
	lack(!healed);
	if (program->group && !program->once)
		group_join(n);
}

static void act_jump(const struct action *action)
{
	judge_jumped(tcp_params.max_conn || (program->contexts && !program->msg));
	net_jump_ns(action->c * 1000000000ULL);
	jumped_ns += action->c * 1000000000ULL;
}

/* A node calls its next collective. */
static void act_coll(unsigned n)
{
	struct op *op;
	ssize_t ret;

	if (!group_joined(n))
		return;
	op = op_new(&(struct action) { .kind = ACT_COLL, .a = (uint8_t) n, .b = (uint8_t) n }, group_len(n));
	ret = group_call(op);
	was_refused |= ret == -FI_ENOMEM;
	op_called(op, ret);
}

/* A node whose group has failed joins anew. */
static void act_join(const struct action *action)
{
	if (program->group && !program->once && group_failed(action->a))
		group_join_again(action->a);
}

static void shut_down(unsigned n, unsigned peer)
{
	if (nodes[n].down)
		return;
	net_node(n);
	link_shutdown(n, peer);
}

static void act_fault(const struct action *action)
{
	switch (action->kind) {
	case ACT_STOP:
		stop(action->a);
		return;
	case ACT_START:
		start(action->a);
		return;
	case ACT_RESTART:
		stop(action->a);
		start(action->a);
		return;
	}
	judge_doubt(action->a, action->b);
	if (action->kind == ACT_SHUTDOWN && !program->msg)
		return;
	if (action->kind == ACT_CUT)
		net_cut(action->a, action->b, action->c);
	else if (action->kind == ACT_SHUTDOWN)
		shut_down(action->a, action->b);
	else if (action->kind == ACT_RESET)
		net_reset(action->a, action->b);
	else
		net_half(action->a, action->b);
}

/* True for what is posted to the endpoint of a connection. */
static bool takes_link(const struct action *action)
{
	return program->msg && !is_for_all(action->kind) && action->kind != ACT_PASS && action->kind != ACT_CANCEL &&
	       action->kind != ACT_LINK && action->kind != ACT_COLL && action->kind != ACT_JOIN;
}

/* The contexts that an action uses. Accesses to one place use the same ones, so that they have an order. */
static uint8_t route_of(const struct action *action)
{
	if (program->contexts == OWN || program->msg)
		return 0;
	if (action->kind == ACT_WRITE || action->kind == ACT_READ)
		return (uint8_t) (action->e % SLOTS);
	if (action->kind == ACT_ATOMIC)
		return action->a ^ action->b;
	return (uint8_t) fab_mix64(op_cnt);
}

static void act(const struct action *what)
{
	struct action here = *what;
	const struct action *action = &here;

	/* no MSG endpoint leads to its own node */
	if (program->msg && here.a == here.b)
		here.b = (uint8_t) ((here.a + 1) % program->nodes);
	here.route = route_of(action);
	if (action->kind >= ACT_CUT) {
		act_fault(action);
		return;
	}
	if (action->kind == ACT_TIME) {
		net_pass_ns(action->c);
		return;
	}
	if (action->kind == ACT_JUMP) {
		act_jump(action);
		return;
	}
	if (nodes[action->a].down)
		return;
	net_node(action->a);
	if (takes_link(action) && !link_ep(action->a, action->b))
		return;
	switch (action->kind) {
	case ACT_PASS:
		act_pass(action->a);
		break;
	case ACT_SEND:
	case ACT_TSEND:
		act_send(action);
		break;
	case ACT_RECV:
	case ACT_TRECV:
		act_recv(action);
		break;
	case ACT_MRECV:
		act_mrecv(action);
		break;
	case ACT_PEEK:
		act_peek(action);
		break;
	case ACT_CANCEL:
		act_cancel(action);
		break;
	case ACT_WRITE:
	case ACT_READ:
		act_rma(action);
		break;
	case ACT_BAD:
		act_bad(action);
		break;
	case ACT_ATOMIC:
		act_atomic(action);
		break;
	case ACT_COUNT:
		act_count(action);
		break;
	case ACT_COLL:
		act_coll(action->a);
		break;
	case ACT_JOIN:
		act_join(action);
		break;
	case ACT_LINK:
		link_renew(action->a, action->b);
		break;
	}
}

/* ---- the end ---- */

/* A place where messages come to node n: the connection with another node, or a receive context. */
static bool is_place(unsigned n, unsigned place)
{
	if (program->msg && program->contexts == OWN)
		return place < program->nodes && place != n;
	return !place || (program->contexts == SCALABLE && place < CONTEXTS);
}

/* True if there is one now. */
static bool post_taker(unsigned n, unsigned place, bool tagged)
{
	uint32_t *taker = &takers[n][place][tagged], before = op_cnt;

	if (*taker && !ops[*taker - 1].ended && !ops[*taker - 1].gone)
		return true;
	if (program->msg && program->contexts == OWN && !link_ep(n, place))
		return false;
	net_node(n);
	act_recv(&(struct action) { .kind = tagged ? ACT_TRECV : ACT_RECV, .a = (uint8_t) n,
				    .b = (uint8_t) (program->msg ? place : n), .c = SLOT_LEN, .d = 0xff,
				    .route = (uint8_t) (program->msg ? 0 : place << 1) });
	*taker = op_cnt > before ? op_cnt : 0;
	return *taker;
}

/* Each node has a receive of each kind that takes everything. */
static void post_takers(void)
{
	for (unsigned n = 0; n < program->nodes; n++) {
		bool all = true;

		for (unsigned place = 0; !has_takers[n] && place < NET_NODES; place++) {
			if (!is_place(n, place))
				continue;
			all &= post_taker(n, place, false);
			all &= post_taker(n, place, true);
		}
		has_takers[n] = all;
	}
}

/* Who has called fewer collectives than others goes on. True: one is still behind. */
static bool catch_up(void)
{
	bool any = false;

	for (unsigned n = 0; program->group && n < program->nodes; n++) {
		if (!group_behind(n))
			continue;
		any = true;
		net_node(n);
		act_coll(n);
	}
	return any;
}

/* The endpoint of a connection that is over is closed: its operations have ended. Receives that were posted since end
 * without a completion. */
static void link_closes(unsigned n, unsigned peer)
{
	while (act_pass(n))
		continue;
	for (uint32_t i = 0; i < op_cnt; i++) {
		struct op *op = &ops[i];

		if (op->node != n || op->peer != peer || op->ended || op->gone)
			continue;
		if (!op_is_recv(op) && op->kind != ACT_PEEK)
			judge_wrong("operation %u has not ended with its connection", i);
		if (op->to_claim)
			claim_cnt--;
		open_cnt -= !op_is_recv(op);
		op->to_claim = false;
		op->gone = true;
		op_free(op);
	}
	has_takers[n] = false;
}

static void call_all(void (*call)(unsigned n))
{
	for (unsigned n = 0; n < program->nodes; n++) {
		net_node(n);
		call(n);
	}
}

/* Connections that are over are made anew. */
static void renew_all(void)
{
	for (unsigned a = 0; a < program->nodes; a++) {
		for (unsigned b = 0; b < program->nodes; b++) {
			if (a != b)
				link_renew(a, b);
		}
	}
}

/* A node looks whether there is something to do: where something may be, or because it has not looked for some time.
 * Where there was something it computes afterwards. True: there was something. */
static bool look(unsigned n)
{
	uint64_t moved = net_moved();
	bool any;

	if (net_now_ns() < looks[n].done_ns)
		return false;
	if (looks[n].stirs != net_stirs(n))
		looks[n].idle_cnt = 0;
	if (looks[n].idle_cnt >= LOOKS && net_now_ns() < looks[n].next_ns && net_random(LOOKS_RARE))
		return false;
	any = act_pass(n);
	looks[n].idle_cnt = any || moved != net_moved() ? 0 : looks[n].idle_cnt + 1;
	looks[n].stirs = net_stirs(n);
	looks[n].next_ns = net_now_ns() + LOOK_NS;
	if (program->compute && !looks[n].idle_cnt)
		looks[n].done_ns = net_now_ns() + net_random(program->compute);
	return any;
}

/* The next time at which something arrives, or a node that computes is done; UINT64_MAX: none. */
static uint64_t next_ns(void)
{
	uint64_t ns = net_next_ns();

	for (unsigned n = 0; n < program->nodes; n++) {
		if (looks[n].done_ns > net_now_ns())
			ns = fab_min(ns, looks[n].done_ns);
	}
	return ns;
}

/* Every node runs, and time passes: little where bytes move; up to the next arrival where they are on their way; more
 * and more where none are. */
static void run_all(uint64_t *idle_ns)
{
	uint64_t moved = net_moved(), next, wait_ns;
	bool any = false;

	if (program->msg && program->faults && healed)
		renew_all();
	for (unsigned n = 0; n < program->nodes; n++)
		any |= look(n);
	*idle_ns = any || moved != net_moved() ? 1000 : fab_min(2 * *idle_ns, 1000000000UL);
	next = next_ns();
	wait_ns = next > net_now_ns() ? next - net_now_ns() : 0;
	if (*idle_ns > 2000 && wait_ns > *idle_ns && next != UINT64_MAX)
		*idle_ns = fab_min(wait_ns, (uint64_t) QUIET_NS - 1);
	if (!any && moved == net_moved() && next == UINT64_MAX)
		waited_ns += *idle_ns;
	net_pass_ns(*idle_ns);
}

static void settle(void)
{
	uint64_t end_ns, idle_ns = 1000;
	const struct op *op;

	for (unsigned n = 0; n < program->nodes; n++)
		start(n);
	net_heal();
	healed = true;
	end_ns = net_now_ns() + SETTLE_NS;
	while (catch_up() || open_cnt || judge_missing()) {
		post_takers();
		run_all(&idle_ns);
		if (program->group && (was_killed || was_refused) && net_now_ns() > end_ns - SETTLE_NS + GROUP_NS) {
			call_all(group_close);
			was_killed = was_refused = false;
		}
		if (net_now_ns() > end_ns) {
			op = judge_first_open();
			if (!op)
				judge_wrong("a node does not join the group");
			judge_wrong("operation %u of node %u %s", op_id(op), op->node,
				    op->ended ? "was sent, and does not arrive" : "does not end");
		}
	}
}

/* True if b has received a message of a among the operations from first on. */
static bool is_heard(unsigned a, unsigned b, uint32_t first)
{
	for (uint32_t i = first; i < op_cnt; i++) {
		if (op_is_send(&ops[i]) && ops[i].node == a && ops[i].peer == b && ops[i].got)
			return true;
	}
	return false;
}

/* Send to each node that was used and has not heard: again WORDS_NS after the last time, or at once where the call was
 * refused. False: all have heard. */
static bool say_words(uint32_t first, uint64_t next_ns[NET_NODES][NET_NODES])
{
	bool any = false;

	for (uint8_t a = 0; a < program->nodes; a++) {
		for (uint8_t b = 0; b < program->nodes; b++) {
			uint32_t before = op_cnt;

			if (!used[a][b] || judge_foreign(a, b) || is_heard(a, b, first))
				continue;
			any = true;
			if (net_now_ns() < next_ns[a][b] || (program->msg && !link_ep(a, b)))
				continue;
			net_node(a);
			act_send(&(struct action) { .kind = ACT_TSEND, .a = a, .b = b, .d = INJECT, .c = 8 });
			if (op_cnt > before)
				next_ns[a][b] = net_now_ns() + WORDS_NS;
		}
	}
	return any;
}

/* Whatever was: a node reaches those that it has reached before, by messages that are sent within the call. */
static void last_words(void)
{
	uint64_t end_ns = net_now_ns() + SETTLE_NS, next_ns[NET_NODES][NET_NODES] = { 0 }, idle_ns = 1000;
	uint32_t first = op_cnt;

	while (say_words(first, next_ns)) {
		if (net_now_ns() > end_ns)
			judge_wrong("a node does not reach another one any more");
		post_takers();
		run_all(&idle_ns);
	}
}

/* Run until nothing moves, but for so long at least. */
static void run_until_quiet(uint64_t least_ns)
{
	uint64_t idle_ns = 1000, end_ns = net_now_ns() + least_ns;

	while (idle_ns < QUIET_NS || net_now_ns() < end_ns)
		run_all(&idle_ns);
}

/* All nodes leave their groups; when nothing of these is on its way any more, they join a new one. False: it fails. */
static bool join_all(void)
{
	uint64_t end_ns = net_now_ns() + SETTLE_NS, idle_ns = 1000;

	call_all(group_close);
	run_until_quiet(LEAVE_NS);
	call_all(group_join);
	while (any_of(is_joining)) {
		if (net_now_ns() > end_ns)
			judge_wrong("after the faults not all nodes join the group");
		run_all(&idle_ns);
	}
	return !any_of(group_failed);
}

/* Whatever was: the nodes make a new group, and its calls succeed. What is left of an earlier join may fail the next
 * one, but not each. */
static void last_group(void)
{
	unsigned tries = 0;

	while (!join_all()) {
		if (++tries == JOINS)
			judge_wrong("after the faults no join succeeds");
	}
	was_killed = was_refused = false;	/* in this group */
	for (int i = 0; i < LAST_CALLS; i++)
		call_all(act_coll);
	settle();
	if (any_of(group_failed))
		judge_wrong("the group of the end fails");
}

/* Receives end when they are cancelled, unless no queue could tell. */
static void cancel_all(void)
{
	bool mute[NET_NODES] = { false };

	for (uint32_t i = 0; i < op_cnt; i++) {
		struct op *op = &ops[i];

		if (!op_is_recv(op) || op->ended || op->gone)
			continue;
		net_node(op->node);
		op->cancelled = true;
		mute[op->node] |= is_mute(op);
		if (node_ep_of(op))
			fi_cancel(&node_ep_of(op)->fid, op);
	}
	run_until_quiet(0);
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (!ops[i].ended && !ops[i].gone && !mute[ops[i].node])
			judge_wrong("receive %u was cancelled, and does not end", i);
	}
}

/* Receives that could not be cancelled have ended with their context. */
static void free_mute(void)
{
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (!ops[i].ended && !ops[i].gone)
			op_free(&ops[i]);
	}
}

/* ---- a program ---- */

static void set_params(void)
{
	tcp_params.local = false;
	tcp_params.eager_max = program->eager;
	tcp_params.credit = program->credit;
	tcp_params.tx_size = program->tx_size;
	tcp_params.max_conn = program->max_conn;
#if SIM_HAS_RXM
	rxm_params.buffer_size = program->rxm_buffer;
	rxm_params.sar_limit = program->rxm_sar;
	rxm_params.conn_rx = program->rxm_rx;
	rxm_params.rndv_write = program->rxm_write;
#endif
}

static struct net_attr net_attr(void)
{
	return (struct net_attr) {
		.segment = program->segment, .room = program->room, .delay_ns = program->delay,
		.short_io = program->short_io, .lose = program->faults ? 5 : 0, .twice = program->faults ? 5 : 0,
		.no_bufs = program->no_bufs,
	};
}

static const struct link_owner link_owner = { .closing = link_closes, .overrun = overrun };

static void begin(void)
{
	struct net_attr attr = net_attr();

	judge_begin(program);
	group_begin(program);
	if (program->lack || program->lack_memory)
		judge_doubt_all();
	memset(takers, 0, sizeof(takers));
	memset(has_takers, 0, sizeof(has_takers));
	memset(used, 0, sizeof(used));
	memset(is_lost, 0, sizeof(is_lost));
	memset(looks, 0, sizeof(looks));
	healed = was_killed = was_refused = false;
	claim_cnt = 0;
	jumped_ns = waited_ns = 0;
	set_params();
	net_begin(program->seed, &attr);
	if (program->dgram)
		return;
	node_begin(program);
	link_begin(program, &link_owner);
	for (unsigned n = 0; n < program->nodes; n++)
		node_start(n);
	if (program->msg)
		link_connect_all(program->nodes);
	lack(true);
	if (program->group)
		call_all(group_join);
}

/* The program of endpoints of tcp, up to their end. */
static void play_streams(void)
{
	for (uint32_t i = 0; i < program->cnt; i++)
		act(&program->actions[i]);
	settle();
	last_words();
	settle();
	if (program->group && program->faults)
		last_group();
	cancel_all();
	judge_finish();
	for (unsigned n = 0; n < program->nodes; n++)
		node_close(n);
	free_mute();
}

const char *play_run(const struct program *what, uint64_t *hash, uint64_t *time_ns)
{
	uint64_t begin_ns;
	unsigned left;

	program = what;
	if (setjmp(failed)) {
		net_heal();
		return why;
	}
	begin();
	begin_ns = net_now_ns();
	if (program->dgram)
		datagram_play(program);
	else
		play_streams();
	*hash = net_hash();
	*time_ns = net_now_ns() - begin_ns - jumped_ns - waited_ns;
	left = net_end();
	if (left)
		judge_wrong("%u descriptors are left", left);
	return NULL;
}
