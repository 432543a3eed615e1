/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The collectives that move data, each with blocks of several lengths and from each root: blocking, and as a
 * request. What must arrive follows from who sent it to whom: cell(from, to, i).
 */
#include <stdlib.h>

#include "mpi_case.h"

static const int block_cnts[] = { 1, 7, 300, 5000, 40000 };

/* What a call needs: room for a block to or from everybody, counts and places for the calls with a v. */
struct blocks {
	int cnt;			/* of a plain block */
	long *out, *in;			/* ranks * max(cnt) longs each */
	int *out_cnts, *in_cnts, *out_at, *in_at;	/* in longs; blocks of different lengths, with gaps */
	MPI_Datatype *types;
	int *out_bytes_at, *in_bytes_at;
};

static long cell(int from, int to, int i)
{
	return from * 1000003L + to * 1009L + i;
}

/* Blocks of the calls with a v: their length follows from both ends. */
static int v_cnt(int cnt, int from, int to)
{
	return cnt - (from + 2 * to) % (cnt > 3 ? 3 : 1);
}

static struct blocks blocks_open(int cnt)
{
	size_t n = (size_t) ranks, room = n * ((size_t) cnt + 1);
	struct blocks b = { .cnt = cnt };
	int i;

	b.out = alloc(room * sizeof(long));
	b.in = alloc(room * sizeof(long));
	b.out_cnts = alloc(6 * n * sizeof(int));
	b.in_cnts = b.out_cnts + n;
	b.out_at = b.in_cnts + n;
	b.in_at = b.out_at + n;
	b.out_bytes_at = b.in_at + n;
	b.in_bytes_at = b.out_bytes_at + n;
	b.types = alloc(n * sizeof(*b.types));
	for (i = 0; i < ranks; i++) {
		b.out_cnts[i] = v_cnt(cnt, rank, i);
		b.in_cnts[i] = v_cnt(cnt, i, rank);
		b.out_at[i] = b.in_at[i] = i * (cnt + 1);
		b.out_bytes_at[i] = b.in_bytes_at[i] = i * (cnt + 1) * (int) sizeof(long);
		b.types[i] = MPI_LONG;
	}
	for (i = 0; i < (int) room; i++)
		b.in[i] = -1;
	return b;
}

static void blocks_close(struct blocks *b)
{
	free(b->types);
	free(b->out_cnts);
	free(b->in);
	free(b->out);
}

/* @cnt cells of @from for @to. */
static void put(long *at, int cnt, int from, int to)
{
	int i;

	for (i = 0; i < cnt; i++)
		at[i] = cell(from, to, i);
}

static void check(const long *at, int cnt, int from, int to)
{
	int i;

	for (i = 0; i < cnt; i++)
		CHECK_EQ(at[i], cell(from, to, i));
}

/* A started call is waited for; a blocking one has no request. */
static void done(MPI_Request *req)
{
	MUST(MPI_Wait(req, MPI_STATUS_IGNORE));
}

static void bcast(int cnt, int root, bool wait)
{
	struct blocks b = blocks_open(cnt);
	MPI_Request req = MPI_REQUEST_NULL;

	if (rank == root)
		put(b.in, cnt, root, 0);
	MUST(wait ? MPI_Ibcast(b.in, cnt, MPI_LONG, root, MPI_COMM_WORLD, &req) :
		    MPI_Bcast(b.in, cnt, MPI_LONG, root, MPI_COMM_WORLD));
	done(&req);
	check(b.in, cnt, root, 0);
	blocks_close(&b);
}

static void gather(int cnt, int root, bool wait)
{
	struct blocks b = blocks_open(cnt);
	MPI_Request req = MPI_REQUEST_NULL;
	int i;

	put(b.out, cnt, rank, root);
	MUST(wait ? MPI_Igather(b.out, cnt, MPI_LONG, b.in, cnt, MPI_LONG, root, MPI_COMM_WORLD, &req) :
		    MPI_Gather(b.out, cnt, MPI_LONG, b.in, cnt, MPI_LONG, root, MPI_COMM_WORLD));
	done(&req);
	for (i = 0; rank == root && i < ranks; i++)
		check(b.in + i * cnt, cnt, i, root);
	blocks_close(&b);
}

static void gatherv(int cnt, int root, bool wait)
{
	struct blocks b = blocks_open(cnt);
	MPI_Request req = MPI_REQUEST_NULL;
	int i;

	put(b.out, b.out_cnts[root], rank, root);
	MUST(wait ? MPI_Igatherv(b.out, b.out_cnts[root], MPI_LONG, b.in, b.in_cnts, b.in_at, MPI_LONG, root,
				 MPI_COMM_WORLD, &req) :
		    MPI_Gatherv(b.out, b.out_cnts[root], MPI_LONG, b.in, b.in_cnts, b.in_at, MPI_LONG, root,
				MPI_COMM_WORLD));
	done(&req);
	for (i = 0; rank == root && i < ranks; i++) {
		check(b.in + b.in_at[i], b.in_cnts[i], i, root);
		CHECK_EQ(b.in[b.in_at[i] + b.in_cnts[i]], -1);
	}
	blocks_close(&b);
}

