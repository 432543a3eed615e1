/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The simulator's program.
 *
 *   sim [--from SEED] [--count N | --for SECONDS]     play seeds one after the other, without and with faults
 *   sim --seed SEED [--faults]                        play one, twice: both runs must be equal
 */
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"		/* FAB_ASAN */
#include "seeds/seeds.h"
#include "sim/play.h"

/* Of make check; fewer where each takes long. */
#ifdef FAB_ASAN
#define SEEDS		50
#else
#define SEEDS		400
#endif

static struct program program;
static bool faults;

static void make(uint64_t seed)
{
	play_make(&program, seed, faults);
}

static const char *run(uint64_t *hash)
{
	return play_run(&program, hash);
}

static void print(FILE *out)
{
	play_print(&program, out);
}

int main(int argc, char **argv)
{
	struct seeds_game game = {
		.options = "", .batch = 50, .patience_s = 60, .tries = 1, .make = make, .steps = program.actions,
		.cnt = &program.cnt, .size = sizeof(*program.actions), .run = run, .print = print,
	};
	uint64_t from = 1, one = 0, cnt = SEEDS;
	time_t seconds = 0;
	int ret;

	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (!strcmp(argv[i], "--faults"))
			faults = true;
		else if (!strcmp(argv[i], "--for") && more)
			cnt = 0, seconds = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--count") && more)
			cnt = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--from") && more)
			from = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--seed") && more)
			one = strtoull(argv[++i], NULL, 0);
	}
	if (faults)
		game.options = " --faults";
	setenv("FI_LOG_LEVEL", "silent", 0);
	if (one) {
		printf("1..1\n");
		return seeds_play_one(&game, 1, one);
	}
	printf("1..2\n");
	ret = seeds_play(&game, 1, "without faults", from, cnt, seconds / 2);
	faults = true;
	game.options = " --faults";
	return seeds_play(&game, 2, "with faults", from, cnt, seconds / 2) || ret;
}
