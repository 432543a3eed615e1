/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What ops.c and ops_atomic.c, the data calls, share: which flags an operation gets, and whether a call's arguments
 * have the right form.
 *
 * Flags (fi_endpoint(3), fi_msg(3)): calls without a flags argument take the endpoint's op_flags; fi_*msg take what
 * they are given, and FI_COMPLETION from the endpoint if it is not bound for selective completion; fi_inject* take
 * the endpoint's completion level, which counters go by, and never write a CQ entry.
 */
#ifndef TCP_OPS_H
#define TCP_OPS_H

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include "tcp/ep.h"
#include "tcp/tcp.h"

/* What programs add that says nothing new about a call. */
#define ANY_FLAGS	(FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_COMPLETION | \
			 FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_TRIGGER)

static inline struct tcp_ep *ep_of(const struct fid_ep *fid)
{
	return tcp_ep_of(&fid->fid);
}

/* What the application holds: the endpoint or an alias, each with default flags of its own. */
static inline struct fab_ep_fid *held_of(struct fid_ep *fid)
{
	return fab_container(fid, struct fab_ep_fid, ep_fid);
}

static inline uint64_t tx_flags(struct fid_ep *fid)
{
	return held_of(fid)->tx_op_flags;
}

static inline uint64_t inject_flags(struct fid_ep *fid)
{
	return (tx_flags(fid) & ~FI_COMPLETION) | FI_INJECT;
}

static inline uint64_t tx_msg_flags(struct fid_ep *fid, uint64_t flags)
{
	return flags | ep_of(fid)->base.tx_msg_flags;
}

/* The error of a call that check_msg() does not pass, said in the log. */
ssize_t tcp_bad_msg(const void *msg, uint64_t flags, uint64_t allowed);

/* 0 if the call can be carried out as far as its form goes. */
static inline ssize_t check_msg(const void *msg, uint64_t flags, uint64_t allowed)
{
	return __builtin_expect(msg && !(flags & ~allowed), 1) ? 0 : tcp_bad_msg(msg, flags, allowed);
}

/* A vector that is one, and within the limit (fi_tx_attr, fi_rx_attr). */
static inline bool bad_vec(const void *vec, size_t cnt, size_t limit)
{
	return __builtin_expect(cnt > limit || (cnt && !vec), 0);
}

#endif
