/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What compare measures: two processes on this machine, one tagged RDM endpoint each, spinning on their CQs.
 * Public API only, so that the same source is built against any libfabric.
 *
 *   bench pingpong SIZE COUNT          prints microseconds a message (half a round trip)
 *   bench stream SIZE COUNT WINDOW     prints messages a second; the receiver answers once a window
 *
 * -p PROVIDER (default tcp), -a ADDRESS (default 127.0.0.1). The parent sends first, on core 0; the child is on core 1.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#define WINDOW_MAX	1024
#define TAG_DATA	1
#define TAG_ANSWER	2

struct bench {
	const char *provider, *address;
	bool parent;
	int peer_fd;			/* to exchange names */
	size_t size;
	long count, window;
	uint8_t *buf;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	long sent, received;		/* completions so far */
	struct fi_context2 ctx[2 * WINDOW_MAX];
	unsigned next_ctx;
};

static void check(long ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "bench: %s: %s\n", what, fi_strerror((int) -ret));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	sched_setaffinity(0, sizeof(set), &set);	/* where there is but one core, so be it */
}

/* ---- endpoints ---- */

static void open_ep(struct bench *b)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 4096 };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	char mine[64], theirs[64];
	size_t len = sizeof(mine);

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup(b->provider);
	check(fi_getinfo(FI_VERSION(1, 17), b->address, NULL, FI_SOURCE, hints, &b->info), "fi_getinfo");
	fi_freeinfo(hints);
	check(fi_fabric(b->info->fabric_attr, &b->fabric, NULL), "fi_fabric");
	check(fi_domain(b->fabric, b->info, &b->domain, NULL), "fi_domain");
	check(fi_cq_open(b->domain, &cq_attr, &b->cq, NULL), "fi_cq_open");
	check(fi_av_open(b->domain, &av_attr, &b->av, NULL), "fi_av_open");
	check(fi_endpoint(b->domain, b->info, &b->ep, NULL), "fi_endpoint");
	check(fi_ep_bind(b->ep, &b->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	check(fi_ep_bind(b->ep, &b->av->fid, 0), "fi_ep_bind");
	check(fi_enable(b->ep), "fi_enable");
	check(fi_getname(&b->ep->fid, mine, &len), "fi_getname");
	if (write(b->peer_fd, mine, sizeof(mine)) != sizeof(mine) ||
	    read(b->peer_fd, theirs, sizeof(theirs)) != sizeof(theirs))
		check(-FI_EIO, "names");
	check(fi_av_insert(b->av, theirs, 1, &b->peer, 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
}

static void close_ep(struct bench *b)
{
	fi_close(&b->ep->fid);
	fi_close(&b->av->fid);
	fi_close(&b->cq->fid);
	fi_close(&b->domain->fid);
	fi_close(&b->fabric->fid);
	fi_freeinfo(b->info);
}

/* ---- transfers ---- */

static void poll_cq(struct bench *b)
{
	struct fi_cq_tagged_entry entry[64];
	ssize_t cnt = fi_cq_read(b->cq, entry, 64);

	if (cnt == -FI_EAGAIN)
		return;
	check(cnt, "fi_cq_read");
	for (ssize_t i = 0; i < cnt; i++) {
		if (entry[i].flags & FI_RECV)
			b->received++;
		else
			b->sent++;
	}
}

static void *next_ctx(struct bench *b)
{
	return &b->ctx[b->next_ctx++ % (2 * WINDOW_MAX)];
}

static void post_recv(struct bench *b, size_t size, uint64_t tag)
{
	ssize_t ret;

	while ((ret = fi_trecv(b->ep, b->buf, size, NULL, b->peer, tag, 0, next_ctx(b))) == -FI_EAGAIN)
		poll_cq(b);
	check(ret, "fi_trecv");
}

static void send_msg(struct bench *b, size_t size, uint64_t tag)
{
	ssize_t ret;

	while ((ret = fi_tsend(b->ep, b->buf, size, NULL, b->peer, tag, next_ctx(b))) == -FI_EAGAIN)
		poll_cq(b);
	check(ret, "fi_tsend");
}

static void wait_for(struct bench *b, long sent, long received)
{
	while (b->sent < sent || b->received < received)
		poll_cq(b);
}

static void pingpong(struct bench *b, long count)
{
	for (long i = 0; i < count; i++) {
		long sent = b->sent, received = b->received;

		post_recv(b, b->size, TAG_DATA);
		if (!b->parent)
			wait_for(b, sent, received + 1);
		send_msg(b, b->size, TAG_DATA);
		wait_for(b, sent + 1, received + 1);
	}
}

static void stream_send(struct bench *b, long count)
{
	for (long i = 0; i < count; i += b->window) {
		long sent = b->sent, received = b->received;

		post_recv(b, 8, TAG_ANSWER);
		for (long w = 0; w < b->window; w++)
			send_msg(b, b->size, TAG_DATA);
		wait_for(b, sent + b->window, received + 1);
	}
}

static void stream_recv(struct bench *b, long count)
{
	for (long i = 0; i < count; i += b->window) {
		long sent = b->sent, received = b->received;

		for (long w = 0; w < b->window; w++)
			post_recv(b, b->size, TAG_DATA);
		wait_for(b, sent, received + b->window);
		send_msg(b, 8, TAG_ANSWER);
		wait_for(b, sent + 1, received + b->window);
	}
}

static void run(struct bench *b, bool stream, long count)
{
	if (!stream)
		pingpong(b, count);
	else if (b->parent)
		stream_send(b, count);
	else
		stream_recv(b, count);
}

static int usage(void)
{
	fprintf(stderr, "usage: bench [-p provider] [-a address] pingpong SIZE COUNT | stream SIZE COUNT WINDOW\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct bench b = { .provider = "tcp", .address = "127.0.0.1", .window = 1 };
	int fds[2], opt, status;
	double start, time;
	bool stream;
	pid_t child;

	while ((opt = getopt(argc, argv, "p:a:")) != -1) {
		if (opt == 'p')
			b.provider = optarg;
		else if (opt == 'a')
			b.address = optarg;
		else
			return usage();
	}
	argv += optind;
	argc -= optind;
	if (argc < 3)
		return usage();
	stream = !strcmp(argv[0], "stream");
	b.size = strtoul(argv[1], NULL, 0);
	b.count = strtol(argv[2], NULL, 0);
	if (stream && argc == 4)
		b.window = strtol(argv[3], NULL, 0);
	if (b.count < 1 || b.window < 1 || b.window > WINDOW_MAX)
		return usage();
	b.buf = calloc(1, b.size + 8);
	if (!b.buf || socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return 1;
	child = fork();
	b.parent = child > 0;
	b.peer_fd = fds[b.parent];
	pin(!b.parent);
	open_ep(&b);
	run(&b, stream, stream ? 4 * b.window : b.count / 10 + 1);	/* warm up, connect */
	start = now();
	run(&b, stream, b.count);
	time = now() - start;
	if (!b.parent) {
		close_ep(&b);
		return 0;
	}
	if (stream)
		printf("%.1f\n", (b.count + b.window - 1) / b.window * b.window / time);
	else
		printf("%.4f\n", time * 1e6 / b.count / 2);
	waitpid(child, &status, 0);
	close_ep(&b);
	return status != 0;
}
