/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matches the posted receives and unexpected messages of one receive context. fi_tagged(3), fi_msg(3); doc/design.md,
 * 7.6.
 *
 * Order is as the interface promises: a message matches the oldest posted receive that fits it, and a receive matches
 * the oldest unexpected message that fits it. The cost does not grow with the number outstanding:
 *
 *   Posted receives are grouped by the pair (ignore mask, any source or a given one). Programs use few such pairs. A
 *   group is a hash table of keys (tag without ignored bits, source); each key has its receives in order. The oldest
 *   receive found in any group matches. The first FAB_MATCH_FEW receives, and those of groups beyond
 *   FAB_MATCH_GROUPS, are in a list that is searched in order: few receives need no hash table.
 *
 *   Unexpected messages are a list in order of arrival, which is searched as long as that is cheap. When searches for
 *   one pair have become long, an index with the same structure as a group is built for this pair. There are at most
 *   FAB_MATCH_INDEXES indexes.
 *
 * Untagged messages have a queue of their own, in which all tags and ignore masks are 0.
 *
 * If .grouped is set, a source includes the peer group (fi_group_addr(3)): the upper 32 bits are the group and the
 * lower 32 bits the address. The lower bits are all set in a receive for any source (of the group), and in a message
 * whose sender is not in the address vector.
 *
 * All functions require the engine lock of the receive context. Entries are embedded in structs of the caller. No
 * memory is allocated per message. Hash tables grow with the largest number of keys ever outstanding; a table that
 * cannot grow becomes slower but keeps working.
 */
#ifndef FAB_MATCH_H
#define FAB_MATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include "base/list.h"

#define FAB_MATCH_FEW		2
#define FAB_MATCH_GROUPS	16
#define FAB_MATCH_INDEXES	3

/* The links of an entry in a group or index. The oldest entry of a key is in a bucket, and the younger ones are in its
 * list `same`. Private to match.c. */
struct fab_match_node {
	struct fab_list bucket;
	struct fab_list same;
};

/* Embedded in a posted receive. The caller sets tag, ignore and src before it posts the receive, and does not change
 * them until it is unposted. It sets group to NULL in new memory. */
struct fab_posted {
	struct fab_list order;		/* in fab_match.posted_order, oldest first */
	uint64_t seq;			/* no two receives of a queue ever have the same; 0: it is not posted */
	uint64_t tag;			/* ignored bits are zero */
	uint64_t ignore;
	fi_addr_t src;			/* FI_ADDR_UNSPEC: any source; with .grouped, the lower 32 bits set: any source
					 * of the group */
	struct fab_match_node node;
	struct fab_match_group *group;	/* NULL: in fab_match.rest, or not posted */
};

/* Embedded in an unexpected message, which the provider keeps until a receive takes it. The caller sets tag and src
 * before it adds the message. Only fab_match_set_unexp_src() changes src afterwards. */
struct fab_unexp {
	struct fab_list order;		/* in fab_match.unexp_order, oldest first */
	uint64_t seq;
	uint64_t tag;
	fi_addr_t src;			/* FI_ADDR_NOTAVAIL while the sender is not in the address vector */
	struct fab_match_node node[FAB_MATCH_INDEXES];
};

/* A group or index: the entries of one pair (ignore, any). Private to match.c. */
struct fab_match_group {
	uint64_t ignore;
	uint64_t any;			/* the bits of the source that match any source: 0, or the address bits */
	uint32_t key_cnt;
	uint32_t cnt;			/* entries */
	uint32_t mask;			/* buckets less one */
	uint32_t used;			/* fab_match.use when it was last searched */
	struct fab_list *buckets;	/* owned; NULL: never used */
};

