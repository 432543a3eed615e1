/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which message goes to which receive: wildcards, order, floods, and communicators that do not mix. */
#include <stdlib.h>

#include "mpi_case.h"

#define FLOOD 3000
#define DEEP 2000

/* Rank 0 takes from anybody; everybody's messages come in the order in which they were sent. */
static void any_source(void)
{
	const int each = 500;
	int *seen = calloc((size_t) ranks, sizeof(*seen)), i, value;
	MPI_Status status;

	for (i = 0; rank && i < each; i++) {
		value = rank * 100000 + i;
		MUST(MPI_Send(&value, 1, MPI_INT, 0, rank, MPI_COMM_WORLD));
	}
	for (i = 0; !rank && i < each * (ranks - 1); i++) {
		MUST(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
		CHECK_EQ(status.MPI_TAG, status.MPI_SOURCE);
		CHECK_EQ(value, status.MPI_SOURCE * 100000 + seen[status.MPI_SOURCE]);
		seen[status.MPI_SOURCE]++;
	}
	free(seen);
}

/* Short and long messages on one tag, by turns: none overtakes another. */
static void lengths_keep_order(void)
{
	static const size_t turns[] = { 8, 300000, 0, 70000, 1, 1u << 20, 4000, 131073, 16 };
	const int cnt = 60;
	uint8_t *out = alloc(1u << 20), *in = alloc(1u << 20);
	MPI_Request req;
	MPI_Status status;
	size_t len;
	int i, got;

	for (i = 0; i < cnt; i++) {
		len = turns[(size_t) i % COUNT(turns)];
		fill(out, len, (unsigned int) i);
		MUST(MPI_Isend(out, (int) len, MPI_BYTE, next_rank(), 3, MPI_COMM_WORLD, &req));
		MUST(MPI_Recv(in, 1 << 20, MPI_BYTE, prev_rank(), i % 2 ? MPI_ANY_TAG : 3, MPI_COMM_WORLD, &status));
		MUST(MPI_Wait(&req, MPI_STATUS_IGNORE));
		MPI_Get_count(&status, MPI_BYTE, &got);
		CHECK_EQ(got, (long long) len);
		check_fill(in, len, (unsigned int) i);
	}
	free(in);
	free(out);
}

/* The same with all of them under way at once. */
static void window_keeps_order(void)
{
	static const size_t turns[] = { 8, 200000, 0, 40000, 131073 };
	enum { CNT = 40 };
	uint8_t *out[CNT], *in[CNT];
	MPI_Request reqs[2 * CNT];
	size_t len;
	int i;

	for (i = 0; i < CNT; i++) {
		len = turns[(size_t) i % COUNT(turns)];
		out[i] = alloc(len);
		in[i] = alloc(200000);
		fill(out[i], len, (unsigned int) (rank * CNT + i));
		MUST(MPI_Isend(out[i], (int) len, MPI_BYTE, next_rank(), 4, MPI_COMM_WORLD, &reqs[i]));
	}
	for (i = 0; i < CNT; i++)
		MUST(MPI_Irecv(in[i], 200000, MPI_BYTE, i % 3 ? prev_rank() : MPI_ANY_SOURCE, i % 2 ? 4 : MPI_ANY_TAG,
			       MPI_COMM_WORLD, &reqs[CNT + i]));
	MUST(MPI_Waitall(2 * CNT, reqs, MPI_STATUSES_IGNORE));
	for (i = 0; i < CNT; i++) {
		check_fill(in[i], turns[(size_t) i % COUNT(turns)], (unsigned int) (prev_rank() * CNT + i));
		free(in[i]);
		free(out[i]);
	}
}

/* Thousands of messages that nobody has asked for, taken in the opposite order of their tags. */
static void flood_taken_backwards(void)
{
	MPI_Request *reqs = alloc(sizeof(*reqs) * FLOOD);
	int *out = alloc(sizeof(int) * FLOOD), i, in;

	for (i = 0; i < FLOOD; i++) {
		out[i] = rank * FLOOD + i;
		MUST(MPI_Isend(&out[i], 1, MPI_INT, next_rank(), i, MPI_COMM_WORLD, &reqs[i]));
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	for (i = FLOOD - 1; i >= 0; i--) {
		MUST(MPI_Recv(&in, 1, MPI_INT, prev_rank(), i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		CHECK_EQ(in, prev_rank() * FLOOD + i);
	}
	MUST(MPI_Waitall(FLOOD, reqs, MPI_STATUSES_IGNORE));
	free(out);
	free(reqs);
}

/* Thousands of receives outstanding; messages come for the last of them first. */
static void many_receives(void)
{
	MPI_Request *reqs = alloc(sizeof(*reqs) * DEEP);
	int *in = alloc(sizeof(int) * DEEP), i, out;

	for (i = 0; i < DEEP; i++)
		MUST(MPI_Irecv(&in[i], 1, MPI_INT, prev_rank(), i, MPI_COMM_WORLD, &reqs[i]));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	for (i = DEEP - 1; i >= 0; i--) {
		out = rank * DEEP + i;
		MUST(MPI_Send(&out, 1, MPI_INT, next_rank(), i, MPI_COMM_WORLD));
	}
	MUST(MPI_Waitall(DEEP, reqs, MPI_STATUSES_IGNORE));
	for (i = 0; i < DEEP; i++)
		CHECK_EQ(in[i], prev_rank() * DEEP + i);
	free(in);
	free(reqs);
}

/* Of a wildcard and a receive by name, the one posted first gets the message. */
static void first_posted_matches(void)
{
	int in[4], out[4] = { 10, 11, 12, 13 }, i;
	MPI_Request reqs[4];

	MUST(MPI_Irecv(&in[0], 1, MPI_INT, prev_rank(), 5, MPI_COMM_WORLD, &reqs[0]));
	MUST(MPI_Irecv(&in[1], 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &reqs[1]));
	MUST(MPI_Irecv(&in[2], 1, MPI_INT, prev_rank(), MPI_ANY_TAG, MPI_COMM_WORLD, &reqs[2]));
	MUST(MPI_Irecv(&in[3], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &reqs[3]));
	for (i = 0; i < 4; i++)
		MUST(MPI_Send(&out[i], 1, MPI_INT, next_rank(), 5, MPI_COMM_WORLD));
	MUST(MPI_Waitall(4, reqs, MPI_STATUSES_IGNORE));
	for (i = 0; i < 4; i++)
		CHECK_EQ(in[i], out[i]);
}

/* The same rank, the same tag, another communicator: another message. */
static void communicators_do_not_mix(void)
{
	enum { CNT = 8 };
	MPI_Comm comms[CNT];
	MPI_Request reqs[CNT];
	int out[CNT], in, i;

	for (i = 0; i < CNT; i++) {
		MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
		out[i] = 100 * i + rank;
	}
	for (i = 0; i < CNT; i++)
		MUST(MPI_Isend(&out[i], 1, MPI_INT, next_rank(), 9, comms[i], &reqs[i]));
	for (i = CNT - 1; i >= 0; i--) {
		MUST(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], MPI_STATUS_IGNORE));
		CHECK_EQ(in, 100 * i + prev_rank());
	}
	MUST(MPI_Waitall(CNT, reqs, MPI_STATUSES_IGNORE));
	for (i = 0; i < CNT; i++)
		MUST(MPI_Comm_free(&comms[i]));
}

/* To itself a rank sends as to any other. */
static void to_self(void)
{
	size_t len = 300000;
	uint8_t *out = alloc(len), *in = alloc(len);
	MPI_Request req;

	fill(out, len, 77);
	MUST(MPI_Isend(out, (int) len, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &req));
	MUST(MPI_Recv(in, (int) len, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	MUST(MPI_Wait(&req, MPI_STATUS_IGNORE));
	check_fill(in, len, 77);
	free(in);
	free(out);
}

static const struct mpi_case cases[] = {
	{ "any source, any tag, in order", any_source },
	{ "short and long messages keep their order", lengths_keep_order },
	{ "a window of short and long ones keeps its order", window_keeps_order },
	{ "thousands of unexpected messages taken backwards", flood_taken_backwards },
	{ "thousands of receives outstanding", many_receives },
	{ "the receive posted first gets the message", first_posted_matches },
	{ "communicators do not mix", communicators_do_not_mix },
	{ "a rank sends to itself", to_self },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
