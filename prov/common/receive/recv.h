/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receiving half of an endpoint, the same for every provider that matches messages itself: posted receives from
 * fi_recv() and its kin until their completion, messages that came before a receive for them, and peeks, claims and
 * discards (fi_msg(3), fi_tagged(3)). How the bytes of a message arrive is the provider's business: it finds the
 * receive of a message, claims room in it, puts the bytes there, and finishes; or it keeps the message, and is called
 * back (struct fab_recv_ops) when a receive takes it.
 *
 *   a receive is posted -> claimed by a message -> finished
 *   a message           -> a receive is posted: claim, finish
 *                       \-> none: kept -> ops->take when a receive has taken it, or ops->drop
 *
 * A multi-receive stays posted and is claimed part by part until less than FI_OPT_MIN_MULTI_RECV is left.
 *
 * What every message passes is in recv_path.h, which a provider compiles with its own operations; the rest is called
 * here. All calls want the engine lock of the context.
 */
#ifndef FAB_RECV_H
#define FAB_RECV_H

#include "base/pool.h"
#include "common/endpoint/endpoint.h"
#include "common/receive/match.h"

/* Kinds of messages: each is matched with receives of its own kind only. The order is that of FAB_OP_RECV and those
 * behind it. */
enum fab_msg_class {
	FAB_CLASS_MSG,
	FAB_CLASS_TAGGED,
	FAB_CLASS_COLL,			/* inside of collectives: tagged, and always for a source */
	FAB_CLASS_MAX
};

/* A posted receive. */
struct fab_rx {
	struct fab_posted posted;
	void *context;
	uint64_t flags;			/* of the call: FI_COMPLETION, FI_MULTI_RECV */
	size_t len;			/* bytes of room in iov; shrinks as a multi-receive is used */
	uint32_t busy;			/* messages on their way into it */
	uint8_t code;			/* FAB_OP_RECV, FAB_OP_TRECV, FAB_OP_CRECV */
	uint8_t iov_cnt;
	bool unposted;			/* taken out of the queue: goes when busy is 0 */
	bool hooked;			/* context is a struct fab_hook */
	struct iovec *iov;		/* own, or owned: from recv->iov_pool */
	struct iovec own[];		/* ops->iov_own of them; if ops->keeps_desc, as many descriptors behind them */
};

/* The room in a receive that a message has taken. */
struct fab_into {
	struct fab_rx *rx;		/* NULL: none */
	uint8_t *start;			/* of its first byte */
	uint64_t take;			/* bytes, at most those of the message */
};

/* What a message says of itself. */
struct fab_msg {
	uint64_t tag, data, len;
	fi_addr_t src;			/* FI_ADDR_NOTAVAIL while the sender is in no address vector */
	/* what its completion says beside what it is: FI_REMOTE_CQ_DATA, or of an untagged message FI_TAGGED, where the
	 * tag is told and does not count */
	uint32_t flags;
	uint8_t class;			/* enum fab_msg_class */
};

enum fab_kept_place {
	FAB_KEPT_QUEUED,		/* in the queue of its class, for a receive to find */
	FAB_KEPT_CLAIMED,		/* in recv->claimed, for the receive with the claim's context (FI_CLAIM) */
	FAB_KEPT_TAKEN,			/* a receive has it */
	FAB_KEPT_DROPPED,		/* nobody is to have it */
	FAB_KEPT_ASKED,			/* of a provider that asks before it queues: not in the queue yet */
};

/* A message that waits for its receive. The provider embeds it. */
struct fab_kept {
	struct fab_unexp match;		/* linked while QUEUED; its order links it while CLAIMED */
	struct fab_into into;		/* the receive that took it; rx is NULL before */
	uint64_t tag, data, len;
	void *claim;			/* context of the claim */
	uint32_t flags;			/* as in struct fab_msg */
	uint8_t class;			/* enum fab_msg_class */
	uint8_t place;			/* enum fab_kept_place */
};

struct fab_recv;

/* What a provider says of its receives, and does about the messages that it keeps. A constant that the compiler sees
 * where recv_path.h is used. */
struct fab_recv_ops {
	uint8_t iov_max;		/* entries of a receive, at most */
	uint8_t iov_own;		/* that it has room for in itself; a longer one takes them from a pool */
	bool keeps_desc;		/* descriptors are kept (fab_rx_desc()); then iov_own is iov_max */
	/* A receive has taken it, kept->into: put its bytes there and finish, now or later. It is in no queue any more,
	 * and the provider's to free. False: the receives of the endpoint have ended of it. */
	bool (*take)(struct fab_recv *recv, struct fab_kept *kept);
	/* Nobody is to have it. Likewise. */
	void (*drop)(struct fab_recv *recv, struct fab_kept *kept);
	/* The endpoint that reports what happens to a kept message or, where that is NULL, to a receive that no message
	 * has. NULL: recv->ep does. */
	struct fab_ep *(*reporter)(const struct fab_recv *recv, const struct fab_kept *kept);
	/* A message is in its place whose sender is in no address vector, with FI_SOURCE_ERR: write the error. NULL:
	 * the provider does not offer that. */
	void (*unknown)(struct fab_ep *ep, enum fab_op_code code, struct fab_comp *comp, const struct fab_msg *msg);
};

