/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plays programs that are made from seeds. Each is played in a child process, so that a crash, a leak and a hang are
 * findings like any other. What fails is shortened by leaving out steps, and printed. One thread.
 */
#ifndef TEST_SEEDS_SEEDS_H
#define TEST_SEEDS_SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* The programs. All is borrowed. */
struct seeds_game {
	const char *options;		/* of the command line, which tell these programs from others: " --faults" */
	unsigned batch;			/* seeds of a child */
	unsigned patience_s;		/* CPU time of a batch; then it hangs. A sleep may take five times that */
	unsigned tries;			/* so often a shortened program is played before it counts as one that works;
					 * 1 where equal programs do equal things */
	/* The program of this seed, in the members that follow. */
	void (*make)(uint64_t seed);
	void *steps;
	uint32_t *cnt;
	size_t size;			/* of a step */
	/* Play it. NULL: all is as promised; otherwise what is not, after which this process plays no more. *hash: of
	 * all that happened, 0 where that differs from run to run. */
	const char *(*run)(uint64_t *hash);
	void (*print)(FILE *out);
};

/* Play seeds until both are over, so many seeds and so many seconds, and print a line of TAP with this number and name.
 * 0, or 1 if one failed: it is printed then. */
int seeds_play(const struct seeds_game *game, int number, const char *name, uint64_t from, uint64_t cnt,
	       time_t seconds);
/* Play one twice: both runs must be equal where they have a hash. Prints and returns the same. */
int seeds_play_one(const struct seeds_game *game, int number, uint64_t seed);

/* Play each of so many seeds twice: both runs must be equal. Prints and returns the same. */
int seeds_play_twice(const struct seeds_game *game, int number, const char *name, uint64_t from, uint64_t cnt);

/* The call that the program is about to make: said if it does not return. */
void seeds_doing(const char *call);

/* A random number below n, which is not 0. *state begins with any number, and equal ones have equal successors. */
uint32_t seeds_draw(uint64_t *state, uint32_t n);

#endif
