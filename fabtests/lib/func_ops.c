/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations of the functional programs: completions are noted in the operation that they belong to, wherever and in
 * whichever order the queues bring them; waits look at the notes.
 */
#include "func.h"

#include <poll.h>
#include <sched.h>
#include <string.h>

#define CQ_BATCH 16
#define TAG 0x5eed
/* A wait that sleeps returns this often to see whether the peer is still there. */
#define SLEEP_SLICE_MS 50

/* What an entry of each format takes. */
static size_t entry_len(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

static int note(struct func *func, struct func_op *op)
{
	op->done++;
	func->completions++;
	return op->on_completion ? op->on_completion(func, op) : 0;
}

/* The entry behind -FI_EAVAIL. */
static int note_error(struct func *func, struct fid_cq *cq)
{
	struct fi_cq_err_entry error = { .err_data_size = 0 };
	struct func_op *op;
	ssize_t ret = fi_cq_readerr(cq, &error, 0);
	const char *detail;
	char buf[256];

	if (ret == -FI_EAGAIN)
		return 0;
	if (ret < 0)
		return pp_fail(func->pp, (int) ret, "fi_cq_readerr");
	func->errors++;
	op = error.op_context ? error.op_context : func->stray;
	if (!op) {
		detail = fi_cq_strerror(cq, error.prov_errno, error.err_data, buf, sizeof(buf));
		return pp_fail(func->pp, -error.err, "an operation without context failed: %s",
			       detail ? detail : "no text");
	}
	op->err = error.err ? error.err : FI_EOTHER;
	op->error = error;
	return note(func, op);
}

/* Sleep until the descriptor of a queue or a counter says something. 0 or -FI_*. */
static int sleep_fd(struct func *func, struct fid *fid)
{
	struct pollfd poll_fd = { .events = POLLIN };
	int ret;

	FUNC_CALL(func, fi_control(fid, FI_GETWAIT, &poll_fd.fd));
	ret = fi_trywait(func->pp->fabric, &fid, 1);
	if (!ret)
		poll(&poll_fd, 1, SLEEP_SLICE_MS);
	return ret == -FI_EAGAIN ? 0 : ret;
}

/* The calls that read a queue: whether it sleeps, and whether it wants sources. */
static ssize_t read_entries(struct fid_cq *cq, void *entries, fi_addr_t *src, bool sleep)
{
	if (!sleep)
		return src ? fi_cq_readfrom(cq, entries, CQ_BATCH, src) : fi_cq_read(cq, entries, CQ_BATCH);
	return src ? fi_cq_sreadfrom(cq, entries, 1, src, NULL, SLEEP_SLICE_MS) :
		     fi_cq_sread(cq, entries, 1, NULL, SLEEP_SLICE_MS);
}

/* Read one queue once: 0 or -FI_*. */
static int read_cq(struct func *func, struct fid_cq *cq, enum fi_cq_format format, bool sleep)
{
	bool with_source = func->pp->info->caps & FI_SOURCE;
	struct fi_cq_tagged_entry entries[CQ_BATCH];
	size_t len = entry_len(format);
	fi_addr_t src[CQ_BATCH];
	struct func_op *op;
	ssize_t ret, i;
	const char *at;

	ret = read_entries(cq, entries, with_source ? src : NULL, sleep);
	if (ret == -FI_EAGAIN || ret == -FI_EINTR)
		return 0;
	if (ret == -FI_EAVAIL)
		return note_error(func, cq);
	if (ret < 0)
		return pp_fail(func->pp, (int) ret, "fi_cq_read");
	for (i = 0; i < ret; i++) {
		at = (const char *) entries + (size_t) i * len;
		op = ((const struct fi_cq_entry *) at)->op_context;
		op = op ? op : func->stray;
		if (!op)
			return pp_fail(func->pp, -FI_EIO, "a completion without context, which was not asked for");
		memset(&op->entry, 0, sizeof(op->entry));
		memcpy(&op->entry, at, len);
		op->src = with_source ? src[i] : FI_ADDR_NOTAVAIL;
		op->err = 0;
		FUNC_TRY(note(func, op));
	}
	return 0;
}

int func_progress(struct func *func)
{
	size_t i;

	for (i = 0; i < func->cq_cnt; i++)
		FUNC_TRY(read_cq(func, func->cqs[i].fid, func->cqs[i].format, false));
	return 0;
}

int func_tick_quiet(struct func *func, struct pp_wait *wait, const char *what)
{
	if (!wait->polls++)
		wait->start = util_now_ns();
	if (wait->polls % 16 && func->pp->opts->look == PP_LOOK_SPIN)
		return 0;
	sched_yield();
	if (wait->polls % (func->pp->opts->look == PP_LOOK_SPIN ? 256 : 16))
		return 0;
	if (util_now_ns() - wait->start > (uint64_t) func->pp->opts->wait_ms * 1000000)
		return pp_fail(func->pp, -FI_ETIMEDOUT, "wait for %s (-T sets how long)", what);
	if (pp_ctrl_is_closed(func->pp, 0))
		return pp_fail(func->pp, -FI_ECONNRESET, "wait for %s: the peer has ended", what);
	return 0;
}

int func_tick(struct func *func, struct pp_wait *wait, const char *what)
{
	bool one = func->cq_cnt == 1;
	uint64_t completions = func->completions;

	if (one && func->pp->opts->look == PP_LOOK_FD)
		FUNC_TRY(sleep_fd(func, &func->cqs[0].fid->fid));
	if (one && func->pp->opts->look == PP_LOOK_SREAD)
		FUNC_TRY(read_cq(func, func->cqs[0].fid, func->cqs[0].format, true));
	else
		FUNC_TRY(func_progress(func));
	/* What has just come may be what is waited for, also when the peer has left after it. */
	return completions == func->completions ? func_tick_quiet(func, wait, what) : 0;
}

int func_again(struct func *func, struct pp_wait *wait, ssize_t posted, const char *call)
{
	if (!posted)
		return 0;
	if (posted != -FI_EAGAIN)
		return pp_fail(func->pp, (int) posted, "%s", call);
	FUNC_TRY(func_tick(func, wait, call));
	return 1;
}

static int wait_done(struct func *func, const struct func_op *op, const char *what)
{
	FUNC_WAIT(func, op->done, what);
	return 0;
}

int func_wait(struct func *func, struct func_op *op, const char *what)
{
	FUNC_TRY(wait_done(func, op, what));
	return op->err ? pp_fail(func->pp, -op->err, "%s failed: provider error %d", what, op->error.prov_errno) : 0;
}

int func_wait_err(struct func *func, struct func_op *op, int err, const char *what)
{
	FUNC_TRY(wait_done(func, op, what));
	FUNC_EXPECT(func, op->err == err, "%s: completed with %d (%s), not %d (%s)", what, op->err,
		    fi_strerror(op->err), err, fi_strerror(err));
	return 0;
}

int func_wait_cntr(struct func *func, struct fid_cntr *cntr, uint64_t value, const char *what)
{
	uint64_t errors = fi_cntr_readerr(cntr);
	struct pp_wait wait = { .polls = 0 };

	while (fi_cntr_read(cntr) < value && fi_cntr_readerr(cntr) == errors) {
		FUNC_TRY(func_progress(func));
		if (func->pp->opts->look == PP_LOOK_FD)
			FUNC_TRY(sleep_fd(func, &cntr->fid));
		else if (func->pp->opts->look == PP_LOOK_SREAD)
			fi_cntr_wait(cntr, value, SLEEP_SLICE_MS);
		FUNC_TRY(func_tick_quiet(func, &wait, what));
	}
	FUNC_EXPECT(func, fi_cntr_readerr(cntr) == errors, "%s: the counter counts an error", what);
	return 0;
}

ssize_t func_wait_event(struct func *func, uint32_t wanted, void *entry, size_t len, const char *what)
{
	struct pp_wait wait = { .polls = 0 };
	uint32_t event;
	ssize_t ret;

	while ((ret = fi_eq_read(func->pp->eq, &event, entry, len, 0)) == -FI_EAGAIN)
		FUNC_TRY(func_tick(func, &wait, what));
	if (ret < 0)
		return pp_fail(func->pp, (int) ret, "fi_eq_read, for %s", what);
	FUNC_EXPECT(func, event == wanted, "%s: event %s came instead", what, util_tostr(&event, FI_TYPE_EQ_EVENT));
	return ret;
}

int func_sync(struct func *func)
{
	return pp_ctrl_sync(func->pp);
}

int func_send(struct func *func, struct func_ep *ep, size_t len, struct func_op *op)
{
	op->done = 0;
	if (func->pp->opts->tagged)
		FUNC_POST(func, fi_tsend(ep->ep, func_msg(&ep->tx), func_msg_len(&ep->tx, len), ep->tx.desc, ep->peer,
					 TAG, op));
	else
		FUNC_POST(func, fi_send(ep->ep, func_msg(&ep->tx), func_msg_len(&ep->tx, len), ep->tx.desc, ep->peer,
					op));
	return 0;
}

int func_recv(struct func *func, struct func_ep *ep, size_t len, struct func_op *op)
{
	op->done = 0;
	if (func->pp->opts->tagged)
		FUNC_POST(func, fi_trecv(ep->ep, func_msg(&ep->rx), func_msg_len(&ep->rx, len), ep->rx.desc,
					 FI_ADDR_UNSPEC, TAG, 0, op));
	else
		FUNC_POST(func, fi_recv(ep->ep, func_msg(&ep->rx), func_msg_len(&ep->rx, len), ep->rx.desc,
					FI_ADDR_UNSPEC, op));
	return 0;
}

int func_exchange_on_all(struct func *func, struct func_ep *eps, struct func_op *tx, struct func_op *rx, uint32_t cnt,
			 uint64_t seq)
{
	size_t len = func_size(func, 0);
	uint32_t i;

	for (i = 0; i < cnt; i++) {
		memset(eps[i].rx.mem, 0, len);
		FUNC_TRY(func_recv(func, &eps[i], len, &rx[i]));
	}
	FUNC_TRY(func_sync(func));
	for (i = 0; i < cnt; i++) {
		pp_fill(eps[i].tx.mem, len, seq + i);
		FUNC_TRY(func_send(func, &eps[i], len, &tx[i]));
	}
	for (i = 0; i < cnt; i++) {
		FUNC_TRY(func_wait(func, &tx[i], "a message to leave"));
		FUNC_TRY(func_wait(func, &rx[i], "a message"));
		FUNC_TRY(pp_check(func->pp, eps[i].rx.mem, len, seq + i));
	}
	return func_sync(func);
}

static int greet_out(struct func *func, struct func_ep *ep, size_t len, uint64_t seq)
{
	struct func_op op = { .done = 0 };

	pp_fill(ep->tx.mem, len, seq);
	FUNC_TRY(func_send(func, ep, len, &op));
	return func_wait(func, &op, "a message to leave");
}

static int greet_in(struct func *func, struct func_ep *ep, size_t len, struct func_op *op, uint64_t seq)
{
	FUNC_TRY(func_wait(func, op, "a message"));
	if (op->entry.flags)    /* FI_CQ_FORMAT_CONTEXT has neither flags nor length */
		FUNC_EXPECT(func, op->entry.len == func_msg_len(&ep->rx, len), "a message of %zu bytes came with %zu",
			    func_msg_len(&ep->rx, len), op->entry.len);
	return pp_check(func->pp, ep->rx.mem, len, seq);
}

int func_greet(struct func *func, struct func_ep *ep, size_t len, uint64_t seq)
{
	struct func_op op = { .done = 0 };

	memset(ep->rx.mem, 0, len);
	FUNC_TRY(func_recv(func, ep, ep->rx.len, &op));
	FUNC_TRY(func_sync(func));
	if (func->client)
		FUNC_TRY(greet_out(func, ep, len, seq));
	FUNC_TRY(greet_in(func, ep, len, &op, func->client ? seq + 1 : seq));
	return func->client ? 0 : greet_out(func, ep, len, seq + 1);
}

int func_greet_each(struct func *func)
{
	struct func_ep ep;
	uint32_t i;

	FUNC_TRY(func_ep_open(func, &ep, NULL));
	for (i = 0; i < func->iterations; i++)
		FUNC_TRY(func_greet(func, &ep, func_size(func, 0), i));
	return 0;
}
