/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receives that are taken back, and receives that are too short. */
#include <stdlib.h>
#include <string.h>

#include "mpi_case.h"

/* A receive that was cancelled is over, and the message that comes later goes to the next one. */
static void cancel_receive(void)
{
	uint8_t *old = alloc(200000), *in = alloc(200000), *out = alloc(200000);
	MPI_Request req;
	MPI_Status status;
	size_t i;
	int flag, len;

	for (i = 0; i < 8; i++) {
		len = i & 2 ? 200000 : 8;
		memset(old, 0x11, (size_t) len);
		MUST(MPI_Irecv(old, len, MPI_BYTE, i & 1 ? prev_rank() : MPI_ANY_SOURCE, i & 4 ? MPI_ANY_TAG : 2,
			       MPI_COMM_WORLD, &req));
		MUST(MPI_Cancel(&req));
		MUST(MPI_Wait(&req, &status));
		MPI_Test_cancelled(&status, &flag);
		CHECK(flag);
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		fill(out, (size_t) len, (unsigned int) rank);
		MUST(MPI_Sendrecv(out, len, MPI_BYTE, next_rank(), 2, in, len, MPI_BYTE, prev_rank(), 2, MPI_COMM_WORLD,
				  MPI_STATUS_IGNORE));
		check_fill(in, (size_t) len, (unsigned int) prev_rank());
		CHECK(old[0] == 0x11 && old[len - 1] == 0x11);
		MUST(MPI_Barrier(MPI_COMM_WORLD));
	}
	free(out);
	free(in);
	free(old);
}

/* One that has its message already cannot be cancelled: it completes with the message. */
static void cancel_too_late(void)
{
	int in = -1, in2 = -1, flag;
	MPI_Request req;
	MPI_Status status;

	MUST(MPI_Irecv(&in, 1, MPI_INT, prev_rank(), 2, MPI_COMM_WORLD, &req));
	MUST(MPI_Send(&rank, 1, MPI_INT, next_rank(), 2, MPI_COMM_WORLD));
	/* Behind the first in order: when this one is here, so is that one. */
	MUST(MPI_Sendrecv(&rank, 1, MPI_INT, next_rank(), 3, &in2, 1, MPI_INT, prev_rank(), 3, MPI_COMM_WORLD,
			  MPI_STATUS_IGNORE));
	MUST(MPI_Cancel(&req));
	MUST(MPI_Wait(&req, &status));
	MPI_Test_cancelled(&status, &flag);
	CHECK(!flag);
	CHECK_EQ(in, prev_rank());
}

/* Every other receive of many is cancelled. */
static void cancel_some(void)
{
	enum { CNT = 400 };
	MPI_Request reqs[CNT];
	MPI_Status status;
	int in[CNT], i, flag;

	for (i = 0; i < CNT; i++)
		MUST(MPI_Irecv(&in[i], 1, MPI_INT, i % 3 ? prev_rank() : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &reqs[i]));
	for (i = 0; i < CNT; i += 2) {
		MUST(MPI_Cancel(&reqs[i]));
		MUST(MPI_Wait(&reqs[i], &status));
		MPI_Test_cancelled(&status, &flag);
		CHECK(flag);
	}
	for (i = 1; i < CNT; i += 2)
		MUST(MPI_Send(&i, 1, MPI_INT, next_rank(), i, MPI_COMM_WORLD));
	for (i = 1; i < CNT; i += 2) {
		MUST(MPI_Wait(&reqs[i], MPI_STATUS_IGNORE));
		CHECK_EQ(in[i], i);
	}
}

/* A message longer than its receive is an error of that receive; the messages behind it come whole. */
static void truncation(void)
{
	static const int long_len[] = { 16, 5000, 100000, 200000, 1 << 20 };
	uint8_t *out = alloc(1 << 20), *in = alloc(1 << 20);
	MPI_Request recv, sends[2];
	MPI_Status status;
	size_t i;
	int late, class, len, ret;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (i = 0; i < 2 * COUNT(long_len); i++) {
		len = long_len[i / 2];
		late = (int) i % 2;
		fill(out, (size_t) len, (unsigned int) (rank + 1));
		in[len / 2] = 0x77;
		if (!late)
			MUST(MPI_Irecv(in, len / 2, MPI_BYTE, prev_rank(), 6, MPI_COMM_WORLD, &recv));
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		MUST(MPI_Isend(out, len, MPI_BYTE, next_rank(), 6, MPI_COMM_WORLD, &sends[0]));
		MUST(MPI_Isend(out, len, MPI_BYTE, next_rank(), 6, MPI_COMM_WORLD, &sends[1]));
		if (late) {
			MUST(MPI_Probe(prev_rank(), 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
			MUST(MPI_Irecv(in, len / 2, MPI_BYTE, prev_rank(), 6, MPI_COMM_WORLD, &recv));
		}
		ret = MPI_Wait(&recv, &status);
		CHECK(ret != MPI_SUCCESS);
		MPI_Error_class(ret, &class);
		CHECK_EQ(class, MPI_ERR_TRUNCATE);
		CHECK_EQ(in[len / 2], 0x77);
		MUST(MPI_Recv(in, len, MPI_BYTE, prev_rank(), 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		check_fill(in, (size_t) len, (unsigned int) (prev_rank() + 1));
		MUST(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	free(in);
	free(out);
}

static const struct mpi_case cases[] = {
	{ "a cancelled receive", cancel_receive },
	{ "a receive cancelled too late", cancel_too_late },
	{ "every other receive cancelled", cancel_some },
	{ "truncation", truncation },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
