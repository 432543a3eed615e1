/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Looking at messages before they are taken: MPI_Probe, and MPI_Mprobe, which takes them out of the matching. */
#include <stdlib.h>

#include "mpi_case.h"

static const size_t probed[] = { 0, 1, 64, 4096, 65537, 131073, 1u << 20 };
#define MOST (1u << 20)

static void check_status(const MPI_Status *status, size_t len, int tag)
{
	int got;

	MPI_Get_count(status, MPI_BYTE, &got);
	CHECK_EQ(got, (long long) len);
	CHECK_EQ(status->MPI_SOURCE, prev_rank());
	CHECK_EQ(status->MPI_TAG, tag);
}

static MPI_Request start(void *buf, size_t len, int tag)
{
	MPI_Request req;

	fill(buf, len, (unsigned int) (rank + tag));
	MUST(MPI_Isend(buf, (int) len, MPI_BYTE, next_rank(), tag, MPI_COMM_WORLD, &req));
	return req;
}

static void finish(MPI_Request *req, const void *in, size_t len, int tag)
{
	MUST(MPI_Wait(req, MPI_STATUS_IGNORE));
	check_fill(in, len, (unsigned int) (prev_rank() + tag));
}

/* Probe tells length, source and tag, again and again, and the receive then gets just that message. */
static void probe(void)
{
	uint8_t *out = alloc(MOST), *in = alloc(MOST);
	MPI_Request req;
	MPI_Status status;
	int i, flag;

	for (i = 0; i < (int) COUNT(probed); i++) {
		req = start(out, probed[i], i);
		MUST(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
		check_status(&status, probed[i], i);
		MUST(MPI_Iprobe(prev_rank(), i, MPI_COMM_WORLD, &flag, &status));
		CHECK(flag);
		check_status(&status, probed[i], i);
		MUST(MPI_Iprobe(prev_rank(), 999, MPI_COMM_WORLD, &flag, &status));
		CHECK(!flag);
		MUST(MPI_Recv(in, (int) probed[i], MPI_BYTE, prev_rank(), i, MPI_COMM_WORLD, &status));
		check_status(&status, probed[i], i);
		finish(&req, in, probed[i], i);
	}
	MUST(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	free(in);
	free(out);
}

/* A message that was matched by MPI_Mprobe cannot be had otherwise; MPI_Mrecv and MPI_Imrecv get it. */
static void mprobe(void)
{
	uint8_t *out = alloc(MOST), *in = alloc(MOST);
	MPI_Message message;
	MPI_Request req, recv;
	MPI_Status status;
	int i, flag;

	for (i = 0; i < (int) COUNT(probed); i++) {
		req = start(out, probed[i], i);
		MUST(MPI_Mprobe(i % 2 ? prev_rank() : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &message, &status));
		check_status(&status, probed[i], i);
		MUST(MPI_Iprobe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
		if (i % 2) {
			MUST(MPI_Mrecv(in, (int) probed[i], MPI_BYTE, &message, &status));
		} else {
			MUST(MPI_Imrecv(in, (int) probed[i], MPI_BYTE, &message, &recv));
			MUST(MPI_Wait(&recv, &status));
		}
		CHECK(message == MPI_MESSAGE_NULL);
		check_status(&status, probed[i], i);
		finish(&req, in, probed[i], i);
	}
	free(in);
	free(out);
}

/* Messages held by MPI_Improbe are received in an order of ours, with others coming and going meanwhile. */
static void held_messages(void)
{
	enum { HELD = 20 };
	size_t len = 40000;
	uint8_t *out = alloc(len * (HELD + 1)), *in = alloc(len);
	MPI_Request reqs[HELD + 1];
	MPI_Message held[HELD];
	MPI_Status status;
	int i, flag;

	for (i = 0; i <= HELD; i++)
		reqs[i] = start(out + (size_t) i * len, len - (size_t) i, i);
	for (i = 0; i < HELD; i++) {
		do {
			MUST(MPI_Improbe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &flag, &held[i], &status));
		} while (!flag);
		check_status(&status, len - (size_t) i, i);
	}
	MUST(MPI_Recv(in, (int) len, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
	check_status(&status, len - HELD, HELD);
	finish(&reqs[HELD], in, len - HELD, HELD);
	for (i = HELD - 1; i >= 0; i--) {
		MUST(MPI_Mrecv(in, (int) len, MPI_BYTE, &held[i], &status));
		check_status(&status, len - (size_t) i, i);
		finish(&reqs[i], in, len - (size_t) i, i);
	}
	free(in);
	free(out);
}

static const struct mpi_case cases[] = {
	{ "probe and iprobe", probe },
	{ "mprobe, mrecv, imrecv", mprobe },
	{ "improbe holds many messages", held_messages },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
