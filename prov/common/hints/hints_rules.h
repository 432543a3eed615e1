/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room, for its two files: hints_rules.c (independent attributes, from a table) and hints.c (attributes
 * that depend on each other, the answer, values as text). See hints.h. Any thread; a match belongs to one call.
 */
#ifndef FAB_HINTS_RULES_H
#define FAB_HINTS_RULES_H

#include "common/hints/hints.h"

/*
 * The comparison of hints with one offer; all checks of the offer use the same object. Without `listen` the first
 * mismatch ends the comparison and no text is made. With it, every mismatch is counted and reported.
 */
struct fab_hint_match {
	const struct fi_provider *prov;
	uint32_t version;		/* the caller's API version */
	const struct fi_info *hints;	/* never NULL */
	const struct fab_offer *offer;
	bool opening;			/* the hints are the info that an object is opened with (fab_hints_check) */
	unsigned miss_cnt;
	/* Called for each mismatch; NULL: reasons are not wanted. */
	void (*listen)(const struct fab_hint_match *match, enum fab_why_kind kind, const char *attr, const char *asked,
		       const char *offered);
};

/* True if the checks of this offer may end: a mismatch was found, and reasons are not wanted. */
static inline bool fab_hints_done(const struct fab_hint_match *match)
{
	return match->miss_cnt && !match->listen;
}

/* How a value is written as text: as an enum fi_type, or in one of these ways. */
enum { FAB_AS_NUMBER = -1, FAB_AS_HEX = -2 };

/* Count a mismatch and report it, with both values as text. `size` is the size of the attribute in bytes, 4 or 8;
 * `type` is an enum fi_type or FAB_AS_*. */
void fab_hints_miss(struct fab_hint_match *match, enum fab_why_kind kind, const char *attr, uint64_t asked,
		    uint64_t offered, size_t size, int type);

/* ---- hints_rules.c ---- */

/* Compare each attribute of the table; count and report mismatches. */
void fab_hints_check_rules(struct fab_hint_match *match);
/* Set each attribute of the table in info, which is a complete copy of the offer's info. */
void fab_hints_answer_rules(const struct fab_hint_match *match, struct fi_info *info);

#endif
