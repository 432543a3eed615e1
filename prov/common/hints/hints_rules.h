/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inside of the matcher, for its two files: match_rules.c (attributes that stand alone, by a table) and match_info.c
 * (those that depend on each other, the answer, the texts). See match_info.h. Any thread; a match is its caller's
 * alone.
 */
#ifndef FAB_HINTS_RULES_H
#define FAB_HINTS_RULES_H

#include "common/hints/hints.h"

/*
 * One of these goes through all checks of one offer. Without a listener the first mismatch ends it and no text is made;
 * with one, every mismatch is counted and told.
 */
struct fab_hint_match {
	const struct fi_provider *prov;
	uint32_t version;		/* of the API, as the caller wants it */
	const struct fi_info *hints;	/* never NULL */
	const struct fab_offer *offer;
	bool opening;			/* the hints are the info that an object is opened with (fab_hints_check) */
	unsigned miss_cnt;
	/* Called for each mismatch; NULL: nobody wants to know. */
	void (*listen)(const struct fab_hint_match *match, enum fab_why_kind kind, const char *attr, const char *asked,
		       const char *offered);
};

/* True if the checks of this offer may end: a mismatch was found, and nobody listens. */
static inline bool fab_hints_done(const struct fab_hint_match *match)
{
	return match->miss_cnt && !match->listen;
}

/* What a value is, for its text: an enum fi_type, or one of these. */
enum { FAB_AS_NUMBER = -1, FAB_AS_HEX = -2 };

/* Count a mismatch and tell the listener, with both values as texts; `size` of the attribute in bytes, 4 or 8, and
 * `type` as above. */
void fab_hints_miss(struct fab_hint_match *match, enum fab_why_kind kind, const char *attr, uint64_t asked,
		    uint64_t offered, size_t size, int type);

/* ---- match_rules.c ---- */

/* Compare each attribute of the table; what does not match is counted and told. */
void fab_hints_check_rules(struct fab_hint_match *match);
/* Set each attribute of the table in info, a copy of the offer's that has all its parts. */
void fab_hints_answer_rules(const struct fab_hint_match *match, struct fi_info *info);

#endif
