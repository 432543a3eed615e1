/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The floors: what a program gets that does without libfabric. Over TCP one send() a message, and a receiver that
 * spins; through shared memory a ring of bytes for each direction, copied into and out of; or process_vm_readv() by the
 * receiver, which is told by such a ring, and tells when it is done. None has tags, completions, or more than one peer.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#define ANSWER_LEN 8
#define RING_LEN (1u << 18)

static char *buf, *in_buf;		/* sent from, received into: as in bench_fabric.c, not the same */

/* Parent's messages of a window and the child's answer, as in bench_fabric.c, over any pair of calls. */
static void turns(struct bench *b, long count, void (*give)(struct bench *, size_t),
		  void (*take)(struct bench *, size_t))
{
	long i, m, unit = b->window ? b->window : 1;
	size_t answer = b->window ? ANSWER_LEN : b->size;

	for (i = 0; i < count; i += unit) {
		for (m = 0; m < unit; m++)
			(b->parent ? give : take)(b, b->size);
		(b->parent ? take : give)(b, answer);
	}
}

static void open_buf(struct bench *b)
{
	size_t len = (b->size + ANSWER_LEN + 4095) / 4096 * 4096;

	buf = aligned_alloc(4096, 2 * len);
	bench_check(buf ? 0 : -FI_ENOMEM, "buffers");
	memset(buf, 0, 2 * len);
	in_buf = buf + len;
}

/* ---- TCP ---- */

static int sock;

static void tcp_open(struct bench *b)
{
	struct sockaddr_in mine = { .sin_family = AF_INET }, theirs;
	socklen_t len = sizeof(mine);
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

	open_buf(b);
	bench_check(inet_pton(AF_INET, b->address, &mine.sin_addr) - 1, "the address");
	if (!b->parent && (bind(listener, (struct sockaddr *) &mine, len) || listen(listener, 1) ||
			   getsockname(listener, (struct sockaddr *) &mine, &len)))
		bench_check(-errno, "listen");
	bench_swap(b, &mine, &theirs, sizeof(mine));
	if (b->parent) {
		sock = listener;
		if (connect(sock, (struct sockaddr *) &theirs, sizeof(theirs)))
			bench_check(-errno, "connect");
	} else {
		sock = accept(listener, NULL, NULL);
		bench_check(sock < 0 ? -errno : 0, "accept");
		close(listener);
	}
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void tcp_give(struct bench *b, size_t len)
{
	size_t done = 0;
	ssize_t ret;

	(void) b;
	while (done < len) {
		ret = send(sock, buf + done, len - done, MSG_NOSIGNAL);
		bench_check(ret < 0 ? -errno : 0, "send");
		done += (size_t) ret;
	}
}

static void tcp_take(struct bench *b, size_t len)
{
	size_t done = 0;
	ssize_t ret;

	(void) b;
	while (done < len) {
		ret = recv(sock, in_buf + done, len - done, MSG_DONTWAIT);
		if (ret < 0 && errno == EAGAIN)
			continue;
		bench_check(ret < 0 ? -errno : ret ? 0 : -FI_ECONNRESET, "recv");
		done += (size_t) ret;
	}
}

static void tcp_run(struct bench *b, long count)
{
	turns(b, count, tcp_give, tcp_take);
}

static void tcp_close(struct bench *b)
{
	(void) b;
	close(sock);
	free(buf);
}

/* ---- shared memory ---- */

/* Bytes from one writer to one reader: each owns one of the two positions, which only grow. */
struct ring {
	_Alignas(64) _Atomic size_t written;
	_Alignas(64) _Atomic size_t taken;
	_Alignas(64) char data[RING_LEN];
};

static struct ring *rings;

void floor_prepare(void)
{
	rings = mmap(NULL, 2 * sizeof(*rings), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bench_check(rings == MAP_FAILED ? -errno : 0, "mmap");
}

/* Copy between a ring, from a position on, and a buffer. */
static void copy(struct ring *ring, size_t at, char *data, size_t len, bool in)
{
	size_t part = RING_LEN - at % RING_LEN;

	part = part < len ? part : len;
	memcpy(in ? ring->data + at % RING_LEN : data, in ? data : ring->data + at % RING_LEN, part);
	memcpy(in ? ring->data : data + part, in ? data + part : ring->data, len - part);
}

/* Move len bytes; `in` is the writer's direction. Who finds no room, or no byte, looks again. */
static void move(struct ring *ring, size_t len, bool in)
{
	size_t done = 0, mine, theirs, can;

	while (done < len) {
		mine = atomic_load_explicit(in ? &ring->written : &ring->taken, memory_order_relaxed);
		theirs = atomic_load_explicit(in ? &ring->taken : &ring->written, memory_order_acquire);
		can = in ? RING_LEN - (mine - theirs) : theirs - mine;
		can = can < len - done ? can : len - done;
		copy(ring, mine, (in ? buf : in_buf) + done, can, in);
		atomic_store_explicit(in ? &ring->written : &ring->taken, mine + can, memory_order_release);
		done += can;
	}
}

static void shm_give(struct bench *b, size_t len)
{
	move(&rings[b->parent], len, true);
}

static void shm_take(struct bench *b, size_t len)
{
	move(&rings[!b->parent], len, false);
}

static void shm_run(struct bench *b, long count)
{
	turns(b, count, shm_give, shm_take);
}

static void shm_close(struct bench *b)
{
	(void) b;
	free(buf);
}

/* ---- process_vm_readv() ---- */

static pid_t peer_pid;
static void *peer_buf;

static void copy_open(struct bench *b)
{
	struct { pid_t pid; void *buf; } mine, theirs;

	open_buf(b);
	memset(&mine, 0, sizeof(mine));
	mine.pid = getpid();
	mine.buf = buf;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	bench_swap(b, &mine, &theirs, sizeof(mine));
	peer_pid = theirs.pid;
	peer_buf = theirs.buf;
}

/* A byte says that the message may be read, or that it was. */
static void copy_give(struct bench *b, size_t len)
{
	(void) len;
	move(&rings[b->parent], 1, true);
}

static void copy_take(struct bench *b, size_t len)
{
	struct iovec mine = { in_buf, len }, theirs = { peer_buf, len };

	move(&rings[!b->parent], 1, false);
	bench_check(process_vm_readv(peer_pid, &mine, 1, &theirs, 1, 0) == (ssize_t) len ? 0 : -errno,
		    "process_vm_readv");
}

static void copy_run(struct bench *b, long count)
{
	turns(b, count, copy_give, copy_take);
}

/* The other end may still read the last message. */
static void copy_close(struct bench *b)
{
	char mine = 0, theirs;

	bench_swap(b, &mine, &theirs, sizeof(mine));
	shm_close(b);
}

const struct way floor_ways[3] = {
	{ "tcp", 2, tcp_open, tcp_run, tcp_close },
	{ "shm", 2, open_buf, shm_run, shm_close },
	{ "copy", 2, copy_open, copy_run, copy_close },
};
