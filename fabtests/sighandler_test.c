/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sighandler_test: a process with an open endpoint dies of the signal that it is sent, as it would without, and a
 * handler that it has set before is called. One process, and its children.
 */
#include "lib/func.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDLED 42

static void handler(int number)
{
	(void) number;
	_exit(HANDLED);
}

/* In the child: an endpoint, and then the signal. */
static int child(struct func *func, int number, bool handled)
{
	struct func_ep ep;

	if (handled)
		signal(number, handler);
	FUNC_TRY(func_open(func));
	FUNC_TRY(func_ep_to_self(func, &ep, NULL));
	raise(number);
	return pp_fail(func->pp, -FI_EOTHER, "signal %d did nothing", number);
}

static int once(struct func *func, int number, bool handled)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return pp_fail(func->pp, -errno, "fork");
	if (!pid) {
		signal(number, SIG_DFL);
		alarm((unsigned) func->pp->opts->wait_ms / 1000);
		_exit(child(func, number, handled) ? 1 : 0);
	}
	if (waitpid(pid, &status, 0) != pid)
		return pp_fail(func->pp, -errno, "wait for the child");
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
