/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One-sided transfers of all lengths, under each way of synchronising, on windows of each kind. */
#include <stdlib.h>
#include <string.h>

#include "mpi_case.h"

/* A window of @len bytes on every rank, zeroed, with displacements in bytes. */
static MPI_Win win_open(size_t len, uint8_t **mem)
{
	MPI_Win win;

	MUST(MPI_Win_allocate((MPI_Aint) len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, mem, &win));
	MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
	memset(*mem, 0, len);
	MUST(MPI_Win_unlock(rank, win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	return win;
}

static void put_and_get(void)
{
	uint8_t *out = alloc(MAX_LENGTH), *in = alloc(MAX_LENGTH + 1), *mem;
	MPI_Win win = win_open(MAX_LENGTH + 1, &mem);
	size_t i, len;

	for (i = 0; i < length_cnt; i++) {
		len = lengths[i];
		fill(out, len, (unsigned int) (rank + 3));
		in[len] = 0x33;
		MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
		MUST(MPI_Put(out, (int) len, MPI_BYTE, next_rank(), 1, (int) len, MPI_BYTE, win));
		MUST(MPI_Win_flush(next_rank(), win));
		MUST(MPI_Get(in, (int) len, MPI_BYTE, next_rank(), 1, (int) len, MPI_BYTE, win));
		MUST(MPI_Win_unlock(next_rank(), win));
		check_fill(in, len, (unsigned int) (rank + 3));
		CHECK_EQ(in[len], 0x33);
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		MUST(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
		check_fill(mem + 1, len, (unsigned int) (prev_rank() + 3));
		CHECK_EQ(mem[0], 0);
		MUST(MPI_Win_unlock(rank, win));
		MUST(MPI_Barrier(MPI_COMM_WORLD));
	}
	MUST(MPI_Win_free(&win));
	free(in);
	free(out);
}

/* Between two fences every rank writes its block into all others'. */
static void fence(void)
{
	size_t len = 70000;
	uint8_t *out = alloc(len), *mem;
	MPI_Win win = win_open(len * (size_t) ranks, &mem);
	int turn, i;

	for (turn = 0; turn < 5; turn++) {
		fill(out, len, (unsigned int) (rank * 10 + turn));
		MUST(MPI_Win_fence(0, win));
		for (i = 0; i < ranks; i++)
			MUST(MPI_Put(out, (int) len, MPI_BYTE, i, (MPI_Aint) len * rank, (int) len, MPI_BYTE, win));
		MUST(MPI_Win_fence(0, win));
		for (i = 0; i < ranks; i++)
			check_fill(mem + len * (size_t) i, len, (unsigned int) (i * 10 + turn));
	}
	MUST(MPI_Win_free(&win));
	free(out);
}

/* Post, start, complete, wait: each rank opens its window to the one before, and works on the one after. */
static void post_start_complete_wait(void)
{
	size_t len = 5000;
	int before = prev_rank(), after = next_rank(), turn;
	uint8_t *out = alloc(len), *mem;
	MPI_Win win = win_open(len, &mem);
	MPI_Group world, from, to;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &before, &from);
	MPI_Group_incl(world, 1, &after, &to);
	for (turn = 0; turn < 20; turn++) {
		fill(out, len, (unsigned int) (rank + 50 * turn));
		MUST(MPI_Win_post(from, 0, win));
		MUST(MPI_Win_start(to, 0, win));
		MUST(MPI_Put(out, (int) len, MPI_BYTE, after, 0, (int) len, MPI_BYTE, win));
		MUST(MPI_Win_complete(win));
		MUST(MPI_Win_wait(win));
		check_fill(mem, len, (unsigned int) (before + 50 * turn));
	}
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&world);
	MUST(MPI_Win_free(&win));
	free(out);
}

/* With all windows open, requests and flushes: many small puts, then what they wrote is got back in pieces. */
static void lock_all_and_flush(void)
{
	enum { CNT = 500 };
	uint32_t out[CNT], in[CNT];
	uint8_t *mem;
	MPI_Win win = win_open(sizeof(out) * (size_t) ranks, &mem);
	MPI_Aint at = (MPI_Aint) sizeof(out) * rank;
	MPI_Request req;
	int to, i;

	MUST(MPI_Win_lock_all(0, win));
	for (to = 0; to < ranks; to++) {
		for (i = 0; i < CNT; i++) {
			out[i] = (uint32_t) (rank << 20 | to << 12 | i);
			MUST(MPI_Put(&out[i], 4, MPI_BYTE, to, at + 4 * i, 4, MPI_BYTE, win));
		}
		MUST(MPI_Win_flush(to, win));
		for (i = 0; i < CNT; i++)
			MUST(MPI_Get(&in[i], 4, MPI_BYTE, to, at + 4 * i, 4, MPI_BYTE, win));
		MUST(MPI_Win_flush_local(to, win));
		for (i = 0; i < CNT; i++)
			CHECK_EQ(in[i], out[i]);
		memset(in, 0, sizeof(in));
		MUST(MPI_Rget(in, (int) sizeof(in), MPI_BYTE, to, at, (int) sizeof(in), MPI_BYTE, win, &req));
		MUST(MPI_Wait(&req, MPI_STATUS_IGNORE));
		CHECK(!memcmp(in, out, sizeof(in)));
	}
	MUST(MPI_Win_unlock_all(win));
	MUST(MPI_Win_free(&win));
}

/* Memory of the program's own, several windows on it, and blocks with gaps on both sides. */
static void own_memory_with_gaps(void)
{
	enum { ROWS = 40, COLUMNS = 24 };
	int mem[ROWS][COLUMNS] = { { 0 } }, out[ROWS], in[ROWS], i;
	MPI_Datatype column;
	MPI_Win win, other;

	MUST(MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column));
	MUST(MPI_Type_commit(&column));
	MUST(MPI_Win_create(mem, sizeof(mem), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MUST(MPI_Win_create(mem, sizeof(mem), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &other));
	for (i = 0; i < ROWS; i++)
		out[i] = rank * 1000 + i;
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Put(out, ROWS, MPI_INT, next_rank(), 5, 1, column, win));
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < ROWS; i++) {
		CHECK_EQ(mem[i][5], prev_rank() * 1000 + i);
		CHECK_EQ(mem[i][4], 0);
		CHECK_EQ(mem[i][6], 0);
	}
	MUST(MPI_Win_fence(0, other));
	MUST(MPI_Get(in, ROWS, MPI_INT, next_rank(), 5, 1, column, other));
	MUST(MPI_Win_fence(0, other));
	CHECK(!memcmp(in, out, sizeof(in)));
	MUST(MPI_Win_free(&other));
	MUST(MPI_Win_free(&win));
	MPI_Type_free(&column);
}

