/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posted receives and unexpected messages of one receive context, and which goes with which. fi_tagged(3), fi_msg(3); doc/design.md, 7.6.
 *
 * Order is what the interface promises: a message takes the oldest posted receive that fits it, a receive the oldest unexpected message. Cost
 * does not grow with what is outstanding: posted receives are grouped by their (ignore mask, any source?) pair, of which programs use
 * few; a group is a hash by (tag without ignored bits, source), and the oldest hit of all groups wins by sequence number. Unexpected messages are
 * hashed by (tag, source), by tag, and by source, beside one list in order of arrival for the rest. Untagged messages are a queue of their own with tag 0.
 *
 * All calls want the engine lock of the receive context. Nothing here allocates per message: entries are the caller's (embedded), tables
 * grow with the largest number ever outstanding.
 */
#ifndef FAB_MATCH_H
#define FAB_MATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include "base/list.h"

/* The lists that an unexpected message is on at the same time. */
enum {
	FAB_MATCH_TAG_SRC,
	FAB_MATCH_TAG,
	FAB_MATCH_SRC,
	FAB_MATCH_ORDER,		/* of arrival: fab_match.unexp_order */
	FAB_MATCH_LINKS
};

/* Head of a posted receive (struct fab_rx below). */
struct fab_posted {
	struct fab_list link;		/* in its bucket */
	struct fab_list order;		/* in the queue, oldest first */
	uint64_t seq;
	uint64_t tag;			/* ignored bits are zero */
	uint64_t ignore;
	fi_addr_t src;			/* FI_ADDR_UNSPEC: any source */
};

/* Head of an unexpected message, kept by the provider until a receive takes it. */
struct fab_unexp {
	struct fab_list link[FAB_MATCH_LINKS];
	uint64_t tag;
	fi_addr_t src;			/* FI_ADDR_NOTAVAIL while the sender is in no AV */
};

struct fab_match_group;
struct fab_match_table;

struct fab_match {
	uint64_t next_seq;
	uint32_t posted_cnt, unexp_cnt;
	uint32_t group_cnt;
	struct fab_match_group *groups;
	struct fab_match_table *unexp;	/* three hash tables */
	struct fab_list posted_order;
	struct fab_list unexp_order;
};

int fab_match_init(struct fab_match *match);	/* 0 or -FI_ENOMEM */
void fab_match_fini(struct fab_match *match);	/* both sides are empty */

/* Post a receive that no unexpected message fits (ask fab_match_find_unexp first). 0; -FI_ENOMEM if a table could not grow: not posted. */
int fab_match_post(struct fab_match *match, struct fab_posted *posted);
void fab_match_unpost(struct fab_match *match, struct fab_posted *posted);
/* The oldest posted receive that takes a message (tag, src); it stays posted (multi-receive): the caller unposts. NULL: none. */
struct fab_posted *fab_match_find_posted(struct fab_match *match, uint64_t tag, fi_addr_t src);

/* Keep a message for which no receive is posted. 0 or -FI_ENOMEM. */
int fab_match_add_unexp(struct fab_match *match, struct fab_unexp *unexp);
void fab_match_del_unexp(struct fab_match *match, struct fab_unexp *unexp);
/* The oldest unexpected message for (tag, ignore, src); src FI_ADDR_UNSPEC: any. It stays; the caller takes it out. NULL: none. */
struct fab_unexp *fab_match_find_unexp(struct fab_match *match, uint64_t tag, uint64_t ignore, fi_addr_t src);
/* The sender of a message became known (inserted into the AV): index it anew. 0 or -FI_ENOMEM. */
int fab_match_set_unexp_src(struct fab_match *match, struct fab_unexp *unexp, fi_addr_t src);

#endif
