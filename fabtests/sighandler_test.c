/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sighandler_test: a process with an open endpoint dies of the signal that it is sent, as it would without, and a
 * handler that it has set before is called. One process, and its children.
 */
#include "lib/func.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDLED 42

static void handler(int number)
{
	(void) number;
	_exit(HANDLED);
}

struct trial {
	int number;
	bool handled;
};

/* In the child: an endpoint, and then the signal. */
static int child(struct func *func, void *arg)
{
	const struct trial *trial = arg;
	struct func_ep ep;

	signal(trial->number, trial->handled ? handler : SIG_DFL);
	FUNC_TRY(func_open(func));
	FUNC_TRY(func_ep_to_self(func, &ep, NULL));
	raise(trial->number);
	return pp_fail(func->pp, -FI_EOTHER, "signal %d did nothing", trial->number);
}

static int once(struct func *func, int number, bool handled)
{
	struct trial trial = { number, handled };
	int status;

	FUNC_TRY(func_in_child(func, child, &trial, &status));
	if (handled)
		FUNC_EXPECT(func, WIFEXITED(status) && WEXITSTATUS(status) == HANDLED,
			    "signal %d: status 0x%x instead of its handler", number, status);
	else
		FUNC_EXPECT(func, WIFSIGNALED(status) && WTERMSIG(status) == number,
			    "signal %d: status 0x%x instead of its end", number, status);
	return 0;
}

static int run(struct func *func)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1 };
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		FUNC_TRY(once(func, numbers[i], false));
		FUNC_TRY(once(func, numbers[i], true));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Die of a signal with an open endpoint.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG,
		.alone = true,
		.no_domain = true,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
