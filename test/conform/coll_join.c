/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See collective.h. */
#define CONFORM_INSIDE
#include "collective.h"

struct fid_av_set *coll_set_open(struct side *s, const fi_addr_t *addr, size_t cnt)
{
	struct fi_av_set_attr attr = {
		.count = cnt, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL,
	};
	struct fid_av_set *set;

	MUST(fi_av_set(s->av, &attr, &set, NULL));
	own_fid(s->t, &set->fid);
	for (size_t i = 0; i < cnt; i++)
		MUST(fi_av_set_insert(set, addr[i]));
	return set;
}

struct fid_mc *coll_join_begin(struct side *s, const fi_addr_t *addr, size_t cnt)
{
	struct fid_av_set *set = coll_set_open(s, addr, cnt);
	fi_addr_t coll_addr;
	struct fid_mc *mc;

	MUST(fi_av_set_addr(set, &coll_addr));
	MUST(fi_join_collective(s->ep, coll_addr, set, 0, &mc, s));
	own_fid(s->t, &mc->fid);
	return mc;
}

void coll_join_end(struct side *s, struct fid_mc *mc)
{
	CHECK(expect_event(s, FI_JOIN_COMPLETE).fid == &mc->fid);
}

const fi_addr_t coll_everyone[COLL_MEMBERS_MAX] = { 0, 1, 2, 3, 4, 5, 6, 7 };
