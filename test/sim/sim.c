/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The simulator's program.
 *
 *   sim                                           programs of test/sim/kept, the seeds of make check, and fresh ones
 *   sim --from SEED [--count N | --for SECONDS]   play seeds one after the other
 *   sim --seed SEED                               play one, twice: both runs must be equal
 *   sim --kept [--seed N]                         play the programs of test/sim/kept, or the n-th, from 1 on
 *
 *   --only KIND                                   programs of this kind, a word of their first line: dgram, group,
 *                                                 delay=20000 ..., or, behind a !, of another kind; repeated: all
 *                                                 these hold
 *
 * Seeds with an odd number have faults. Environment: srcdir.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/pool.h"		/* FAB_ASAN */
#include "seeds/seeds.h"
#include "sim/play.h"

/* Of make check; fewer where each takes long. */
#ifdef FAB_ASAN
#define SEEDS		100
#define TWICE		20
#define FRESH_S		2
#else
#define SEEDS		800
#define TWICE		180
#define FRESH_S		60
#endif
#define KIND_TRIES	5000
#define KINDS		8
#define LARGE_LEN	(1 << 20)	/* such memory comes from the kernel, which clears the part that is used */
#define HELD_LEN	(64 << 20)	/* of other memory so much is kept for the next programs */
#define FRESH_NICE	10		/* what others leave of the processors is enough for these */

/* What was played: without faults, and with them. Shared with the children that play. */
struct total {
	uint64_t cnt, cpu_ns, time_ns;
};
static struct total *totals;

static struct program program;
static FILE *kept;
static const char *only[KINDS];		/* programs of all these kinds */
static unsigned only_cnt;
static char only_text[200];		/* the same as options of the command line */

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

static int usage(const char *arg)
{
	fprintf(stderr, "sim: %s is no option, or has no value; the first lines of test/sim/sim.c list them\n", arg);
	return 2;
}

/* False: there is no room for it. */
static bool only_add(const char *kind)
{
	size_t len = strlen(only_text);

	if (only_cnt == KINDS || len + strlen(kind) + sizeof(" --only ''") > sizeof(only_text))
		return false;
	only[only_cnt++] = kind;
	snprintf(only_text + len, sizeof(only_text) - len, " --only '%s'", kind);
	return true;
}

static bool is_wanted(void)
{
	bool is = true;

	for (unsigned i = 0; i < only_cnt; i++)
		is &= *only[i] == '!' ? !play_is(&program, only[i] + 1) : play_is(&program, only[i]);
	return is;
}

/* The program of a seed, or of one that follows from it and is of the kind. A seed without faults may have none. */
static void make(uint64_t seed)
{
	for (uint64_t i = 0; i < KIND_TRIES; i++) {
		play_make(&program, seed + (i << 40));
		if (is_wanted())
			return;
	}
}

static void make_kept(uint64_t seed)
{
	rewind(kept);
	while (play_read(&program, kept) && --seed)
		continue;
}

static uint64_t kept_cnt(void)
{
	uint64_t cnt = 0;

	for (rewind(kept); play_read(&program, kept); cnt++)
		continue;
	return cnt;
}

static const char *run(uint64_t *hash)
{
	struct total *total = &totals[program.faults];
	uint64_t begun = cpu_ns(), time_ns = 0;
	const char *why = play_run(&program, hash, &time_ns);

	total->cnt++;
	total->cpu_ns += cpu_ns() - begun;
	total->time_ns += time_ns;
	return why;
}

static void print(FILE *out)
{
	play_print(&program, out);
}

static void print_totals(void)
{
	for (int i = 0; i < 2; i++) {
		const struct total *total = &totals[i];
		double cpu = (double) total->cpu_ns / 1e9, time = (double) total->time_ns / 1e9;

		if (!total->cnt)
			continue;
		printf("# %s faults: %" PRIu64 " seeds, %.0f in a second of CPU time; "
		       "%.0f s simulated, %.0f times as fast; a year takes %.1f hours of a core\n",
		       i ? "with" : "without", total->cnt, (double) total->cnt / cpu,
		       time, time / cpu, 365.25 * 24 / (time / cpu));
	}
}

static bool open_kept(void)
{
	const char *dir = getenv("srcdir");
	char path[4096];

	snprintf(path, sizeof(path), "%s/test/sim/kept", dir ? dir : ".");
	kept = fopen(path, "r");
	if (!kept)
		printf("Bail out! cannot read %s\n", path);
	return kept;
}

static uint64_t fresh_seed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

/* What make check plays. */
static int play_usual(const struct seeds_game *game, const struct seeds_game *kept_game)
{
	uint64_t fresh = fresh_seed();
	int ret;

	printf("1..4\n");
	ret = seeds_play(kept_game, 1, "programs that failed once", 1, kept_cnt(), 0);
	ret |= seeds_play(game, 2, "the same seeds each time", 1, SEEDS, 0);
	ret |= seeds_play_twice(game, 3, "a seed makes the same run each time", 1, TWICE);
	printf("# fresh seeds from %" PRIu64 " on\n", fresh);
	if (nice(FRESH_NICE) == -1)
		printf("# not with a lower priority\n");
	return seeds_play(game, 4, "fresh seeds", fresh, 0, FRESH_S) | ret;
}

int main(int argc, char **argv)
{
	struct seeds_game game = {
		.options = only_text, .batch = 50, .patience_s = 60, .tries = 1, .make = make, .steps = program.actions,
		.cnt = &program.cnt, .size = sizeof(*program.actions), .run = run, .print = print,
	};
	struct seeds_game kept_game = game;
	uint64_t from = 0, one = 0, cnt = 0;
	bool only_kept = false;
	time_t seconds = 0;
	int ret;

	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (!strcmp(argv[i], "--kept"))
			only_kept = true;
		else if (!strcmp(argv[i], "--only") && more && only_add(argv[i + 1]))
			i++;
		else if (!strcmp(argv[i], "--for") && more)
			seconds = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--count") && more)
			cnt = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--from") && more)
			from = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--seed") && more)
			one = strtoull(argv[++i], NULL, 0);
		else
			return usage(argv[i]);
	}
	kept_game.make = make_kept;
	kept_game.options = " --kept";
	kept_game.batch = 1;
	setenv("FI_LOG_LEVEL", "silent", 0);
	mallopt(M_MMAP_THRESHOLD, LARGE_LEN);
	mallopt(M_TRIM_THRESHOLD, HELD_LEN);
	totals = mmap(NULL, 2 * sizeof(*totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!open_kept())
		return 99;
	if (one || only_kept || cnt || seconds)
		printf("1..1\n");
	if (one)
		return seeds_play_one(only_kept ? &kept_game : &game, 1, one);
	if (only_kept)
		ret = seeds_play(&kept_game, 1, "programs that failed once", 1, kept_cnt(), 0);
	else if (cnt || seconds)
		ret = seeds_play(&game, 1, "seeds", from ? from : 1, cnt, seconds);
	else
		ret = play_usual(&game, &kept_game);
	print_totals();
	return ret;
}
