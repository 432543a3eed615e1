/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The loop over the cases of a program, and its checks (mpi_case.h). One thread runs the loop; checks are for any
 * thread.
 */
#include "mpi_case.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int rank, ranks;
static const char *running = "before the first case";
static char self_pid[16];
static void (*at_end)(void);

const size_t lengths[] = {
	0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 511, 512, 513, 1023,
	1024,
	1025, 4095, 4096, 4097, 8191, 8192, 8193, 16383, 16384, 16385, 32767, 32768, 32769, 65535, 65536, 65537, 131071,
	131072, 131073, 262143, 262144, 262145, 1048575, 1048576, 1048577, MAX_LENGTH - 3, MAX_LENGTH
};
const size_t length_cnt = COUNT(lengths);

int next_rank(void)
{
	return (rank + 1) % ranks;
}

int prev_rank(void)
{
	return (rank + ranks - 1) % ranks;
}

void mpi_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "rank %d of %d, case \"%s\", %s:%d: ", rank, ranks, running, file, line);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

/* The case hangs: show where, if there is a debugger, and end this rank, and by that the job. */
static void on_alarm(int sig)
{
	static const char text[] = "still running after its limit, in case: ";
	pid_t pid;

	(void) sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ||
	    write(STDERR_FILENO, running, strlen(running)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
		_exit(1);
	pid = fork();
	if (!pid) {
		execlp("gdb", "gdb", "-p", self_pid, "-batch", "-nx", "-ex", "thread apply all backtrace",
		       (char *) NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	_exit(1);
}

static void watch_hangs(void)
{
	struct sigaction action = { .sa_handler = on_alarm };

	snprintf(self_pid, sizeof(self_pid), "%d", (int) getpid());
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	sigaction(SIGALRM, &action, NULL);
	alarm(CASE_LIMIT_S);
}

void mpi_at_end(void (*fn)(void))
{
	at_end = fn;
}

int mpi_run(int *argc, char ***argv, int level, const struct mpi_case *cases, size_t cnt)
{
	int provided;
	size_t i;

	watch_hangs();
	MUST(MPI_Init_thread(argc, argv, level, &provided));
	CHECK(provided >= level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (i = 0; i < cnt; i++) {
		running = cases[i].name;
		alarm(CASE_LIMIT_S);
		cases[i].fn();
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		if (!rank)
			printf("done %s\n", cases[i].name);
		fflush(stdout);
	}
	running = "MPI_Finalize";
	alarm(CASE_LIMIT_S);
	if (at_end)
		at_end();
	MUST(MPI_Finalize());
	return 0;
}

/* Cheap, and different for any two seeds and for neighbouring places. */
static uint8_t pattern(size_t at, unsigned int seed)
{
	uint32_t x = (uint32_t) at * 2654435761u + seed * 40503u;

	return (uint8_t) (x >> 24 ^ x >> 13);
}

void fill(void *buf, size_t len, unsigned int seed)
{
	uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = pattern(i, seed);
}

void check_fill_at(const char *file, int line, const void *buf, size_t len, unsigned int seed)
{
	const uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] != pattern(i, seed))
			mpi_fail(file, line, "byte %zu of %zu is %u, not %u (seed %u)", i, len, p[i],
				 pattern(i, seed), seed);
	}
}

void *alloc(size_t len)
{
	void *buf = malloc(len ? len : 1);

	if (!buf)
		FAIL("no memory for %zu bytes", len);
	return buf;
}
