/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The greeting of a peer over a Unix socket (tcp_local_greet()), of a process that says anything: it is taken only with
 * the format's magic and version, and at the accepting end only if its addresses are of the listener's family and the
 * port is the listener's; rings are mapped only with their layout and both descriptors.
 *
 * eva: -eva-slevel 200
 */
#include "prove.h"
#include "tcp/local/greet.c"

static struct tcp_local local;
static union fab_sockaddr at;
static struct tcp_pair pair;

/* ---- below ---- */

static int any_errno;
int *__errno_location(void)
{
	return &any_errno;
}

struct tcp_params tcp_params;

/* The bytes that are missing come, with any number of descriptors; or not. */
int tcp_pair_recv(int fd, void *buf, size_t size, struct tcp_pair_inbox *inbox)
{
	(void) fd;
	any_bytes(buf, size);
	inbox->len = any_of(0, size);
	inbox->cnt = any_of(0, 2);
	if (any_of(0, 1))
		return -EAGAIN;
	inbox->len = size;
	return 0;
}

struct tcp_pair *tcp_pair_map(int mem_fd, int page_fd, uint32_t bit)
{
	(void) mem_fd, (void) page_fd, (void) bit;
	prove(local.greeting.pair == TCP_PAIR_LAYOUT && local.inbox.cnt == 2);
	return any_of(0, 1) ? &pair : NULL;
}

void tcp_pair_close(struct tcp_pair_inbox *inbox)
{
	inbox->cnt = 0;
}

/* What is sent lies in its buffers. */
ssize_t tcp_pair_send(int fd, const struct iovec *iov, size_t cnt, const int *fds, int fd_cnt)
{
	(void) fd;
	prove(cnt == 1 && fd_cnt == 0);
	prove_readable(iov[0].iov_base, iov[0].iov_len);
	prove_readable(fds, 2 * sizeof(*fds));
	return (ssize_t) any_of(0, iov[0].iov_len + 1) - 1;
}

/*@ assigns \result \from near; */
extern int tcp_ready_fd(const struct tcp_near *near);

uint16_t fab_addr_port(const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const void *) addr;

	return addr->sa_family == AF_INET || addr->sa_family == AF_INET6 ? ntohs(in->sin_port) : 0;
}

/*@ requires \valid_read(addr);
  @ assigns \result \from *addr;
  @ ensures \result == 0 || \result == 1;
  @*/
bool fab_addr_is_any(const struct sockaddr *addr);
/*@ requires \valid_read(a) && \valid_read(b);
  @ assigns \result \from *a, *b;
  @ ensures \result == 0 || \result == 1;
  @*/
bool fab_addr_equal_host(const struct sockaddr *a, const struct sockaddr *b);
/*@ requires \valid_read(addr);
  @ assigns \result \from *addr;
  @ ensures \result == 0 || \result == 1;
  @*/
bool fab_net_is_own(const union fab_sockaddr *addr);

/* ---- the greeting ---- */

static void prove_greeting(const union fab_sockaddr *listens)
{
	struct tcp_link link = { 3, &local };

	memset(&local, 0, sizeof(local));
	if (tcp_local_greet(&link, listens))
		return;
	prove(local.greeting.magic == GREETING_MAGIC);
	prove(local.greeting.version == GREETING_VERSION);
	if (listens) {
		prove(local.theirs.sa.sa_family == listens->sa.sa_family);
		prove(local.ours.sa.sa_family == listens->sa.sa_family);
		prove(local.inbox.cnt == 0);
	}
}

int main(void)
{
	any_bytes(&at, sizeof(at));
	prove_greeting(NULL);
	at.sa.sa_family = AF_INET;
	prove_greeting(&at);
	at.sa.sa_family = AF_INET6;
	prove_greeting(&at);
	reached();
	return 0;
}
