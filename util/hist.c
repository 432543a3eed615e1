/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A log-linear histogram. */
#include "hist.h"

#include <string.h>

#define SUB_CNT (1u << HIST_SUB_BITS)

void hist_clear(struct hist *hist)
{
	memset(hist, 0, sizeof(*hist));
}

/* The number of bits by which a value is shifted right to be in SUB_CNT .. 2 * SUB_CNT - 1; 0 for smaller values. */
static unsigned value_shift(uint64_t value)
{
	return value < SUB_CNT ? 0 : 63 - (unsigned) __builtin_clzll(value) - HIST_SUB_BITS;
}

/* The index grows with the value. The first SUB_CNT buckets have exact values; then each shift has SUB_CNT buckets. */
static unsigned bucket_index(uint64_t value)
{
	unsigned shift = value_shift(value);

	return (shift << HIST_SUB_BITS) + (unsigned) (value >> shift);
}

/* The largest value of a bucket. */
static uint64_t bucket_last(unsigned index)
{
	unsigned shift = index < 2 * SUB_CNT ? 0 : (index >> HIST_SUB_BITS) - 1;
	uint64_t first = (uint64_t) (index - (shift << HIST_SUB_BITS)) << shift;

	return first + ((1ULL << shift) - 1);
}

void hist_add(struct hist *hist, uint64_t value)
{
	hist->bucket[bucket_index(value)]++;
	if (!hist->cnt++ || value < hist->min)
		hist->min = value;
	if (value > hist->max)
		hist->max = value;
}

void hist_merge(struct hist *hist, const struct hist *more)
{
	unsigned i;

	if (!more->cnt)
		return;
	for (i = 0; i < HIST_BUCKETS; i++)
		hist->bucket[i] += more->bucket[i];
	if (!hist->cnt || more->min < hist->min)
		hist->min = more->min;
	if (more->max > hist->max)
		hist->max = more->max;
	hist->cnt += more->cnt;
}

uint64_t hist_percentile(const struct hist *hist, double share)
{
	uint64_t rank = (uint64_t) (share * (double) hist->cnt), seen = 0, value;
	unsigned i;

	if (rank < share * (double) hist->cnt)
		rank++;
	for (i = 0; i < HIST_BUCKETS; i++) {
		seen += hist->bucket[i];
		if (!hist->bucket[i] || seen < rank)
			continue;
		value = bucket_last(i);
		return value > hist->max ? hist->max : value;
	}
	return hist->max;
}
