/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processes that join later: the ranks start as many again (this program, with an argument), and talk with them. */
#include <stdlib.h>

#include "mpi_case.h"

#define LEN 200000

/* What both groups do, each with the rank of the same number on the other side of @comm. */
static void exchange(MPI_Comm comm)
{
	uint8_t *out = alloc(LEN), *in = alloc(LEN);
	int len;

	for (len = 1; len <= LEN; len = len * 7 + 1) {
		fill(out, (size_t) len, (unsigned int) (rank + len));
		MUST(MPI_Sendrecv(out, len, MPI_BYTE, rank, 1, in, len, MPI_BYTE, rank, 1, comm, MPI_STATUS_IGNORE));
		check_fill(in, (size_t) len, (unsigned int) (rank + len));
	}
	free(in);
	free(out);
}

static void with_parents(void)
{
	MPI_Comm parents;

	MUST(MPI_Comm_get_parent(&parents));
	CHECK(parents != MPI_COMM_NULL);
	exchange(parents);
	MUST(MPI_Comm_disconnect(&parents));
}

static char *program;

static void with_children(void)
{
	char arg[] = "child", *args[] = { arg, NULL };
	MPI_Comm children;

	MUST(MPI_Comm_spawn(program, args, ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
	exchange(children);
	MUST(MPI_Comm_disconnect(&children));
}

static const struct mpi_case cases[] = {
	{ "processes started by MPI_Comm_spawn", with_children },
	{ "and again", with_children },
};
static const struct mpi_case child_cases[] = { { "child", with_parents } };

int main(int argc, char **argv)
{
	program = argv[0];
	if (argc > 1)
		return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, child_cases, COUNT(child_cases));
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
