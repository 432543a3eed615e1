/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of data that does not lie in one piece, and requests that are used again. */
#include <stddef.h>
#include <stdlib.h>

#include "mpi_case.h"

struct record {
	char tag;
	double value;
	short part[3];
};

static MPI_Datatype record_type(void)
{
	int lens[] = { 1, 1, 3 };
	MPI_Aint at[] = { offsetof(struct record, tag), offsetof(struct record, value), offsetof(struct record, part) };
	MPI_Datatype types[] = { MPI_CHAR, MPI_DOUBLE, MPI_SHORT }, packed, type;

	MUST(MPI_Type_create_struct(3, lens, at, types, &packed));
	MUST(MPI_Type_create_resized(packed, 0, sizeof(struct record), &type));
	MUST(MPI_Type_commit(&type));
	MPI_Type_free(&packed);
	return type;
}

/* Records with padding, few and many, arrive field by field, and the padding is left alone. */
static void records(void)
{
	static const int cnts[] = { 1, 10, 1000, 20000 };
	MPI_Datatype type = record_type();
	struct record *out, *in;
	size_t i;
	int j;

	for (i = 0; i < COUNT(cnts); i++) {
		out = calloc((size_t) cnts[i], sizeof(*out));
		in = calloc((size_t) cnts[i], sizeof(*in));
		CHECK(out && in);
		for (j = 0; j < cnts[i]; j++)
			out[j] = (struct record) { (char) j, rank + j / 8.0, { (short) j, (short) rank, 7 } };
		MUST(MPI_Sendrecv(out, cnts[i], type, next_rank(), 1, in, cnts[i], type, prev_rank(), 1, MPI_COMM_WORLD,
				  MPI_STATUS_IGNORE));
		for (j = 0; j < cnts[i]; j++) {
			CHECK_EQ(in[j].tag, (char) j);
			CHECK(in[j].value == prev_rank() + j / 8.0);
			CHECK_EQ(in[j].part[0], (short) j);
			CHECK_EQ(in[j].part[1], prev_rank());
			CHECK_EQ(in[j].part[2], 7);
		}
		free(in);
		free(out);
	}
	MPI_Type_free(&type);
}

/* Sent by columns, received by rows: a matrix is transposed on its way. */
static void transposed(void)
{
	enum { N = 200 };
	int (*out)[N] = alloc(sizeof(int) * N * N), (*in)[N] = alloc(sizeof(int) * N * N), i, j;
	MPI_Datatype column, columns;

	for (i = 0; i < N; i++) {
		for (j = 0; j < N; j++)
			out[i][j] = rank * N * N + i * N + j;
	}
	MUST(MPI_Type_vector(N, 1, N, MPI_INT, &column));
	MUST(MPI_Type_create_hvector(N, 1, sizeof(int), column, &columns));
	MUST(MPI_Type_commit(&columns));
	MUST(MPI_Sendrecv(out, 1, columns, next_rank(), 1, in, N * N, MPI_INT, prev_rank(), 1, MPI_COMM_WORLD,
			  MPI_STATUS_IGNORE));
	for (i = 0; i < N; i++) {
		for (j = 0; j < N; j++)
			CHECK_EQ(in[i][j], prev_rank() * N * N + j * N + i);
	}
	MPI_Type_free(&columns);
	MPI_Type_free(&column);
	free(in);
	free(out);
}

/* Persistent requests, started many times. */
static void persistent(void)
{
	enum { CNT = 6 };
	static const int lens[CNT] = { 0, 8, 5000, 70000, 140000, 300000 };
	uint8_t *out[CNT], *in[CNT];
	MPI_Request reqs[2 * CNT];
	int i, turn;

	for (i = 0; i < CNT; i++) {
		out[i] = alloc((size_t) lens[i]);
		in[i] = alloc((size_t) lens[i]);
		MUST(MPI_Send_init(out[i], lens[i], MPI_BYTE, next_rank(), i, MPI_COMM_WORLD, &reqs[i]));
		MUST(MPI_Recv_init(in[i], lens[i], MPI_BYTE, prev_rank(), i, MPI_COMM_WORLD, &reqs[CNT + i]));
	}
	for (turn = 0; turn < 20; turn++) {
		for (i = 0; i < CNT; i++)
			fill(out[i], (size_t) lens[i], (unsigned int) (rank + i * turn));
		MUST(MPI_Startall(2 * CNT, reqs));
		MUST(MPI_Waitall(2 * CNT, reqs, MPI_STATUSES_IGNORE));
		for (i = 0; i < CNT; i++)
			check_fill(in[i], (size_t) lens[i], (unsigned int) (prev_rank() + i * turn));
	}
	for (i = 0; i < CNT; i++) {
		MPI_Request_free(&reqs[i]);
		MPI_Request_free(&reqs[CNT + i]);
		free(in[i]);
		free(out[i]);
	}
}

/* Requests finished one at a time, as they come. */
static void waitany(void)
{
	enum { CNT = 50 };
	MPI_Request reqs[CNT];
	MPI_Status status;
	int in[CNT], i, which, seen = 0;

	for (i = 0; i < CNT; i++)
		MUST(MPI_Irecv(&in[i], 1, MPI_INT, prev_rank(), i, MPI_COMM_WORLD, &reqs[i]));
	for (i = CNT - 1; i >= 0; i--)
		MUST(MPI_Send(&i, 1, MPI_INT, next_rank(), i, MPI_COMM_WORLD));
	for (i = 0; i < CNT; i++) {
		MUST(MPI_Waitany(CNT, reqs, &which, &status));
		CHECK(which >= 0 && which < CNT);
		CHECK_EQ(status.MPI_TAG, which);
		CHECK_EQ(in[which], which);
		seen += which;
	}
	CHECK_EQ(seen, CNT * (CNT - 1) / 2);
}

static const struct mpi_case cases[] = {
	{ "records with padding", records },
	{ "a matrix transposed", transposed },
	{ "persistent requests", persistent },
	{ "waitany", waitany },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
