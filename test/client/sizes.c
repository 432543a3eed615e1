/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Every length by every kind of send, around the ring: to a receive that waits already, and to one that comes later. */
#include <stdlib.h>

#include "mpi_case.h"

enum kind { SEND, SSEND, BSEND, RSEND, KIND_CNT };

static MPI_Request start_send(enum kind kind, const void *buf, int len, int to, int tag)
{
	MPI_Request req;

	switch (kind) {
	case SSEND:
		MUST(MPI_Issend(buf, len, MPI_BYTE, to, tag, MPI_COMM_WORLD, &req));
		break;
	case BSEND:
		MUST(MPI_Ibsend(buf, len, MPI_BYTE, to, tag, MPI_COMM_WORLD, &req));
		break;
	case RSEND:
		MUST(MPI_Irsend(buf, len, MPI_BYTE, to, tag, MPI_COMM_WORLD, &req));
		break;
	default:
		MUST(MPI_Isend(buf, len, MPI_BYTE, to, tag, MPI_COMM_WORLD, &req));
	}
	return req;
}

static void check_status(const MPI_Status *status, int len, int tag)
{
	int got;

	MPI_Get_count(status, MPI_BYTE, &got);
	CHECK_EQ(got, len);
	CHECK_EQ(status->MPI_SOURCE, prev_rank());
	CHECK_EQ(status->MPI_TAG, tag);
}

/* One message around the ring. With @late the receive comes when the message, or its announcement, has been seen. */
static void ring(enum kind kind, size_t len, bool late, uint8_t *out, uint8_t *in)
{
	int tag = (int) (kind * 1000 + late);
	MPI_Request send, recv;
	MPI_Status status;

	fill(out, len, (unsigned int) (rank + kind));
	in[len] = 0x5a;
	if (!late)
		MUST(MPI_Irecv(in, (int) len, MPI_BYTE, prev_rank(), tag, MPI_COMM_WORLD, &recv));
	if (kind == RSEND)
		MUST(MPI_Barrier(MPI_COMM_WORLD));
	send = start_send(kind, out, (int) len, next_rank(), tag);
	if (late) {
		MUST(MPI_Probe(prev_rank(), tag, MPI_COMM_WORLD, &status));
		check_status(&status, (int) len, tag);
		MUST(MPI_Irecv(in, (int) len, MPI_BYTE, prev_rank(), tag, MPI_COMM_WORLD, &recv));
	}
	MUST(MPI_Wait(&recv, &status));
	check_status(&status, (int) len, tag);
	MUST(MPI_Wait(&send, MPI_STATUS_IGNORE));
	check_fill(in, len, (unsigned int) (prev_rank() + kind));
	CHECK_EQ(in[len], 0x5a);
}

static void all_lengths(bool late)
{
	int attached_len = MAX_LENGTH + MPI_BSEND_OVERHEAD;
	uint8_t *out = alloc(MAX_LENGTH), *in = alloc(MAX_LENGTH + 1);
	void *attached = alloc((size_t) attached_len);
	enum kind kind;
	size_t i;

	MPI_Buffer_attach(attached, attached_len);
	for (i = 0; i < length_cnt; i++) {
		for (kind = 0; kind < (late ? RSEND : KIND_CNT); kind++)
			ring(kind, lengths[i], late, out, in);
	}
	MPI_Buffer_detach(&attached, &attached_len);
	free(attached);
	free(in);
	free(out);
}

static void posted(void)
{
	all_lengths(false);
}

static void unexpected(void)
{
	all_lengths(true);
}

/* Both directions at once between all pairs, more than any buffer on the way holds. */
static void large_crossing(void)
{
	size_t len = MAX_LENGTH + 1;
	uint8_t *out = alloc(len), *in = alloc(len * (size_t) ranks);
	MPI_Request *reqs = alloc(sizeof(*reqs) * 2 * (size_t) ranks);
	int i;

	fill(out, len, (unsigned int) rank);
	for (i = 0; i < ranks; i++)
		MUST(MPI_Isend(out, (int) len, MPI_BYTE, i, 7, MPI_COMM_WORLD, &reqs[i]));
	for (i = 0; i < ranks; i++)
		MUST(MPI_Irecv(in + (size_t) i * len, (int) len, MPI_BYTE, i, 7, MPI_COMM_WORLD, &reqs[ranks + i]));
	MUST(MPI_Waitall(2 * ranks, reqs, MPI_STATUSES_IGNORE));
	for (i = 0; i < ranks; i++)
		check_fill(in + (size_t) i * len, len, (unsigned int) i);
	free(reqs);
	free(in);
	free(out);
}

static const struct mpi_case cases[] = {
	{ "all lengths, all kinds of send, receive posted", posted },
	{ "all lengths, receive posted when the message has been seen", unexpected },
	{ "large messages of all to all at once", large_crossing },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
