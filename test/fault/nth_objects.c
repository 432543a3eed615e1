/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The n-th allocation, and the n-th call on a descriptor, fails in the short lives of objects that nth.c does not have:
 * each is opened and used once. Whatever comes of it: an operation that was accepted has one completion at most
 * while the life goes on and exactly one when its endpoint is closed, nothing hangs, every close returns 0, no
 * descriptor is left (and under AddressSanitizer no memory).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_peer.h>
#include "base/bits.h"
#include "base/sock.h"
#include "base/unit.h"
#include "failing.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define DEADLINE_MS	60000
#define HOPE_MS		40	/* once something has failed: what has not come by then is left to the close */

struct op {
	struct fi_context2 context;
	bool posted;
	bool maybe;			/* only a failure is told, or there may be no queue left to tell it */
	int done;
};

/* Two of everything, those that talk. */
struct end {
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
};

static struct op ops[4];
static struct fid *owned[64];		/* in the order of opening */
static int owned_cnt;
static struct fid_fabric *fabric;
static struct fi_info *info;		/* of the life; made beforehand */
static char buf[2][256];

static bool keep(struct fid *fid)
{
	assert_true(owned_cnt < (int) fab_countof(owned));
	owned[owned_cnt++] = fid;
	return true;
}

/* Did this open something? Then it is closed when its turn comes. */
#define OPEN(call, var) (!(call) && keep(&(var)->fid))

/* ---- completions ---- */

static void count(void *context)
{
	struct op *op = context;

	assert_true(op >= ops && op < ops + fab_countof(ops));
	assert_true(op->posted);
	assert_int_equal(++op->done, 1);
}

static void drain(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN && ret != -FI_ENOSYS) {
		if (ret == 1)
			count(entry.op_context);
		else if (fi_cq_readerr(cq, &err, 0) == 1 && err.err != FI_EOVERRUN)
			count(err.op_context);
		else
			break;
	}
	if (ret == -FI_ENOSYS)		/* a peer's */
		fi_cq_read(cq, NULL, 0);
}

static void progress(void)
{
	for (int i = 0; i < owned_cnt; i++) {
		if (owned[i]->fclass == FI_CLASS_CQ)
			drain((struct fid_cq *) owned[i]);
		else if (owned[i]->fclass == FI_CLASS_CNTR)
			fi_cntr_read((struct fid_cntr *) owned[i]);
	}
}

/* Make progress until *done or nothing more is to be hoped for. */
static void run(const int *done)
{
	uint64_t begin = failing_now_ms();

	while (!*done && failing_now_ms() < begin + (failed ? HOPE_MS : DEADLINE_MS))
		progress();
	if (!failed && !*done)
		fail_msg("a life hangs though nothing failed");
}

#define POST(op, call) do {									\
	uint64_t post_begin = failing_now_ms();							\
	ssize_t post_ret;									\
												\
	while ((post_ret = (call)) == -FI_EAGAIN &&						\
	       failing_now_ms() < post_begin + (failed ? HOPE_MS : DEADLINE_MS))		\
		progress();									\
	(op)->posted = !post_ret;								\
} while (0)

/* ---- an end and another ---- */

static bool end_new(struct end *end, const struct fi_av_attr *av_attr)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr attr = av_attr ? *av_attr : (struct fi_av_attr) { .type = FI_AV_TABLE };

	return OPEN(fi_domain(fabric, info, &end->domain, NULL), end->domain) &&
	       OPEN(fi_cq_open(end->domain, &cq_attr, &end->cq, NULL), end->cq) &&
	       OPEN(fi_av_open(end->domain, &attr, &end->av, NULL), end->av);
}

static bool end_ep(struct end *end)
{
	return OPEN(fi_endpoint(end->domain, info, &end->ep, NULL), end->ep) &&
	       !fi_ep_bind(end->ep, &end->av->fid, 0) &&
	       !fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV);
}

static bool end_open(struct end *end)
{
	return end_new(end, NULL) && end_ep(end) && !fi_enable(end->ep);
}

