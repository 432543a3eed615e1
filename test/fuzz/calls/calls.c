/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random calls: programs of all public calls in any order with any arguments that the pages permit, from seeds, on each
 * provider. What the pages leave undefined is not called: a closed object, memory that is not there, a buffer in use.
 * All else may fail, but not crash, hang, leak, complete twice, or write where it may not (world.h).
 *
 *   calls [--provider NAME | --verbs] [--from SEED] [--count N | --for SECONDS]
 *   calls --provider NAME --seed SEED [--tell]        one; --tell prints each call as it is made
 *   calls --provider NAME --play FILE [--tell]        the steps that were printed for one that failed
 */
#include "fuzz/calls/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/bits.h"
#include "seeds/seeds.h"

#define STEPS_MAX	160
#ifndef SEEDS
#define SEEDS		40	/* of make check, for each provider */
#endif

static const struct {
	const char *name;
	void (*run)(void);
	unsigned weight;
} kinds[] = {
	{ "side", step_side, 4 }, { "pair", step_pair, 2 }, { "open_domain", step_open_domain, 1 },
	{ "open_ep", step_open_ep, 3 }, { "open_queue", step_open_queue, 3 }, { "register", step_register, 4 },
	{ "bind", step_bind, 4 }, { "enable", step_enable, 1 }, { "close", step_close, 4 }, { "send", step_send, 8 },
	{ "tsend", step_tsend, 8 }, { "recv", step_recv, 8 }, { "trecv", step_trecv, 8 }, { "rma", step_rma, 8 },
	{ "atomic", step_atomic, 5 }, { "collective", step_collective, 4 }, { "deferred", step_deferred, 2 },
	{ "cancel", step_cancel, 3 }, { "pass", step_pass, 14 }, { "cq", step_cq, 4 }, { "eq", step_eq, 4 },
	{ "cntr", step_cntr, 2 }, { "wait", step_wait, 3 }, { "getinfo", step_getinfo, 1 }, { "text", step_text, 1 },
	{ "option", step_option, 3 }, { "control", step_control, 3 }, { "cm", step_cm, 3 }, { "av", step_av, 4 },
	{ "set", step_set, 3 }, { "mr", step_mr, 2 }, { "other", step_other, 2 },
	{ "library", step_library, 1 }, { "lend", step_lend, 2 },
};

struct step {
	uint32_t kind;
	uint64_t seed;
};

static struct step steps[STEPS_MAX];
static uint32_t step_cnt;
static const char *provider;
static bool tell, verbs;

/* A huge size is refused, as by any allocator. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}

static uint32_t a_kind(uint64_t *state)
{
	uint32_t all = 0, which;

	for (size_t i = 0; i < COUNT(kinds); i++)
		all += kinds[i].weight;
	which = seeds_draw(state, all);
	for (uint32_t i = 0;; i++) {
		if (which < kinds[i].weight)
			return i;
		which -= kinds[i].weight;
	}
}

static void make(uint64_t seed)
{
	/* Far apart for seeds that follow each other: seeds_draw() goes on in equal strides. */
	uint64_t state = fab_mix64(fab_mix64(seed) ^ 0x5eed);

	step_cnt = 8 + seeds_draw(&state, STEPS_MAX - 8);
	for (uint32_t i = 0; i < step_cnt; i++) {
		steps[i].kind = i < 4 ? seeds_draw(&state, 3) == 0 : a_kind(&state);
		steps[i].seed = (uint64_t) seeds_draw(&state, UINT32_MAX) << 32 | seeds_draw(&state, UINT32_MAX);
	}
}

static void play_steps(void)
{
	world_begin(provider, tell);
	for (uint32_t i = 0; i < step_cnt; i++) {
		if (tell)
			printf("# %s\n", kinds[steps[i].kind].name);
		world_step(kinds[steps[i].kind].name, steps[i].seed);
		kinds[steps[i].kind].run();
	}
	world_end();
}

