/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations of which nobody hears when they go well: injected, without a completion. Their caller owes the library no
 * further call, so what was accepted goes by itself; what cannot go now is refused with -FI_EAGAIN.
 * Source: fi_msg(3), fi_rma(3).
 */
#include <stdio.h>
#include <string.h>
#include <rdma/fi_atomic.h>

#include "ops.h"
#include "process.h"

enum { MANY = 200, ITEM = 8 };

static const struct way {
	const char *name;
	enum call call;
	const char *kind;		/* what the peer is asked to take: see process.h */
	uint64_t flags, caps;
	bool atomic;			/* fi_inject_atomic(), in place of call */
} ways[] = {
	{ .name = "inject", .call = INJECT, .kind = "message" },
	{ .name = "injectdata", .call = INJECTDATA, .kind = "message" },
	{ .name = "sendmsg", .call = SENDMSG, .kind = "message", .flags = FI_INJECT },
	{ .name = "tinject", .call = TINJECT, .kind = "tagged", .caps = FI_TAGGED },
	{ .name = "tinjectdata", .call = TINJECTDATA, .kind = "tagged", .caps = FI_TAGGED },
	{ .name = "tsendmsg", .call = TSENDMSG, .kind = "tagged", .flags = FI_INJECT, .caps = FI_TAGGED },
	{ .name = "inject_write", .call = INJECT_WRITE, .kind = "region", .caps = FI_RMA },
	{ .name = "inject_writedata", .call = INJECT_WRITEDATA, .kind = "data", .caps = FI_RMA },
	{ .name = "writemsg", .call = WRITEMSG, .kind = "region", .flags = FI_INJECT, .caps = FI_RMA },
	{ .name = "writemsg_data", .call = WRITEMSG, .kind = "data", .flags = FI_INJECT | FI_REMOTE_CQ_DATA,
	  .caps = FI_RMA },
	{ .name = "inject_atomic", .atomic = true, .kind = "region", .caps = FI_ATOMIC },
};

/* An endpoint with selective completions, a process that it can reach, and memory there. */
struct scene {
	struct process *proc;
	struct side *s;
	uint64_t addr, key;
};

static struct scene scene_open(struct test *t)
{
	const struct way *way = ROW(ways);
	struct scene scene;

	if (!offered(FI_MSG | way->caps))
		ABSENT("%s does not have this call", run.prov);
	scene.proc = process_new(t);
	scene.s = side_to(t, scene.proc, .caps = FI_MSG | way->caps, .tx_bind = FI_SELECTIVE_COMPLETION);
	if (way->caps & (FI_RMA | FI_ATOMIC)) {
		process_tell(scene.proc, "region 1600\n");
		process_region(scene.proc, &scene.addr, &scene.key);
	}
	return scene;
}

/* One more, of 8 bytes that are not zero: the call's answer. */
static ssize_t inject(struct test *t, const struct scene *scene, size_t i)
{
	static const uint64_t item = 0x0101010101010101;
	const struct way *way = ROW(ways);
	uint64_t raddr = scene->addr + i * ITEM;
	struct side *s = scene->s;

	if (way->atomic)
		return fi_inject_atomic(s->ep, &item, 1, s->peer, raddr, scene->key, FI_UINT64, FI_SUM);
	return try_op(s, way->call, .buf = &item, .len = ITEM, .tag = 7, .data = 5, .raddr = raddr, .key = scene->key,
		      .flags = way->flags);
}

/* So many are there, although nothing has been called since the last. */
static void expect_there(struct test *t, const struct scene *scene, size_t cnt)
{
	char line[64];

	snprintf(line, sizeof(line), "take %s %zu\n", ROW(ways)->kind, cnt * ITEM);
	process_tell(scene->proc, line);
	process_answer_alone(scene->proc, "taken");
}

/* A peer that does not look meanwhile gets all that was accepted, when it looks again. */
TEST_TABLE(accepted_goes_by_itself, ways, FI_MSG, RDM_ONLY)
{
	struct scene scene = scene_open(t);
	ssize_t ret = 0;
	size_t cnt = 0;

	process_tell(scene.proc, "recv 5\n");
	process_answer(scene.proc, "posted");
	send_bytes(scene.s, "hello", 5);
	process_answer(scene.proc, "received");
	process_tell(scene.proc, "rest\n");
	process_answer(scene.proc, "resting");
	while (cnt < MANY && !(ret = inject(t, &scene, cnt)))
		cnt++;
	CHECK(cnt && (!ret || ret == -FI_EAGAIN));
	expect_there(t, &scene, cnt);
}

/* The same of the first to a peer, for which a connection may have to be made: who is refused and drives the library
 * gets one accepted. */
TEST_TABLE(first_goes_by_itself, ways, FI_MSG, RDM_ONLY)
{
	struct scene scene;
	struct wait w = wait_begin();
	ssize_t ret;

	scene = scene_open(t);
	while ((ret = inject(t, &scene, 0)) == -FI_EAGAIN)
		wait_more(t, &w, "an injected operation to be accepted");
	CHECK_RET((int) ret, 0);
	expect_there(t, &scene, 1);
}
