/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See match.h. Groups link nodes, which are embedded in posted receives and in unexpected messages. The functions for
 * groups get a constant struct kind, which describes the entry around a node, so that the compiler makes one copy of
 * them for each kind.
 */
#include "common/receive/match.h"

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"

/* Called for each bucket and entry that a search visits. A test defines it to count these steps. */
#ifndef FAB_MATCH_STEP
#define FAB_MATCH_STEP() ((void) 0)
#endif

#define BUCKETS_MIN	16		/* of a new group */
#define SEARCH_SHORT	16		/* steps that do not count towards `searched`, per search in unexp_order */
#define SEARCH_FREE	256		/* no index is built before `searched` exceeds this */

/* The offsets of members of an entry, in bytes from its node. */
struct kind {
	ptrdiff_t seq, tag, src;
};

#define KIND(type, node_member) {								\
	.seq = (ptrdiff_t) offsetof(type, seq) - (ptrdiff_t) offsetof(type, node_member),	\
	.tag = (ptrdiff_t) offsetof(type, tag) - (ptrdiff_t) offsetof(type, node_member),	\
	.src = (ptrdiff_t) offsetof(type, src) - (ptrdiff_t) offsetof(type, node_member),	\
}
static const struct kind posted_kind = KIND(struct fab_posted, node);
static const struct kind unexp_kind[FAB_MATCH_INDEXES] = {
	KIND(struct fab_unexp, node[0]),
	KIND(struct fab_unexp, node[1]),
	KIND(struct fab_unexp, node[2]),
};

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

/* ---- sources ---- */

/* The bits of a source that are the address. A receive for any source has all of them set. */
INLINE uint64_t addr_bits(const struct fab_match *match)
{
	return match->grouped ? UINT32_MAX : UINT64_MAX;
}

/* The bits of a message's source that a receive for src ignores. */
INLINE uint64_t any_bits(const struct fab_match *match, fi_addr_t src)
{
	uint64_t bits = addr_bits(match);

	return (src & bits) == bits ? bits : 0;
}

/* ---- posted receives ---- */

int fab_match_init(struct fab_match *match)
{
	*match = (struct fab_match) { .next_seq = 1 };
	fab_list_init(&match->posted_order);
	fab_list_init(&match->unexp_order);
	fab_list_init(&match->rest);
	return 0;
}

void fab_match_fini(struct fab_match *match)
{
	for (unsigned i = 0; i < match->group_cnt; i++)
		free(match->groups[i].buckets);
	for (unsigned i = 0; i < match->index_cnt; i++)
		free(match->indexes[i].buckets);
}

/* The group of a pair, which is made if necessary. 0 with *group NULL: too many pairs are in use. */
static int posted_group(struct fab_match *match, uint64_t ignore, uint64_t any, struct fab_match_group **found)
{
	struct fab_match_group *group, *idle = NULL;
	int ret;

	*found = NULL;
	for (group = match->groups; group < match->groups + match->group_cnt; group++) {
		if (group->ignore == ignore && group->any == any) {
			*found = group;
			return 0;
		}
		if (!group->cnt)
			idle = group;
	}
	if (!idle && match->group_cnt == FAB_MATCH_GROUPS)
		return 0;
	ret = group_start(idle ? idle : group, ignore, any);
	if (ret)
		return ret;
	if (!idle)
		match->group_cnt++;
	*found = idle ? idle : group;
	return 0;
}

int fab_match_post_grouped(struct fab_match *match, struct fab_posted *posted)
{
	int ret;

	ret = posted_group(match, posted->ignore, any_bits(match, posted->src), &posted->group);
	if (ret)
		return ret;
	if (!posted->group) {
		fab_match_post_rest(match, posted);
		return 0;
	}
	fab_match_post_last(match, posted);
	group_add(posted->group, &posted->node, &posted_kind);
	return 0;
}

void fab_match_ungroup(struct fab_posted *posted)
{
	group_del(posted->group, &posted->node);
}

/* The oldest matching receive without a group if it is older than best, otherwise best. */
static struct fab_posted *find_rest(const struct fab_match *match, uint64_t tag, fi_addr_t src, struct fab_posted *best)
{
	const fi_addr_t any = src | addr_bits(match);
	struct fab_list *link;

	fab_list_for_each(&match->rest, link) {
		struct fab_posted *posted = fab_container(link, struct fab_posted, node.same);

		FAB_MATCH_STEP();
		if (best && best->seq < posted->seq)
			break;
		if ((tag & ~posted->ignore) == posted->tag && (posted->src == any || posted->src == src))
			return posted;
	}
	return best;
}

