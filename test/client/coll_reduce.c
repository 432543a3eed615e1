/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The collectives that reduce, against the same sum made here: every operation on integers and on doubles, several
 * lengths, each root, blocking and as a request, and an operation of our own that does not commute.
 */
#include <stdlib.h>

#include "mpi_case.h"

static const int cnts[] = { 1, 5, 1000, 40000 };

/* What @from brings to place @i: small, so that no product overflows and every double is exact. */
static long value(int from, int i)
{
	return (from * 7 + i * 3) % 4 + 1;
}

struct op_row {
	MPI_Op op;
	long (*fold)(long a, long b);
	bool integers_only;
};

static long fold_sum(long a, long b) { return a + b; }
static long fold_prod(long a, long b) { return a * b; }
static long fold_max(long a, long b) { return a > b ? a : b; }
static long fold_min(long a, long b) { return a < b ? a : b; }
static long fold_land(long a, long b) { return a && b; }
static long fold_lor(long a, long b) { return a || b; }
static long fold_lxor(long a, long b) { return !a != !b; }
static long fold_band(long a, long b) { return a & b; }
static long fold_bor(long a, long b) { return a | b; }
static long fold_bxor(long a, long b) { return a ^ b; }

/* The reduction of place @i over the ranks from @first to @last. */
static long expected(const struct op_row *op, int first, int last, int i)
{
	long all = value(first, i);
	int from;

	for (from = first + 1; from <= last; from++)
		all = op->fold(all, value(from, i));
	return all;
}

/* A buffer of @cnt values as @type, long or double. */
struct vec {
	MPI_Datatype type;
	void *buf;
	int cnt;
};

static struct vec vec_new(MPI_Datatype type, int cnt)
{
	struct vec v = { .type = type, .cnt = cnt };

	v.buf = alloc((size_t) cnt * 8);
	return v;
}

static void vec_set(struct vec *v, int i, long x)
{
	if (v->type == MPI_LONG)
		((long *) v->buf)[i] = x;
	else
		((double *) v->buf)[i] = (double) x;
}

static long vec_get(const struct vec *v, int i)
{
	return v->type == MPI_LONG ? ((long *) v->buf)[i] : (long) ((double *) v->buf)[i];
}

static struct vec vec_mine(MPI_Datatype type, int cnt)
{
	struct vec v = vec_new(type, cnt);
	int i;

	for (i = 0; i < cnt; i++)
		vec_set(&v, i, value(rank, i));
	return v;
}

/* @in holds the places from @at on, reduced over the ranks @first to @last. */
static void check_places(const struct op_row *op, const struct vec *in, int at, int first, int last)
{
	int i;

	for (i = 0; i < in->cnt; i++)
		CHECK_EQ(vec_get(in, i), expected(op, first, last, at + i));
}

static void done(MPI_Request *req)
{
	MUST(MPI_Wait(req, MPI_STATUS_IGNORE));
}

static void reduce(const struct op_row *op, MPI_Datatype type, int cnt, int root, bool wait)
{
	struct vec out = vec_mine(type, cnt), in = vec_new(type, cnt);
	MPI_Request req = MPI_REQUEST_NULL;

	MUST(wait ? MPI_Ireduce(out.buf, in.buf, cnt, type, op->op, root, MPI_COMM_WORLD, &req) :
		    MPI_Reduce(out.buf, in.buf, cnt, type, op->op, root, MPI_COMM_WORLD));
	done(&req);
	if (rank == root)
		check_places(op, &in, 0, 0, ranks - 1);
	free(in.buf);
	free(out.buf);
}

static void allreduce(const struct op_row *op, MPI_Datatype type, int cnt, int root, bool wait)
{
	struct vec out = vec_mine(type, cnt), in = vec_new(type, cnt);
	const void *from = root ? MPI_IN_PLACE : out.buf;
	struct vec *to = root ? &out : &in;
	MPI_Request req = MPI_REQUEST_NULL;

	MUST(wait ? MPI_Iallreduce(from, to->buf, cnt, type, op->op, MPI_COMM_WORLD, &req) :
		    MPI_Allreduce(from, to->buf, cnt, type, op->op, MPI_COMM_WORLD));
	done(&req);
	check_places(op, to, 0, 0, ranks - 1);
	free(in.buf);
	free(out.buf);
}

static void scan(const struct op_row *op, MPI_Datatype type, int cnt, int root, bool wait)
{
	struct vec out = vec_mine(type, cnt), in = vec_new(type, cnt);
	MPI_Request req = MPI_REQUEST_NULL;

	(void) root;
	MUST(wait ? MPI_Iscan(out.buf, in.buf, cnt, type, op->op, MPI_COMM_WORLD, &req) :
		    MPI_Scan(out.buf, in.buf, cnt, type, op->op, MPI_COMM_WORLD));
	done(&req);
	/* A single logical operand stays as it is. */
	check_places(op, &in, 0, 0, rank);
	free(in.buf);
	free(out.buf);
}

static void exscan(const struct op_row *op, MPI_Datatype type, int cnt, int root, bool wait)
{
	struct vec out = vec_mine(type, cnt), in = vec_new(type, cnt);
	MPI_Request req = MPI_REQUEST_NULL;

	(void) root;
	MUST(wait ? MPI_Iexscan(out.buf, in.buf, cnt, type, op->op, MPI_COMM_WORLD, &req) :
		    MPI_Exscan(out.buf, in.buf, cnt, type, op->op, MPI_COMM_WORLD));
	done(&req);
	if (rank)
		check_places(op, &in, 0, 0, rank - 1);
	free(in.buf);
	free(out.buf);
}

