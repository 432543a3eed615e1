/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_rdm_deferred_wq: work that is handed to the domain and starts when a counter gets there (FI_QUEUE_WORK): messages,
 * tagged messages, reads, writes, atomics, and counters themselves. None starts before its threshold, each counts at
 * its completion counter, a chain of them runs by itself, and what is cancelled does not run.
 */
#include "lib/func.h"

#include <string.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>

#define TAG 3

struct settings {
	struct func_ep ep;
	struct func_buf mem;            /* that the peer reads and writes */
	struct func_region remote;
	struct fid_cntr *trigger, *done;
	struct fid_ep *alias;
};

/* Work of one kind. The queue keeps all of it until it is done. */
struct item {
	struct fi_deferred_work work;
	struct iovec iov;
	struct fi_rma_iov rma_iov;
	struct fi_ioc ioc, result;
	struct fi_rma_ioc rma_ioc;
	union {
		struct fi_op_msg msg;
		struct fi_op_tagged tagged;
		struct fi_op_rma rma;
		struct fi_op_atomic atomic;
		struct fi_op_fetch_atomic fetch;
		struct fi_op_cntr cntr;
	} op;
	struct fi_context2 context;
};

/* Queue one that starts when the trigger gets to `threshold`. */
static int queue(struct func *func, struct item *item, enum fi_op_type type, uint64_t threshold)
{
	struct settings *settings = func->own;
	int ret;

	item->work.threshold = threshold;
	item->work.triggering_cntr = settings->trigger;
	item->work.completion_cntr = type == FI_OP_CNTR_ADD || type == FI_OP_CNTR_SET ? NULL : settings->done;
	item->work.op_type = type;
	item->work.op.msg = &item->op.msg;
	ret = fi_control(&func->domain->fid, FI_QUEUE_WORK, &item->work);
	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP)
		return func_skip(func, "FI_QUEUE_WORK of this kind");
	return ret ? pp_fail(func->pp, ret, "FI_QUEUE_WORK") : 0;
}

static int queue_send(struct func *func, struct item *item, uint64_t threshold, size_t len, bool tagged)
{
	struct settings *settings = func->own;
	struct func_ep *ep = &settings->ep;

	item->iov = (struct iovec) { .iov_base = ep->tx.mem, .iov_len = len };
	if (tagged) {
		item->op.tagged = (struct fi_op_tagged) { .ep = settings->alias, .flags = func_delivery(func), .msg = {
			.msg_iov = &item->iov, .desc = &ep->tx.desc, .iov_count = 1, .addr = ep->peer, .tag = TAG,
			.context = &item->context } };
		return queue(func, item, FI_OP_TSEND, threshold);
	}
	item->op.msg = (struct fi_op_msg) { .ep = settings->alias, .flags = func_delivery(func), .msg = {
		.msg_iov = &item->iov, .desc = &ep->tx.desc, .iov_count = 1, .addr = ep->peer,
		.context = &item->context } };
	return queue(func, item, FI_OP_SEND, threshold);
}

static int queue_recv(struct func *func, struct item *item, uint64_t threshold, bool tagged)
{
	struct settings *settings = func->own;
	struct func_ep *ep = &settings->ep;

	item->iov = (struct iovec) { .iov_base = ep->rx.mem, .iov_len = ep->rx.len };
	if (tagged) {
		item->op.tagged = (struct fi_op_tagged) { .ep = ep->ep, .msg = {
			.msg_iov = &item->iov, .desc = &ep->rx.desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
			.tag = TAG, .context = &item->context } };
		return queue(func, item, FI_OP_TRECV, threshold);
	}
	item->op.msg = (struct fi_op_msg) { .ep = ep->ep, .msg = {
		.msg_iov = &item->iov, .desc = &ep->rx.desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = &item->context } };
	return queue(func, item, FI_OP_RECV, threshold);
}