/* The oldest matching receive in a group, or NULL. */
static __attribute__((noinline)) struct fab_posted *find_grouped(const struct fab_match *match, uint64_t tag,
								 fi_addr_t src)
{
	struct fab_posted *best = NULL;

	for (unsigned i = 0; i < match->group_cnt; i++) {
		const struct fab_match_group *group = &match->groups[i];
		struct fab_match_node *node;
		struct fab_posted *posted;

		if (!group->cnt)
			continue;
		node = group_find(group, make_key(group, tag, src), &posted_kind);
		if (!node)
			continue;
		posted = fab_container(node, struct fab_posted, node);
		if (!best || posted->seq < best->seq)
			best = posted;
	}
	return best;
}

struct fab_posted *fab_match_find_posted(const struct fab_match *match, uint64_t tag, fi_addr_t src)
{
	struct fab_posted *best = NULL;

	if (match->posted_cnt != match->rest_cnt)
		best = find_grouped(match, tag, src);
	return find_rest(match, tag, src, best);
}

/* ---- unexpected messages ---- */

void fab_match_add_unexp(struct fab_match *match, struct fab_unexp *unexp)
{
	unexp->seq = match->next_seq++;
	fab_list_add_tail(&match->unexp_order, &unexp->order);
	match->unexp_cnt++;
	for (unsigned i = 0; i < match->index_cnt; i++)
		group_add(&match->indexes[i], &unexp->node[i], &unexp_kind[i]);
}

void fab_match_del_unexp(struct fab_match *match, struct fab_unexp *unexp)
{
	for (unsigned i = 0; i < match->index_cnt; i++)
		group_del(&match->indexes[i], &unexp->node[i]);
	fab_list_remove(&unexp->order);
	match->unexp_cnt--;
}

void fab_match_set_unexp_src(struct fab_match *match, struct fab_unexp *unexp, fi_addr_t src)
{
	for (unsigned i = 0; i < match->index_cnt; i++)
		group_del(&match->indexes[i], &unexp->node[i]);
	unexp->src = src;
	for (unsigned i = 0; i < match->index_cnt; i++)
		group_add(&match->indexes[i], &unexp->node[i], &unexp_kind[i]);
}

/* Build an index of the unexpected messages for this pair. It replaces the index that was not used for the longest
 * time. */
static void make_index(struct fab_match *match, uint64_t ignore, uint64_t any)
{
	struct fab_match_group *index = match->indexes;
	struct fab_list *link;
	unsigned i;

	if (match->index_cnt < FAB_MATCH_INDEXES) {
		index = &match->indexes[match->index_cnt];
	} else {
		for (i = 1; i < FAB_MATCH_INDEXES; i++) {
			if (match->indexes[i].used < index->used)
				index = &match->indexes[i];
		}
	}
	i = index - match->indexes;
	if (i < match->index_cnt) {
		fab_list_for_each(&match->unexp_order, link)
			group_del(index, &fab_container(link, struct fab_unexp, order)->node[i]);
	}
	if (group_start(index, ignore, any))
		return;
	if (i == match->index_cnt)
		match->index_cnt++;
	index->used = ++match->use;
	fab_list_for_each(&match->unexp_order, link)
		group_add(index, &fab_container(link, struct fab_unexp, order)->node[i], &unexp_kind[i]);
	match->searched = 0;
}

static struct fab_unexp *search_unexp(struct fab_match *match, uint64_t tag, uint64_t ignore, fi_addr_t src)
{
	const uint64_t any = any_bits(match, src);
	struct fab_unexp *found = NULL;
	struct fab_list *link;
	uint64_t steps = 0;

	fab_list_for_each(&match->unexp_order, link) {
		struct fab_unexp *unexp = fab_container(link, struct fab_unexp, order);

		FAB_MATCH_STEP();
		steps++;
		if (!((unexp->tag ^ tag) & ~ignore) && (unexp->src | any) == src) {
			found = unexp;
			break;
		}
	}
	if (steps > SEARCH_SHORT)
		match->searched += steps - SEARCH_SHORT;
	if (match->searched > SEARCH_FREE + 4 * (uint64_t) match->unexp_cnt)
		make_index(match, ignore, any);
	return found;
}

struct fab_unexp *fab_match_find_unexp(struct fab_match *match, uint64_t tag, uint64_t ignore, fi_addr_t src)
{
	const uint64_t any = any_bits(match, src);

	for (unsigned i = 0; i < match->index_cnt; i++) {
		struct fab_match_group *index = &match->indexes[i];
		struct fab_match_node *node;

		if (index->ignore != ignore || index->any != any)
			continue;
		index->used = ++match->use;
		node = group_find(index, make_key(index, tag, src), &unexp_kind[i]);
		return node ? (struct fab_unexp *) ((char *) node - offsetof(struct fab_unexp, node[i])) : NULL;
	}
	return search_unexp(match, tag, ignore, src);
}
