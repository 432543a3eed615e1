/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receiving half of an endpoint whose messages arrive whole or as parts that the provider puts together: posted
 * receives from fi_recv() and its kin until their completion, messages that came before a receive for them, and peeks,
 * claims and discards (fi_msg(3), fi_tagged(3)). What a message is made of, and where its bytes are, is the provider's
 * business.
 *
 *   a receive is posted -> claimed by a message (fab_recv_claim) -> finished (fab_recv_finish)
 *   a message           -> find_posted -> claim, finish
 *                       \-> none: fab_recv_keep -> ops->take when a receive has claimed it, or ops->drop
 *
 * A multi-receive stays posted and is claimed part by part until less than FI_OPT_MIN_MULTI_RECV is left.
 *
 * All calls want the engine lock of the endpoint.
 */
#ifndef FAB_RECV_H
#define FAB_RECV_H

#include "base/pool.h"
#include "common/endpoint/endpoint.h"
#include "common/receive/match.h"

#define FAB_RECV_IOV		4	/* entries of a receive, at most */

/* A posted receive. */
struct fab_rx {
	struct fab_posted posted;
	void *context;
	uint64_t flags;			/* of the call: FI_COMPLETION, FI_MULTI_RECV */
	size_t len;			/* bytes of room in iov; shrinks as a multi-receive is used */
	uint32_t busy;			/* messages on their way into it */
	uint8_t code;			/* FAB_OP_RECV, FAB_OP_TRECV */
	uint8_t iov_cnt;
	bool unposted;			/* taken out of the queue: goes when busy is 0 */
	bool hooked;			/* context is a struct fab_hook */
	struct iovec iov[FAB_RECV_IOV];
	void *desc[FAB_RECV_IOV];	/* as the call had them, or NULL */
};

/* The room in a receive that a message has taken. */
struct fab_into {
	struct fab_rx *rx;		/* NULL: none */
	void *start;			/* of its first byte */
	size_t take;			/* bytes, at most those of the message */
};

/* What a message says of itself. */
struct fab_msg {
	uint64_t tag, data, len;
	fi_addr_t src;			/* FI_ADDR_NOTAVAIL while the sender is in no address vector */
	bool tagged;
	bool has_data;			/* FI_REMOTE_CQ_DATA */
};

/* A message that waits for its receive. The provider embeds it. */
struct fab_kept {
	struct fab_unexp match;		/* tag, src; its order links it while claimed */
	uint64_t data, len;
	void *claim;			/* context of the claim (FI_CLAIM) */
	bool tagged, has_data;
	bool claimed;
	bool waiting;			/* in a queue or claimed; false once a receive has it, or nobody will */
};

struct fab_recv;

/* What a provider does about the messages that it keeps. Both end the wait: the message is out of the queue, and the
 * provider frees it now or later. */
struct fab_recv_ops {
	/* A receive has taken it: put its bytes there, and call fab_recv_finish() now or later. */
	void (*take)(struct fab_recv *recv, struct fab_kept *kept, const struct fab_into *into);
	/* Nobody is to have it. */
	void (*drop)(struct fab_recv *recv, struct fab_kept *kept);
};

struct fab_recv {
	struct fab_ep *ep;		/* borrowed: embeds this, as a rule */
	const struct fab_recv_ops *ops;
	struct fab_match msg;		/* untagged, all tags are 0; or in one for that alone FAB_OP_CRECV, with tags */
	struct fab_match tagged;
	struct fab_pool pool;		/* struct fab_rx; at most rx_attr->size */
	struct fab_list claimed;	/* struct fab_kept, by match.order */
	size_t min_multi_recv;		/* FI_OPT_MIN_MULTI_RECV */
	bool directed;			/* FI_DIRECTED_RECV: source addresses of receives count */
	bool want_src;			/* FI_SOURCE */
};

/* For an endpoint that has been initialised, with fab_ep_init(). 0 or -FI_ENOMEM. */
int fab_recv_init(struct fab_recv *recv, struct fab_ep *ep, const struct fab_recv_ops *ops);
/* Every receive has been flushed, every message dropped. */
void fab_recv_fini(struct fab_recv *recv);

/*
 * The one way in for receives (FAB_OP_RECV, FAB_OP_TRECV), with FI_PEEK, FI_CLAIM and FI_DISCARD in the combinations of
 * fi_tagged(3). 0: one completion will follow, or has; -FI_EAGAIN: rx_attr->size are posted; -FI_EINVAL, -FI_ENOMEM:
 * nothing was done. The endpoint is enabled.
 */
int fab_recv_post(struct fab_recv *recv, const struct fab_op *op);

/* The oldest posted receive for a message, or NULL: keep it. */
struct fab_rx *fab_recv_find(struct fab_recv *recv, bool tagged, uint64_t tag, fi_addr_t src);
/* Take room for a message of len bytes: all of the receive, or the next part of a multi-receive. It leaves the queue
 * when it is used up: then false. fab_recv_finish() follows in any case. */
bool fab_recv_claim(struct fab_recv *recv, struct fab_rx *rx, uint64_t len, struct fab_into *into);
/* The message for which room was taken is in place, or will never be (fail, whose err is then reported). A message
 * longer than the room is FI_ETRUNC. Gives the receive back if nothing more can come to it. */
void fab_recv_finish(struct fab_recv *recv, const struct fab_into *into, const struct fab_msg *msg,
		     const struct fab_cq_fail *fail);
/* Copy len bytes of a message to their place, offset bytes into it; what is past the room taken is dropped. Not for a
 * receive that is finished. */
void fab_into_copy(const struct fab_into *into, size_t offset, const void *buf, size_t len);

/* Keep a message until a receive takes it; kept->match is made here. */
void fab_recv_keep(struct fab_recv *recv, struct fab_kept *kept, const struct fab_msg *msg);
/* What a kept message says of itself, with the source as known now. */
struct fab_msg fab_kept_msg(const struct fab_kept *kept);
/* Its sender became known, or unknown. */
void fab_kept_set_src(struct fab_recv *recv, struct fab_kept *kept, fi_addr_t src);
/* Take it out of the queue, or from among the claimed ones, without a word. Idempotent. */
void fab_kept_unlink(struct fab_recv *recv, struct fab_kept *kept);

/* Complete the oldest posted receive with this context as cancelled. False: there is none. */
bool fab_recv_cancel(struct fab_recv *recv, const void *context);
/* The same of an untagged or collective one with this hook. */
bool fab_recv_cancel_hook(struct fab_recv *recv, const struct fab_hook *hook);
/* Complete every posted receive with err (positive). */
void fab_recv_flush(struct fab_recv *recv, int err);
/* Drop every message that waits. */
void fab_recv_drop_all(struct fab_recv *recv);

/* fi_getopt() and fi_setopt() of FI_OPT_MIN_MULTI_RECV take the lock: -FI_EINVAL (logged), -FI_ETOOSMALL. */
int fab_recv_setopt(struct fab_recv *recv, const void *optval, size_t optlen);

#endif