static int queue_rma(struct func *func, struct item *item, uint64_t threshold, size_t len, bool read)
{
	struct settings *settings = func->own;
	struct func_ep *ep = &settings->ep;

	item->iov = (struct iovec) { .iov_base = ep->tx.mem, .iov_len = len };
	item->rma_iov = (struct fi_rma_iov) { .addr = settings->remote.addr, .len = len, .key = settings->remote.key };
	item->op.rma = (struct fi_op_rma) { .ep = settings->alias, .flags = read ? 0 : func_delivery(func), .msg = {
		.msg_iov = &item->iov, .desc = &ep->tx.desc, .iov_count = 1, .addr = ep->peer,
		.rma_iov = &item->rma_iov, .rma_iov_count = 1, .context = &item->context } };
	return queue(func, item, read ? FI_OP_READ : FI_OP_WRITE, threshold);
}

/* Adds 1 to the first word of the peer's memory. */
static int queue_atomic(struct func *func, struct item *item, uint64_t threshold)
{
	struct settings *settings = func->own;
	struct func_ep *ep = &settings->ep;

	item->ioc = (struct fi_ioc) { .addr = ep->tx.mem, .count = 1 };
	item->rma_ioc = (struct fi_rma_ioc) { .addr = settings->remote.addr, .count = 1, .key = settings->remote.key };
	item->op.atomic = (struct fi_op_atomic) { .ep = settings->alias, .flags = func_delivery(func), .msg = {
		.msg_iov = &item->ioc, .desc = &ep->tx.desc, .iov_count = 1, .addr = ep->peer,
		.rma_iov = &item->rma_ioc,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM, .context = &item->context } };
	return queue(func, item, FI_OP_ATOMIC, threshold);
}

static int queue_add(struct func *func, struct item *item, uint64_t threshold, struct fid_cntr *cntr, uint64_t value,
		     bool set)
{
	item->op.cntr = (struct fi_op_cntr) { .cntr = cntr, .value = value };
	return queue(func, item, set ? FI_OP_CNTR_SET : FI_OP_CNTR_ADD, threshold);
}

/* Nothing has happened; then the trigger is pulled and `cnt` operations complete. */
static int pull(struct func *func, uint64_t threshold, uint64_t cnt, const char *what)
{
	struct settings *settings = func->own;
	uint64_t before = fi_cntr_read(settings->done);
	int i;

	for (i = 0; i < 100; i++)
		FUNC_TRY(func_progress(func));
	FUNC_EXPECT(func, fi_cntr_read(settings->done) == before, "%s did not wait for its counter", what);
	FUNC_CALL(func, fi_cntr_add(settings->trigger, threshold - fi_cntr_read(settings->trigger)));
	return func_wait_cntr(func, settings->done, before + cnt, what);
}

/* A message each way, both with work that waits: the receive is triggered, then the send. */
static int messages(struct func *func, bool tagged)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	uint64_t now = fi_cntr_read(settings->trigger), done = fi_cntr_read(settings->done);
	struct item recv = { .work = { .threshold = 0 } }, send = { .work = { .threshold = 0 } };

	memset(settings->ep.rx.mem, 0, len);
	pp_fill(settings->ep.tx.mem, len, tagged);
	FUNC_TRY(queue_recv(func, &recv, now + 1, tagged));
	FUNC_TRY(queue_send(func, &send, now + 2, len, tagged));
	FUNC_CALL(func, fi_cntr_add(settings->trigger, 1));
	FUNC_TRY(func_sync(func));
	FUNC_CALL(func, fi_cntr_add(settings->trigger, 1));
	FUNC_TRY(func_wait_cntr(func, settings->done, done + 2, "deferred messages"));
	FUNC_TRY(pp_check(func->pp, settings->ep.rx.mem, len, tagged));
	return func_sync(func);
}

static int client_rma(struct func *func)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	uint64_t now = fi_cntr_read(settings->trigger);
	struct item write = { .work = { .threshold = 0 } }, read = { .work = { .threshold = 0 } };

	pp_fill(settings->ep.tx.mem, len, 7);
	FUNC_TRY(queue_rma(func, &write, now + 1, len, false));
	FUNC_TRY(pull(func, now + 1, 1, "a deferred write"));
	FUNC_TRY(func_sync(func));
	FUNC_TRY(func_sync(func));
	memset(settings->ep.tx.mem, 0, len);
	FUNC_TRY(queue_rma(func, &read, now + 2, len, true));
	FUNC_TRY(pull(func, now + 2, 1, "a deferred read"));
	FUNC_TRY(pp_check(func->pp, settings->ep.tx.mem, len, 8));
	return func_sync(func);
}

