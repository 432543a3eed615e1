/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See match.h. Posted receives and unexpected messages contain the nodes of groups (group.h).
 */
#include "common/receive/match.h"

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/receive/group.h"

#define SEARCH_SHORT	16		/* steps that do not count towards `searched`, per search in unexp_order */
#define SEARCH_FREE	256		/* no index is built before `searched` exceeds this */

static const struct kind posted_kind = KIND(struct fab_posted, node);
static const struct kind unexp_kind[FAB_MATCH_INDEXES] = {
	KIND(struct fab_unexp, node[0]),
	KIND(struct fab_unexp, node[1]),
	KIND(struct fab_unexp, node[2]),
};

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
	posted->group = NULL;
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
