/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the MPI programs of this folder share. A program is a table of cases; every rank runs all of them in order,
 * with a barrier behind each. A check that fails, or a case that takes longer than CASE_LIMIT_S, says so and ends
 * the whole job.
 *
 * Rank 0 prints `done NAME` for each case that all ranks have passed; test/client/openmpi.sh makes results of
 * these lines.
 */
#ifndef MPI_CASE_H
#define MPI_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CASE_LIMIT_S 90

struct mpi_case {
	const char *name;
	void (*fn)(void);
};

/* This process in MPI_COMM_WORLD, and how many there are; set by mpi_run(), then constant. */
extern int rank, ranks;

/* The ranks after and before this one, in a ring. */
int next_rank(void);
int prev_rank(void);

/* From MPI_Init_thread() with @level (an MPI_THREAD_ constant, which must be had) to MPI_Finalize(), all @cases
 * between. What main() returns. */
int mpi_run(int *argc, char ***argv, int level, const struct mpi_case *cases, size_t cnt);

/* What every rank does last, with no barrier between it and MPI_Finalize(). Before mpi_run(). */
void mpi_at_end(void (*fn)(void));

/* End the job: this rank has seen what may not be. Does not return. */
__attribute__((noreturn, format(printf, 3, 4))) void mpi_fail(const char *file, int line, const char *fmt, ...);

#define FAIL(...) mpi_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond) do { if (!(cond)) FAIL("%s does not hold", #cond); } while (0)
#define CHECK_EQ(got, want) do {						\
		long long got_ = (got), want_ = (want);				\
		if (got_ != want_)						\
			FAIL("%s is %lld, not %lld", #got, got_, want_);	\
	} while (0)
/* An MPI call that must succeed, where errors are returned. */
#define MUST(call) CHECK_EQ(call, MPI_SUCCESS)

/* Bytes that follow from @seed alone, and the check that they are there. */
void fill(void *buf, size_t len, unsigned int seed);
#define check_fill(buf, len, seed) check_fill_at(__FILE__, __LINE__, buf, len, seed)
void check_fill_at(const char *file, int line, const void *buf, size_t len, unsigned int seed);

/* @len bytes, or the job ends. The caller frees them. */
void *alloc(size_t len);

/* Lengths at which the library may change its ways, and their neighbours, up to some MiB. */
extern const size_t lengths[];
extern const size_t length_cnt;
#define MAX_LENGTH (4u << 20)

#endif