static int server_rma(struct func *func)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);

	FUNC_TRY(func_sync(func));
	FUNC_TRY(pp_check(func->pp, settings->mem.mem, len, 7));
	pp_fill(settings->mem.mem, len, 8);
	FUNC_TRY(func_sync(func));
	return func_sync(func);
}

static int client_atomic(struct func *func)
{
	static struct item chain[4];
	struct settings *settings = func->own;
	uint64_t now = fi_cntr_read(settings->trigger), one = 1;
	size_t i;

	memcpy(settings->ep.tx.mem, &one, sizeof(one));
	/* Each step adds to the peer's word and pulls the trigger of the next one. */
	for (i = 0; i < 2; i++) {
		FUNC_TRY(queue_atomic(func, &chain[2 * i], now + i + 1));
		FUNC_TRY(queue_add(func, &chain[2 * i + 1], now + i + 1, settings->trigger, 1, false));
	}
	FUNC_TRY(pull(func, now + 1, 2, "a chain of deferred atomics"));
	FUNC_EXPECT(func, fi_cntr_read(settings->trigger) == now + 3, "the trigger is at %llu, not %llu",
		    (unsigned long long) fi_cntr_read(settings->trigger), (unsigned long long) now + 3);
	return func_sync(func);
}

static int server_atomic(struct func *func)
{
	struct settings *settings = func->own;
	uint64_t word;

	FUNC_TRY(func_sync(func));
	memcpy(&word, settings->mem.mem, sizeof(word));
	FUNC_EXPECT(func, word == 2, "the word is %llu, not 2", (unsigned long long) word);
	return 0;
}

/* Work that is cancelled, and work that sets a counter; on each side alone. */
static int counters(struct func *func)
{
	struct settings *settings = func->own;
	uint64_t now = fi_cntr_read(settings->trigger);
	struct item cancelled = { .work = { .threshold = 0 } }, set = { .work = { .threshold = 0 } };
	struct fid_cntr *other;

	FUNC_TRY(func_cntr_open(func, &other));
	FUNC_TRY(queue_add(func, &cancelled, now + 1, other, 1000, false));
	FUNC_TRY(queue_add(func, &set, now + 1, other, 5, true));
	FUNC_CALL(func, fi_control(&func->domain->fid, FI_CANCEL_WORK, &cancelled.work));
	FUNC_CALL(func, fi_cntr_add(settings->trigger, 1));
	FUNC_TRY(func_wait_cntr(func, other, 5, "a deferred set"));
	FUNC_EXPECT(func, fi_cntr_read(other) == 5, "the counter is at %llu, not 5",
		    (unsigned long long) fi_cntr_read(other));
	return func_sync(func);
}

static int run(struct func *func)
{
	const struct func_ep_attr attr = { .cq_flags = FI_SELECTIVE_COMPLETION };
	struct settings *settings = func->own;

	FUNC_TRY(func_ep_open(func, &settings->ep, &attr));
	FUNC_CALL(func, fi_ep_alias(settings->ep.ep, &settings->alias, FI_TRANSMIT | func_delivery(func)));
	FUNC_TRY(func_own(func, &settings->alias->fid, "alias of the endpoint"));
	FUNC_TRY(func_cntr_open(func, &settings->trigger));
	FUNC_TRY(func_cntr_open(func, &settings->done));
	FUNC_TRY(func_buf(func, &settings->mem, func_size(func, 0), FI_REMOTE_READ | FI_REMOTE_WRITE));
	FUNC_TRY(func_exchange_regions(func, &settings->mem, &settings->remote));
	FUNC_TRY(messages(func, false));
	FUNC_TRY(messages(func, true));
	FUNC_TRY(func->client ? client_rma(func) : server_rma(func));
	memset(settings->mem.mem, 0, settings->mem.len);
	FUNC_TRY(func_sync(func));
	FUNC_TRY(func->client ? client_atomic(func) : server_atomic(func));
	return counters(func);
}

int main(int argc, char **argv)
{
	static struct settings settings;
	static const struct func_program program = {
		.about = "Queue work that starts when counters say so.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_TRIGGER,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