static bool insert(struct end *at, struct end *of, fi_addr_t *addr)
{
	uint8_t name[64];
	size_t len = sizeof(name);

	return !fi_getname(&of->ep->fid, name, &len) && fi_av_insert(at->av, name, 1, addr, 0, NULL) == 1;
}

/* One message; ep: where to receive. What is posted to a shared context has no queue to end in when that is closed. */
static bool talk(struct end *from, fi_addr_t to, struct fid_ep *ep)
{
	POST(&ops[1], fi_recv(ep, buf[1], sizeof(buf[1]), NULL, FI_ADDR_UNSPEC, &ops[1]));
	POST(&ops[0], fi_send(from->ep, buf[0], sizeof(buf[0]), NULL, to, &ops[0]));
	if (ops[0].posted)
		run(&ops[0].done);
	if (ops[0].posted && ops[1].posted && !failed)
		run(&ops[1].done);
	ops[1].maybe = ep->fid.fclass == FI_CLASS_SRX_CTX;
	return ops[0].done && ops[1].done;
}

/* ---- the lives ---- */

/* Wait set and poll set, with a queue and a counter in both. */
static bool sets_life(void)
{
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_FD };
	struct fi_poll_attr poll_attr = { 0 };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_SET };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_SET };
	struct fid_domain *domain;
	struct fid_cntr *cntr;
	struct fid_wait *wait;
	struct fid_poll *poll;
	struct fid_cq *cq;
	void *contexts[2];
	bool ok;

	ok = OPEN(fi_wait_open(fabric, &wait_attr, &wait), wait);
	cq_attr.wait_set = cntr_attr.wait_set = ok ? wait : NULL;
	ok = ok && OPEN(fi_domain(fabric, info, &domain, NULL), domain) &&
	     OPEN(fi_cq_open(domain, &cq_attr, &cq, NULL), cq) &&
	     OPEN(fi_cntr_open(domain, &cntr_attr, &cntr, NULL), cntr) &&
	     OPEN(fi_poll_open(domain, &poll_attr, &poll), poll) && !fi_poll_add(poll, &cq->fid, 0) &&
	     !fi_poll_add(poll, &cntr->fid, 0) && fi_poll(poll, contexts, 2) >= 0 && !fi_cntr_add(cntr, 1);
	return ok && fi_wait(wait, 0) != -FI_EINVAL && !fi_poll_del(poll, &cq->fid, 0);
}

/* A named address vector and another that reads it. */
static bool named_life(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct end a = { 0 }, b = { 0 };
	uint8_t found[64];
	size_t len = sizeof(found);
	char name[64];
	fi_addr_t to;

	snprintf(name, sizeof(name), "nth of %d", (int) getpid());
	attr.name = name;
	if (!end_new(&b, &attr) || !end_ep(&b) || fi_enable(b.ep))
		return false;
	attr.flags = FI_READ;
	if (!end_new(&a, &attr) || !end_ep(&a) || fi_enable(a.ep) || !insert(&b, &b, &to))
		return false;
	return !fi_av_lookup(a.av, to, found, &len) && talk(&a, to, b.ep);
}

