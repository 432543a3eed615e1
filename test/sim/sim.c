/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The simulator's program. Seeds are played in child processes, so that a crash is a finding like any other. What fails
 * is shortened and printed as a program.
 *
 *   sim [--from SEED] [--count N | --for SECONDS]     play seeds one after the other, without and with faults
 *   sim --seed SEED [--faults]                        play one, twice: both runs must be equal
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/pool.h"
#include "sim/play.h"

#define BATCH		50		/* seeds of a child */
/* Of make check; fewer where each takes long. */
#ifdef FAB_ASAN
#define SEEDS		50
#else
#define SEEDS		400
#endif
#define PATIENCE_S	60		/* for one batch */

/* What a child says. */
struct said {
	uint64_t seed, hash;
	bool failed;
	char why[600];
};

static struct said *said;
static struct program program;
static bool faults;

static void play(uint64_t seed)
{
	const char *why;

	said->seed = seed;
	why = play_run(&program, &said->hash);
	if (why) {
		said->failed = true;
		strncpy(said->why, why, sizeof(said->why) - 1);
		_exit(1);
	}
}

/* Play in a child: the seeds from `from` on, or the program as it is if cnt is 0. True: all went well. */
static bool child_plays(uint64_t from, unsigned cnt)
{
	int status = 0;
	pid_t pid;

	memset(said, 0, sizeof(*said));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		alarm(PATIENCE_S);
		if (!cnt)
			play(from);
		for (unsigned i = 0; i < cnt; i++) {
			play_make(&program, from + i, faults);
			play(from + i);
		}
		exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		snprintf(said->why, sizeof(said->why), "ended by signal %d%s", WTERMSIG(status),
			 WTERMSIG(status) == SIGALRM ? ", after a minute" : "");
	else if (status && !said->failed)
		snprintf(said->why, sizeof(said->why), "ended with status %d", WEXITSTATUS(status));
	return !status;
}

/* Leave out parts, long ones first, without which it still fails. */
static void shrink_once(uint64_t seed)
{
	static struct program all;

	for (uint32_t part = program.cnt; part; part /= 2) {
		for (uint32_t at = 0; at < program.cnt;) {
			uint32_t cnt = part < program.cnt - at ? part : program.cnt - at;

			all = program;
			memmove(program.actions + at, program.actions + at + cnt,
				(program.cnt - at - cnt) * sizeof(*program.actions));
			program.cnt -= cnt;
			if (child_plays(seed, 0)) {
				program = all;
				at += cnt;
			}
		}
	}
}

static void shrink(uint64_t seed)
{
	uint32_t before = 0;

	play_make(&program, seed, faults);
	while (program.cnt != before) {
		before = program.cnt;
		shrink_once(seed);
	}
	child_plays(seed, 0);
}

static int report(int number, uint64_t seed)
{
	printf("not ok %d - seed %llu%s: %s\n", number, (unsigned long long) seed, faults ? " --faults" : "",
	       said->why);
	shrink(seed);
	printf("# shortest: %s\n", said->why);
	play_print(&program, stdout);
	return 1;
}

static int play_one(uint64_t seed)
{
	uint64_t hash;

	printf("1..1\n");
	play_make(&program, seed, faults);
	if (!child_plays(seed, 0))
		return report(1, seed);
	hash = said->hash;
	child_plays(seed, 0);
	printf("%sok 1 - seed %llu: events %016llx, and again\n", hash == said->hash ? "" : "not ",
	       (unsigned long long) seed, (unsigned long long) hash);
	return hash != said->hash;
}

/* Until both are over: so many seeds, so many seconds. */
static int play_many(int number, uint64_t from, uint64_t cnt, time_t seconds)
{
	time_t end = time(NULL) + seconds;
	uint64_t done;

	for (done = 0; done < cnt || time(NULL) < end; done += BATCH) {
		if (!child_plays(from + done, BATCH))
			return report(number, said->seed);
	}
	printf("ok %d - %s: %llu seeds from %llu on\n", number, faults ? "with faults" : "without faults",
	       (unsigned long long) done, (unsigned long long) from);
	return 0;
}

int main(int argc, char **argv)
{
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
	said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setenv("FI_LOG_LEVEL", "silent", 0);
	if (one)
		return play_one(one);
	printf("1..2\n");
	ret = play_many(1, from, cnt, seconds / 2);
	faults = true;
	return play_many(2, from, cnt, seconds / 2) || ret;
}
