/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests that end their process, for test/harness: the runner counts each as failed and goes on with the next. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "runner.h"

TEST_PROV(passes, 0, .alone = true)
{
	CHECK(t->c);
}

TEST_PROV(is_killed, 0, .alone = true)
{
	note("to be killed");
	raise(SIGKILL);
}

TEST_PROV(hangs, 0, .alone = true)
{
	raise(SIGALRM);
}

TEST_PROV(hangs_beyond_its_alarm, 0, .alone = true)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	tally->kill_ms = 1;	/* now */
	for (;;)
		pause();
}

TEST_PROV(exits, 0, .alone = true)
{
	exit(7);
}

TEST_PROV(is_skipped, 0, .alone = true)
{
	SKIP("no moon");
}

TEST_PROV(is_absent, 0, .alone = true)
{
	ABSENT("there is no such provider");
}

TEST_PROV(is_for_msg, 0, .alone = true, CONNECTED)
{
	FAIL("it runs on %s", run.prov);
}

TEST_PROV(goes_on, 0, .alone = true)
{
	CHECK(t->c);
}
