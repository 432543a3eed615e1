/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See seeds.h.
 */
#include "seeds/seeds.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/bits.h"

#define ASLEEP		5		/* times the patience, of the wall clock: it waits for something */

/* What a child says: in memory that it shares with its parent. */
struct said {
	uint64_t seed, hash;
	bool failed;
	char why[600], doing[300];
};

static struct said *said;

static void prepare(void)
{
	if (!said)
		said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(said, 0, sizeof(*said));
}

static void play(const struct seeds_game *game, uint64_t seed)
{
	const char *why;

	said->seed = seed;
	why = game->run(&said->hash);
	if (why) {
		said->failed = true;
		strncpy(said->why, why, sizeof(said->why) - 1);
		_exit(1);
	}
	said->doing[0] = 0;
}

static _Noreturn void be_child(const struct seeds_game *game, uint64_t from, unsigned cnt)
{
	const struct itimerval patience = { .it_value.tv_sec = game->patience_s };

	setitimer(ITIMER_PROF, &patience, NULL);
	alarm(ASLEEP * game->patience_s);
	if (!cnt)
		play(game, from);
	for (unsigned i = 0; i < cnt; i++) {
		game->make(from + i);
		play(game, from + i);
	}
	exit(0);
}

/* Play in a child: the seeds from `from` on, or the program as it is if cnt is 0. True: all went well. */
static bool child_plays(const struct seeds_game *game, uint64_t from, unsigned cnt)
{
	int status = 0;
	pid_t pid;

	prepare();
	fflush(NULL);
	pid = fork();
	if (!pid)
		be_child(game, from, cnt);
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		snprintf(said->why, sizeof(said->why), "ended by signal %d%s: %s", WTERMSIG(status),
			 WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM ? ", since it hangs" : "",
			 said->doing);
	else if (status && !said->failed)
		snprintf(said->why, sizeof(said->why), "ended with status %d: %s", WEXITSTATUS(status), said->doing);
	return !status;
}

static bool still_fails(const struct seeds_game *game, uint64_t seed)
{
	for (unsigned i = 0; i < game->tries; i++) {
		if (!child_plays(game, seed, 0))
			return true;
	}
	return false;
}

/* Leave out parts, long ones first, without which it still fails. */
static void shrink_once(const struct seeds_game *game, uint64_t seed)
{
	uint32_t all = *game->cnt;
	uint8_t *steps = game->steps, *copy = malloc(all * game->size);

	for (uint32_t part = all; part; part /= 2) {
		for (uint32_t at = 0; at < *game->cnt;) {
			uint32_t before = *game->cnt, cnt = fab_min(part, before - at);

			memcpy(copy, steps, before * game->size);
			memmove(steps + at * game->size, steps + (at + cnt) * game->size,
				(before - at - cnt) * game->size);
			*game->cnt -= cnt;
			if (!still_fails(game, seed)) {
				memcpy(steps, copy, before * game->size);
				*game->cnt = before;
				at += cnt;
			}
		}
	}
	free(copy);
}

static void shrink(const struct seeds_game *game, uint64_t seed)
{
	uint32_t before = 0;

	game->make(seed);
	while (*game->cnt != before) {
		before = *game->cnt;
		shrink_once(game, seed);
	}
	still_fails(game, seed);
}

static int report(const struct seeds_game *game, int number, uint64_t seed)
{
	printf("not ok %d - seed %llu%s: %s\n", number, (unsigned long long) seed, game->options, said->why);
	if (getenv("SEEDS_AS_IS"))	/* not shortened */
		return 1;
	shrink(game, seed);
	printf("# shortest: %s\n", said->why);
	game->print(stdout);
	return 1;
}

/* Play a seed twice. 0: both runs went well, and have these hashes; 1: one did not, and is printed. */
static int play_both(const struct seeds_game *game, int number, uint64_t seed, unsigned long long hash[2])
{
	game->make(seed);
	for (int i = 0; i < 2; i++) {
		if (!child_plays(game, seed, 0))
			return report(game, number, seed);
		hash[i] = said->hash;
	}
	return 0;
}

int seeds_play_one(const struct seeds_game *game, int number, uint64_t seed)
{
	unsigned long long hash[2];

	if (play_both(game, number, seed, hash))
		return 1;
	printf("%sok %d - seed %llu%s: events %016llx, and again\n", hash[0] == hash[1] ? "" : "not ", number,
	       (unsigned long long) seed, game->options, hash[0]);
	return hash[0] != hash[1];
}

int seeds_play_twice(const struct seeds_game *game, int number, const char *name, uint64_t from, uint64_t cnt)
{
	unsigned long long hash[2];

	for (uint64_t seed = from; seed < from + cnt; seed++) {
		if (play_both(game, number, seed, hash))
			return 1;
		if (hash[0] == hash[1])
			continue;
		printf("not ok %d - %s: seed %llu%s: events %016llx, and then %016llx\n", number, name,
		       (unsigned long long) seed, game->options, hash[0], hash[1]);
		return 1;
	}
	printf("ok %d - %s: %llu seeds from %llu on\n", number, name, (unsigned long long) cnt,
	       (unsigned long long) from);
	return 0;
}

/* A seed of a batch failed, or all left something behind. The seed of a leak is known only when it plays alone. */
static int report_batch(const struct seeds_game *game, int number, uint64_t from)
{
	char why[sizeof(said->why)];

	if (said->failed || said->doing[0])
		return report(game, number, said->seed);
	memcpy(why, said->why, sizeof(why));
	for (unsigned i = 0; i < game->batch; i++) {
		if (!child_plays(game, from + i, 1))
			return report(game, number, from + i);
	}
	printf("not ok %d - seeds %llu to %llu%s together, none alone: %s\n", number, (unsigned long long) from,
	       (unsigned long long) from + game->batch - 1, game->options, why);
	return 1;
}

int seeds_play(const struct seeds_game *game, int number, const char *name, uint64_t from, uint64_t cnt,
	       time_t seconds)
{
	time_t end = time(NULL) + seconds;
	uint64_t done;

	for (done = 0; done < cnt || time(NULL) < end; done += game->batch) {
		if (!child_plays(game, from + done, game->batch))
			return report_batch(game, number, from + done);
	}
	printf("ok %d - %s: %llu seeds from %llu on\n", number, name, (unsigned long long) done,
	       (unsigned long long) from);
	return 0;
}

void seeds_doing(const char *call)
{
	if (!said)
		return;
	strncpy(said->doing, call, sizeof(said->doing) - 1);
}

uint32_t seeds_draw(uint64_t *state, uint32_t n)
{
	*state += 0x9e3779b97f4a7c15;
	return (uint32_t) (fab_mix64(*state) % n);
}
