/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* speed pingpong BYTES TURNS | speed stream BYTES MESSAGES WINDOW: between ranks 0 and 1; prints us or messages a
 * second. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WINDOW 256

static int rank;

static void pingpong(char *buf, int len, int turns)
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
static void stream(char *buf, int len, int cnt, int window)
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

int main(int argc, char **argv)
{
	int len = argc > 2 ? atoi(argv[2]) : 0, cnt = argc > 3 ? atoi(argv[3]) : 0;
	int window = argc > 4 ? atoi(argv[4]) : 0;
	char *buf = calloc(1, (size_t) len + 1);
	double since;

	if (cnt < 1 || len < 0 || window < 0 || window > MAX_WINDOW || !buf) {
		fprintf(stderr, "usage: speed pingpong BYTES TURNS | speed stream BYTES MESSAGES WINDOW (at most %d)\n",
			MAX_WINDOW);
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	pingpong(buf, len, cnt / 10 + 1);
	MPI_Barrier(MPI_COMM_WORLD);
	since = MPI_Wtime();
	if (window)
		stream(buf, len, cnt, window);
	else
		pingpong(buf, len, cnt);
	since = MPI_Wtime() - since;
	if (!rank)
		printf("%g\n", window ? cnt / since : since / cnt / 2 * 1e6);
	MPI_Finalize();
	free(buf);
	return 0;
}