static void scatter(int cnt, int root, bool wait)
{
	struct blocks b = blocks_open(cnt);
	MPI_Request req = MPI_REQUEST_NULL;
	int i;

	for (i = 0; rank == root && i < ranks; i++)
		put(b.out + i * cnt, cnt, root, i);
	MUST(wait ? MPI_Iscatter(b.out, cnt, MPI_LONG, b.in, cnt, MPI_LONG, root, MPI_COMM_WORLD, &req) :
		    MPI_Scatter(b.out, cnt, MPI_LONG, b.in, cnt, MPI_LONG, root, MPI_COMM_WORLD));
	done(&req);
	check(b.in, cnt, root, rank);
	blocks_close(&b);
}

static void scatterv(int cnt, int root, bool wait)
{
	struct blocks b = blocks_open(cnt);
	MPI_Request req = MPI_REQUEST_NULL;
	int i;

	for (i = 0; rank == root && i < ranks; i++)
		put(b.out + b.out_at[i], b.out_cnts[i], root, i);
	MUST(wait ? MPI_Iscatterv(b.out, b.out_cnts, b.out_at, MPI_LONG, b.in, b.in_cnts[root], MPI_LONG, root,
				  MPI_COMM_WORLD, &req) :
		    MPI_Scatterv(b.out, b.out_cnts, b.out_at, MPI_LONG, b.in, b.in_cnts[root], MPI_LONG, root,
				 MPI_COMM_WORLD));
	done(&req);
	check(b.in, b.in_cnts[root], root, rank);
	CHECK_EQ(b.in[b.in_cnts[root]], -1);
	blocks_close(&b);
}

static void allgather(int cnt, int root, bool wait)
{
	struct blocks b = blocks_open(cnt);
	MPI_Request req = MPI_REQUEST_NULL;
	int i;

	put(b.out, cnt, rank, root);
	MUST(wait ? MPI_Iallgather(b.out, cnt, MPI_LONG, b.in, cnt, MPI_LONG, MPI_COMM_WORLD, &req) :
		    MPI_Allgather(b.out, cnt, MPI_LONG, b.in, cnt, MPI_LONG, MPI_COMM_WORLD));
	done(&req);
	for (i = 0; i < ranks; i++)
		check(b.in + i * cnt, cnt, i, root);
	blocks_close(&b);
}

/* A rank sends everybody the same block: the length of it follows from the sender and @root. */
static void allgatherv(int cnt, int root, bool wait)
{
	struct blocks b = blocks_open(cnt);
	MPI_Request req = MPI_REQUEST_NULL;
	int i;

	for (i = 0; i < ranks; i++)
		b.in_cnts[i] = v_cnt(cnt, i, root);
	put(b.out, b.in_cnts[rank], rank, root);
	MUST(wait ? MPI_Iallgatherv(b.out, b.in_cnts[rank], MPI_LONG, b.in, b.in_cnts, b.in_at, MPI_LONG,
				    MPI_COMM_WORLD, &req) :
		    MPI_Allgatherv(b.out, b.in_cnts[rank], MPI_LONG, b.in, b.in_cnts, b.in_at, MPI_LONG,
				   MPI_COMM_WORLD));
	done(&req);
	for (i = 0; i < ranks; i++) {
		check(b.in + b.in_at[i], b.in_cnts[i], i, root);
		CHECK_EQ(b.in[b.in_at[i] + b.in_cnts[i]], -1);
	}
	blocks_close(&b);
}

static void alltoall(int cnt, int root, bool wait)
{
	struct blocks b = blocks_open(cnt);
	MPI_Request req = MPI_REQUEST_NULL;
	int i;

	(void) root;
	for (i = 0; i < ranks; i++)
		put(b.out + i * cnt, cnt, rank, i);
	MUST(wait ? MPI_Ialltoall(b.out, cnt, MPI_LONG, b.in, cnt, MPI_LONG, MPI_COMM_WORLD, &req) :
		    MPI_Alltoall(b.out, cnt, MPI_LONG, b.in, cnt, MPI_LONG, MPI_COMM_WORLD));
	done(&req);
	for (i = 0; i < ranks; i++)
		check(b.in + i * cnt, cnt, i, rank);
	blocks_close(&b);
}

/* What the two calls with blocks of any length have in common: @start posts, we fill and check. */
static void alltoall_blocks(int cnt, bool wait, int (*start)(struct blocks *b, bool wait, MPI_Request *req))
{
	struct blocks b = blocks_open(cnt);
	MPI_Request req = MPI_REQUEST_NULL;
	int i;

	for (i = 0; i < ranks; i++)
		put(b.out + b.out_at[i], b.out_cnts[i], rank, i);
	MUST(start(&b, wait, &req));
	done(&req);
	for (i = 0; i < ranks; i++) {
		check(b.in + b.in_at[i], b.in_cnts[i], i, rank);
		CHECK_EQ(b.in[b.in_at[i] + b.in_cnts[i]], -1);
	}
	blocks_close(&b);
}

