/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MPI_THREAD_MULTIPLE: threads of one process that send, receive, probe and reduce at the same time. */
#include <pthread.h>
#include <stdlib.h>

#include "mpi_case.h"

#define THREADS 3
#define ROUNDS 40

/* A thread of a case: its number, and a communicator of its own (the same on all ranks). */
struct worker {
	pthread_t thread;
	int nr;
	MPI_Comm comm;
};

static void run_threads(void *(*fn)(void *worker))
{
	struct worker w[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		w[i].nr = i;
		MUST(MPI_Comm_dup(MPI_COMM_WORLD, &w[i].comm));
	}
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&w[i].thread, NULL, fn, &w[i]), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	for (i = 0; i < THREADS; i++)
		MUST(MPI_Comm_free(&w[i].comm));
}

/* One round on @comm, by tag @tag: a message of any length to the next rank, from the previous one. */
static void exchange(MPI_Comm comm, int tag, int turn, uint8_t *out, uint8_t *in)
{
	static const size_t lens[] = { 8, 1000, 0, 70000, 200, 150000 };
	size_t len = lens[(size_t) turn % COUNT(lens)];

	fill(out, len, (unsigned int) (rank + tag + turn));
	MUST(MPI_Sendrecv(out, (int) len, MPI_BYTE, next_rank(), tag, in, 150000, MPI_BYTE, prev_rank(), tag, comm,
			  MPI_STATUS_IGNORE));
	check_fill(in, len, (unsigned int) (prev_rank() + tag + turn));
}

static void *exchange_by_tag(void *arg)
{
	struct worker *w = arg;
	uint8_t *out = alloc(150000), *in = alloc(150000);
	int i;

	for (i = 0; i < ROUNDS; i++)
		exchange(MPI_COMM_WORLD, w->nr, i, out, in);
	free(in);
	free(out);
	return NULL;
}

static void by_tag(void)
{
	run_threads(exchange_by_tag);
}

static void *exchange_by_comm(void *arg)
{
	struct worker *w = arg;
	uint8_t *out = alloc(150000), *in = alloc(150000);
	long sum;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		exchange(w->comm, 5, i, out, in);
		if (i % 10)
			continue;
		sum = rank + w->nr;
		MUST(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, w->comm));
		CHECK_EQ(sum, ranks * (ranks - 1) / 2 + w->nr * ranks);
	}
	free(in);
	free(out);
	return NULL;
}

static void by_communicator(void)
{
	run_threads(exchange_by_comm);
}

/* Threads compete for messages on one tag: MPI_Mprobe gives each to one of them, whole. */
static void *compete(void *arg)
{
	struct worker *w = arg;
	uint8_t *out = alloc(20000), *in = alloc(20000);
	MPI_Message message;
	MPI_Status status;
	MPI_Request req;
	int i, len;

	for (i = 0; i < ROUNDS; i++) {
		len = (w->nr * 977 + i * 131) % 20000;
		fill(out, (size_t) len, (unsigned int) len);
		MUST(MPI_Isend(out, len, MPI_BYTE, next_rank(), 8, MPI_COMM_WORLD, &req));
		MUST(MPI_Mprobe(prev_rank(), 8, MPI_COMM_WORLD, &message, &status));
		MPI_Get_count(&status, MPI_BYTE, &len);
		MUST(MPI_Mrecv(in, len, MPI_BYTE, &message, MPI_STATUS_IGNORE));
		check_fill(in, (size_t) len, (unsigned int) len);
		MUST(MPI_Wait(&req, MPI_STATUS_IGNORE));
	}
	free(in);
	free(out);
	return NULL;
}

static void matched_probe(void)
{
	run_threads(compete);
}

/* One thread waits for a message that another thread of the same process sends at last. */
static void *wait_for_self(void *arg)
{
	struct worker *w = arg;
	int i, in;

	for (i = 0; i < ROUNDS; i++) {
		if (w->nr == 0) {
			MUST(MPI_Recv(&in, 1, MPI_INT, rank, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
			CHECK_EQ(in, i);
			MUST(MPI_Send(&i, 1, MPI_INT, rank, 41, MPI_COMM_WORLD));
		} else if (w->nr == 1) {
			MUST(MPI_Ssend(&i, 1, MPI_INT, rank, 40, MPI_COMM_WORLD));
			MUST(MPI_Recv(&in, 1, MPI_INT, rank, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
			CHECK_EQ(in, i);
		}
	}
	return NULL;
}

static void waits_for_own_process(void)
{
	run_threads(wait_for_self);
}

static const struct mpi_case cases[] = {
	{ "threads by tag", by_tag },
	{ "threads by communicator, with reductions", by_communicator },
	{ "threads compete by matched probe", matched_probe },
	{ "a thread waits for another of its process", waits_for_own_process },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_MULTIPLE, cases, COUNT(cases));
}
