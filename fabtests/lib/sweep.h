/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A sweep file: what fi_ubertest tries. A line "[title]" starts a block, each line behind it is "key value value ...";
 * '#' starts a comment. A block stands for every combination of its values, the last key turning fastest. Combinations
 * are numbered from 1 through the whole file.
 */
#ifndef FABTESTS_SWEEP_H
#define FABTESTS_SWEEP_H

#include <stddef.h>
#include <stdint.h>

enum sweep_key {
	SWEEP_EP,               /* FI_EP_* */
	SWEEP_CALL,             /* index in calls[] */
	SWEEP_COMP,             /* 0 queue, 1 counter */
	SWEEP_WAIT,             /* enum pp_look */
	SWEEP_AV,               /* FI_AV_* */
	SWEEP_MR,               /* bits of mr_mode */
	SWEEP_PROGRESS,         /* FI_PROGRESS_* */
	SWEEP_THREADING,        /* FI_THREAD_* */
	SWEEP_FORMAT,           /* FI_CQ_FORMAT_* */
	SWEEP_SIZE,             /* bytes */
	SWEEP_KEYS,
};

/* One combination. */
struct sweep_case {
	uint64_t value[SWEEP_KEYS];
};

struct sweep;

/* Read a file: by its path, or the name of one in the folder FI_SWEEP_DIR, or
 * of an installed one. 0 or -FI_*, with a message that has the line. The caller
 * owns *sweep. */
int sweep_open(const char *name, struct sweep **sweep);
void sweep_close(struct sweep *sweep);

/* How many combinations there are, and number `number` of them. */
uint64_t sweep_cnt(const struct sweep *sweep);
void sweep_get(const struct sweep *sweep, uint64_t number, struct sweep_case *combination);

/* "msg send queue ..." in buf, which is returned. */
char *sweep_text(const struct sweep_case *combination, char *buf, size_t len);

#endif /* FABTESTS_SWEEP_H */
