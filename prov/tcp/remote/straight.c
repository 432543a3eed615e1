/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes that the initiator carries out itself in the memory of a peer of this host (local/reach.h). They are
 * complete when the call returns, at each completion level, and the peer has nothing to do.
 *
 * Order: everything that was sent before has been handled at the peer, or the access is a frame behind it. What is sent
 * later is behind it, since it is complete. So an access never overtakes, whatever order was asked for. Engine lock
 * held.
 */
#include "tcp/remote/remote.h"
#include <errno.h>
#include <string.h>
#include "tcp/params/params.h"

/* What the peer must notice, or do. */
#define PEER_ACTS	(FI_REMOTE_CQ_DATA | FI_COMMIT_COMPLETE)

static void straight_tell_off(const struct tcp_conn *conn, bool write, int err)
{
	char ends[TCP_CONN_TEXT];

	tcp_conn_text(conn, ends);
	TCP_LOG(FI_LOG_INFO, FI_LOG_EP_DATA, "%s: remote accesses need the progress of the peer, since this process "
		"may not %s its memory (ptrace_scope, seccomp, another pid namespace): %s\n", ends,
		write ? "read or write" : "read", strerror(err));
}

bool tcp_straight(struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	const struct tcp_reach_access access = {
		.write = op->code == FAB_OP_WRITE, .iov = op->iov, .iov_cnt = op->iov_cnt,
		.key = op->rma->key, .addr = op->rma->addr, .len = len,
	};
	struct tcp_pair *pair;
	int ret;

	if (conn->state != TCP_CONN_UP || conn->io != &tcp_io_ring || op->hooked || op->rma_cnt != 1 ||
	    (op->flags & (PEER_ACTS | FAB_OP_HMEM)))
		return false;
	pair = conn->local->pair;
	if (pair->reach.off || pair->ended || !tcp_tx_all_done(conn) || !fab_list_empty(&conn->tx.held) ||
	    !tcp_ring_is_handled(&pair->out))
		return false;
	ret = tcp_reach_copy(&pair->reach, &access);
	if (ret) {
		if (ret != -EAGAIN)
			straight_tell_off(conn, access.write, -ret);
		return false;
	}
	conn->used.straight_pass = conn->ep->base.engine->pass_cnt;
	return true;
}
