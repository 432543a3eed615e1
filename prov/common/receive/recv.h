/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receiving half of an endpoint, for every provider that matches messages itself: posted receives until they
 * complete, messages that arrived before their receive ("kept" messages), and peek, claim and discard (fi_msg(3),
 * fi_tagged(3)). Only the provider knows how the bytes of a message arrive. It finds the receive for a message, claims
 * room in it, copies the bytes there, and finishes the receive. If there is no receive, it keeps the message; it is
 * called back (struct fab_recv_ops) when a receive takes the message.
 *
 *   a receive is posted -> claimed by a message -> finished
 *   a message           -> a receive is posted: claim, finish
 *                       \-> none: kept -> ops->take when a receive takes it, or ops->drop
 *
 * A multi-receive stays posted, and messages claim parts of it, until less than FI_OPT_MIN_MULTI_RECV is left.
 *
 * recv_path.h has the part that every message runs through; a provider compiles it with its own operations. The rest is
 * in recv.c. All functions require the engine lock of the context.
 */
#ifndef FAB_RECV_H
#define FAB_RECV_H

#include "base/pool.h"
#include "common/endpoint/endpoint.h"
#include "common/receive/match.h"

/* The class of a message. Messages match only receives of their own class. The order is the same as from FAB_OP_RECV
 * on. */
enum fab_msg_class {
	FAB_CLASS_MSG,
	FAB_CLASS_TAGGED,
	FAB_CLASS_COLL,			/* of collectives: tagged, and always from a given source */
	FAB_CLASS_MAX
};

/* Receives that finish in a rare way. */
enum fab_rx_rare {
	FAB_RX_HOOKED = 1,		/* context is a struct fab_hook */
	FAB_RX_SPOILT = 2,		/* a copy to memory of a device has failed */
};

/* The flags of a receive whose messages are not simply copied to iov. */
#define FAB_RX_SPECIAL	(FI_MULTI_RECV | FAB_OP_HMEM)

/* A posted receive. */
struct fab_rx {
	struct fab_posted posted;	/* seq 0: not in the queue, or not any more; then freed when busy is 0 */
	void *context;
	uint64_t flags;			/* flags of the call: FI_COMPLETION, FI_MULTI_RECV, FAB_OP_HMEM_BITS */
	size_t len;			/* bytes of room in iov; decreases as messages use a multi-receive */
	uint32_t busy;			/* messages that are arriving in it */
	uint8_t code;			/* FAB_OP_RECV, FAB_OP_TRECV, FAB_OP_CRECV */
	uint8_t rare;			/* bits of enum fab_rx_rare */
	uint16_t iov_cnt;		/* so that fab_rx_fill() writes eight bytes at once */
	struct iovec *iov;		/* points to own, or to an entry of recv->iov_pool */
	struct iovec own[];		/* ops->iov_own entries; with ops->keeps_desc as many descriptors follow */
};

/* The room in a receive that a message has claimed. */
struct fab_into {
	struct fab_rx *rx;		/* NULL: no receive */
	uint8_t *start;			/* first byte of the room */
	uint64_t take;			/* bytes of the room; at most the length of the message */
};

/* The header of a message, in the form that all providers use. */
struct fab_msg {
	uint64_t tag, data, len;
	fi_addr_t src;			/* FI_ADDR_NOTAVAIL: the sender is not in the address vector */
	/* added to the flags of the completion: FI_REMOTE_CQ_DATA; FI_TAGGED on an untagged message: its tag is
	 * reported but not matched */
	uint32_t flags;
	uint8_t class;			/* enum fab_msg_class */
};

enum fab_kept_place {
	FAB_KEPT_QUEUED,		/* in the queue of its class */
	FAB_KEPT_CLAIMED,		/* in recv->claimed, for the receive with the context of the claim (FI_CLAIM) */
	FAB_KEPT_TAKEN,			/* a receive has taken it */
	FAB_KEPT_DROPPED,		/* it will be discarded */
	FAB_KEPT_ASKED,			/* in an exported receive context (fi_peer(3)): a peer has called get_msg() or
					 * get_tag() and not queue_*() yet */
};

/* An unexpected message that is kept until a receive takes it. The provider embeds it in a struct of its own. */
struct fab_kept {
	struct fab_unexp match;		/* in the queue while QUEUED; match.order is in recv->claimed while CLAIMED */
	struct fab_into into;		/* the room in the receive that took it; into.rx is NULL before */
	uint64_t tag, data, len;
	void *claim;			/* the context of the claim */
	uint32_t flags;			/* as in struct fab_msg */
	uint8_t class;			/* enum fab_msg_class */
	uint8_t place;			/* enum fab_kept_place */
};

struct fab_recv;
struct fab_by_context;			/* recv_cancel.c */

