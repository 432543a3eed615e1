/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Accumulate, fetch-and-op and compare-and-swap, with all ranks at the same words at once. */
#include <sched.h>
#include <stdlib.h>

#include "mpi_case.h"

#define ROUNDS 400

/* An epoch open to all on a window of @cnt longs, which become 0. */
static MPI_Win win_begin(MPI_Win win, int cnt, long *mem)
{
	int i;

	MUST(MPI_Win_lock_all(0, win));
	for (i = 0; i < cnt; i++)
		mem[i] = 0;
	MUST(MPI_Win_sync(win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	return win;
}

/* A window of @cnt longs on every rank. */
static MPI_Win win_open(int cnt, long **mem)
{
	MPI_Win win;

	MUST(MPI_Win_allocate((MPI_Aint) sizeof(long) * cnt, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, mem, &win));
	return win_begin(win, cnt, *mem);
}

static void win_close(MPI_Win *win)
{
	MUST(MPI_Win_unlock_all(*win));
	MUST(MPI_Win_free(win));
}

/* All own operations are done everywhere, then everybody's. */
static void all_done(MPI_Win win)
{
	MUST(MPI_Win_flush_all(win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_sync(win));
}

/* Everybody adds to everybody: no addition is lost. */
static void accumulate(void)
{
	enum { CNT = 300 };
	long *mem, add[CNT];
	MPI_Win win = win_open(CNT, &mem);
	int i, to;

	for (i = 0; i < CNT; i++)
		add[i] = rank + i;
	for (i = 0; i < 20; i++) {
		for (to = 0; to < ranks; to++)
			MUST(MPI_Accumulate(add, CNT, MPI_LONG, to, 0, CNT, MPI_LONG, MPI_SUM, win));
	}
	all_done(win);
	for (i = 0; i < CNT; i++)
		CHECK_EQ(mem[i], 20 * (ranks * (ranks - 1) / 2 + ranks * i));
	win_close(&win);
}

/* A ticket each: no number is given twice, none is left out. */
static void fetch_and_op(void)
{
	long *mem, one = 1, ticket, last = -1, sum = 0, all;
	MPI_Win win = win_open(1, &mem);
	int i;

	for (i = 0; i < ROUNDS; i++) {
		MUST(MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, 0, MPI_SUM, win));
		MUST(MPI_Win_flush(0, win));
		CHECK(ticket > last);
		last = ticket;
		sum += ticket;
	}
	all_done(win);
	MUST(MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
	CHECK_EQ(all, (long) ROUNDS * ranks * ((long) ROUNDS * ranks - 1) / 2);
	if (!rank)
		CHECK_EQ(mem[0], (long) ROUNDS * ranks);
	win_close(&win);
}

/* A lock made of compare-and-swap, around a sum made of get and put: nothing is lost. */
static void compare_and_swap(void)
{
	enum { LOCK, SUM, LOCK_ROUNDS = ROUNDS / 16 };
	long mem[2], mine = rank + 1, nobody = 0, was, sum;
	MPI_Win win;
	int i;

	/* Rank 0 lends its words, which are no shared memory, and does nothing: compare-and-swap of Open MPI 4.1
	 * takes a key from NULL where it has local access, over btl/ofi. */
	MUST(MPI_Win_create(mem, sizeof(mem), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	win_begin(win, 2, mem);
	for (i = 0; rank && i < LOCK_ROUNDS; i++) {
		for (;;) {
			MUST(MPI_Compare_and_swap(&mine, &nobody, &was, MPI_LONG, 0, LOCK, win));
			MUST(MPI_Win_flush(0, win));
			if (!was)
				break;
			sched_yield();	/* there are more ranks than processors */
		}
		MUST(MPI_Get(&sum, 1, MPI_LONG, 0, SUM, 1, MPI_LONG, win));
		MUST(MPI_Win_flush(0, win));
		sum++;
		MUST(MPI_Put(&sum, 1, MPI_LONG, 0, SUM, 1, MPI_LONG, win));
		MUST(MPI_Win_flush(0, win));
		MUST(MPI_Compare_and_swap(&nobody, &mine, &was, MPI_LONG, 0, LOCK, win));
		MUST(MPI_Win_flush(0, win));
		CHECK_EQ(was, mine);
	}
	all_done(win);
	if (!rank)
		CHECK_EQ(mem[SUM], (long) LOCK_ROUNDS * (ranks - 1));
	win_close(&win);
}

/* What comes back is what was there before, and with MPI_NO_OP nothing changes. */
static void get_accumulate(void)
{
	enum { CNT = 2000 };
	long *mem, *add = alloc(CNT * sizeof(long)), *was = alloc(CNT * sizeof(long));
	MPI_Win win = win_open(CNT, &mem);
	int i, turn;

	for (i = 0; i < CNT; i++)
		add[i] = i + 1;
	for (turn = 0; turn < 4; turn++) {
		MUST(MPI_Get_accumulate(add, CNT, MPI_LONG, was, CNT, MPI_LONG, next_rank(), 0, CNT, MPI_LONG, MPI_SUM,
					win));
		MUST(MPI_Win_flush(next_rank(), win));
		for (i = 0; i < CNT; i++)
			CHECK_EQ(was[i], (long) turn * (i + 1));
	}
	MUST(MPI_Get_accumulate(NULL, 0, MPI_LONG, was, CNT, MPI_LONG, next_rank(), 0, CNT, MPI_LONG, MPI_NO_OP, win));
	MUST(MPI_Win_flush(next_rank(), win));
	for (i = 0; i < CNT; i++)
		CHECK_EQ(was[i], 4L * (i + 1));
	all_done(win);
	for (i = 0; i < CNT; i++)
		CHECK_EQ(mem[i], 4L * (i + 1));
	win_close(&win);
	free(was);
	free(add);
}

/* Each operation, by all ranks on one word: what a reduction of the same values and the 0 before gives. */
static void every_operation(void)
{
	const MPI_Op ops[] = {
		MPI_SUM, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_PROD
	};
	long *mem, mine = rank + 1, reduced[COUNT(ops)], before;
	MPI_Win win = win_open(COUNT(ops), &mem);
	size_t i;

	for (i = 0; i < COUNT(ops); i++) {
		MUST(MPI_Accumulate(&mine, 1, MPI_LONG, 0, (MPI_Aint) i, 1, MPI_LONG, ops[i], win));
		MUST(MPI_Allreduce(&mine, &reduced[i], 1, MPI_LONG, ops[i], MPI_COMM_WORLD));
	}
	all_done(win);
	for (i = 0; !rank && i < COUNT(ops); i++) {
		before = 0;
		MUST(MPI_Reduce_local(&before, &reduced[i], 1, MPI_LONG, ops[i]));
		CHECK_EQ(mem[i], reduced[i]);
	}
	win_close(&win);
}

static void other_types(void)
{
	long *mem;
	MPI_Win win = win_open(4, &mem);
	int32_t small = rank + 1, was;
	double real = 0.5, was_real;
	float single = 0.25f;
	int i;

	for (i = 0; i < 50; i++) {
		MUST(MPI_Fetch_and_op(&small, &was, MPI_INT32_T, 0, 0, MPI_SUM, win));
		MUST(MPI_Fetch_and_op(&real, &was_real, MPI_DOUBLE, 0, 1, MPI_SUM, win));
		MUST(MPI_Accumulate(&single, 1, MPI_FLOAT, 0, 2, 1, MPI_FLOAT, MPI_SUM, win));
		MUST(MPI_Fetch_and_op(&small, &was, MPI_INT32_T, 0, 3, MPI_REPLACE, win));
		MUST(MPI_Win_flush(0, win));
		CHECK(was >= 0 && was <= ranks);
	}
	all_done(win);
	if (!rank) {
		CHECK_EQ(*(int32_t *) &mem[0], 50 * ranks * (ranks + 1) / 2);
		CHECK(*(double *) &mem[1] == 25.0 * ranks);
		CHECK(*(float *) &mem[2] == 12.5f * (float) ranks);
		CHECK(*(int32_t *) &mem[3] > 0 && *(int32_t *) &mem[3] <= ranks);
	}
	win_close(&win);
}

static const struct mpi_case cases[] = {
	{ "accumulate from all to all", accumulate },
	{ "fetch and op: tickets", fetch_and_op },
	{ "compare and swap: a lock", compare_and_swap },
	{ "get_accumulate", get_accumulate },
	{ "every operation", every_operation },
	{ "32-bit and floating types", other_types },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
