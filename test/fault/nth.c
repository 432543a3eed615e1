/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The n-th allocation fails, and the n-th call on a descriptor fails, for every n that a short life of two endpoints
 * has, MSG or RDM of tcp, RDM of ofi_rxm over it, datagrams: open, connect, send, tagged send, a message too long to go
 * unasked, write, read, close; and another life with a group, collectives and a triggered operation. Whatever comes
 * of it: each operation that was accepted has exactly one completion, nothing hangs, every close returns 0, no
 * descriptor is left (and under AddressSanitizer no memory).
 *
 * And once more for RDM with a single connection allowed, so that it is closed after each of these and opened again.
 *
 * Other objects live in nth_objects.c. One thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>
#include "base/sock.h"
#include "base/unit.h"
#include "failing.h"
#include "tcp/params/params.h"

#define DEADLINE_MS	20000
#define HOPE_MS		150	/* once something has failed: what has not come by then is left to the close */
#define LONG_LEN	(320 * 1024)
#define RESTS		8
#define REST_NS		1000000ULL

/* ---- a short life ---- */

enum {
	OP_SEND, OP_TSEND, OP_LONG, OP_WRITE, OP_READ, OP_FETCH, OP_RECV, OP_TRECV, OP_LRECV,
	OP_BARRIER, OP_BARRIER_2, OP_SUM, OP_SUM_2, OP_TRIGGERED, OP_CNT
};

struct op {
	struct fi_triggered_context context;
	bool posted;
	int done;			/* completions, good or bad */
};

struct side {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct fid_eq *eq;		/* MSG: of both sides, not owned */
	struct fid_eq *join_eq;		/* RDM with groups: likewise */
	struct fid_av_set *set;
	struct fid_mc *mc;
	struct fid_cntr *cntr;
	bool sends;			/* with contexts: ep transmits, of sep and with stx; else it receives */
	struct fid_ep *sep;
	struct fid_stx *stx;
	struct fi_info *info;
	uint8_t *memory;		/* static: LONG_LEN bytes */
};

static struct op ops[OP_CNT];
static bool park;			/* rest between operations, so that connections may go */
static uint8_t memory[2][LONG_LEN];

static void count(void *context)
{
	struct op *op = context;

	assert_true(op >= ops && op < ops + OP_CNT);
	assert_true(op->posted);
	op->done++;
}

/* Read whatever one CQ has. */
static void drain(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while (cq && (ret = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN) {
		struct fi_cq_err_entry err = { 0 };

		if (ret == 1) {
			count(entry.op_context);
			continue;
		}
		assert_int_equal(ret, -FI_EAVAIL);
		if (fi_cq_readerr(cq, &err, 0) == 1)
			count(err.op_context);
	}
}

/* Make progress on both sides until done() or nothing more is to be hoped for. */
static void run(struct side *s, struct op *op)
{
	uint64_t end = failing_now_ms() + HOPE_MS;

	while (op->posted && !op->done && (!failed || failing_now_ms() < end)) {
		drain(s[0].cq);
		drain(s[1].cq);
		if (!failed && failing_now_ms() > end + DEADLINE_MS)
			fail_msg("operation %d hangs though nothing failed", (int) (op - ops));
		if (failed && op >= &ops[OP_RECV])
			end = 0;	/* a receive may rightly wait for ever once its message is lost */
	}
	for (int i = 0; i < RESTS && park; i++) {
		waited_ns += REST_NS;
		drain(s[0].cq);
		drain(s[1].cq);
	}
}

/* Post until the queue takes it; an error is an answer too. */
#define POST(op, call) do {								\
	ssize_t post_ret;								\
	uint64_t post_end = failing_now_ms() + HOPE_MS;						\
											\
	while ((post_ret = (call)) == -FI_EAGAIN && failing_now_ms() < post_end) {		\
		drain(s[0].cq);								\
		drain(s[1].cq);								\
	}										\
	ops[op].posted = !post_ret;							\
} while (0)

