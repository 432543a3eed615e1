/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_cancel(3) of posted receives. A cancel looks at the oldest few receives of a queue. If the one with its context is
 * not among them, it makes an index of all, which later cancels use until the queue is empty.
 *
 * Posting a receive and completing one do not know about the index. A cancel first enters the receives that were posted
 * since the last one. Entries of receives that are not posted any more are recognised when they are found: the sequence
 * number in the receive is another one or 0 (struct fab_posted). The memory of a freed receive may be read for this,
 * since a pool keeps its memory until the end. When most entries are such, the index is made anew. So the cost per
 * cancel is O(1) on average, plus O(1) for each receive posted since the index was made.
 *
 * Engine lock held.
 */
#include "common/receive/recv.h"

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "common/receive/group.h"

#define LOOK_FIRST	16		/* receives that a cancel looks at without an index */
#define STALE_FREE	64		/* entries of gone receives, in addition to the number of posted ones */

_Static_assert(offsetof(struct fab_posted, seq) >= sizeof(struct fab_pool_link), "a freed receive keeps its number");

/* The entry of a receive. */
struct noted {
	struct fab_match_node node;
	uint64_t seq;			/* of the receive when it was entered */
	uint64_t tag;			/* its context */
	fi_addr_t src;			/* 1: the context is a hook */
	struct fab_rx *rx;		/* borrowed; it may have been freed */
};
static const struct kind noted_kind = KIND(struct noted, node);

struct fab_by_context {
	struct fab_match_group group;
	struct fab_pool pool;		/* struct noted */
	uint64_t seq;			/* all receives up to this one were entered */
};

static struct fab_rx *rx_at(struct fab_list *link)
{
	return fab_container(link, struct fab_rx, posted.order);
}

/* ---- the index ---- */

static void index_clear(struct fab_by_context *index)
{
	free(index->group.buckets);
	index->group = (struct fab_match_group) { .ignore = 0 };
	fab_pool_fini(&index->pool);
	fab_pool_init(&index->pool, &(struct fab_pool_attr) { .size = sizeof(struct noted) });
	index->seq = 0;
}

static void index_free(struct fab_recv *recv, enum fab_msg_class class)
{
	struct fab_by_context *index = recv->by_context[class];

	if (!index)
		return;
	index_clear(index);
	free(index);
	recv->by_context[class] = NULL;
}

void fab_recv_cancel_fini(struct fab_recv *recv)
{
	for (int i = 0; i < FAB_CLASS_MAX; i++)
		index_free(recv, i);
}

/* Enter a receive that is younger than all others. 0, -FI_ENOMEM. */
static int index_add(struct fab_by_context *index, struct fab_rx *rx)
{
	struct noted *noted = fab_pool_get(&index->pool);

	if (!noted)
		return -FI_ENOMEM;
	noted->seq = rx->posted.seq;
	noted->tag = (uintptr_t) rx->context;
	noted->src = rx->rare & FAB_RX_HOOKED;
	noted->rx = rx;
	group_add(&index->group, &noted->node, &noted_kind);
	index->seq = noted->seq;
	return 0;
}

/* The index of a queue, with all its receives. NULL: no memory for it, or for all entries. */
static struct fab_by_context *index_of(struct fab_recv *recv, enum fab_msg_class class)
{
	struct fab_by_context *index = recv->by_context[class];
	struct fab_match *queue = &recv->queue[class];
	struct fab_list *link = queue->posted_order.prev;

	if (!index) {
		index = calloc(1, sizeof(*index));
		if (!index)
			return NULL;
		recv->by_context[class] = index;
		index_clear(index);
	} else if (index->group.cnt > 2 * (uint64_t) queue->posted_cnt + STALE_FREE) {
		index_clear(index);
	}
	if (group_start(&index->group, 0, 0))
		return NULL;
	for (; link != &queue->posted_order && rx_at(link)->posted.seq > index->seq; link = link->prev)
		FAB_MATCH_STEP();
	for (link = link->next; link != &queue->posted_order; link = link->next) {
		FAB_MATCH_STEP();
		if (index_add(index, rx_at(link)))
			return NULL;
	}
	return index;
}

/* True if the receive of an entry is still posted. It may be freed, which AddressSanitizer must not report. */
static __attribute__((noinline, no_sanitize_address)) bool still_posted(const struct noted *noted)
{
	return noted->rx->posted.seq == noted->seq;
}

/* Take the entry of the oldest posted receive out of the index. NULL: there is none. */
static struct fab_rx *index_take(struct fab_by_context *index, const void *context, bool hooked)
{
	const struct key key = make_key(&index->group, (uintptr_t) context, hooked);
	struct fab_match_node *node;

	while ((node = group_find(&index->group, key, &noted_kind))) {
		struct noted *noted = fab_container(node, struct noted, node);
		struct fab_rx *rx = still_posted(noted) ? noted->rx : NULL;

		group_del(&index->group, node);
		fab_pool_put(&index->pool, noted);
		if (rx)
			return rx;
	}
	return NULL;
}

/* ---- cancel ---- */

/* The oldest receive with this context among the first cnt of a queue, or NULL. */
static struct fab_rx *find_among(const struct fab_match *queue, uint32_t cnt, const void *context, bool hooked)
{
	struct fab_list *link;

	fab_list_for_each(&queue->posted_order, link) {
		struct fab_rx *rx = rx_at(link);

		if (!cnt--)
			break;
		FAB_MATCH_STEP();
		if (rx->context == context && (rx->rare & FAB_RX_HOOKED) == hooked)
			return rx;
	}
	return NULL;
}

/* The oldest posted receive with this context, or NULL. */
static struct fab_rx *find_posted(struct fab_recv *recv, enum fab_msg_class class, const void *context, bool hooked)
{
	const struct fab_match *queue = &recv->queue[class];
	struct fab_by_context *index;

	if (!recv->by_context[class]) {
		struct fab_rx *rx = find_among(queue, LOOK_FIRST, context, hooked);

		if (rx || queue->posted_cnt <= LOOK_FIRST)
			return rx;
	}
	index = index_of(recv, class);
	return index ? index_take(index, context, hooked) : find_among(queue, queue->posted_cnt, context, hooked);
}

static bool recv_cancel_in(struct fab_recv *recv, enum fab_msg_class class, const void *context, bool hooked)
{
	struct fab_rx *rx = find_posted(recv, class, context, hooked);

	if (rx)
		fab_rx_fail_posted(recv, rx, FI_ECANCELED);
	if (!recv->queue[class].posted_cnt)
		index_free(recv, class);
	return rx;
}

bool fab_recv_cancel(struct fab_recv *recv, const void *context)
{
	return recv_cancel_in(recv, FAB_CLASS_TAGGED, context, false) ||
	       recv_cancel_in(recv, FAB_CLASS_MSG, context, false);
}

bool fab_recv_cancel_hook(struct fab_recv *recv, const struct fab_hook *hook)
{
	return recv_cancel_in(recv, FAB_CLASS_COLL, hook, true);
}
