/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posted receives and unexpected messages of one receive context, and which goes with which. fi_tagged(3), fi_msg(3);
 * doc/design.md, 7.6.
 *
 * Order is what the interface promises: a message takes the oldest posted receive that fits it, a receive the oldest
 * unexpected message. Cost does not grow with what is outstanding:
 *
 *   Posted receives are grouped by their (ignore mask, any source?) pair, of which programs use few. A group is a hash
 *   of keys (tag without ignored bits, source); behind each key are its receives in order. The oldest hit of all groups
 *   wins by sequence number. Pairs beyond FAB_MATCH_GROUPS in use at once share a list that is searched in order.
 *
 *   Unexpected messages are one list in order of arrival, which is searched as long as that is cheap. When searches for
 *   one (ignore mask, any source?) pair have become long, an index of the same kind is made for it, FAB_MATCH_INDEXES
 *   at most.
 *
 * Untagged messages are a queue of their own, with tag 0 and no ignored bits.
 *
 * Peer groups (fi_group_addr(3)) are part of the source, where .grouped is set: its upper 32 bits are the group, the
 * lower ones the address, all set for any source (of the group) and for a sender that is in no AV.
 *
 * All calls want the engine lock of the receive context. Entries are the caller's (embedded); nothing is allocated per
 * message, hash tables grow with the largest number of keys ever outstanding, and when one cannot grow it gets slower
 * only.
 */
#ifndef FAB_MATCH_H
#define FAB_MATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include "base/list.h"

#define FAB_MATCH_GROUPS	16
#define FAB_MATCH_INDEXES	3

/* An entry's place in a group or index: the oldest of its key is in a bucket, the others hang on it. match.c's own. */
struct fab_match_node {
	struct fab_list bucket;
	struct fab_list same;
};

/* Head of a posted receive. tag, ignore and src are set before it is posted and stay until it is unposted. */
struct fab_posted {
	struct fab_list order;		/* in fab_match.posted_order, oldest first */
	uint64_t seq;
	uint64_t tag;			/* ignored bits are zero */
	uint64_t ignore;
	fi_addr_t src;			/* FI_ADDR_UNSPEC: any source; with .grouped, any of the group */
	struct fab_match_node node;
	struct fab_match_group *group;	/* NULL: among the rest */
};

/* Head of an unexpected message, kept by the provider until a receive takes it. tag and src are set before it is added;
 * src changes by fab_match_set_unexp_src() only. */
struct fab_unexp {
	struct fab_list order;		/* in fab_match.unexp_order, oldest first */
	uint64_t seq;
	uint64_t tag;
	fi_addr_t src;			/* FI_ADDR_NOTAVAIL while the sender is in no AV */
	struct fab_match_node node[FAB_MATCH_INDEXES];
};

/* Entries of one (ignore, any) pair. match.c's own. */
struct fab_match_group {
	uint64_t ignore;
	uint64_t any;			/* bits of the source that do not count: 0, or those of an address */
	uint32_t key_cnt;
	uint32_t cnt;			/* entries */
	uint32_t mask;			/* buckets less one */
	uint32_t used;			/* fab_match.use when it was last looked into */
	struct fab_list *buckets;	/* owned; NULL: not in use yet */
};

struct fab_match {
	struct fab_list posted_order;	/* fab_posted.order; the caller may walk it */
	struct fab_list unexp_order;	/* fab_unexp.order; likewise */
	uint32_t posted_cnt, unexp_cnt;
	uint16_t group_cnt;		/* of groups[] that were ever used */
	uint16_t index_cnt;		/* likewise */
	bool grouped;			/* sources have a peer group; the caller sets it between init and first use */
	uint64_t next_seq;
	uint32_t use;			/* wraps: then once the wrong index goes */
	uint64_t searched;		/* steps of searches in unexp_order since an index was made */
	struct fab_match_group groups[FAB_MATCH_GROUPS];	/* of posted receives */
	struct fab_match_group indexes[FAB_MATCH_INDEXES];	/* of unexpected messages */
	struct fab_list rest;		/* posted receives in no group, by fab_match_node.same */
};

int fab_match_init(struct fab_match *match);	/* 0; no memory is taken yet */
void fab_match_fini(struct fab_match *match);	/* both sides are empty */

/* Post a receive that no unexpected message fits (ask fab_match_find_unexp first). 0; -FI_ENOMEM if there was no memory
 * for the first receive of its kind: not posted. */
int fab_match_post(struct fab_match *match, struct fab_posted *posted);
void fab_match_unpost(struct fab_match *match, struct fab_posted *posted);
/* The oldest posted receive that takes a message (tag, src); it stays posted (multi-receive): the caller unposts. NULL:
 * none. */
struct fab_posted *fab_match_find_posted(struct fab_match *match, uint64_t tag, fi_addr_t src);

/* Keep a message for which no receive is posted; take it out again. */
void fab_match_add_unexp(struct fab_match *match, struct fab_unexp *unexp);
void fab_match_del_unexp(struct fab_match *match, struct fab_unexp *unexp);
/* The oldest unexpected message for (tag, ignore, src), src as of a posted receive. It stays; the caller takes it out.
 * NULL: none. */
struct fab_unexp *fab_match_find_unexp(struct fab_match *match, uint64_t tag, uint64_t ignore, fi_addr_t src);
/* The sender of a message became known (inserted into the AV), or unknown. The message keeps its place in the order. */
void fab_match_set_unexp_src(struct fab_match *match, struct fab_unexp *unexp, fi_addr_t src);

#endif
