/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions, and the ways to wait for them. Both directions have one completion queue. Completions are noted in their
 * struct pp_op wherever the queue is read, and waits check these notes. With counters the queue has only errors; the
 * counters' values are noted in the order of the rings, which is the order of posting.
 */
#include "pp.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "common.h"

/* The most completions of one read. */
#define CQ_BATCH 16
/* A wait that sleeps returns after this time to check whether the peer has ended. */
#define SLEEP_SLICE_MS 50

/* True if waiting for completions sleeps. */
static bool sleeps(const struct pp *pp)
{
	return pp->opts->look == PP_LOOK_SREAD || pp->opts->look == PP_LOOK_FD;
}

int pp_wait_tick(struct pp *pp, struct pp_wait *wait, const char *what)
{
	bool slow = !pp->cq || sleeps(pp);

	if (++wait->polls < pp->spins && !slow && pp->opts->look != PP_LOOK_YIELD)
		return 0;
	if (wait->polls == pp->spins && pp->spins > PP_POLLS_MIN && !pp->pinned)
		pp->spins /= 2;
	sched_yield();
	if (wait->polls % PP_POLLS_PER_TICK && !slow)
		return 0;
	if (util_now_ns() - wait->start > (uint64_t) pp->opts->wait_ms * 1000000)
		return pp_fail(pp, -FI_ETIMEDOUT, "wait for %s (-T sets how long)", what);
	if (!pp_ctrl_is_closed(pp, 0))
		return 0;
	if (pp->leaving || pp_meet_report(pp))
		return -FI_ECONNRESET;
	return pp_fail(pp, -FI_ECONNRESET, "wait for %s: the peer has ended", what);
}

int pp_cq_error(struct pp *pp, struct fid_cq *cq)
{
	struct fi_cq_err_entry entry = { .err_data_size = 0 };
	const struct pp_op *op;
	const char *detail, *what = "operation";
	ssize_t ret;
	char buf[256];

	ret = fi_cq_readerr(cq, &entry, 0);
	if (ret < 0)
		return pp_fail(pp, (int) ret, "fi_cq_readerr");
	if (!entry.err)
		entry.err = FI_EOTHER;
	if (pp->leaving)
		return -entry.err;
	op = entry.op_context;
	if (cq == pp->cq)
		what = op && op->recv ? "receive" : "send";
	detail = fi_cq_strerror(cq, entry.prov_errno, entry.err_data, buf, sizeof(buf));
	return pp_fail(pp, -entry.err, "%s failed: provider error %d (%s)", what, entry.prov_errno,
		       detail ? detail : "no text");
}

/* Note the result of reading the queue. */
static int note_entries(struct pp *pp, const struct fi_cq_msg_entry *entries, ssize_t cnt)
{
	struct pp_op *op;
	ssize_t i;

	if (cnt == -FI_EAGAIN || cnt == -FI_EINTR)
		return 0;
	if (cnt == -FI_EAVAIL)
		return pp_cq_error(pp, pp->cq);
	if (cnt < 0)
		return pp_fail(pp, (int) cnt, "fi_cq_read");
	for (i = 0; i < cnt; i++) {
		op = entries[i].op_context;
		if (entries[i].flags & FI_REMOTE_WRITE && !(pp->info->rx_attr->mode & FI_RX_CQ_DATA)) {
			pp->data_cnt++;
			continue;
		}
		if (!op)
			continue;
		op->busy = false;
		op->len = entries[i].len;
	}
	return 0;
}

/* Note the value of a counter: so many operations of its ring are complete, in order. */
static void note_count(struct pp *pp, struct fid_cntr *cntr, struct pp_op *ring, uint64_t *done)
{
	uint64_t now = fi_cntr_read(cntr);

	while (*done < now)
		ring[(*done)++ % pp->opts->window].busy = false;
}