/* Exported objects of one domain; a queue and a counter of another are their peers. */
static bool export_life(void)
{
	struct fi_cq_attr cq_attr = { .flags = FI_PEER, .format = FI_CQ_FORMAT_TAGGED };
	struct fi_cntr_attr cntr_attr = { .flags = FI_PEER };
	struct fi_peer_cntr_context cntr_context = { .size = sizeof(cntr_context) };
	struct fi_peer_cq_context cq_context = { .size = sizeof(cq_context) };
	struct fi_av_set_attr set_attr = { .count = 1, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL };
	struct fid *cq, *cntr_fid, *av, *set_fid;
	struct fid_cntr *cntr, *peer_cntr;
	struct end a = { 0 }, b = { 0 };
	struct fi_av_attr attr = { 0 };
	struct fid_av_set *set;
	fi_addr_t to;

	if (!end_open(&a) || !OPEN(fi_cntr_open(a.domain, NULL, &cntr, NULL), cntr) ||
	    !OPEN(fi_av_set(a.av, &set_attr, &set, NULL), set))
		return false;
	if (fi_export_fid(&a.cq->fid, 0, &cq, NULL) || !keep(cq) || fi_export_fid(&cntr->fid, 0, &cntr_fid, NULL) ||
	    !keep(cntr_fid) || fi_export_fid(&a.av->fid, 0, &av, NULL) || !keep(av) ||
	    fi_export_fid(&set->fid, 0, &set_fid, NULL) || !keep(set_fid))
		return false;
	cq_context.cq = (struct fid_peer_cq *) cq;
	cntr_context.cntr = (struct fid_peer_cntr *) cntr_fid;
	if (!OPEN(fi_domain(fabric, info, &b.domain, NULL), b.domain) ||
	    !OPEN(fi_cq_open(b.domain, &cq_attr, &b.cq, &cq_context), b.cq) ||
	    !OPEN(fi_cntr_open(b.domain, &cntr_attr, &peer_cntr, &cntr_context), peer_cntr) ||
	    !OPEN(fi_av_open(b.domain, &attr, &b.av, NULL), b.av) || !end_ep(&b) ||
	    fi_ep_bind(b.ep, &peer_cntr->fid, FI_RECV) || fi_enable(b.ep) || !insert(&a, &b, &to))
		return false;
	return talk(&a, to, b.ep);
}