/* The provider's part of receiving. It is a constant that the compiler sees where recv_path.h is used. */
struct fab_recv_ops {
	uint8_t iov_max;		/* most entries of a receive's vector */
	uint8_t iov_own;		/* entries with room in struct fab_rx itself; longer vectors are taken from a
					 * pool */
	bool keeps_desc;		/* receives keep descriptors (fab_rx_desc()); iov_own is then equal to
					 * iov_max */
	/* A receive has taken a kept message: copy the bytes to kept->into and finish the receive, now or later. The
	 * message is in no queue any more, and the provider frees it. False: the endpoint does not receive any more,
	 * and the caller must not touch the receive. */
	bool (*take)(struct fab_recv *recv, struct fab_kept *kept);
	/* A kept message is discarded. It is in no queue any more, and the provider frees it. */
	void (*drop)(struct fab_recv *recv, struct fab_kept *kept);
	/* The endpoint whose completion queue and counters report about a kept message; kept is NULL for a receive
	 * without a message. A NULL function means recv->ep. */
	struct fab_ep *(*reporter)(const struct fab_recv *recv, const struct fab_kept *kept);
	/* With FI_SOURCE_ERR: write the error entry of a complete message whose sender is not in the address vector.
	 * NULL: the provider does not offer FI_SOURCE_ERR. */
	void (*unknown)(struct fab_ep *ep, enum fab_op_code code, struct fab_comp *comp, const struct fab_msg *msg);
};

/* The posted receives and kept messages of an endpoint, or of a shared receive context. */
struct fab_recv {
	struct fab_ep *ep;		/* borrowed: the endpoint or shared context */
	const struct fab_recv_ops *ops;
	struct fab_match queue[FAB_CLASS_MAX];	/* by class; all tags of untagged messages are 0 */
	struct fab_pool pool;		/* struct fab_rx; at most rx_attr->size */
	struct fab_pool coll_pool;	/* struct fab_rx of FAB_CLASS_COLL, at most one for each group */
	struct fab_pool iov_pool;	/* struct iovec[iov_max], for receives with more than iov_own entries */
	struct fab_by_context *by_context[FAB_CLASS_MAX];	/* owned; NULL: none was needed yet */
	struct fab_list claimed;	/* struct fab_kept, linked by match.order: messages that a peek has claimed */
	size_t min_multi_recv;		/* FI_OPT_MIN_MULTI_RECV */
	bool grouped;			/* sources include a peer group (match.h); set by fab_recv_set_grouped() */
	struct fi_stats_ep *stats;	/* borrowed: of ep */
};

/* Initialise the receives of an endpoint or shared context, after fab_ep_init(). size is rx_attr->size. 0 or
 * -FI_ENOMEM. */
int fab_recv_init(struct fab_recv *recv, struct fab_ep *ep, size_t size, const struct fab_recv_ops *ops);
/* Free all memory, after every receive was flushed and every message dropped. */
void fab_recv_fini(struct fab_recv *recv);
/* Write the oldest posted receive of each class to the page of the process, as what waits at the endpoint with the
 * record `ep`. peer: the index of the record of the peer at a source of matching, or UINT32_MAX; or NULL. */
void fab_recv_survey(const struct fab_recv *recv, struct fi_stats_ep *ep,
		     uint32_t (*peer)(const struct fab_recv *recv, fi_addr_t src));
/* Count a receive that ends, in the record of the peer. */
static inline void fab_recv_count(struct fi_stats_peer *stats, const struct fab_into *into, const struct fab_msg *msg,
				  const struct fab_cq_fail *fail)
{
	if (__builtin_expect(fail || into->take < msg->len, 0))
		stats->errors++;
	else
		fab_stats_count(stats, FAB_OP_RECV + msg->class, msg->len);
}
/* Set whether sources include a peer group. Call it between init and first use. */
void fab_recv_set_grouped(struct fab_recv *recv, bool grouped);


/* The sender's fi_addr_t in a source of matching, or FI_ADDR_NOTAVAIL. */
static inline fi_addr_t fab_recv_plain_src(const struct fab_recv *recv, fi_addr_t src)
{
	if (!recv->grouped)
		return src;
	return (uint32_t) src == UINT32_MAX ? FI_ADDR_NOTAVAIL : (uint32_t) src;
}

/* The endpoint that reports about a kept message; kept is NULL for a receive without a message. See ops->reporter. */
static inline struct fab_ep *fab_recv_reporter(const struct fab_recv *recv, const struct fab_kept *kept)
{
	return recv->ops->reporter ? recv->ops->reporter(recv, kept) : recv->ep;
}

/* True for a shared context that no endpoint uses: no queue could tell, so nothing is looked for or cancelled. */
static inline bool fab_recv_is_mute(const struct fab_recv *recv)
{
	const struct fab_ep *ep = recv->ep;

	return ep && ep->ep_fid.fid.fclass == FI_CLASS_SRX_CTX && fab_recv_reporter(recv, NULL) == ep;
}

/* ---- receives ---- */

