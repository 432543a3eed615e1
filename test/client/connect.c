/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Groups of processes that meet: by MPI_Comm_accept and MPI_Comm_connect, and by MPI_Comm_join over a socket. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpi_case.h"

#define LEN 200000

/* What both groups do, each with the rank @peer on the other side of @comm. */
static void exchange(MPI_Comm comm, int peer, unsigned int seed)
{
	uint8_t *out = alloc(LEN), *in = alloc(LEN);
	int len;

	for (len = 1; len <= LEN; len = len * 7 + 1) {
		fill(out, (size_t) len, seed + (unsigned int) len);
		MUST(MPI_Sendrecv(out, len, MPI_BYTE, peer, 1, in, len, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE));
		check_fill(in, (size_t) len, seed + (unsigned int) len);
	}
	free(in);
	free(out);
}

/* Even ranks accept, odd ones connect; both halves have a rank for each of the other. */
static void accept_and_connect(void)
{
	char port[MPI_MAX_PORT_NAME];
	MPI_Comm half, other;

	MUST(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
	if (!rank)
		MUST(MPI_Open_port(MPI_INFO_NULL, port));
	MUST(MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD));
	if (rank % 2)
		MUST(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &other));
	else
		MUST(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &other));
	exchange(other, rank / 2, (unsigned int) rank / 2);
	MUST(MPI_Comm_disconnect(&other));
	MUST(MPI_Comm_free(&half));
	if (!rank)
		MUST(MPI_Close_port(port));
}

/* A TCP connection between ranks 0 and 1. */
static int connect_two(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0), listener;

	CHECK(fd >= 0);
	if (rank) {
		MUST(MPI_Recv(&addr, sizeof(addr), MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		CHECK(!connect(fd, (struct sockaddr *) &addr, len));
		return fd;
	}
	listener = fd;
	CHECK(!bind(listener, (struct sockaddr *) &addr, len) && !listen(listener, 1));
	CHECK(!getsockname(listener, (struct sockaddr *) &addr, &len));
	MUST(MPI_Send(&addr, sizeof(addr), MPI_BYTE, 1, 3, MPI_COMM_WORLD));
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0);
	close(listener);
	return fd;
}

static void join(void)
{
	MPI_Comm other;
	int fd;

	if (rank > 1)
		return;
	fd = connect_two();
	MUST(MPI_Comm_join(fd, &other));
	close(fd);
	exchange(other, 0, 5);
	MUST(MPI_Comm_disconnect(&other));
}

static const struct mpi_case cases[] = {
	{ "one half accepts, the other connects", accept_and_connect },
	{ "and again", accept_and_connect },
	{ "two join over a socket", join },
};

int main(int argc, char **argv)
{
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