/* Receives and kept messages of an endpoint, or of several that share them. */
struct fab_recv {
	struct fab_ep *ep;		/* borrowed: it, or the shared context */
	const struct fab_recv_ops *ops;
	struct fab_match queue[FAB_CLASS_MAX];	/* untagged messages: all tags are 0 */
	struct fab_pool pool;		/* struct fab_rx; at most rx_attr->size */
	struct fab_pool coll_pool;	/* of those of FAB_CLASS_COLL, one for each group at most */
	struct fab_pool iov_pool;	/* struct iovec[iov_max] of those receives that have many */
	struct fab_list claimed;	/* struct fab_kept, by match.order: found by a peek, waiting for its claim */
	size_t min_multi_recv;		/* FI_OPT_MIN_MULTI_RECV */
	bool grouped;			/* sources have a peer group (match.h); set it by fab_recv_set_grouped() */
};

/* For an endpoint, or shared context, that has been initialised, with fab_ep_init(); size: rx_attr->size. 0 or
 * -FI_ENOMEM. */
int fab_recv_init(struct fab_recv *recv, struct fab_ep *ep, size_t size, const struct fab_recv_ops *ops);
/* Every receive has been flushed, every message dropped. */
void fab_recv_fini(struct fab_recv *recv);
/* Are there peer groups? Between init and first use. */
void fab_recv_set_grouped(struct fab_recv *recv, bool grouped);


/* The sender behind a source as matching has it, or FI_ADDR_NOTAVAIL. */
static inline fi_addr_t fab_recv_plain_src(const struct fab_recv *recv, fi_addr_t src)
{
	if (!recv->grouped)
		return src;
	return (uint32_t) src == UINT32_MAX ? FI_ADDR_NOTAVAIL : (uint32_t) src;
}

/* Who reports what happens to a kept message or, where that is NULL, to a receive that no message has. */
static inline struct fab_ep *fab_recv_reporter(const struct fab_recv *recv, const struct fab_kept *kept)
{
	return recv->ops->reporter ? recv->ops->reporter(recv, kept) : recv->ep;
}

/* ---- receives ---- */

/* Post a receive of a collective (FAB_OP_CRECV), for messages of src as matching has it. 0: op's hook will hear of its
 * end, or has; -FI_EINVAL, -FI_ENOMEM: nothing was done. */
int fab_recv_post_coll(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src);
/* A receive with the arguments of a call, of the application and not posted, for messages of src as matching has it. 0:
 * the caller has a message take it; -FI_EAGAIN: rx_attr->size are out; -FI_EINVAL, -FI_ENOMEM. */
int fab_rx_new(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src, struct fab_rx **rx);
/* Nothing more can come to a receive, which is not posted: it goes. */
void fab_rx_free(struct fab_recv *recv, struct fab_rx *rx);
/* Take room for a message of len bytes: all of the receive, or the next part of a multi-receive. It leaves the queue
 * when it is used up: then false. Finishing it follows in any case. */
bool fab_rx_claim(struct fab_recv *recv, struct fab_rx *rx, uint64_t len, struct fab_into *into);
/* The message for which room was taken is in place, or will never be (fail, whose err is then reported), for which ep
 * has the completion. A message longer than the room is FI_ETRUNC. Gives the receive back if nothing more can come to
 * it. (fab_rx_finish_with() is the same where the provider knows its operations.) */
void fab_rx_finish(struct fab_recv *recv, struct fab_ep *ep, const struct fab_into *into, const struct fab_msg *msg,
		   const struct fab_cq_fail *fail);
/* Copy len bytes of a message to their place, offset bytes into it; what is past the room taken is dropped. Not for a
 * receive that is finished. */
void fab_into_copy(const struct fab_into *into, uint64_t offset, const void *buf, uint64_t len);

/* Complete the oldest posted receive with this context as cancelled. False: there is none. */
bool fab_recv_cancel(struct fab_recv *recv, const void *context);
/* The same of a collective's, with this hook. */
bool fab_recv_cancel_hook(struct fab_recv *recv, const struct fab_hook *hook);
/* Complete every posted receive with err (positive). */
void fab_recv_flush(struct fab_recv *recv, int err);

/* ---- messages that wait ---- */

/* Take it out of the queue, or from among the claimed ones, if it is there. The caller sets its place, or frees it. */
static inline void fab_kept_unlink(struct fab_recv *recv, struct fab_kept *kept)
{
	if (kept->place == FAB_KEPT_QUEUED)
		fab_match_del_unexp(&recv->queue[kept->class], &kept->match);
	else if (kept->place == FAB_KEPT_CLAIMED)
		fab_list_remove(&kept->match.order);
}
/* Nobody is to have a message that is queued or claimed: it is DROPPED, ops->drop. */
void fab_kept_drop(struct fab_recv *recv, struct fab_kept *kept);
/* What it says of itself, with the source as known now. */
struct fab_msg fab_kept_msg(const struct fab_recv *recv, const struct fab_kept *kept);
/* Its source, as matching has it, is another one now: its sender became known, or unknown. */
void fab_kept_set_src(struct fab_recv *recv, struct fab_kept *kept, fi_addr_t src);
/* Call fn with each message that is queued or claimed, and arg; fn may take it out. */
void fab_recv_each_kept(struct fab_recv *recv, void (*fn)(struct fab_recv *recv, struct fab_kept *kept, void *arg),
			void *arg);

/* Nobody is to have any of them: fab_kept_drop(). */
void fab_recv_drop_all(struct fab_recv *recv);

/* fi_trecvmsg(3) with FI_PEEK, FI_CLAIM, FI_DISCARD in the combinations of fi_tagged(3); src as matching has it. 0: one
 * completion will follow, or has; -FI_EINVAL, and what fab_rx_new() returns: nothing was done. */
int fab_recv_peek(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src);

/* fi_setopt() of FI_OPT_MIN_MULTI_RECV. Takes the lock. 0, -FI_EINVAL, -FI_ETOOSMALL, logged. */
int fab_recv_setopt(struct fab_recv *recv, const void *optval, size_t optlen);

#endif
