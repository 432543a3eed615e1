/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From work completions to entries of completion queues, and the slow paths of posting (post.h).
 *
 * Requests of an endpoint complete in the order of posting. So requests without a completion for the application are
 * posted unsignaled, and the next signaled one tells that they have completed. At least one in half a queue is
 * signaled; otherwise the queue could fill up with requests that are never known to have completed.
 */
#include "verbs/kind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "verbs/srx.h"

/* ---- completions ---- */

static const struct {
	int err;
	const char *what;
} failures[] = {
	[IBV_WC_LOC_LEN_ERR] = { FI_ETRUNC, "the message is longer than the receive buffer" },
	[IBV_WC_LOC_EEC_OP_ERR] = { FI_EIO, "an error of reliable datagrams, which this provider does not use" },
	[IBV_WC_LOC_QP_OP_ERR] = { FI_EINVAL, "the device could not carry out the request" },
	[IBV_WC_LOC_PROT_ERR] = { FI_EACCES, "a local buffer is not registered, or not for this access" },
	[IBV_WC_MW_BIND_ERR] = { FI_EACCES, "a memory window could not be bound" },
	[IBV_WC_BAD_RESP_ERR] = { FI_EPROTO, "the peer's device gave a wrong answer" },
	[IBV_WC_LOC_ACCESS_ERR] = { FI_EACCES, "the peer wrote to a region that does not allow it" },
	[IBV_WC_REM_INV_REQ_ERR] = { FI_EREMOTEIO, "the peer's device refused: a message longer than its receive, or "
				     "an operation that it does not allow" },
	[IBV_WC_REM_ACCESS_ERR] = { FI_EACCES, "the peer's memory region has another key, other bounds or other "
				    "rights" },
	[IBV_WC_REM_OP_ERR] = { FI_EREMOTEIO, "the peer's device could not carry out the request" },
	[IBV_WC_RETRY_EXC_ERR] = { FI_EHOSTUNREACH, "the peer's device does not answer" },
	[IBV_WC_RNR_RETRY_EXC_ERR] = { FI_ENORX, "the peer has posted no receive" },
	[IBV_WC_LOC_RDD_VIOL_ERR] = { FI_EIO, "the reliable datagram domains differ; this provider does not use them" },
	[IBV_WC_REM_INV_RD_REQ_ERR] = { FI_EREMOTEIO, "the peer's device refused a reliable datagram; this provider "
					"does not use them" },
	[IBV_WC_REM_ABORT_ERR] = { FI_ECONNABORTED, "the peer gave up the request" },
	[IBV_WC_INV_EECN_ERR] = { FI_EIO, "there is no such context of reliable datagrams; this provider does not use "
		"them" },
	[IBV_WC_INV_EEC_STATE_ERR] = { FI_EIO, "a context of reliable datagrams is in the wrong state; this provider "
				       "does not use them" },
	[IBV_WC_FATAL_ERR] = { FI_EIO, "the device has failed" },
	[IBV_WC_RESP_TIMEOUT_ERR] = { FI_ETIMEDOUT, "the peer's device did not answer in time" },
	[IBV_WC_GENERAL_ERR] = { FI_EIO, "the device reports an error without a cause; see the log of its driver" },
	[IBV_WC_TM_ERR] = { FI_EIO, "the device's tag matching failed; this provider does not use it" },
	[IBV_WC_TM_RNDV_INCOMPLETE] = { FI_EIO, "the device's rendezvous was not completed; this provider does not use "
		"it" },
};

static void post_fail(struct vrb_ep *ep, enum fab_op_code code, const struct fab_comp *comp, int err, int status,
		 const char *what)
{
	const struct vrb_device *dev = vrb_domain_of(ep)->dev;
	char text[240], peer[FAB_ADDR_STRLEN] = "a datagram's peer";
	struct fab_cq_fail out = { .err = err, .prov_errno = status, .text = text };

	if (ep->peer_sa)
		fab_addr_to_str(ep->peer_sa, peer, sizeof(peer));
	snprintf(text, sizeof(text), "%s, port %u, to or from %.60s: %s", dev->name, dev->port_num, peer, what);
	fab_ep_fail(&ep->base, code, comp, &out);
}

static void fail_wc(struct vrb_ep *ep, enum fab_op_code code, const struct fab_comp *comp, const struct ibv_wc *wc)
{
	size_t status = wc->status;

	if (status == IBV_WC_WR_FLUSH_ERR && ep->end_err && !ep->local_end)
		post_fail(ep, code, comp, ep->end_err, status, ep->end_why);
	else if (status == IBV_WC_WR_FLUSH_ERR)
		post_fail(ep, code, comp, ep->local_end ? FI_ECANCELED : FI_ECONNRESET, status,
		     ep->local_end ?
		     "the endpoint was shut down or closed before the operation ended" : "the connection has ended");
	else if (status < fab_countof(failures) && failures[status].what)
		post_fail(ep, code, comp, failures[status].err, status, failures[status].what);
	else
		post_fail(ep, code, comp, FI_EIO, status, ibv_wc_status_str(wc->status));
}

