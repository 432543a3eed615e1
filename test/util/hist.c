/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Percentiles of util/hist.c against those of the sorted samples. */
#include "../../util/hist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SAMPLES 10000

static struct hist hist;

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

/* No less than the right value, and less than a percent above it. */
static void expect_close(uint64_t value, uint64_t right)
{
	assert_in_range(value, right, right + right / 100);
}

static void without_samples_everything_is_zero(void **state)
{
	(void) state;
	hist_clear(&hist);
	assert_int_equal(hist.cnt, 0);
	assert_int_equal(hist_percentile(&hist, 0.5), 0);
	assert_int_equal(hist.max, 0);
}

static void small_values_are_exact(void **state)
{
	unsigned i;

	(void) state;
	hist_clear(&hist);
	for (i = 1; i <= 100; i++)
		hist_add(&hist, i);
	assert_int_equal(hist.min, 1);
	assert_int_equal(hist.max, 100);
	assert_int_equal(hist_percentile(&hist, 0.5), 50);
	assert_int_equal(hist_percentile(&hist, 0.99), 99);
	assert_int_equal(hist_percentile(&hist, 1), 100);
	/* half of three is two of them: the share is rounded up to whole samples */
	hist_clear(&hist);
	for (i = 1; i <= 3; i++)
		hist_add(&hist, i);
	assert_int_equal(hist_percentile(&hist, 0.5), 2);
	assert_int_equal(hist_percentile(&hist, 0.34), 2);
}

static void every_magnitude_is_right_to_one_percent(void **state)
{
	unsigned shift;
	uint64_t value;

	(void) state;
	for (shift = 0; shift < 64; shift++) {
		value = (1ULL << shift) | (1ULL << shift) / 3;
		hist_clear(&hist);
		hist_add(&hist, value);
		hist_add(&hist, UINT64_MAX);
		expect_close(hist_percentile(&hist, 0.5), value);
		assert_true(hist_percentile(&hist, 1) == UINT64_MAX);
	}
}

static void percentiles_are_those_of_the_sorted_samples(void **state)
{
	static const double shares[] = { 0.01, 0.5, 0.9, 0.99, 0.999 };
	static uint64_t samples[SAMPLES];
	uint64_t random = 1;
	size_t i;

	(void) state;
	hist_clear(&hist);
	for (i = 0; i < SAMPLES; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		samples[i] = 1000 + (random >> 33) % (1 + (random >> 40));
		hist_add(&hist, samples[i]);
	}
	qsort(samples, SAMPLES, sizeof(samples[0]), compare);
	assert_int_equal(hist.min, samples[0]);
	assert_int_equal(hist.max, samples[SAMPLES - 1]);
	for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		expect_close(hist_percentile(&hist, shares[i]), samples[(size_t) (shares[i] * SAMPLES + 0.5) - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_samples_everything_is_zero),
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(every_magnitude_is_right_to_one_percent),
		cmocka_unit_test(percentiles_are_those_of_the_sorted_samples),
	};

	return cmocka_run_group_tests_name("util/hist", tests, NULL, NULL);
}
