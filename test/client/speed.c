/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * speed pingpong BYTES TURNS		between ranks 0 and 1; us
 * speed stream BYTES MESSAGES WINDOW	from rank 0 to rank 1; messages a second
 * speed COLLECTIVE BYTES CALLS		allreduce, alltoall, bcast or barrier of all ranks; us a call
 *
 * Prints the speed, and then the CPU time of all ranks for a turn, message or call, in us.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MAX_WINDOW 256

static int rank, ranks, len, window;
static char *buf;			/* of 2 x len for each rank; collectives receive into its second half */

static void pingpong(int turns)
{
	int i;

	for (i = 0; i < turns; i++) {
		if (!rank)
			MPI_Send(buf, len, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(buf, len, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank)
			MPI_Send(buf, len, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	}
}

/* Rank 0 sends, a window at a time; rank 1 says when it has all of them. */
static void stream(int cnt)
{
	MPI_Request reqs[MAX_WINDOW];
	int i, j;

	for (i = 0; i < cnt; i += window) {
		for (j = 0; j < window; j++) {
			if (rank)
				MPI_Irecv(buf, len, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &reqs[j]);
			else
				MPI_Isend(buf, len, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &reqs[j]);
		}
		MPI_Waitall(window, reqs, MPI_STATUSES_IGNORE);
	}
	if (rank)
		MPI_Send(buf, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
	else
		MPI_Recv(buf, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void allreduce(int calls)
{
	while (calls--)
		MPI_Allreduce(buf, buf + (size_t) ranks * len, len / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(int calls)
{
	while (calls--)
		MPI_Alltoall(buf, len, MPI_BYTE, buf + (size_t) ranks * len, len, MPI_BYTE, MPI_COMM_WORLD);
}

static void bcast(int calls)
{
	while (calls--)
		MPI_Bcast(buf, len, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void barrier(int calls)
{
	while (calls--)
		MPI_Barrier(MPI_COMM_WORLD);
}

static const struct kind {
	const char *name;
	void (*run)(int cnt);
	int halves;			/* the halves that one of cnt consists of */
} kinds[] = {
	{ "pingpong", pingpong, 2 }, { "stream", stream, 1 }, { "allreduce", allreduce, 1 },
	{ "alltoall", alltoall, 1 }, { "bcast", bcast, 1 }, { "barrier", barrier, 1 },
};

static double cpu_time(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double) (use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double) (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

/* A tenth of it first: connections are there, and caches warm. */
static void measure(const struct kind *kind, int cnt)
{
	double since, used, sum;

	kind->run(cnt / 10 + 1);
	MPI_Barrier(MPI_COMM_WORLD);
	since = MPI_Wtime();
	used = cpu_time();
	kind->run(cnt);
	since = MPI_Wtime() - since;
	used = cpu_time() - used;
	MPI_Reduce(&used, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%g %g\n", window ? cnt / since : since / cnt / kind->halves * 1e6, sum / cnt * 1e6);
}

int main(int argc, char **argv)
{
	int cnt = argc > 3 ? atoi(argv[3]) : 0;
	const struct kind *kind = kinds, *end = kinds + sizeof(kinds) / sizeof(kinds[0]);

	len = argc > 2 ? atoi(argv[2]) : 0;
	window = argc > 4 ? atoi(argv[4]) : 0;
	while (kind < end && (argc < 2 || strcmp(kind->name, argv[1])))
		kind++;
	if (kind == end || cnt < 1 || len < 0 || window < 0 || window > MAX_WINDOW ||
	    !window != (kind->run != stream)) {
		fprintf(stderr, "usage: speed pingpong|allreduce|alltoall|bcast|barrier BYTES CALLS\n"
			"       speed stream BYTES MESSAGES WINDOW (at most %d)\n", MAX_WINDOW);
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	buf = calloc((size_t) ranks * 2, (size_t) len + 1);
	if (!buf)
		return 1;
	measure(kind, cnt);
	MPI_Finalize();
	free(buf);
	return 0;
}
