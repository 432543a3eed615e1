/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Over verbs;ofi_rxm a packet always finds a receive at the other end, whatever the ends do: the device, which is that
 * of test/softverbs, counts those that do not (receiver not ready). One process, an endpoint a, which floods, and b,
 * which is slow or quiet.
 */
#include "base/unit.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define OK(call)	assert_int_equal(call, 0)
#define PATIENCE_S	60
#define CAPS		(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define KEEPING		200	/* messages that wait at the peer: more than it has buffers (FI_OFI_RXM_MSG_RX_SIZE) */
#define LONG		(256 << 10)	/* bytes of one that is announced */
#define IDLE_PASSES	200	/* of an end that nothing comes to */

struct end {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	unsigned done;			/* completions so far, all good */
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct end a, b;
static uint64_t word[2];
static char from[LONG], to[LONG];
static unsigned (*rnr_cnt)(void);
static unsigned rnr_before;

static void end_open(struct end *end)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	memset(end, 0, sizeof(*end));
	OK(fi_domain(fabric, info, &end->domain, NULL));
	OK(fi_av_open(end->domain, &av_attr, &end->av, NULL));
	OK(fi_cq_open(end->domain, &cq_attr, &end->cq, NULL));
	OK(fi_endpoint(end->domain, info, &end->ep, NULL));
	OK(fi_ep_bind(end->ep, &end->av->fid, 0));
	OK(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(end->ep));
}

static void end_close(struct end *end)
{
	OK(fi_close(&end->ep->fid));
	OK(fi_close(&end->cq->fid));
	OK(fi_close(&end->av->fid));
	OK(fi_close(&end->domain->fid));
}

static void introduce(struct end *end, struct end *peer)
{
	char name[64];
	size_t len = sizeof(name);

	OK(fi_getname(&peer->ep->fid, name, &len));
	assert_int_equal(fi_av_insert(end->av, name, 1, &end->peer, 0, NULL), 1);
}

static int setup(void **state)
{
	struct fi_info *hints = fi_allocinfo();

	(void) state;
	hints->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = CAPS;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->tx_attr->size = 4096;
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	end_open(&a);
	end_open(&b);
	introduce(&a, &b);
	introduce(&b, &a);
	rnr_before = rnr_cnt();
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	end_close(&a);
	end_close(&b);
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return 0;
}

/* One pass. True: something has completed. */
static bool drive(struct end *end)
{
	struct fi_cq_tagged_entry entry[16];
	ssize_t ret = fi_cq_read(end->cq, entry, 16);

	if (ret == -FI_EAGAIN)
		return false;
	assert_true(ret > 0);
	end->done += (unsigned) ret;
	return true;
}

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Drive b, and a if it is not to be quiet, until something is so. */
#define until(cond, with_a)								\
	do {										\
		time_t end_ = now_s() + PATIENCE_S;					\
		while (!(cond)) {							\
			drive(&b);							\
			if (with_a)							\
				drive(&a);						\
			if (now_s() > end_)						\
				fail_msg("in vain waited for %s", #cond);		\
		}									\
	} while (0)

/* What a device resends it does so on its own: all there is to see has been seen once all is delivered. */
static void expect_none(void)
{
	assert_int_equal(rnr_cnt() - rnr_before, 0);
}

/* Connected, by a message. */
static void meet(void)
{
	OK((int) fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, from, 8, NULL, a.peer, NULL));
	until(a.done == 1 && b.done == 1, true);
	a.done = b.done = 0;
}

#define FLOOD	10000

/* The receiver looks at its queue now and then, and posts a receive when it has looked often. */
static void flood(void **state)
{
	unsigned sent = 0, posted = 0;

	(void) state;
	meet();
	for (unsigned pass = 0; b.done < FLOOD; pass++) {
		while (sent < FLOOD && !fi_send(a.ep, from, 8, NULL, a.peer, NULL))
			sent++;
		drive(&a);
		if (pass % 4)
			continue;
		drive(&b);
		for (int i = 0; pass > 100 && posted < FLOOD && i < 64; i++) {
			if (fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL))
				break;
			posted++;
		}
	}
	until(a.done == FLOOD, true);
	expect_none();
}

/* Who has announced messages, and is quiet now, is told at once of all that they have been fetched. */
static void late_receives_of_long_messages(void **state)
{
	(void) state;
	meet();
	for (unsigned i = 0; i < KEEPING; i++)
		OK((int) fi_tsend(a.ep, from, LONG, NULL, a.peer, i, NULL));
	/* behind them: all have been announced */
	OK((int) fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, from, 8, NULL, a.peer, NULL));
	until(b.done == 1, true);
	for (unsigned i = 0; i < KEEPING; i++)
		OK((int) fi_trecv(b.ep, to, LONG, NULL, FI_ADDR_UNSPEC, i, 0, NULL));
	until(b.done == 1 + KEEPING, false);
	for (int i = 0; i < IDLE_PASSES; i++)
		drive(&b);
	until(a.done == 1 + KEEPING, true);
	expect_none();
}

/* Likewise who wants to know that short ones have been matched. */
static void late_matches(void **state)
{
	struct iovec iov = { from, 8 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1 };

	(void) state;
	meet();
	msg.addr = a.peer;
	for (msg.tag = 0; msg.tag < KEEPING; msg.tag++)
		OK((int) fi_tsendmsg(a.ep, &msg, FI_COMPLETION | FI_MATCH_COMPLETE));
	OK((int) fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, from, 8, NULL, a.peer, NULL));
	until(b.done == 1, true);
	for (unsigned i = 0; i < KEEPING; i++)
		OK((int) fi_trecv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, i, 0, NULL));
	until(b.done == 1 + KEEPING, false);
	for (int i = 0; i < IDLE_PASSES; i++)
		drive(&b);
	until(a.done == 1 + KEEPING, true);
	expect_none();
}

/* Both ask for atomics without a look at their queues: each is the other's slow receiver of requests and of answers. */
static void atomics_both_ways(void **state)
{
	struct fid_mr *mr[2];

	(void) state;
	meet();
	OK(fi_mr_reg(a.domain, &word[0], 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr[0], NULL));
	OK(fi_mr_reg(b.domain, &word[1], 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr[1], NULL));
	word[0] = word[1] = 0;
	memset(from, 0, 8);
	from[0] = 1;
	for (unsigned i = 0; i < 1000; i++) {
		OK((int) fi_atomic(a.ep, from, 1, NULL, a.peer, (uintptr_t) &word[1], fi_mr_key(mr[1]),
				   FI_UINT64, FI_SUM, NULL));
		OK((int) fi_atomic(b.ep, from, 1, NULL, b.peer, (uintptr_t) &word[0], fi_mr_key(mr[0]),
				   FI_UINT64, FI_SUM, NULL));
	}
	until(a.done == 1000 && b.done == 1000, true);
	assert_int_equal(word[0], 1000);
	assert_int_equal(word[1], 1000);
	expect_none();
	OK(fi_close(&mr[0]->fid));
	OK(fi_close(&mr[1]->fid));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(flood),
		CASE(late_receives_of_long_messages),
		CASE(late_matches),
		CASE(atomics_both_ways),
	};

	*(void **) &rnr_cnt = dlsym(dlopen("libibverbs.so.1", RTLD_NOW), "sv_test_rnr_cnt");
	if (!rnr_cnt)
		return 1;
	return cmocka_run_group_tests_name("rxm/rnr", tests, NULL, NULL);
}