static struct fab_comp make_comp(enum fab_op_code code, void *context, uint64_t len)
{
	return (struct fab_comp) {
		.context = context, .flags = fab_op_desc[code].cq_flags, .len = len, .src = FI_ADDR_NOTAVAIL,
	};
}

/* Complete the requests that were posted before `end`. */
static void tx_done(struct vrb_ep *ep, uint32_t end, struct fab_cq_taker *taker)
{
	while (ep->tx_head != end) {
		const struct vrb_tx *tx = &ep->tx[ep->tx_head++ & ep->tx_mask];
		struct fab_comp comp;

		if (__builtin_expect(tx->code == FAB_OP_MAX, 0))
			continue;
		vrb_count_done(tx);
		comp = make_comp(tx->code, tx->context, tx->len);
		fab_ep_complete_to(&ep->base, tx->code, &comp, tx->want_cq, taker);
	}
}

static void tx_failed(struct vrb_ep *ep, const struct vrb_tx *tx, const struct ibv_wc *wc)
{
	struct fab_comp comp;

	/* part of a read that has ended already with the error of another part */
	if (tx->pos - ep->tx_head >= ep->tx_tail - ep->tx_head)
		return;
	tx_done(ep, tx->pos, NULL);
	ep->tx_head++;
	if (tx->code == FAB_OP_MAX) {
		/* of a connection that is up: a probe */
		if (wc->status == IBV_WC_WR_FLUSH_ERR)
			vrb_cm_silent(ep, FI_ECONNABORTED, "a request on its queue pair has failed");
		else
			vrb_cm_silent(ep, FI_EHOSTUNREACH, "the peer's device does not answer");
		return;
	}
	vrb_count_failed(tx);
	comp = make_comp(tx->code, tx->context, tx->len);
	fail_wc(ep, tx->code, &comp, wc);
}

static void rx_done(struct vrb_ep *owner, struct vrb_rx *rx, const struct ibv_wc *wc, struct fab_cq_taker *taker)
{
	struct vrb_ep *ep = owner->srx ? vrb_srx_taker(owner->srx, wc->qp_num) : owner;
	bool write = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	enum fab_op_code code = wc->status || !write ? FAB_OP_RECV : FAB_OP_REMOTE_WRITE;
	struct fab_comp comp = make_comp(code, rx->context, 0);
	uint64_t flags = rx->flags;

	if (!owner->rx_cnt)
		return;			/* of a closed endpoint: it has ended (vrb_requests_lost()) */
	if (!ep) {
		vrb_srx_unclaimed(owner->srx, rx, wc);
		return;
	}
	if (owner->srx)
		comp.buf = ep->base.ep_fid.fid.context;	/* FAB_OPT_NAMES_TAKER */
	fab_pool_put(&owner->rx_pool, rx);
	owner->rx_cnt--;
	if (wc->status) {
		ep->stats->errors += wc->status != IBV_WC_WR_FLUSH_ERR;
		fail_wc(ep, code, &comp, wc);
		return;
	}
	comp.len = wc->byte_len;
	if (ep->shown)
		fab_stats_count(ep->stats, code, comp.len);
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		comp.flags |= FI_REMOTE_CQ_DATA;
		comp.data = ntohl(wc->imm_data);
	}
	fab_ep_complete_to(&ep->base, code, &comp, fab_ep_rx_wants_comp(&ep->base, flags), taker);
}

void vrb_work_done(const struct ibv_wc *wc, struct fab_cq_taker *taker)
{
	void *ptr = (void *) (uintptr_t) (wc->wr_id & ~(uint64_t) VRB_IS_RX);
	struct vrb_tx *tx = ptr;
	struct vrb_rx *rx = ptr;

	if (wc->status && taker)
		taker->cq = NULL;
	if (wc->wr_id & VRB_IS_RX)
		rx_done(rx->ep, rx, wc, taker);
	else if (wc->status)
		tx_failed(tx->ep, tx, wc);
	else
		tx_done(tx->ep, tx->pos + 1, taker);
}

struct loss {
	struct vrb_ep *ep;
	int err;
	const char *why;
};

static void rx_lost(void *object, void *arg)
{
	const struct vrb_rx *rx = object;
	const struct loss *loss = arg;
	struct fab_comp comp = make_comp(FAB_OP_RECV, rx->context, 0);

	if (!rx->ep)
		return;
	post_fail(loss->ep, FAB_OP_RECV, &comp, loss->err, loss->err, loss->why);
}

/* End all receives. There is no list of them: an object that is not free in the pool is a posted receive. So all free
 * objects are taken out and marked by ep NULL; the others are the receives. */