int pp_progress(struct pp *pp)
{
	struct fi_cq_msg_entry entries[CQ_BATCH];

	if (!pp->cq)
		return pp->progress ? pp->progress(pp) : 0;
	if (!pp->tx_cntr)
		return note_entries(pp, entries, fi_cq_read(pp->cq, entries, CQ_BATCH));
	note_count(pp, pp->tx_cntr, pp->tx, &pp->tx_done);
	note_count(pp, pp->rx_cntr, pp->rx, &pp->rx_done);
	if (!fi_cntr_readerr(pp->tx_cntr) && !fi_cntr_readerr(pp->rx_cntr))
		return 0;
	return note_entries(pp, entries, fi_cq_read(pp->cq, entries, CQ_BATCH));
}

/* Sleep until `fid`, with descriptor fd, may have something. */
static int wait_fd(struct pp *pp, struct fid *fid, int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int ret = fi_trywait(pp->fabric, &fid, 1);

	if (ret == -FI_EAGAIN)
		return 0;
	if (ret)
		return pp_fail(pp, ret, "fi_trywait");
	poll(&poll_fd, 1, SLEEP_SLICE_MS);
	return 0;
}

/* Wait until a counter has one completion more than were noted. */
static int sleep_cntr(struct pp *pp, struct fid_cntr *cntr, uint64_t done)
{
	int ret = fi_cntr_wait(cntr, done + 1, SLEEP_SLICE_MS);

	if (!ret || ret == -FI_ETIMEDOUT || ret == -FI_EAGAIN || ret == -FI_EINTR || ret == -FI_EAVAIL)
		return 0;
	return pp_fail(pp, ret, "fi_cntr_wait");
}

/* Sleep in the way that the options select until an operation may have completed; then note it. */
static int sleep_op(struct pp *pp, const struct pp_op *op)
{
	struct fi_cq_msg_entry entries[CQ_BATCH];
	struct fid_cntr *cntr = op->recv ? pp->rx_cntr : pp->tx_cntr;
	bool fd = pp->opts->look == PP_LOOK_FD;
	int ret;

	if (!fd && !cntr)
		return note_entries(pp, entries, fi_cq_sread(pp->cq, entries, CQ_BATCH, NULL, SLEEP_SLICE_MS));
	if (!cntr)
		ret = wait_fd(pp, &pp->cq->fid, pp->cq_fd);
	else if (fd)
		ret = wait_fd(pp, &cntr->fid, op->recv ? pp->rx_fd : pp->tx_fd);
	else
		ret = sleep_cntr(pp, cntr, op->recv ? pp->rx_done : pp->tx_done);
	return ret ? ret : pp_progress(pp);
}

int pp_wait_data(struct pp *pp)
{
	static const struct pp_op any = { .recv = true };
	struct pp_wait wait = { .polls = 0 };
	int ret = 0;

	while (!pp->data_cnt && !ret) {
		ret = sleeps(pp) ? sleep_op(pp, &any) : pp_progress(pp);
		if (!wait.polls)
			wait.start = util_now_ns();
		if (!ret && !pp->data_cnt)
			ret = pp_wait_tick(pp, &wait, "an RMA write with data");
	}
	pp->data_cnt -= !ret;
	return ret;
}

/* A wait has ended. One that did not yield makes the next ones spin for longer again. */
static void note_spins(struct pp *pp, const struct pp_wait *wait)
{
	if (wait->polls && wait->polls < pp->spins && pp->spins < PP_POLLS_PER_TICK)
		pp->spins *= 2;
}

int pp_wait_op(struct pp *pp, const struct pp_op *op, const char *what)
{
	struct pp_wait wait = { .polls = 0 };
	int ret;

	while (op->busy) {
		ret = sleeps(pp) ? sleep_op(pp, op) : pp_progress(pp);
		if (ret)
			return ret;
		if (!op->busy)
			break;
		if (!wait.polls)
			wait.start = util_now_ns();
		ret = pp_wait_tick(pp, &wait, what);
		if (ret)
			return ret;
	}
	note_spins(pp, &wait);
	return 0;
}

int pp_check_posted(struct pp *pp, ssize_t posted, struct pp_wait *wait, const char *call)
{
	int ret;

	if (!posted)
		return 0;
	if (posted != -FI_EAGAIN)
		return pp_fail(pp, (int) posted, "%s", call);
	if (!wait->polls)
		wait->start = util_now_ns();
	ret = pp_progress(pp);
	if (!ret)
		ret = pp_wait_tick(pp, wait, call);
	return ret ? ret : 1;
}