/* What opens files once for the process has done so. */
static void warm_up(void)
{
	struct fi_info *info = NULL;

	if (!fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, NULL, &info))
		fi_freeinfo(info);
}

static const char *run(uint64_t *hash)
{
	static bool warm;

	if (!warm)
		warm_up();
	warm = true;
	*hash = 0;
	return world_play(play_steps);
}

static void print(FILE *out)
{
	for (uint32_t i = 0; i < step_cnt; i++)
		fprintf(out, "%s %#llx\n", kinds[steps[i].kind].name, (unsigned long long) steps[i].seed);
	fprintf(out, "# each call of it: --provider '%s' --tell --play, with a file of these lines\n", provider);
}

/* Steps as they were printed. */
static void load(const char *path)
{
	FILE *file = fopen(path, "r");
	char name[40];
	unsigned long long seed;

	step_cnt = 0;
	while (file && step_cnt < STEPS_MAX && fscanf(file, "%39s %llx", name, &seed) == 2) {
		for (uint32_t i = 0; i < COUNT(kinds); i++) {
			if (!strcmp(kinds[i].name, name))
				steps[step_cnt++] = (struct step) { i, seed };
		}
	}
	if (file)
		fclose(file);
}

/* Asked in a process of its own: threads that a provider
 * starts here would not be in the children. */
static bool is_there(const char *name)
{
	struct fi_info *hints, *info = NULL;
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid) {
		waitpid(pid, &status, 0);
		return !status;
	}
	hints = fi_allocinfo();
	hints->fabric_attr->prov_name = strdup(name);
	_exit(fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &info) != 0);
}

static struct seeds_game game = {
	.options = "", .batch = 20, .patience_s = 120, .tries = 3, .make = make, .steps = steps, .cnt = &step_cnt,
	.size = sizeof(*steps), .run = run, .print = print,
};

static int play_all(const char *only, uint64_t from, uint64_t cnt, time_t seconds)
{
	static const char *const soft[] = { "tcp", "udp", "sockets", "tcp;ofi_rxm" }, *const device[] = { "verbs",
			"verbs;ofi_rxm" };
	const char *const *names = verbs ? device : soft;
	size_t name_cnt = only ? 1 : verbs ? COUNT(device) : COUNT(soft);
	int ret = 0, number = 0;
	char options[60];

	printf("1..%zu\n", name_cnt);
	for (size_t i = 0; i < name_cnt; i++) {
		provider = only ? only : names[i];
		snprintf(options, sizeof(options), " --provider '%s'", provider);
		game.options = options;
		number++;
		if (!is_there(provider))
			printf("ok %d # SKIP no provider %s here\n", number, provider);
		else
			ret |= seeds_play(&game, number, provider, from, cnt, seconds);
	}
	return ret;
}

int main(int argc, char **argv)
{
	uint64_t from = 1, one = 0, cnt = SEEDS;
	const char *only = NULL, *why;
	time_t seconds = 0;

	setenv("FI_LOG_LEVEL", "silent", 0);
	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (!strcmp(argv[i], "--provider") && more)
			only = argv[++i];
		else if (!strcmp(argv[i], "--tell"))
			tell = true;
		else if (!strcmp(argv[i], "--verbs"))
			verbs = true;
		else if (!strcmp(argv[i], "--for") && more)
			cnt = 0, seconds = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--count") && more)
			cnt = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--from") && more)
			from = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--seed") && more)
			one = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--play") && more)
			load(argv[++i]);
	}
	provider = only ? only : "tcp";
	if (!one && !step_cnt)
		return play_all(only, from, cnt, seconds);
	if (one)
		make(one);
	seeds_doing("");
	why = run(&(uint64_t) { 0 });
	printf("1..1\n%sok 1 - %s\n", why ? "not " : "", why ? why : "nothing was wrong");
	return why != NULL;
}
