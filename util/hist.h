/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A histogram of durations, with fixed memory, constant time per sample, and percentiles with an error below one
 * percent. Values below 256 have a bucket each; above, each power of two is divided into 128 buckets.
 */
#ifndef UTIL_HIST_H
#define UTIL_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 7
#define HIST_BUCKETS ((64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	uint64_t cnt, min, max;         /* min and max are exact; 0 without samples */
	uint64_t bucket[HIST_BUCKETS];
};

void hist_clear(struct hist *hist);
void hist_add(struct hist *hist, uint64_t value);

/* Add all samples of another histogram. */
void hist_merge(struct hist *hist, const struct hist *more);

/* The smallest value that at least `share` (0 to 1) of the samples do not exceed, within the error; 0 without
 * samples. */
uint64_t hist_percentile(const struct hist *hist, double share);

#endif /* UTIL_HIST_H */