/* The endpoint is a context of a scalable one: the first side's sends, the second's receives. */
static int ctx_open(struct side *s)
{
	int ret;

	if ((ret = fi_scalable_ep(s->domain, s->info, &s->sep, NULL)) ||
	    (ret = fi_scalable_ep_bind(s->sep, &s->av->fid, 0)))
		return ret;
	if (!s->sends)
		return (ret = fi_rx_context(s->sep, 1, NULL, &s->ep, NULL)) ? ret :
		       fi_ep_bind(s->ep, &s->cq->fid, FI_RECV);
	if ((ret = fi_stx_context(s->domain, NULL, &s->stx, NULL)) ||
	    (ret = fi_tx_context(s->sep, 0, NULL, &s->ep, NULL)) ||
	    (ret = fi_ep_bind(s->ep, &s->stx->fid, 0)))
		return ret;
	return fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT);
}

static int ep_open(struct side *s)
{
	int ret;

	if (s->info->caps & FI_NAMED_RX_CTX)
		return ctx_open(s);
	if ((ret = fi_endpoint(s->domain, s->info, &s->ep, NULL)) ||
	    (ret = fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV)))
		return ret;
	return fi_ep_bind(s->ep, s->eq ? &s->eq->fid : &s->av->fid, 0);
}

static int side_open(struct side *s, struct fid_fabric *fabric, const struct fi_info *info)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .rx_ctx_bits = 1 };
	int ret;

	s->info = fi_dupinfo(info);
	if (!s->info)
		return -FI_ENOMEM;
	if ((ret = fi_domain(fabric, s->info, &s->domain, NULL)) ||
	    (ret = fi_cq_open(s->domain, &cq_attr, &s->cq, NULL)) ||
	    (ret = fi_av_open(s->domain, &av_attr, &s->av, NULL)) ||
	    (ret = ep_open(s)) ||
	    (s->join_eq && (ret = fi_ep_bind(s->ep, &s->join_eq->fid, 0))) ||
	    (ret = fi_enable(s->ep)))
		return ret;
	return fi_mr_reg(s->domain, s->memory, LONG_LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &s->mr, NULL);
}

static void side_close(struct side *s)
{
	if (s->mr)
		assert_int_equal(fi_close(&s->mr->fid), 0);
	if (s->mc)
		assert_int_equal(fi_close(&s->mc->fid), 0);
	if (s->set)
		assert_int_equal(fi_close(&s->set->fid), 0);
	if (s->ep)
		assert_int_equal(fi_close(&s->ep->fid), 0);
	if (s->sep)
		assert_int_equal(fi_close(&s->sep->fid), 0);
	if (s->stx)
		assert_int_equal(fi_close(&s->stx->fid), 0);
	drain(s->cq);
	if (s->cntr)
		assert_int_equal(fi_close(&s->cntr->fid), 0);
	if (s->av)
		assert_int_equal(fi_close(&s->av->fid), 0);
	if (s->cq)
		assert_int_equal(fi_close(&s->cq->fid), 0);
	if (s->domain)
		assert_int_equal(fi_close(&s->domain->fid), 0);
	fi_freeinfo(s->info);
}

static void transfer(struct side *s)
{
	uint8_t name[64];
	size_t len = sizeof(name);
	fi_addr_t to = FI_ADDR_UNSPEC;

	if (!s->eq && (fi_getname(&s[1].ep->fid, name, &len) || fi_av_insert(s[0].av, name, 1, &to, 0, NULL) != 1))
		return;
	if (s[1].sep)
		to = fi_rx_addr(to, 1, 1);
	POST(OP_RECV, fi_recv(s[1].ep, s[1].memory, 64, NULL, FI_ADDR_UNSPEC, &ops[OP_RECV]));
	POST(OP_SEND, fi_send(s[0].ep, s[0].memory, 64, NULL, to, &ops[OP_SEND]));
	run(s, &ops[OP_SEND]);
	run(s, &ops[OP_RECV]);
	if (s->info->ep_attr->type == FI_EP_DGRAM)
		return;
	/* unexpected first */
	POST(OP_TSEND, fi_tsend(s[0].ep, s[0].memory, 1000, NULL, to, 5, &ops[OP_TSEND]));
	run(s, &ops[OP_TSEND]);
	POST(OP_TRECV, fi_trecv(s[1].ep, s[1].memory, 1000, NULL, FI_ADDR_UNSPEC, 5, 0, &ops[OP_TRECV]));
	run(s, &ops[OP_TRECV]);
	POST(OP_LRECV, fi_trecv(s[1].ep, s[1].memory, LONG_LEN, NULL, FI_ADDR_UNSPEC, 6, 0, &ops[OP_LRECV]));
	POST(OP_LONG, fi_tsend(s[0].ep, s[0].memory, LONG_LEN, NULL, to, 6, &ops[OP_LONG]));
	run(s, &ops[OP_LONG]);
	run(s, &ops[OP_LRECV]);
	POST(OP_WRITE, fi_write(s[0].ep, s[0].memory, 512, NULL, to, 0, 7, &ops[OP_WRITE]));
	run(s, &ops[OP_WRITE]);
	POST(OP_READ, fi_read(s[0].ep, s[0].memory, 512, NULL, to, 0, 7, &ops[OP_READ]));
	run(s, &ops[OP_READ]);
	POST(OP_FETCH, fi_fetch_atomic(s[0].ep, s[0].memory, 256, NULL, s[0].memory + 4096, NULL, to, 0, 7, FI_UINT64,
				       FI_SUM, &ops[OP_FETCH]));
	run(s, &ops[OP_FETCH]);
}