static void reduce_scatter_block(const struct op_row *op, MPI_Datatype type, int cnt, int root, bool wait)
{
	struct vec out = vec_mine(type, cnt * ranks), in = vec_new(type, cnt);
	MPI_Request req = MPI_REQUEST_NULL;

	(void) root;
	MUST(wait ? MPI_Ireduce_scatter_block(out.buf, in.buf, cnt, type, op->op, MPI_COMM_WORLD, &req) :
		    MPI_Reduce_scatter_block(out.buf, in.buf, cnt, type, op->op, MPI_COMM_WORLD));
	done(&req);
	check_places(op, &in, rank * cnt, 0, ranks - 1);
	free(in.buf);
	free(out.buf);
}

/* Every rank gets a block of its own length. */
static void reduce_scatter(const struct op_row *op, MPI_Datatype type, int cnt, int root, bool wait)
{
	int *block_cnts = alloc((size_t) ranks * sizeof(int)), i, at = 0, total = 0;
	struct vec out, in;
	MPI_Request req = MPI_REQUEST_NULL;

	(void) root;
	for (i = 0; i < ranks; i++) {
		block_cnts[i] = cnt + i;
		at = i == rank ? total : at;
		total += block_cnts[i];
	}
	out = vec_mine(type, total);
	in = vec_new(type, block_cnts[rank]);
	MUST(wait ? MPI_Ireduce_scatter(out.buf, in.buf, block_cnts, type, op->op, MPI_COMM_WORLD, &req) :
		    MPI_Reduce_scatter(out.buf, in.buf, block_cnts, type, op->op, MPI_COMM_WORLD));
	done(&req);
	check_places(op, &in, at, 0, ranks - 1);
	free(in.buf);
	free(out.buf);
	free(block_cnts);
}

/* Every operation on a short vector, of both types; the sum on all lengths, from all roots. */
static void sweep(void (*call)(const struct op_row *op, MPI_Datatype type, int cnt, int root, bool wait))
{
	const struct op_row ops[] = {
		{ MPI_SUM, fold_sum, false }, { MPI_PROD, fold_prod, false }, { MPI_MAX, fold_max, false },
		{ MPI_MIN, fold_min, false }, { MPI_LAND, fold_land, true }, { MPI_LOR, fold_lor, true },
		{ MPI_LXOR, fold_lxor, true }, { MPI_BAND, fold_band, true }, { MPI_BOR, fold_bor, true },
		{ MPI_BXOR, fold_bxor, true },
	};
	const MPI_Datatype types[] = { MPI_LONG, MPI_DOUBLE };
	size_t i, j;
	int root;

	for (i = 0; i < COUNT(ops); i++) {
		for (j = 0; j < (ops[i].integers_only ? 1 : COUNT(types)); j++) {
			call(&ops[i], types[j], 11, 0, false);
			call(&ops[i], types[j], 11, 0, true);
		}
	}
	for (i = 0; i < COUNT(cnts); i++) {
		for (root = 0; root < ranks; root++) {
			call(&ops[0], MPI_LONG, cnts[i], root, false);
			call(&ops[0], MPI_DOUBLE, cnts[i], root, true);
		}
	}
}

#define SWEEP(call) static void sweep_##call(void) { sweep(call); }
SWEEP(reduce)
SWEEP(allreduce)
SWEEP(scan)
SWEEP(exscan)
SWEEP(reduce_scatter_block)
SWEEP(reduce_scatter)

/* f(a, b) = 3a + b for numbers in order of rank: (x, weight) pairs, so that it is associative but does not commute. */
static void chain(void *in, void *inout, int *len, MPI_Datatype *type)
{
	long *a = in, *b = inout;
	int i;

	(void) type;
	for (i = 0; i < *len; i++) {
		b[2 * i] += a[2 * i] * b[2 * i + 1];
		b[2 * i + 1] *= a[2 * i + 1];
	}
}

static void not_commutative(void)
{
	long mine[2] = { rank + 1, 3 }, all[2], x = 0, weight = 1;
	MPI_Datatype pair;
	MPI_Op op;
	int i;

	MUST(MPI_Type_contiguous(2, MPI_LONG, &pair));
	MUST(MPI_Type_commit(&pair));
	MUST(MPI_Op_create(chain, 0, &op));
	MUST(MPI_Allreduce(mine, all, 1, pair, op, MPI_COMM_WORLD));
	for (i = 0; i < ranks; i++) {
		x = x * 3 + i + 1;
		weight *= 3;
	}
	CHECK_EQ(all[0], x);
	CHECK_EQ(all[1], weight);
	MPI_Op_free(&op);
	MPI_Type_free(&pair);
}

static const struct mpi_case cases[] = {
	{ "reduce", sweep_reduce }, { "allreduce", sweep_allreduce }, { "scan", sweep_scan },
	{ "exscan", sweep_exscan },
	{ "reduce_scatter_block", sweep_reduce_scatter_block }, { "reduce_scatter", sweep_reduce_scatter },
	{ "an operation that does not commute", not_commutative },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
