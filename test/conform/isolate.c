/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests run in children of the runner, so that a crash or a hang costs one test: that one fails, and the next child
 * goes on after it. The runner itself opens nothing and has no thread, so a child begins like a new program. A child
 * runs tests until one ends it. With --fork each test has a child of its own, which doubles the CPU time of all.
 *
 * A test that hangs ends by its alarm. Libraries bring handlers of signals, though, and one that hangs in such a
 * handler does not get the alarm: the runner kills it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner.h"

enum { BAIL_OUT = 3 };	/* exit status of a child that has no provider */

struct tally *tally;

void tally_init(void)
{
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tally == MAP_FAILED) {
		perror("conform: mmap");
		exit(2);
	}
}

void isolate_bail_out(void)
{
	fflush(stdout);
	_exit(BAIL_OUT);
}

/* What became of the process: `./check` looks for "ended by signal". */
static void tell_end(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "%sended by signal %d (%s)", WTERMSIG(status) == SIGALRM ? "hangs: " : "",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "ended with status %d", WEXITSTATUS(status));
}

/* Until the child has ended. Returns its status. SIGCHLD is blocked. */
static int child_wait(pid_t pid, const sigset_t *sigchld)
{
	pid_t ended;
	int status;

	while ((ended = waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
		if (sigtimedwait(sigchld, NULL, &(struct timespec) { 1, 0 }) < 0 && tally->kill_ms &&
		    now_ms() > tally->kill_ms)
			kill(pid, SIGKILL);
	}
	tally->kill_ms = 0;
	return status;
}

static void child_ended(int status)
{
	char end[128], text[512];

	tell_end(status, end, sizeof(end));
	if (tally->running[0]) {
		snprintf(text, sizeof(text), "%s%s%s", end, tally->noted[0] ? ", at: " : "", tally->noted);
		report_result(tally->running, FAILED, text);
		tally->running[0] = 0;
		tally->done++;
	} else if (status) {
		snprintf(text, sizeof(text), "after test %u the process %s", tally->number, end);
		report_fault(text);
	}
}

bool isolate(void)
{
	sigset_t sigchld, old;
	int status;
	pid_t pid;

	fflush(stdout);
	sigemptyset(&sigchld);
	sigaddset(&sigchld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &sigchld, &old);
	pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		return true;
	}
	if (pid < 0) {
		printf("Bail out! fork: %s\n", strerror(errno));
		exit(1);
	}
	status = child_wait(pid, &sigchld);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == BAIL_OUT)
		exit(1);
	child_ended(status);
	return false;
}