/* ---- groups, and what counters start ---- */

static bool joined(struct fid_eq *eq, struct side *s)
{
	uint64_t end = failing_now_ms() + HOPE_MS;
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	do {
		drain(s[0].cq);
		drain(s[1].cq);
		ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
		if (!failed && failing_now_ms() > end + DEADLINE_MS)
			fail_msg("a join never ends though nothing failed");
	} while (ret == -FI_EAGAIN && (!failed || failing_now_ms() < end));
	if (ret == -FI_EAVAIL)
		fi_eq_readerr(eq, &err, 0);
	return ret == sizeof(entry);
}

/* Both addresses, in the same order, as this side knows them; ask to join. */
static bool join(struct side *s, const uint8_t (*names)[64])
{
	struct fi_av_set_attr attr = {
		.count = 2, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL,
	};
	fi_addr_t addr;

	if (fi_av_set(s->av, &attr, &s->set, NULL))
		return false;
	for (int i = 0; i < 2; i++) {
		if (fi_av_insert(s->av, names[i], 1, &addr, 0, NULL) != 1 || fi_av_set_insert(s->set, addr))
			return false;
	}
	return !fi_av_set_addr(s->set, &addr) && !fi_join_collective(s->ep, addr, s->set, 0, &s->mc, NULL);
}

static void group_life(struct side *s)
{
	static uint64_t in[2] = { 1, 2 }, out[2];
	uint8_t names[2][64];

	for (int i = 0; i < 2; i++) {
		if (fi_getname(&s[i].ep->fid, names[i], &(size_t) { sizeof(names[i]) }))
			return;
	}
	if (!join(&s[0], names) || !join(&s[1], names) || !joined(s->join_eq, s) || !joined(s->join_eq, s))
		return;
	for (int i = 0; i < 2; i++)
		POST(OP_BARRIER + i, fi_barrier(s[i].ep, fi_mc_addr(s[i].mc), &ops[OP_BARRIER + i]));
	for (int i = 0; i < 2; i++)
		POST(OP_SUM + i, fi_allreduce(s[i].ep, &in[i], 1, NULL, &out[i], NULL, fi_mc_addr(s[i].mc), FI_UINT64,
					      FI_SUM, 0, &ops[OP_SUM + i]));
	for (int i = 0; i < 4; i++)
		run(s, &ops[OP_BARRIER + i]);
}

/* A send that nothing triggers: closing the endpoint cancels it. */
static void trigger_life(struct side *s)
{
	struct fi_triggered_context *context = &ops[OP_TRIGGERED].context;
	struct iovec iov = { s->memory, 64 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = 0, .context = context };

	if (fi_cntr_open(s->domain, NULL, &s->cntr, NULL))
		return;
	context->event_type = FI_TRIGGER_THRESHOLD;
	context->trigger.threshold.cntr = s->cntr;
	context->trigger.threshold.threshold = 1;
	POST(OP_TRIGGERED, fi_sendmsg(s->ep, &msg, FI_TRIGGER));
}

