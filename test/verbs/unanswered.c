/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint that asked for a connection is closed before there is an answer. On iWARP the kernel keeps its queue pair
 * until then, and whoever destroys that sleeps: fi_close does not, and the answer is looked after all the same. The
 * device is test/softverbs', which counts who would sleep.
 */
#include "link.h"
#include "../softverbs/stand_in.h"

#include <stdio.h>
#include <string.h>
#include <rdma/rdma_cma.h>

static unsigned waits(void)
{
	return ((unsigned (*)(void)) stand_in_cm("sv_test_answer_waits"))();
}

/* The request is there, whoever made it has closed. */
static struct happened drop(struct link *link)
{
	struct happened request;

	link_listen(link);
	request = link_request(link);
	MUST(fi_close(&link->a.ep->fid));
	link->a.ep = NULL;
	MUST_BE(!waits());
	return request;
}

static void rejected(void)
{
	struct link link = { 0 };
	struct happened request = drop(&link);

	MUST(fi_reject(link.pep, request.info->handle, NULL, 0));
	fi_freeinfo(request.info);
	link_close(&link);
}

/* Whoever accepts hears that there is nobody. */
static void accepted(void)
{
	struct link link = { 0 };
	struct happened request = drop(&link), what;

	link_open_b(&link, request.info);
	MUST(fi_accept(link.b.ep, NULL, 0));
	what = await_event(&link, link.b.eq);
	if (what.event == FI_CONNECTED)
		what = await_event(&link, link.b.eq);
	MUST_BE(what.event == FI_SHUTDOWN || what.err);
	MUST_BE(!waits());
	link_close(&link);
}

/* An event that is no answer comes first. */
static void address_changes(void)
{
	struct link link = { 0 };
	struct happened request = drop(&link);
	unsigned (*tell_ids)(int, int), (*event_cnt)(int), told;

	tell_ids = stand_in_cm("sv_test_tell_ids");
	event_cnt = stand_in_cm("sv_test_event_cnt");
	told = tell_ids(RDMA_CM_EVENT_ADDR_CHANGE, 0);
	MUST_BE(told == 2);		/* the listener, and the request of the endpoint that is closed */
	MUST(end_open_ep(&link.a));
	while (event_cnt(RDMA_CM_EVENT_ADDR_CHANGE) < told) {
		uint32_t event;

		fi_cq_read(link.a.cq, NULL, 0);
		MUST_FAIL(fi_eq_read(link.pep_eq, &event, NULL, 0, 0), FI_EAGAIN);
	}
	MUST_BE(!waits());
	MUST(fi_reject(link.pep, request.info->handle, NULL, 0));
	fi_freeinfo(request.info);
	while (!event_cnt(RDMA_CM_EVENT_REJECTED))
		fi_cq_read(link.a.cq, NULL, 0);
	link_close(&link);
	MUST_BE(!waits());
}

/* Another connection of the same queues comes and goes meanwhile. */
static void others_go_on(void)
{
	struct link link = { 0 };
	struct happened first = drop(&link);

	MUST(end_open_ep(&link.a));
	link_accept(&link, link_request(&link).info);
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), 64);
	MUST(fi_reject(link.pep, first.info->handle, NULL, 0));
	fi_freeinfo(first.info);
	MUST_BE(!waits());
	link_close(&link);
}

/* The listener goes with the request, which is an answer, too. */
static void nobody_answers(void)
{
	struct link link = { 0 };
	struct happened request = drop(&link);

	fi_freeinfo(request.info);
	MUST(fi_close(&link.pep->fid));
	link.pep = NULL;
	link_close(&link);
}

#define IWARP "SOFTVERBS_LIMITS=iwarp=1"

static const struct vcase cases[] = {
	{ "rejected after the close", IWARP, rejected, NULL },
	{ "accepted after the close", IWARP, accepted, NULL },
	{ "the address changes meanwhile", IWARP, address_changes, NULL },
	{ "another connection meanwhile", IWARP, others_go_on, NULL },
	{ "nobody answers", IWARP, nobody_answers, NULL },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