static int start_v(struct blocks *b, bool wait, MPI_Request *req)
{
	return wait ? MPI_Ialltoallv(b->out, b->out_cnts, b->out_at, MPI_LONG, b->in, b->in_cnts, b->in_at, MPI_LONG,
				     MPI_COMM_WORLD, req) :
		      MPI_Alltoallv(b->out, b->out_cnts, b->out_at, MPI_LONG, b->in, b->in_cnts, b->in_at, MPI_LONG,
				    MPI_COMM_WORLD);
}

static int start_w(struct blocks *b, bool wait, MPI_Request *req)
{
	return wait ? MPI_Ialltoallw(b->out, b->out_cnts, b->out_bytes_at, b->types, b->in, b->in_cnts, b->in_bytes_at,
				     b->types, MPI_COMM_WORLD, req) :
		      MPI_Alltoallw(b->out, b->out_cnts, b->out_bytes_at, b->types, b->in, b->in_cnts, b->in_bytes_at,
				    b->types, MPI_COMM_WORLD);
}

static void alltoallv(int cnt, int root, bool wait)
{
	(void) root;
	alltoall_blocks(cnt, wait, start_v);
}

static void alltoallw(int cnt, int root, bool wait)
{
	(void) root;
	alltoall_blocks(cnt, wait, start_w);
}

/* Every length, every root, blocking and not. */
static void sweep(void (*call)(int cnt, int root, bool wait))
{
	size_t i;
	int root;

	for (i = 0; i < COUNT(block_cnts); i++) {
		for (root = 0; root < ranks; root++) {
			call(block_cnts[i], root, false);
			call(block_cnts[i], root, true);
		}
	}
}

#define SWEEP(call) static void sweep_##call(void) { sweep(call); }
SWEEP(bcast)
SWEEP(gather)
SWEEP(gatherv)
SWEEP(scatter)
SWEEP(scatterv)
SWEEP(allgather)
SWEEP(allgatherv)
SWEEP(alltoall)
SWEEP(alltoallv)
SWEEP(alltoallw)

/* Nobody leaves a barrier before the last one has come: who comes last has sent to all before. */
static void barrier(void)
{
	int last, i, flag, in;
	MPI_Request req;

	for (last = 0; last < 2 * ranks; last++) {
		if (last % ranks == rank) {
			for (i = 0; i < ranks; i++) {
				if (i != rank)
					MUST(MPI_Ssend(&last, 1, MPI_INT, i, 1, MPI_COMM_WORLD));
			}
			MUST(MPI_Barrier(MPI_COMM_WORLD));
			continue;
		}
		MUST(MPI_Irecv(&in, 1, MPI_INT, last % ranks, 1, MPI_COMM_WORLD, &req));
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		MUST(MPI_Test(&req, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		CHECK_EQ(in, last);
	}
}

/* Many collectives of several communicators under way at once, finished in no order. */
static void many_at_once(void)
{
	enum { CNT = 12 };
	MPI_Request reqs[2 * CNT];
	MPI_Comm comm[CNT];
	long sum[CNT], *all[CNT];
	int i, j;

	for (i = 0; i < CNT; i++) {
		all[i] = alloc(sizeof(long) * (size_t) ranks);
		MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]));
	}
	for (i = 0; i < CNT; i++) {
		sum[i] = rank + i;
		all[i][rank] = cell(rank, i, 0);
		MUST(MPI_Iallreduce(MPI_IN_PLACE, &sum[i], 1, MPI_LONG, MPI_SUM, comm[i], &reqs[i]));
		MUST(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_LONG, all[i], 1, MPI_LONG, comm[i], &reqs[CNT + i]));
	}
	MUST(MPI_Waitall(2 * CNT, reqs, MPI_STATUSES_IGNORE));
	for (i = 0; i < CNT; i++) {
		CHECK_EQ(sum[i], ranks * (ranks - 1) / 2 + ranks * i);
		for (j = 0; j < ranks; j++)
			CHECK_EQ(all[i][j], cell(j, i, 0));
		MUST(MPI_Comm_free(&comm[i]));
		free(all[i]);
	}
}

static const struct mpi_case cases[] = {
	{ "barrier", barrier }, { "bcast", sweep_bcast }, { "gather", sweep_gather }, { "gatherv", sweep_gatherv },
	{ "scatter", sweep_scatter }, { "scatterv", sweep_scatterv }, { "allgather", sweep_allgather },
	{ "allgatherv", sweep_allgatherv }, { "alltoall", sweep_alltoall }, { "alltoallv", sweep_alltoallv },
	{ "alltoallw", sweep_alltoallw }, { "many collectives at once", many_at_once },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