/* ---- how MSG endpoints come to each other ---- */

/* The next event, its info to *info. False: an error event, or none will come. */
static bool next_event(struct side *s, uint32_t wanted, struct fi_info **info)
{
	uint64_t end = failing_now_ms() + HOPE_MS;
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	uint32_t event;
	ssize_t ret;

	do {
		drain(s[0].cq);
		drain(s[1].cq);
		ret = fi_eq_read(s->eq, &event, &entry, sizeof(entry), 0);
		if (!failed && failing_now_ms() > end + DEADLINE_MS)
			fail_msg("event %u never comes though nothing failed", wanted);
	} while (ret == -FI_EAGAIN && (!failed || failing_now_ms() < end));
	if (ret == -FI_EAVAIL)
		fi_eq_readerr(s->eq, &err, 0);
	if (ret != sizeof(entry))
		return false;
	if (info)
		*info = entry.info;
	return event == wanted;
}

static bool accept_request(struct side *s, struct fid_fabric *fabric)
{
	struct fi_info *info;
	bool ok;

	if (!next_event(s, FI_CONNREQ, &info))
		return false;
	ok = !side_open(&s[1], fabric, info) && !fi_accept(s[1].ep, NULL, 0);
	fi_freeinfo(info);
	return ok && next_event(s, FI_CONNECTED, NULL) && next_event(s, FI_CONNECTED, NULL);
}

static void msg_life(struct side *s, struct fid_fabric *fabric, struct fi_info *info)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_FD };
	struct fid_pep *pep = NULL;
	uint8_t name[64];
	size_t len = sizeof(name);

	if (fi_eq_open(fabric, &eq_attr, &s[0].eq, NULL))
		return;
	s[1].eq = s[0].eq;
	if (!fi_passive_ep(fabric, info, &pep, NULL) && !fi_pep_bind(pep, &s->eq->fid, 0) && !fi_listen(pep) &&
	    !fi_getname(&pep->fid, name, &len) && !side_open(&s[0], fabric, info) &&
	    !fi_connect(s[0].ep, name, NULL, 0) && accept_request(s, fabric))
		transfer(s);
	if (pep)
		assert_int_equal(fi_close(&pep->fid), 0);
}

static void rdm_life(struct side *s, struct fid_fabric *fabric, struct fi_info *info)
{
	bool groups = info->caps & FI_COLLECTIVE;

	if (groups && fi_eq_open(fabric, &(struct fi_eq_attr) { .wait_obj = FI_WAIT_NONE }, &s[0].join_eq, NULL))
		return;
	s[1].join_eq = s[0].join_eq;
	if (side_open(&s[0], fabric, info) || side_open(&s[1], fabric, info))
		return;
	if (groups) {
		group_life(s);
		trigger_life(s);
	} else {
		transfer(s);
	}
}

/* One life. The answer of fi_getinfo is made beforehand: it has its own tests. */
static void life(struct fi_info *info)
{
	struct side s[2] = { { .memory = memory[0], .sends = true }, { .memory = memory[1] } };
	struct fid_fabric *fabric = NULL;

	memset(ops, 0, sizeof(ops));
	if (fi_fabric(info->fabric_attr, &fabric, NULL))
		return;
	if (info->ep_attr->type == FI_EP_MSG)
		msg_life(s, fabric, info);
	else
		rdm_life(s, fabric, info);
	side_close(&s[0]);
	side_close(&s[1]);
	if (s->eq)
		assert_int_equal(fi_close(&s->eq->fid), 0);
	if (s->join_eq)
		assert_int_equal(fi_close(&s->join_eq->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	for (int i = 0; i < OP_CNT; i++) {
		if (ops[i].posted && ops[i].done != 1)
			fail_msg("operation %d was accepted and has %d completions", i, ops[i].done);
	}
}

/* What lives. */
struct kind {
	enum fi_ep_type type;
	const char *prov;		/* NULL: tcp */
	bool keyed;			/* under an authorization key */
	bool parked;			/* with a single connection allowed: it is closed whenever it is idle */
	bool groups;			/* collectives and triggered operations in place of transfers */
	bool contexts;			/* scalable endpoints, each context on an engine of its own */
};

static struct fi_info *info_get(const struct kind *kind)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->ep_attr->type = kind->type;
	if (kind->keyed) {
		hints->domain_attr->auth_key = (uint8_t *) strdup("a key");
		hints->domain_attr->auth_key_size = 5;
	}
	hints->caps = kind->type == FI_EP_DGRAM ? FI_MSG : FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	if (kind->groups)
		hints->caps |= FI_COLLECTIVE | FI_TRIGGER;
	if (kind->contexts) {
		hints->caps |= FI_NAMED_RX_CTX;
		hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = 2;
		hints->domain_attr->threading = FI_THREAD_COMPLETION;
	}
	hints->fabric_attr->prov_name = strdup(kind->prov ? kind->prov : "tcp");
	assert_int_equal(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &info), 0);
	fi_freeinfo(hints);
	return info;
}