/* A dynamic window: memory is attached later, and its address told by message. */
static void dynamic_window(void)
{
	size_t len = 10000;
	uint8_t *mem = alloc(len), *out = alloc(len);
	MPI_Aint mine, theirs;
	MPI_Win win;

	memset(mem, 0, len);
	fill(out, len, (unsigned int) rank);
	MUST(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MUST(MPI_Win_attach(win, mem, (MPI_Aint) len));
	MUST(MPI_Get_address(mem, &mine));
	MUST(MPI_Sendrecv(&mine, 1, MPI_AINT, prev_rank(), 1, &theirs, 1, MPI_AINT, next_rank(), 1, MPI_COMM_WORLD,
			  MPI_STATUS_IGNORE));
	MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
	MUST(MPI_Put(out, (int) len, MPI_BYTE, next_rank(), theirs, (int) len, MPI_BYTE, win));
	MUST(MPI_Win_unlock(next_rank(), win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	check_fill(mem, len, (unsigned int) prev_rank());
	MUST(MPI_Win_detach(win, mem));
	MUST(MPI_Win_free(&win));
	free(out);
	free(mem);
}

static const struct mpi_case cases[] = {
	{ "put and get, all lengths", put_and_get },
	{ "fence", fence },
	{ "post, start, complete, wait", post_start_complete_wait },
	{ "lock_all, flush, requests", lock_all_and_flush },
	{ "memory of the program, with gaps", own_memory_with_gaps },
	{ "a dynamic window", dynamic_window },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
