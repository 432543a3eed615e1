/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Groups: hash tables of entries that are found by tag and source. A key has its entries in order, oldest first.
 * A group links nodes (struct fab_match_node), which are embedded in the entries. The functions get a constant struct
 * kind, which describes the entry around a node, so that the compiler makes one copy of them for each kind. match.c has
 * groups of posted receives and of unexpected messages, recv_cancel.c of receives by context. Engine lock held.
 */
#ifndef FAB_RECEIVE_GROUP_H
#define FAB_RECEIVE_GROUP_H

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/receive/match.h"

/* Called for each bucket and entry that a search visits. A test defines it to count these steps. */
#ifndef FAB_MATCH_STEP
#define FAB_MATCH_STEP() ((void) 0)
#endif

#define BUCKETS_MIN	16		/* of a new group */

/* The offsets of members of an entry, in bytes from its node. */
struct kind {
	ptrdiff_t seq, tag, src;
};

#define KIND(type, node_member) {								\
	.seq = (ptrdiff_t) offsetof(type, seq) - (ptrdiff_t) offsetof(type, node_member),	\
	.tag = (ptrdiff_t) offsetof(type, tag) - (ptrdiff_t) offsetof(type, node_member),	\
	.src = (ptrdiff_t) offsetof(type, src) - (ptrdiff_t) offsetof(type, node_member),	\
}

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t field(const struct fab_match_node *node, ptrdiff_t offset)
{
	return *(const uint64_t *) (const void *) ((const char *) node + offset);
}

/* ---- groups ---- */

struct key {
	uint64_t tag;
	fi_addr_t src;
};

INLINE struct key make_key(const struct fab_match_group *group, uint64_t tag, fi_addr_t src)
{
	return (struct key) { tag & ~group->ignore, src | group->any };
}

INLINE struct key node_key(const struct fab_match_group *group, const struct fab_match_node *node,
			   const struct kind *kind)
{
	return make_key(group, field(node, kind->tag), field(node, kind->src));
}

INLINE struct fab_list *bucket_of(const struct fab_match_group *group, struct key key)
{
	return &group->buckets[fab_mix64(key.tag + key.src * UINT64_C(0x9e3779b97f4a7c15)) & group->mask];
}

/* The oldest node with this key, or NULL. */
INLINE struct fab_match_node *group_find(const struct fab_match_group *group, struct key key, const struct kind *kind)
{
	const struct fab_list *head = bucket_of(group, key);
	struct fab_list *link;

	FAB_MATCH_STEP();
	fab_list_for_each(head, link) {
		struct fab_match_node *node = fab_container(link, struct fab_match_node, bucket);
		struct key there = node_key(group, node, kind);

		FAB_MATCH_STEP();
		if (there.tag == key.tag && there.src == key.src)
			return node;
	}
	return NULL;
}

static struct fab_list *alloc_buckets(uint32_t cnt)
{
	struct fab_list *buckets = malloc(cnt * sizeof(*buckets));

	for (uint32_t i = 0; buckets && i < cnt; i++)
		fab_list_init(&buckets[i]);
	return buckets;
}

/* Double the number of buckets, if there is memory. */
static void group_grow(struct fab_match_group *group, const struct kind *kind)
{
	uint32_t old_cnt = group->mask + 1;
	struct fab_list *old = group->buckets, *link;
	struct fab_list *buckets = alloc_buckets(old_cnt * 2);

	if (!buckets)
		return;
	group->buckets = buckets;
	group->mask = old_cnt * 2 - 1;
	for (uint32_t i = 0; i < old_cnt; i++) {
		while ((link = fab_list_pop_front(&old[i]))) {
			struct fab_match_node *node = fab_container(link, struct fab_match_node, bucket);

			fab_list_add_tail(bucket_of(group, node_key(group, node, kind)), link);
		}
	}
	free(old);
}

/* Add a node at its place in the order. Nearly always it is the youngest. A message whose sender became known later may
 * be older than others. */
INLINE void group_add(struct fab_match_group *group, struct fab_match_node *node, const struct kind *kind)
{
	struct key key = node_key(group, node, kind);
	struct fab_match_node *oldest = group_find(group, key, kind);
	uint64_t seq = field(node, kind->seq);
	struct fab_list *link;

	fab_list_init(&node->bucket);
	fab_list_init(&node->same);
	group->cnt++;
	if (!oldest) {
		fab_list_add_tail(bucket_of(group, key), &node->bucket);
		if (++group->key_cnt > group->mask)
			group_grow(group, kind);
		return;
	}
	if (seq < field(oldest, kind->seq)) {
		fab_list_add_after(oldest->same.prev, &node->same);
		fab_list_add_after(&oldest->bucket, &node->bucket);
		fab_list_remove(&oldest->bucket);
		return;
	}
	link = oldest->same.prev;
	while (seq < field(fab_container(link, struct fab_match_node, same), kind->seq))
		link = link->prev;
	fab_list_add_after(link, &node->same);
}

INLINE void group_del(struct fab_match_group *group, struct fab_match_node *node)
{
	group->cnt--;
	if (!fab_list_empty(&node->bucket)) {
		/* the oldest node leaves: the next one takes its place in the bucket */
		if (fab_list_empty(&node->same))
			group->key_cnt--;
		else
			fab_list_add_after(&node->bucket,
					   &fab_container(node->same.next, struct fab_match_node, same)->bucket);
		fab_list_remove(&node->bucket);
	}
	fab_list_remove(&node->same);
}

/* Assign a pair to an empty group. -FI_ENOMEM: the group has no buckets yet, and there is no memory for them. */
static int group_start(struct fab_match_group *group, uint64_t ignore, uint64_t any)
{
	if (!group->buckets) {
		group->buckets = alloc_buckets(BUCKETS_MIN);
		if (!group->buckets)
			return -FI_ENOMEM;
		group->mask = BUCKETS_MIN - 1;
	}
	group->ignore = ignore;
	group->any = any;
	return 0;
}

#endif