static void life_of(void *info)
{
	life(info);
}

/* What a life of this kind does, when all goes well. */
static bool does(const struct kind *kind, int op)
{
	if (kind->type == FI_EP_DGRAM)
		return op == OP_SEND || op == OP_RECV;
	return (op >= OP_BARRIER) == kind->groups;
}

/* Fail the first, the second ... until a life sees none fail. */
static void sweep(long *until, const struct kind *kind)
{
	struct fi_info *info = info_get(kind);

	failing_install();
	park = kind->parked;
	tcp_params.max_conn = kind->parked;
	life(info);			/* whatever is made once for the process */
	for (int i = 0; i < OP_CNT; i++)
		assert_int_equal(ops[i].done, does(kind, i));
	assert_true(failing_sweep(until, life_of, info) > 10);
	fab_sock = &fab_sock_libc;
	fi_freeinfo(info);
}

static struct kind kinds[] = {
	{ .type = FI_EP_RDM }, { .type = FI_EP_MSG }, { .type = FI_EP_RDM, .keyed = true },
	{ .type = FI_EP_MSG, .keyed = true }, { .type = FI_EP_RDM, .parked = true },
	{ .type = FI_EP_RDM, .groups = true }, { .type = FI_EP_RDM, .contexts = true },
	{ .type = FI_EP_RDM, .prov = "tcp;ofi_rxm" }, { .type = FI_EP_DGRAM, .prov = "udp" },
};

static void nth_allocation_fails(void **state)
{
	if (!CAN_FAIL_ALLOC)
		unit_skip("a sanitizer has a heap of its own");
	sweep(&alloc_until, *state);
}

static void nth_call_on_a_descriptor_fails(void **state)
{
	sweep(&sock_until, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(nth_allocation_fails, &kinds[0]),
		cmocka_unit_test_prestate(nth_call_on_a_descriptor_fails, &kinds[0]),
		cmocka_unit_test_prestate(nth_allocation_fails, &kinds[1]),
		cmocka_unit_test_prestate(nth_call_on_a_descriptor_fails, &kinds[1]),
		cmocka_unit_test_prestate(nth_allocation_fails, &kinds[2]),
		cmocka_unit_test_prestate(nth_call_on_a_descriptor_fails, &kinds[2]),
		cmocka_unit_test_prestate(nth_allocation_fails, &kinds[3]),
		cmocka_unit_test_prestate(nth_call_on_a_descriptor_fails, &kinds[3]),
		cmocka_unit_test_prestate(nth_allocation_fails, &kinds[4]),
		cmocka_unit_test_prestate(nth_call_on_a_descriptor_fails, &kinds[4]),
		cmocka_unit_test_prestate(nth_allocation_fails, &kinds[5]),
		cmocka_unit_test_prestate(nth_call_on_a_descriptor_fails, &kinds[5]),
		cmocka_unit_test_prestate(nth_allocation_fails, &kinds[6]),
		cmocka_unit_test_prestate(nth_call_on_a_descriptor_fails, &kinds[6]),
		cmocka_unit_test_prestate(nth_allocation_fails, &kinds[7]),
		cmocka_unit_test_prestate(nth_call_on_a_descriptor_fails, &kinds[7]),
		cmocka_unit_test_prestate(nth_allocation_fails, &kinds[8]),
		cmocka_unit_test_prestate(nth_call_on_a_descriptor_fails, &kinds[8]),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
