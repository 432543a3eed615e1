/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who carries the data: the libfabric.so.1 in this process is the file that CLIENT_LIBRARY names and no other, and
 * what is sent to another rank, or put into its memory (argument `put`), leaves by this process's TCP sockets, by
 * the kernel's count. Where a device is to carry it (CLIENT_DEVICE names its libibverbs.so.1), that is the one in this
 * process, and nothing leaves by TCP.
 */
#include <limits.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpi_case.h"

static bool by_put;

/* The files that are mapped with this in their path are the one wanted. */
static void loaded(const char *name, const char *wanted)
{
	char line[PATH_MAX + 128], *path;
	FILE *maps = fopen("/proc/self/maps", "r");
	int ours = 0;

	CHECK(wanted != NULL);
	CHECK(maps != NULL);
	while (fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = 0;
		path = strchr(line, '/');
		if (!path || !strstr(path, name))
			continue;
		if (strcmp(path, wanted))
			FAIL("%s is loaded, not %s", path, wanted);
		ours++;
	}
	fclose(maps);
	CHECK(ours > 0);
}

static void our_library(void)
{
	loaded("/libfabric.so", getenv("CLIENT_LIBRARY"));
	if (getenv("CLIENT_DEVICE"))
		loaded("/libibverbs.so", getenv("CLIENT_DEVICE"));
}

/* Payload bytes that the peers of this process's TCP sockets have acknowledged. */
static long long acknowledged(void)
{
	struct tcp_info info;
	socklen_t len;
	long long sum = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++) {
		len = sizeof(info);
		memset(&info, 0, sizeof(info));
		if (!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
			sum += (long long) info.tcpi_bytes_acked;
	}
	return sum;
}

static void send_around(const uint8_t *out, uint8_t *in, size_t len)
{
	MUST(MPI_Sendrecv(out, (int) len, MPI_BYTE, next_rank(), 1, in, (int) len, MPI_BYTE, prev_rank(), 1,
			  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void put_around(const uint8_t *out, size_t len, MPI_Win win)
{
	MUST(MPI_Put(out, (int) len, MPI_BYTE, next_rank(), 0, (int) len, MPI_BYTE, win));
	MUST(MPI_Win_flush(next_rank(), win));
}

/* @len bytes around the ring, @turns times: at least as many leave this process, and not half as many again; of a
 * device hardly any by TCP. */
static void check_carried(size_t len, int turns)
{
	uint8_t *out = alloc(len), *in = alloc(len);
	long long before, sent, want = (long long) len * turns;
	MPI_Win win;
	int i;

	fill(out, len, 1);
	if (by_put) {
		MUST(MPI_Win_create(in, (MPI_Aint) len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
		MUST(MPI_Win_lock_all(0, win));
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	before = acknowledged();
	for (i = 0; i < turns; i++) {
		if (by_put)
			put_around(out, len, win);
		else
			send_around(out, in, len);
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	/* The last acknowledgement may be on its way; if too few come, the case's limit ends this. */
	do {
		sent = acknowledged() - before;
	} while (!getenv("CLIENT_DEVICE") && sent < want);
	if (sent > (getenv("CLIENT_DEVICE") ? want / 10 : want + want / 2))
		FAIL("%lld bytes were sent, and %lld left by TCP", want, sent);
	if (by_put) {
		MUST(MPI_Win_unlock_all(win));
		MUST(MPI_Win_free(&win));
	}
	check_fill(in, len, 1);
	free(in);
	free(out);
}

static void few_bytes(void)
{
	check_carried(500, 200);
}

static void many_bytes(void)
{
	check_carried(4 << 20, 2);
}

static const struct mpi_case cases[] = {
	{ "the library in this process is ours", our_library },
	{ "small ones leave by it", few_bytes },
	{ "large ones leave by it", many_bytes },
};

int main(int argc, char **argv)
{
	by_put = argc > 1 && !strcmp(argv[1], "put");
	return mpi_run(&argc, &argv, MPI_THREAD_SINGLE, cases, COUNT(cases));
}