static void lose_receives(struct loss *loss)
{
	struct vrb_ep *ep = loss->ep;

	while (ep->rx_pool.out_cnt < ep->rx_pool.made_cnt)
		((struct vrb_rx *) fab_pool_get(&ep->rx_pool))->ep = NULL;
	fab_pool_each(&ep->rx_pool, rx_lost, loss);
	ep->rx_cnt = 0;
}

static bool is_broken(const struct vrb_hw_cq *hw)
{
	return atomic_load(&hw->broken);
}

/* End all requests. If the device reports one after all, tx_done() and tx_failed() find that it has ended. */
static void lose_requests(const struct loss *loss)
{
	struct vrb_ep *ep = loss->ep;

	while (ep->tx_head != ep->tx_tail) {
		struct vrb_tx *tx = &ep->tx[ep->tx_head++ & ep->tx_mask];
		struct fab_comp comp;

		tx->pos = ep->tx_tail - 1;
		if (tx->code == FAB_OP_MAX)
			continue;
		vrb_count_failed(tx);
		comp = make_comp(tx->code, tx->context, tx->len);
		post_fail(ep, tx->code, &comp, loss->err, loss->err, loss->why);
	}
}

void vrb_requests_lost(struct vrb_ep *ep, int err, const char *why)
{
	struct loss loss = { ep, err, why };

	lose_requests(&loss);
	if (ep->rx_cnt)
		lose_receives(&loss);
}

void vrb_work_lost(struct vrb_ep *ep, int err, const char *why)
{
	struct loss loss = { ep, err, why };

	if (is_broken(ep->tx_hw ? ep->tx_hw : ep->hw_cq))
		lose_requests(&loss);
	if (ep->rx_cnt && is_broken(ep->hw_cq))
		lose_receives(&loss);
}

/* ---- posting: the slow halves of post.h ---- */

ssize_t vrb_no_desc(enum fab_op_code code)
{
	VRB_WARN(FI_LOG_EP_DATA, "%s without a descriptor: register the buffers and pass fi_mr_desc() of their regions "
		 "(FI_MR_LOCAL)\n", fab_op_desc[code].name);
	return -FI_EINVAL;
}

ssize_t vrb_no_copy(enum fab_op_code code)
{
	VRB_WARN(FI_LOG_EP_DATA, "%s with FI_INJECT of memory of a dma-buf or device: the processor cannot copy it; "
		 "send without FI_INJECT\n", fab_op_desc[code].name);
	return -FI_EINVAL;
}

ssize_t vrb_refuse(const struct vrb_ep *ep, size_t iov_cnt, uint64_t len, uint64_t flags)
{
	if (ep->state != VRB_EP_CONNECTED)
		return ep->base.enabled ? -FI_ENOTCONN : -FI_EOPBADSTATE;
	if (ep->tx_tail - ep->tx_head >= ep->tx_size)
		return -FI_EAGAIN;
	if (iov_cnt > ep->tx_iov_limit)
		return -FI_EINVAL;
	return len > ep->max_msg_size || ((flags & FI_INJECT) && len > ep->inline_max) ? -FI_EMSGSIZE : -FI_EINVAL;
}

ssize_t vrb_refuse_rx(const struct vrb_ep *ep)
{
	return !ep->base.enabled ? -FI_EOPBADSTATE : ep->state == VRB_EP_DOWN ? -FI_ENOTCONN : -FI_EINVAL;
}

ssize_t vrb_post_err(int ret)
{
	int err = ret == -1 ? errno : ret < 0 ? -ret : ret;

	return err == ENOMEM ? -FI_EAGAIN : err ? -err : -FI_EIO;
}

void vrb_held_refused(struct vrb_ep *ep)
{
	static const char why[] = "the device has refused a request that was posted with FI_MORE";

	vrb_cm_silent(ep, FI_EIO, why);
	vrb_requests_lost(ep, FI_EIO, why);
}

ssize_t vrb_post_failed(struct vrb_ep *ep, const struct ibv_send_wr *wr, int ret)
{
	if (!wr->next)
		return vrb_post_err(ret);
	vrb_held_refused(ep);
	return -FI_EIO;
}

bool vrb_post_marker(struct vrb_ep *ep)
{
	struct vrb_tx *tx = &ep->tx[ep->tx_tail & ep->tx_mask];
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t) tx, .opcode = ep->kind->marker_opcode, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (ep->tx_tail - ep->tx_head > ep->tx_size)
		return true;		/* the last request is a marker already */
	if (ep->kind->release)
		ep->kind->release(ep);
	*tx = (struct vrb_tx) { .ep = ep, .stats = ep->stats, .pos = ep->tx_tail, .code = FAB_OP_MAX };
	if (ep->kind->aim_marker)
		ep->kind->aim_marker(ep, &wr);
	if (ibv_post_send(ep->qp, &wr, &bad))
		return false;
	ep->tx_tail++;
	return true;
}