/* Post a receive of fab_recv_make_one() (recv_path.h) in its group, and release the lock. 0; -FI_ENOMEM: rx is free. */
ssize_t fab_recv_post_grouped(struct fab_engine *engine, struct fab_recv *recv, struct fab_rx *rx);
/* Post a receive of a collective (FAB_OP_CRECV). src is a source of matching. 0: op's hook will be called, or has been.
 * -FI_EINVAL, -FI_ENOMEM: nothing was done. */
int fab_recv_post_coll(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src);
/* Make a receive of the application that is not posted. src is a source of matching. 0: the caller gives it a message
 * at once. -FI_EAGAIN: rx_attr->size receives are outstanding. -FI_EINVAL, -FI_ENOMEM. */
int fab_rx_new(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src, struct fab_rx **rx);
/* Free a receive that is not posted and gets no more messages. */
void fab_rx_free(struct fab_recv *recv, struct fab_rx *rx);
/* The part of fab_rx_claim() for a multi-receive. True: it stays posted. */
bool fab_rx_claim_part(struct fab_recv *recv, struct fab_rx *rx, const struct fab_into *into);
/* Finish a claim: the message is complete, or has failed (fail is not NULL, and its err is reported). The completion is
 * written for endpoint ep. A message longer than its room is reported as FI_ETRUNC. Frees the receive if it gets no
 * more messages. (fab_rx_finish_with() does the same with constant operations.) */
void fab_rx_finish(struct fab_recv *recv, struct fab_ep *ep, const struct fab_into *into, const struct fab_msg *msg,
		   const struct fab_cq_fail *fail);
/* Copy len bytes of a message to offset in its room; bytes past the room are dropped. The claim must not be finished
 * yet. If a copy to memory of a device fails, the receive will finish with FI_EIO. */
void fab_into_copy(const struct fab_into *into, uint64_t offset, const void *buf, uint64_t len);

/* Complete the oldest posted receive with this context with FI_ECANCELED; of several, a tagged one before others.
 * False: no receive has it. O(1) on average, however many are posted. */
bool fab_recv_cancel(struct fab_recv *recv, const void *context);
/* The same for a receive of a collective, by its hook. */
bool fab_recv_cancel_hook(struct fab_recv *recv, const struct fab_hook *hook);
/* Complete a posted receive that no message has claimed with err (positive). */
void fab_rx_fail_posted(struct fab_recv *recv, struct fab_rx *rx, int err);
/* The same for every posted receive. */
void fab_recv_flush(struct fab_recv *recv, int err);
/* Part of fab_recv_fini(): free what cancels have allocated. */
void fab_recv_cancel_fini(struct fab_recv *recv);

/* ---- messages that wait ---- */

/* Take a message out of the queue, or out of recv->claimed. The caller then sets its place, or frees it. */
static inline void fab_kept_unlink(struct fab_recv *recv, struct fab_kept *kept)
{
	if (kept->place == FAB_KEPT_QUEUED)
		fab_match_del_unexp(&recv->queue[kept->class], &kept->match);
	else if (kept->place == FAB_KEPT_CLAIMED)
		fab_list_remove(&kept->match.order);
}
/* Discard a message that is queued or claimed: its place becomes FAB_KEPT_DROPPED, and ops->drop is called. */
void fab_kept_drop(struct fab_recv *recv, struct fab_kept *kept);
/* The header of a kept message, with its source as known now. */
struct fab_msg fab_kept_msg(const struct fab_recv *recv, const struct fab_kept *kept);
/* Change the source of a kept message, when its sender was inserted into the address vector or removed from it. src is
 * a source of matching. */
void fab_kept_set_src(struct fab_recv *recv, struct fab_kept *kept, fi_addr_t src);
/* Messages of this class were given the source src, which was unknown: let posted receives take those that match now,
 * in the order of arrival. Receives complete. src is an address, without a peer group. */
void fab_recv_named(struct fab_recv *recv, enum fab_msg_class class, fi_addr_t src);
/* Call fn for each message that is queued or claimed. fn may take it out. */
void fab_recv_each_kept(struct fab_recv *recv, void (*fn)(struct fab_recv *recv, struct fab_kept *kept, void *arg),
			void *arg);

/* fab_kept_drop() for all messages that are queued or claimed. */
void fab_recv_drop_all(struct fab_recv *recv);

/* fi_trecvmsg(3) with FI_PEEK, FI_CLAIM and FI_DISCARD in the combinations of fi_tagged(3). src is a source of
 * matching. 0: one completion will follow, or has been written. -FI_EINVAL, and the errors of fab_rx_new(): nothing was
 * done. */
int fab_recv_peek(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src);

/* fi_setopt() with FI_OPT_MIN_MULTI_RECV. Takes the engine lock. 0, -FI_EINVAL, -FI_ETOOSMALL, logged. */
int fab_recv_setopt(struct fab_recv *recv, const void *optval, size_t optlen);

#endif