/* An exported receive context: another domain is its peer. Its first message waits for a receive, its second not. */
static bool receives_life(void)
{
	struct fi_cq_attr cq_attr = { .flags = FI_PEER, .format = FI_CQ_FORMAT_TAGGED };
	struct fi_rx_attr own_attr = *info->rx_attr, peer_attr = *info->rx_attr;
	struct fi_peer_srx_context srx_context = { .size = sizeof(srx_context) };
	struct fi_peer_cq_context cq_context = { .size = sizeof(cq_context) };
	struct iovec iov = { buf[0], sizeof(buf[0]) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = &ops[2] };
	struct fi_av_attr attr = { 0 };
	struct end a = { 0 }, b = { 0 };
	struct fid_ep *srx, *peer_srx;
	struct fid *exported, *cq;

	if (!end_new(&a, NULL) || !OPEN(fi_srx_context(a.domain, &own_attr, &srx, NULL), srx) || !end_ep(&a) ||
	    fi_ep_bind(a.ep, &srx->fid, 0) || fi_enable(a.ep))
		return false;
	if (fi_export_fid(&a.cq->fid, 0, &cq, NULL) || !keep(cq) || fi_export_fid(&srx->fid, 0, &exported, NULL) ||
	    !keep(exported))
		return false;
	peer_attr.op_flags = FI_PEER;
	cq_context.cq = (struct fid_peer_cq *) cq;
	srx_context.srx = (struct fid_peer_srx *) exported;
	if (!OPEN(fi_domain(fabric, info, &b.domain, NULL), b.domain) ||
	    !OPEN(fi_cq_open(b.domain, &cq_attr, &b.cq, &cq_context), b.cq) ||
	    !OPEN(fi_srx_context(b.domain, &peer_attr, &peer_srx, &srx_context), peer_srx) ||
	    !OPEN(fi_av_open(b.domain, &attr, &b.av, NULL), b.av) || !end_ep(&b) ||
	    fi_ep_bind(b.ep, &peer_srx->fid, 0) || fi_enable(b.ep) || !insert(&a, &b, &msg.addr))
		return false;
	POST(&ops[2], fi_sendmsg(a.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	if (ops[2].posted)
		run(&ops[2].done);
	POST(&ops[3], fi_recv(srx, buf[1], sizeof(buf[1]), NULL, FI_ADDR_UNSPEC, &ops[3]));
	if (ops[2].posted && ops[3].posted)
		run(&ops[3].done);
	ops[3].maybe = true;
	return talk(&a, msg.addr, srx) && ops[2].done && ops[3].done;
}

/* Shared contexts: the message is received by way of the one, sent by way of the other. */
static bool shared_life(void)
{
	struct fi_rx_attr rx_attr = *info->rx_attr;
	struct end a = { 0 }, b = { 0 };
	struct fid_stx *stx;
	struct fid_ep *srx;
	fi_addr_t to;

	return end_new(&a, NULL) && OPEN(fi_stx_context(a.domain, NULL, &stx, NULL), stx) && end_ep(&a) &&
	       !fi_ep_bind(a.ep, &stx->fid, 0) && !fi_enable(a.ep) &&
	       end_new(&b, NULL) && OPEN(fi_srx_context(b.domain, &rx_attr, &srx, NULL), srx) && end_ep(&b) &&
	       !fi_ep_bind(b.ep, &srx->fid, 0) && !fi_enable(b.ep) && insert(&a, &b, &to) && talk(&a, to, srx);
}

/* A send and an addition that wait for a counter, one that is cancelled. */
static bool deferred_life(void)
{
	static struct fi_deferred_work work[3];
	static struct iovec iov;
	static struct fi_op_msg msg;
	static struct fi_op_cntr add;
	struct end a = { 0 }, b = { 0 };
	struct fid_cntr *cntr, *done_cntr;
	fi_addr_t to;
	int done = 0;

	if (!end_new(&a, NULL) || !OPEN(fi_cntr_open(a.domain, NULL, &cntr, NULL), cntr) ||
	    !OPEN(fi_cntr_open(a.domain, NULL, &done_cntr, NULL), done_cntr) || !end_ep(&a) || fi_enable(a.ep) ||
	    !end_open(&b) || !insert(&a, &b, &to))
		return false;
	iov = (struct iovec) { buf[0], sizeof(buf[0]) };
	msg = (struct fi_op_msg) { .ep = a.ep, .msg = { .msg_iov = &iov, .iov_count = 1, .addr = to,
							     .context = &ops[0] } };
	add = (struct fi_op_cntr) { .cntr = done_cntr, .value = 1 };
	work[0] = (struct fi_deferred_work) { .threshold = 1, .triggering_cntr = cntr, .completion_cntr = done_cntr,
					      .op_type = FI_OP_SEND, .op.msg = &msg };
	work[1] = (struct fi_deferred_work) { .threshold = 2, .triggering_cntr = cntr, .op_type = FI_OP_CNTR_ADD,
					      .op.cntr = &add };
	work[2] = (struct fi_deferred_work) { .threshold = 9, .triggering_cntr = cntr, .op_type = FI_OP_CNTR_ADD,
					      .op.cntr = &add };
	POST(&ops[1], fi_recv(b.ep, buf[1], sizeof(buf[1]), NULL, FI_ADDR_UNSPEC, &ops[1]));
	for (int i = 0; i < 3; i++) {
		if (fi_control(&a.domain->fid, FI_QUEUE_WORK, &work[i])) {
			assert_true(failed);
			fi_control(&a.domain->fid, FI_FLUSH_WORK, NULL);
			return false;
		}
	}
	ops[0].posted = ops[0].maybe = true;
	fi_cntr_add(cntr, 2);
	for (uint64_t begin = failing_now_ms(); !done && failing_now_ms() < begin + (failed ? HOPE_MS : DEADLINE_MS);) {
		progress();
		done = fi_cntr_read(done_cntr) + fi_cntr_readerr(done_cntr) >= 2;
	}
	assert_true(done || failed);
	fi_control(&a.domain->fid, FI_CANCEL_WORK, &work[2]);
	fi_control(&a.domain->fid, FI_FLUSH_WORK, NULL);
	return done;
}

/* Regions of pieces, with a counter, with raw keys; a write that is counted. */
static bool regions_life(void)
{
	struct iovec iov[2] = { { buf[1], 64 }, { buf[1] + 128, 64 } };
	struct fid_mr *pieces, *counted, *raw;
	struct end a = { 0 }, b = { 0 };
	struct fid_cntr *cntr;
	uint8_t key[64];
	uint64_t base, mapped;
	size_t len = sizeof(key);
	fi_addr_t to;

	if (!end_open(&b) || !OPEN(fi_cntr_open(b.domain, NULL, &cntr, NULL), cntr) ||
	    !OPEN(fi_mr_regv(b.domain, iov, 2, FI_REMOTE_WRITE, 0, 7, 0, &pieces, NULL), pieces) ||
	    !OPEN(fi_mr_reg(b.domain, buf[1], 64, FI_REMOTE_WRITE, 0, 8, 0, &counted, NULL), counted) ||
	    !OPEN(fi_mr_reg(b.domain, buf[1], 64, FI_REMOTE_WRITE, 0, 9, 0, &raw, NULL), raw))
		return false;
	if (fi_mr_bind(counted, &cntr->fid, FI_REMOTE_WRITE) || fi_mr_raw_attr(raw, &base, key, &len, 0) ||
	    fi_mr_map_raw(b.domain, base, key, len, &mapped, 0) || fi_mr_unmap_key(b.domain, mapped))
		return false;
	if (!end_open(&a) || !insert(&a, &b, &to))
		return false;
	POST(&ops[2], fi_write(a.ep, buf[0], 64, NULL, to, 0, 8, &ops[2]));
	if (ops[2].posted)
		run(&ops[2].done);
	POST(&ops[3], fi_write(a.ep, buf[0], 128, NULL, to, 0, 7, &ops[3]));
	if (ops[3].posted)
		run(&ops[3].done);
	return ops[2].done && ops[3].done;
}

/* Keys that come with addresses: both ends have one in common. */
static bool keys_life(void)
{
	struct end a = { 0 }, b = { 0 };
	uint8_t key[] = "a key of both";
	fi_addr_t handle, to;

	if (!end_new(&a, NULL) || fi_av_insert_auth_key(a.av, key, sizeof(key), &handle, 0) || !end_ep(&a) ||
	    fi_enable(a.ep) || !end_new(&b, NULL) || fi_av_insert_auth_key(b.av, key, sizeof(key), &to, 0) ||
	    !end_ep(&b) || fi_enable(b.ep))
		return false;
	to = handle;			/* in: the key of the address */
	{
		uint8_t name[64];
		size_t len = sizeof(name);

		if (fi_getname(&b.ep->fid, name, &len) || fi_av_insert(a.av, name, 1, &to, FI_AUTH_KEY, NULL) != 1)
			return false;
	}
	return talk(&a, to, b.ep);
}

/* Numbers of the program for its peers. */
static bool ids_life(void)
{
	struct end a = { 0 }, b = { 0 };
	fi_addr_t to = 77;
	uint8_t name[64];
	size_t len = sizeof(name);

	return end_open(&a) && end_open(&b) && !fi_getname(&b.ep->fid, name, &len) &&
	       fi_av_insert(a.av, name, 1, &to, FI_AV_USER_ID, NULL) == 1 && !fi_av_set_user_id(a.av, to, 78, 0) &&
	       talk(&a, to, b.ep);
}

/* An alias of an endpoint for one direction: tables and flags of its own. */
static bool alias_life(void)
{
	struct end a = { 0 }, b = { 0 };
	struct fid_ep *alias;
	fi_addr_t to;

	if (!end_open(&a) || !end_open(&b) || !insert(&a, &b, &to) ||
	    !OPEN(fi_ep_alias(a.ep, &alias, FI_TRANSMIT | FI_DELIVERY_COMPLETE), alias))
		return false;
	a.ep = alias;
	return talk(&a, to, b.ep);
}

static bool plain_life(void)
{
	struct end a = { 0 }, b = { 0 };
	fi_addr_t to;

	return end_open(&a) && end_open(&b) && insert(&a, &b, &to) && talk(&a, to, b.ep);
}

static bool one_way_life(void)
{
	struct fid_domain *domain;
	struct fid_ep *ep;

	return OPEN(fi_domain(fabric, info, &domain, NULL), domain) && OPEN(fi_endpoint(domain, info, &ep, NULL), ep) &&
	       fi_send(ep, buf[0], 1, NULL, 0, NULL) != -FI_ENOSYS &&
	       fi_recv(ep, buf[0], 1, NULL, FI_ADDR_UNSPEC, NULL) == -FI_ENOSYS;
}

/* ---- one after the other ---- */

static struct kind {
	const char *name, *prov;
	enum fi_ep_type type;
	uint64_t caps;
	bool (*life)(void);
} kinds[] = {
	{ "sets", "tcp", FI_EP_RDM, FI_MSG, sets_life },
	{ "named", "tcp", FI_EP_RDM, FI_MSG | FI_SHARED_AV, named_life },
	{ "export", "tcp", FI_EP_RDM, FI_MSG | FI_PEER | FI_COLLECTIVE, export_life },
	{ "receives", "tcp", FI_EP_RDM, FI_MSG | FI_PEER, receives_life },
	{ "shared", "tcp", FI_EP_RDM, FI_MSG, shared_life },
	{ "deferred", "tcp", FI_EP_RDM, FI_MSG | FI_TRIGGER, deferred_life },
	{ "regions", "tcp", FI_EP_RDM, FI_MSG | FI_RMA | FI_RMA_EVENT, regions_life },
	{ "keys", "tcp", FI_EP_RDM, FI_MSG, keys_life },
	{ "ids", "tcp", FI_EP_RDM, FI_MSG | FI_AV_USER_ID | FI_SOURCE, ids_life },
	{ "alias", "tcp", FI_EP_RDM, FI_MSG, alias_life },
	{ "one_way", "tcp", FI_EP_RDM, FI_MSG | FI_SEND, one_way_life },
	{ "datagrams", "udp", FI_EP_DGRAM, FI_MSG, plain_life },
};

static void life(void *arg)
{
	const struct kind *kind = arg;
	bool whole;

	memset(ops, 0, sizeof(ops));
	if (fi_fabric(info->fabric_attr, &fabric, NULL))
		return;
	whole = kind->life();
	assert_true(whole || failed);
	while (owned_cnt) {
		struct fid *fid = owned[--owned_cnt];

		if (fid->fclass == FI_CLASS_CQ)
			drain((struct fid_cq *) fid);
		assert_int_equal(fi_close(fid), 0);
	}
	assert_int_equal(fi_close(&fabric->fid), 0);
	for (size_t i = 0; i < fab_countof(ops); i++) {
		if (ops[i].posted && !ops[i].maybe && ops[i].done != 1)
			fail_msg("operation %zu was accepted and has %d completions", i, ops[i].done);
	}
}

/* NULL: this build does not have it. */
static struct fi_info *info_get(const struct kind *kind)
{
	struct fi_info *hints = fi_allocinfo(), *found = NULL;

	hints->ep_attr->type = kind->type;
	hints->caps = kind->caps;
	hints->fabric_attr->prov_name = strdup(kind->prov);
	if (kind->life == keys_life)
		hints->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &found);
	fi_freeinfo(hints);
	return found;
}

static void sweep(long *until, struct kind *kind)
{
	owned_cnt = 0;
	info = info_get(kind);
	if (!info)
		unit_skip("this build lacks the provider");
	print_message("# %s\n", kind->name);
	failing_install();
	life(kind);			/* whatever is made once for the process */
	assert_true(failing_sweep(until, life, kind) > 1);
	fab_sock = &fab_sock_libc;
	fi_freeinfo(info);
}

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

#define BOTH(i) \
	cmocka_unit_test_prestate(nth_allocation_fails, &kinds[i]), \
	cmocka_unit_test_prestate(nth_call_on_a_descriptor_fails, &kinds[i])

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(0), BOTH(1), BOTH(2), BOTH(3), BOTH(4), BOTH(5), BOTH(6), BOTH(7), BOTH(8), BOTH(9), BOTH(10),
		BOTH(11),
	};

	_Static_assert(fab_countof(tests) == 2 * fab_countof(kinds), "each kind of life twice");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
