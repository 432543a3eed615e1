/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The last rank is killed, and the job must end by itself. The argument says what the others do: `stream` sends and
 * receives, `wait` waits for a message from it, `alone` (under mpirun --enable-recovery, which leaves the others
 * running) sends to it and wants to hear of its end from the library. `host`: no rank does it by itself, all go on
 * until a whole host is killed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_case.h"

#define LEN 100000
#define BEFORE 100

static const char *mode;
static uint8_t *out, *in;

static void around(void)
{
	MUST(MPI_Sendrecv(out, LEN, MPI_BYTE, next_rank(), 1, in, LEN, MPI_BYTE, prev_rank(), 1, MPI_COMM_WORLD,
			  MPI_STATUS_IGNORE));
}

/* Send until the library says that nobody is there, and end without MPI_Finalize, which would wait for the dead. */
__attribute__((noreturn)) static void send_to_the_dead(void)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	while (MPI_Send(out, LEN, MPI_BYTE, ranks - 1, 99, MPI_COMM_WORLD) == MPI_SUCCESS)
		;
	printf("rank %d knows\n", rank);
	fflush(stdout);
	_exit(0);
}

static void killed(void)
{
	int i;

	out = alloc(LEN);
	in = alloc(LEN);
	for (i = 0; i < BEFORE; i++)
		around();
	if (!strcmp(mode, "host") && rank == 0) {
		printf("under way\n");
		fflush(stdout);
	}
	if (strcmp(mode, "host") && rank == ranks - 1) {
		printf("about to die\n");
		fflush(stdout);
		raise(SIGKILL);
	}
	if (!strcmp(mode, "alone"))
		send_to_the_dead();
	if (!strcmp(mode, "wait"))
		MUST(MPI_Recv(in, LEN, MPI_BYTE, ranks - 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	for (;;)
		around();
}

static const struct mpi_case cases[] = { { "a rank is killed", killed } };

int main(int argc, char **argv)
{
	mode = argc > 1 ? argv[1] : "stream";
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