struct fab_match {
	struct fab_list posted_order;	/* fab_posted.order; the caller may walk it */
	struct fab_list unexp_order;	/* fab_unexp.order; likewise */
	uint32_t posted_cnt, unexp_cnt;
	uint32_t rest_cnt;		/* posted receives in `rest` */
	uint16_t group_cnt;		/* groups[] that were ever used */
	uint16_t index_cnt;		/* indexes[] that were ever used */
	bool grouped;			/* sources include a peer group; set by the caller between init and first use */
	uint64_t next_seq;		/* 1 after init; the caller may set another first number */
	uint32_t use;			/* counts searches; after a wrap an index may be replaced that is not the least
					 * used */
	uint64_t searched;		/* steps of long searches in unexp_order since the last index was built */
	struct fab_match_group groups[FAB_MATCH_GROUPS];	/* for posted receives */
	struct fab_match_group indexes[FAB_MATCH_INDEXES];	/* for unexpected messages */
	struct fab_list rest;		/* posted receives without a group, in order, linked by fab_match_node.same */
};

int fab_match_init(struct fab_match *match);	/* always 0; allocates nothing */
void fab_match_fini(struct fab_match *match);	/* call it when both sides are empty */

/* Parts of fab_match_post() and fab_match_unpost(): post a receive in its group; take it out of the group; give it its
 * place in the order; post it without a group. */
int fab_match_post_grouped(struct fab_match *match, struct fab_posted *posted);
void fab_match_ungroup(struct fab_posted *posted);
static inline void fab_match_post_last(struct fab_match *match, struct fab_posted *posted)
{
	posted->seq = match->next_seq++;
	fab_list_add_tail(&match->posted_order, &posted->order);
	match->posted_cnt++;
}
static inline void fab_match_post_rest(struct fab_match *match, struct fab_posted *posted)
{
	fab_match_post_last(match, posted);
	fab_list_add_tail(&match->rest, &posted->node.same);
	match->rest_cnt++;
}

/* Post a receive that matches no unexpected message (call fab_match_find_unexp() before). 0. -FI_ENOMEM: it is not
 * posted; possible only for the first receive of a pair. fab_match_unpost() takes a posted receive out. */
static inline int fab_match_post(struct fab_match *match, struct fab_posted *posted)
{
	if (match->rest_cnt >= FAB_MATCH_FEW)
		return fab_match_post_grouped(match, posted);
	fab_match_post_rest(match, posted);
	return 0;
}
static inline void fab_match_unpost(struct fab_match *match, struct fab_posted *posted)
{
	if (posted->group) {
		fab_match_ungroup(posted);
	} else {
		fab_list_drop(&posted->node.same);
		match->rest_cnt--;
	}
	fab_list_drop(&posted->order);
	posted->seq = 0;
	match->posted_cnt--;
}

/* The oldest posted receive that matches a message with this tag and source, or NULL. It stays posted, since it may be
 * a multi-receive; the caller unposts it. */
struct fab_posted *fab_match_find_posted(const struct fab_match *match, uint64_t tag, fi_addr_t src);
/* The same, without a call if there are few receives and the oldest one matches. */
static inline struct fab_posted *fab_match_find_oldest(const struct fab_match *match, uint64_t tag, fi_addr_t src)
{
	struct fab_posted *first = fab_container(match->rest.next, struct fab_posted, node.same);

	if (__builtin_expect(match->rest_cnt && match->posted_cnt == match->rest_cnt, 1) &&
	    (tag & ~first->ignore) == first->tag && (first->src == src || first->src == FI_ADDR_UNSPEC))
		return first;		/* no receive of a grouped queue is for FI_ADDR_UNSPEC */
	return fab_match_find_posted(match, tag, src);
}

/* Add an unexpected message; take one out. */
void fab_match_add_unexp(struct fab_match *match, struct fab_unexp *unexp);
void fab_match_del_unexp(struct fab_match *match, struct fab_unexp *unexp);
/* The oldest unexpected message that matches a receive with this tag, ignore mask and source, or NULL. It stays in the
 * list; the caller takes it out. */
struct fab_unexp *fab_match_find_unexp(struct fab_match *match, uint64_t tag, uint64_t ignore, fi_addr_t src);
/* Change the source of a message, when its sender was inserted into the address vector or removed from it. The message
 * keeps its place in the order. */
void fab_match_set_unexp_src(struct fab_match *match, struct fab_unexp *unexp, fi_addr_t src);

#endif
