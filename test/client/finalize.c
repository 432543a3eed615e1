/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A short life, run many times: all talk to all, then the ranks finalize while rank 0 still takes what they have
 * sent to it, short messages and long ones.
 */
#include <stdlib.h>

#include "mpi_case.h"

#define LONG_LEN 100000
#define SHORT_CNT 20

static void all_to_all(void)
{
	long sum = rank, *each = alloc(sizeof(long) * (size_t) ranks);
	int i;

	MUST(MPI_Allgather(&sum, 1, MPI_LONG, each, 1, MPI_LONG, MPI_COMM_WORLD));
	for (i = 0; i < ranks; i++)
		CHECK_EQ(each[i], i);
	free(each);
}

/* Whoever is behind the barrier may finalize at once: a buffered send is over when it has begun. */
static void last_words(void)
{
	static char attached[2 * LONG_LEN + (SHORT_CNT + 2) * (MPI_BSEND_OVERHEAD + 64)];
	uint8_t *buf = alloc(LONG_LEN);
	MPI_Status status;
	int i, got;

	MPI_Buffer_attach(attached, sizeof(attached));
	fill(buf, LONG_LEN, (unsigned int) rank);
	for (i = 0; rank && i < SHORT_CNT; i++)
		MUST(MPI_Bsend(buf, 100 + i, MPI_BYTE, 0, i, MPI_COMM_WORLD));
	if (rank)
		MUST(MPI_Bsend(buf, LONG_LEN, MPI_BYTE, 0, SHORT_CNT, MPI_COMM_WORLD));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	for (i = 0; !rank && i < (ranks - 1) * (SHORT_CNT + 1); i++) {
		MUST(MPI_Recv(buf, LONG_LEN, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
		MPI_Get_count(&status, MPI_BYTE, &got);
		CHECK_EQ(got, status.MPI_TAG == SHORT_CNT ? LONG_LEN : 100 + status.MPI_TAG);
		check_fill(buf, (size_t) got, (unsigned int) status.MPI_SOURCE);
	}
	free(buf);
}

static const struct mpi_case talk[] = { { "all to all", all_to_all } };

int main(int argc, char **argv)
{
	mpi_at_end(last_words);
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, talk, COUNT(talk));
}
