/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command line of the functional programs, and the way from it to the exit code. */
#include "func.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_SIZE 1024
#define MAX_SIZE (1ULL << 32)
#define MAX_OPTIONS 16

/* The program of this process: what ft.h calls has nothing that leads to it. */
static struct func *current;

static const struct util_opt repeat_options[] = {
	{ 'I', "iterations", "NUMBER", "how often" },
	{ 'S', "size", "SIZE", "bytes of a message, or the most where sizes differ (k, m and g are allowed)" },
	{ 'v', "verify", NULL, "data is always checked: taken for scripts" },
	{ 0, NULL, NULL, NULL },
};

static bool has_key(const struct util_opt *table, int key)
{
	for (; table && table->help; table++) {
		if (table->key == key)
			return true;
	}
	return false;
}

/* The program's options, and ours but for the letters that it has taken. */
static void fill_options(struct util_opt *to, const struct util_opt *own)
{
	const struct util_opt *from;

	for (from = own; from && from->help; from++)
		*to++ = *from;
	for (from = repeat_options; from->help; from++) {
		if (!has_key(own, from->key))
			*to++ = *from;
	}
}

/* Take one of these: 0 or -FI_EINVAL, with a message. */
static int take_option(struct pp_opts *opts, int key, const char *arg)
{
	uint64_t value;
	int ret;

	if (has_key(current->program->options, key)) {
		ret = current->program->take(current, key, arg);
		opts->alone = current->alone;
		return ret;
	}
	switch (key) {
	case 'I':
		return pp_parse_count("-I (iterations)", arg, 1, &current->iterations);
	case 'S':
		FUNC_TRY(util_parse_number("-S (bytes)", arg, 1, MAX_SIZE, &value));
		current->size = value;
		break;
	}
	return 0;
}

int func_number(const char *what, const char *arg, uint64_t min, uint64_t max, uint32_t *value)
{
	uint64_t number;

	FUNC_TRY(util_parse_number(what, arg, min, max, &number));
	*value = (uint32_t) number;
	return 0;
}

int func_take_nothing(struct func *func, int key, const char *arg)
{
	(void) func;
	(void) key;
	(void) arg;
	return 0;
}

int func_skip(struct func *func, const char *why)
{
	(void) func;
	return ft_skip("%s", why);
}

int func_agree(struct func *func, int ret)
{
	uint32_t ours = htonl((uint32_t) -ret), theirs = 0;
	int told = func_exchange(func, &ours, &theirs, sizeof(ours), "how it went");

	if (ret)
		return ret;
	return told ? told : -(int) (ntohl(theirs) & 0xffff);
}

size_t func_size(const struct func *func, size_t limit)
{
	size_t size = func->size, allowed = func->pp->info->ep_attr->max_msg_size;

	if (limit && size > limit)
		size = limit;
	return size > allowed ? allowed : size;
}

uint64_t func_delivery(const struct func *func)
{
	return func->delivery ? FI_DELIVERY_COMPLETE : FI_TRANSMIT_COMPLETE;
}

int func_in_child(struct func *func, int (*fn)(struct func *func, void *arg), void *arg, int *status)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return pp_fail(func->pp, -errno, "fork");
	if (!pid) {
		alarm((unsigned) (func->pp->opts->wait_ms + 999) / 1000);
		_exit(fn(func, arg) ? 1 : 0);
	}
	return waitpid(pid, status, 0) == pid ? 0 : pp_fail(func->pp, -errno, "wait for the child");
}

static int fill_hints(const struct pp_opts *opts, struct fi_info *hints)
{
	hints->caps = current->program->caps | opts->caps;
	if (current->program->hints)
		current->program->hints(current, hints);
	return 0;
}

static int run(struct func *func)
{
	if (!func->program->no_domain)
		FUNC_TRY(func_open(func));
	FUNC_TRY(func->program->run(func));
	/* Nobody closes anything that the other may still be using. */
	return func->alone ? 0 : func_sync(func);
}

static int progress(struct pp *pp)
{
	(void) pp;
	return func_progress(current);
}

static int body(struct pp *pp)
{
	int ret, close_ret;

	pp->progress = progress;
	current->pp = pp;
	current->client = pp->opts->server != NULL;
	ret = run(current);
	pp_closing(pp, ret);
	close_ret = func_close_all(current);
	return ft_result(ret ? ret : close_ret, "%s", current->program->about);
}

int func_main(int argc, char **argv, const struct func_program *program, void *own)
{
	struct util_opt options[MAX_OPTIONS] = { { 0, NULL, NULL, NULL } };
	const struct ft_program ft = {
		.about = program->about,
		.ep_type = program->ep_type,
		.ep_types = !program->choose_type ? 0 : FT_MSG | FT_RDM | (program->dgram ? FT_DGRAM : 0),
		.tagged = program->caps & FI_TAGGED,
		.rma = program->caps & FI_RMA,
		.atomics = program->caps & FI_ATOMIC,
		.bare = true,
		.once = true,
		.alone = program->alone,
		.options = options,
		.take = take_option,
		.hints = fill_hints,
		.body = body,
	};
	int code;

	current = calloc(1, sizeof(*current));
	if (!current)
		return FI_ENOMEM;
	current->program = program;
	current->own = own;
	current->alone = program->alone;
	current->iterations = program->iterations ? program->iterations : 1;
	current->size = program->size ? program->size : DEFAULT_SIZE;
	fill_options(options, program->options);
	code = ft_main(argc, argv, &ft);
	free(current);
	return code;
}
