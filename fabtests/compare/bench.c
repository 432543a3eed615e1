/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command line of bench; both processes; how often something is done so that it takes long enough; the clock. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

/* What the first run is, from which the number of messages is reckoned that take the wanted time. */
#define FIRST_COUNT 200
#define FIRST_COUNT_LARGE 20
#define LARGE 65536
#define MAX_COUNT 20000000

static const char usage[] =
	"usage: bench [OPTION]... WAY SIZE\n"
	"       bench [OPTION]... receives|peers\n"
	"WAY over libfabric: tagged, asleep (tagged, in fi_cq_sread), msg, write, delivered (writes with\n"
	"FI_DELIVERY_COMPLETE), read; without: tcp, shm, copy (process_vm_readv). Prints the number of messages and\n"
	"seconds; for receives and peers bytes of each, and how many were.\n"
	"  -p PROVIDER  (default tcp)      -a ADDRESS  (default 127.0.0.1; empty: the provider's own)\n"
	"  -e rdm|msg   endpoint type (default rdm)      -r  before all other processes (SCHED_FIFO)\n"
	"  -w WINDOW    a stream with so many under way; without: a ping-pong, of which each direction is a message\n"
	"  -m MS        about so long (default 100)    -n COUNT  just so many, instead\n";

void bench_check(long ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "bench: %s: %s\n", what, fi_strerror((int) -ret));
	exit(1);
}

void bench_swap(struct bench *b, const void *mine, void *theirs, size_t len)
{
	size_t got = 0;
	ssize_t ret;

	if (send(b->peer_fd, mine, len, MSG_NOSIGNAL) != (ssize_t) len)
		bench_check(-FI_ECONNRESET, "tell the other process");
	for (; got < len; got += (size_t) ret) {
		ret = read(b->peer_fd, (char *) theirs + got, len - got);
		if (ret <= 0)
			bench_check(-FI_ECONNRESET, "hear from the other process");
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec * 1e-9;
}

static void go_first(void)
{
	struct sched_param param = { .sched_priority = 1 };

	bench_check(sched_setscheduler(0, SCHED_FIFO, &param) ? -errno : 0, "SCHED_FIFO");
}

/* Where there is but one core, so be it. */
static void pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* How many messages take about ms milliseconds, from a run of some; both processes come to the parent's answer. */
static long reckon(struct bench *b, const struct way *way, double ms)
{
	long first = b->size < LARGE ? FIRST_COUNT : FIRST_COUNT_LARGE;
	long unit = b->window ? b->window : 1, count = (first + unit - 1) / unit * unit, answer;
	double begin, took;

	way->run(b, unit);
	begin = now();
	way->run(b, count);
	took = now() - begin;
	count = (long) ((double) count * ms / 1000 / took);
	count = count > MAX_COUNT ? MAX_COUNT : count;
	count = (count / unit + 1) * unit;
	bench_swap(b, &count, &answer, sizeof(count));
	return b->parent ? count : answer;
}

static void measure(struct bench *b, const struct way *way, double ms)
{
	long count;
	double begin;

	way->open(b);
	if (b->count) {
		count = b->count;
		way->run(b, b->window ? b->window : 1);
	} else {
		count = reckon(b, way, ms);
	}
	begin = now();
	way->run(b, count);
	if (b->parent)
		printf("%ld %.9f\n", b->window ? count : way->transfers * count, now() - begin);
	way->close(b);
}

static const struct way *find_way(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(fabric_ways) / sizeof(fabric_ways[0]); i++) {
		if (!strcmp(name, fabric_ways[i].name))
			return &fabric_ways[i];
	}
	for (i = 0; i < sizeof(floor_ways) / sizeof(floor_ways[0]); i++) {
		if (!strcmp(name, floor_ways[i].name))
			return &floor_ways[i];
	}
	return NULL;
}

static void bad_usage(void)
{
	fputs(usage, stderr);
	exit(2);
}

/* Options into *b; what follows them begins at the index returned. */
static int parse(struct bench *b, int argc, char **argv, double *ms)
{
	int opt;

	while ((opt = getopt(argc, argv, "rp:a:e:w:m:n:")) != -1) {
		if (opt == 'r')
			go_first();
		else if (opt == 'p')
			b->provider = optarg;
		else if (opt == 'a')
			b->address = optarg;
		else if (opt == 'e')
			b->ep_type = strcmp(optarg, "msg") ? FI_EP_RDM : FI_EP_MSG;
		else if (opt == 'w')
			b->window = strtol(optarg, NULL, 0);
		else if (opt == 'm')
			*ms = strtod(optarg, NULL);
		else if (opt == 'n')
			b->count = strtol(optarg, NULL, 0);
		else
			bad_usage();
	}
	if (b->window < 0 || b->window > WINDOW_MAX || b->count < 0)
		bad_usage();
	if (b->window)
		b->count = (b->count + b->window - 1) / b->window * b->window;
	return optind;
}

int main(int argc, char **argv)
{
	struct bench b = { .provider = "tcp", .address = "127.0.0.1", .ep_type = FI_EP_RDM };
	void (*memory)(struct bench *b) = NULL;
	const struct way *way = NULL;
	double ms = 100;
	int fds[2], at, status = 0;
	pid_t child;

	at = parse(&b, argc, argv, &ms);
	if (at + 1 == argc && !strcmp(argv[at], "receives"))
		memory = memory_of_receives;
	else if (at + 1 == argc && !strcmp(argv[at], "peers"))
		memory = memory_of_peers;
	else if (at + 2 == argc)
		way = find_way(argv[at]);
	if (!memory && !way)
		bad_usage();
	b.size = way ? strtoul(argv[at + 1], NULL, 0) : 8;
	if (!b.size || socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		bad_usage();
	floor_prepare();
	child = fork();
	bench_check(child, "fork");
	b.parent = child > 0;
	b.peer_fd = fds[b.parent];
	close(fds[!b.parent]);
	if (!b.parent)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(!b.parent);
	if (memory)
		memory(&b);
	else
		measure(&b, way, ms);
	if (!b.parent)
		return 0;
	fflush(stdout);
	waitpid(child, &status, 0);
	return status != 0;
}
