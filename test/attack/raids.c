/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What attackers do. Each is a loop over plain sockets, which ends only when its process is killed. A connection that
 * the server closes is made again at once.
 *
 * A stranger says that it listens at a port of 1024 to 32767, where none of the honest peers is.
 */
#include "raid.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tcp/wire/wire.h"

#define CONN_MAX	2000
#define EXT_STRANGER	(TCP_EXT_BASE | TCP_EXT_PARK)

uint64_t dice(void)
{
	static uint64_t seed;

	if (!seed)
		seed = now_us() | 1;
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return seed >> 16;
}

void stroke(void)
{
	SET(strokes, page->strokes + 1);
}

void ready(void)
{
	SET(ready, 1);
}

/* ---- connections ---- */

void hang_up(int *fd)
{
	struct linger reset = { .l_onoff = 1 };

	if (*fd < 0)
		return;
	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(*fd);
	*fd = -1;
}

int dial(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *) &page->server, sizeof(page->server)) && errno != EINPROGRESS)
		hang_up(&fd);
	stroke();
	return fd;
}

bool await(int fd, short events, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	return poll(&pfd, 1, ms) == 1 && !(pfd.revents & (POLLERR | POLLNVAL));
}

bool has_ended(int fd)
{
	char byte;
	ssize_t ret = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return !ret || (ret < 0 && errno != EAGAIN);
}

struct hello {
	struct tcp_cm_hdr hdr;
	struct tcp_rdm_cm rdm;
};

/* The request of a peer that says it listens at this port. ext 0: as upstream's. */
static struct hello hello_of(uint16_t port, uint32_t ext, uint64_t incarnation)
{
	struct hello hello = {
		.hdr = { .version = TCP_CM_VERSION, .type = TCP_CM_CONNREQ, .seg_size = htobe16(sizeof(hello.rdm)),
			 .conn_data = TCP_CM_CONN_DATA },
		.rdm = { .port = htobe16(port), .pid = htobe32((uint32_t) getpid()) },
	};

	if (ext) {
		hello.hdr.ext = htobe32(TCP_EXT_MAGIC | ext);
		hello.hdr.incarnation = incarnation;
		hello.hdr.eager_max = htobe32(1 << 18);
		hello.hdr.credit = htobe32(1 << 19);
	}
	return hello;
}

uint16_t strange_port(void)
{
	return 1024 + dice() % (32768 - 1024);
}

int shake_hands(const void *request, size_t len, void *answer, size_t answer_len)
{
	int fd = dial();

	if (fd < 0)
		return -1;
	if (await(fd, POLLOUT, 1000) && send(fd, request, len, MSG_NOSIGNAL) == (ssize_t) len &&
	    await(fd, POLLIN, 1000) && recv(fd, answer, answer_len, 0) >= (ssize_t) sizeof(struct tcp_cm_hdr) &&
	    ((const struct tcp_cm_hdr *) answer)->type == TCP_CM_CONNRESP)
		return fd;
	hang_up(&fd);
	return -1;
}

static int meet(uint16_t port, uint32_t ext, uint64_t incarnation)
{
	struct hello hello = hello_of(port, ext, incarnation), answer;

	return shake_hands(&hello, sizeof(hello), &answer, sizeof(answer));
}

static int meet_as_stranger(uint32_t ext)
{
	return meet(strange_port(), ext, dice());
}

/* Connect as a peer that the server knows. */
static int meet_as_known(uint32_t ext)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(strange_port()),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	want_known(&addr);
	return meet(ntohs(addr.sin_port), ext, dice());
}

bool pour(int fd, const void *buf, size_t len, size_t *at)
{
	ssize_t ret;

	do {
		ret = send(fd, (const char *) buf + *at, len - *at, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (ret > 0) {
			*at = (*at + ret) % len;
			stroke();
		}
	} while (ret > 0);
	return errno == EAGAIN;
}

_Noreturn void keep(unsigned cnt, int (*begin)(void), bool (*more)(int fd, size_t *at))
{
	static size_t at[CONN_MAX];
	static int fd[CONN_MAX];

	for (unsigned i = 0; i < cnt; i++)
		fd[i] = -1;
	for (unsigned round = 0; ; round++) {
		for (unsigned i = 0; i < cnt; i++) {
			if (fd[i] >= 0 && (more ? !more(fd[i], &at[i]) : has_ended(fd[i])))
				hang_up(&fd[i]);
			if (fd[i] < 0) {
				fd[i] = begin();
				at[i] = 0;
			}
		}
		if (round == 1)
			ready();
		nap_us(100);
	}
}

/* ---- before a request ---- */

static void silent(void)
{
	keep(1500, dial, NULL);
}

static int begin_half(void)
{
	struct hello hello = hello_of(strange_port(), EXT_STRANGER, dice());
	int fd = dial();

	if (fd >= 0 && (!await(fd, POLLOUT, 1000) || send(fd, &hello, 20, MSG_NOSIGNAL) != 20))
		hang_up(&fd);
	return fd;
}

static void half_hello(void)
{
	keep(1500, begin_half, NULL);
}

static void churn(void)
{
	for (ready(); ; ) {
		int fd = dial();

		if (fd >= 0)
			await(fd, POLLOUT, 100);
		hang_up(&fd);
	}
}

/* The same with a byte, so that the kernel does not keep the connection to itself (TCP_DEFER_ACCEPT). */
static void churn_bytes(void)
{
	for (ready(); ; ) {
		int fd = dial();

		if (fd >= 0 && await(fd, POLLOUT, 100) && send(fd, "", 1, MSG_NOSIGNAL) == 1)
			await(fd, POLLIN, 1);
		hang_up(&fd);
	}
}

static bool drip(int fd, size_t *at)
{
	struct hello hello = hello_of(2000, EXT_STRANGER, 1);

	if (*at < sizeof(hello) && send(fd, (char *) &hello + *at, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
		++*at;
	stroke();
	return !has_ended(fd) && *at < sizeof(hello);
}

static void slow_bytes(void)
{
	keep(64, dial, drip);
}

static void rubbish_hello(void)
{
	for (ready(); ; ) {
		uint64_t junk[16];
		int fd = dial();

		for (int i = 0; i < 16; i++)
			junk[i] = dice() * dice();
		junk[0] = (junk[0] & ~0xffffULL) | TCP_CM_VERSION;	/* some are looked at further */
		if (fd >= 0 && await(fd, POLLOUT, 100) && send(fd, junk, sizeof(junk), MSG_NOSIGNAL) > 0)
			await(fd, POLLIN, 10);
		hang_up(&fd);
	}
}

/* ---- requests ---- */

static void hellos(void)
{
	for (ready(); ; ) {
		int fd = meet_as_stranger(EXT_STRANGER);

		hang_up(&fd);
	}
}

static int begin_connreq(void)
{
	struct hello hello = hello_of(strange_port(), TCP_EXT_MSG, dice());
	int fd = dial();

	hello.hdr.seg_size = 0;
	if (fd >= 0 && (!await(fd, POLLOUT, 1000) ||
			send(fd, &hello, sizeof(hello.hdr), MSG_NOSIGNAL) != sizeof(hello.hdr)))
		hang_up(&fd);
	return fd;
}

static void connreqs(void)
{
	keep(64, begin_connreq, NULL);
}

static void claims(void)
{
	ready();
	for (;;) {
		int fd = meet(ntohs(page->honest.sin_port), EXT_STRANGER, dice());

		if (fd >= 0)
			SET(stolen, page->stolen + 1);
		hang_up(&fd);
	}
}

/* A peer that leaves and comes back as the same, after a message each time. */
static void reopen(void)
{
	struct {
		struct tcp_hdr hdr;
		uint64_t tag;
	} msg = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_TAG, .hdr_size = sizeof(msg), .size = sizeof(msg) },
		  HONEST_TAG };
	uint16_t port = strange_port();
	uint64_t incarnation = dice();

	for (ready(); ; ) {
		int fd = meet(port, EXT_STRANGER, incarnation);

		if (fd >= 0) {
			send(fd, &msg, sizeof(msg), MSG_NOSIGNAL);
			shutdown(fd, SHUT_WR);
		}
		if (dice() & 1)
			hang_up(&fd);
		else if (fd >= 0)
			close(fd);
		if (!(dice() % 8))
			incarnation = dice();
	}
}

/* ---- frames ---- */

struct announcement {
	struct tcp_hdr hdr;
	struct tcp_rts rts;
};

static struct announcement announcement_of(uint32_t id)
{
	return (struct announcement) {
		{ .version = TCP_WIRE_VERSION, .op = TCP_WIRE_XRTS, .op_data = 1,
		  .hdr_size = sizeof(struct announcement), .size = sizeof(struct announcement) },
		{ .tag = STRANGE_TAG, .len = 1 << 20, .id = id },
	};
}

/* Each leaves an announcement, so that it is not idle. */
static int begin_announced(void)
{
	struct announcement rts = announcement_of(1);
	int fd = meet_as_stranger(EXT_STRANGER);

	if (fd >= 0 && send(fd, &rts, sizeof(rts), MSG_NOSIGNAL) != sizeof(rts))
		hang_up(&fd);
	return fd;
}

static void descriptors(void)
{
	keep(400, begin_announced, NULL);
}

/* The header of a message of 64 MiB, and no more. */
static int begin_long(void)
{
	struct {
		struct tcp_hdr hdr;
		uint64_t tag;
	} msg = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_TAG, .hdr_size = sizeof(msg), .size = 64 << 20 },
		  STRANGE_TAG };
	int fd = meet_as_stranger(0);

	if (fd >= 0 && send(fd, &msg, sizeof(msg), MSG_NOSIGNAL) != sizeof(msg))
		hang_up(&fd);
	return fd;
}

static void long_header(void)
{
	keep(32, begin_long, NULL);
}

static char frames[64 * 1024];		/* what is repeated */
static size_t frames_len;

static bool pour_frames(int fd, size_t *at)
{
	return pour(fd, frames, frames_len, at) && !(at[0] == 0 && has_ended(fd));
}

/* Frames of one kind, as many as fit. */
static void fill_frames(const void *frame, size_t len)
{
	for (frames_len = 0; frames_len + len <= sizeof(frames); frames_len += len)
		memcpy(frames + frames_len, frame, len);
}

static int begin_stranger(void)
{
	return meet_as_stranger(EXT_STRANGER);
}

static int begin_upstream(void)
{
	return meet_as_stranger(0);
}

static int begin_known(void)
{
	return GET(insert_cnt) < INSERT_MAX - 8 ? meet_as_known(EXT_STRANGER) : -1;
}

static int begin_known_upstream(void)
{
	return GET(insert_cnt) < INSERT_MAX - 8 ? meet_as_known(0) : -1;
}

struct read_frame read_of(uint64_t key, uint64_t len)
{
	return (struct read_frame) {
		.hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_READ_REQ, .rma_iov_cnt = 1,
			 .hdr_size = sizeof(struct read_frame), .size = sizeof(struct read_frame) },
		.rma = { .len = len, .key = key },
	};
}

static void fill_reads(uint64_t key, uint64_t len)
{
	const struct read_frame read = read_of(key, len);

	fill_frames(&read, sizeof(read));
}

static void unread_reads(void)
{
	fill_reads(KEY, REGION_LEN);
	keep(12, begin_stranger, pour_frames);
}

static void unread_reads_known(void)
{
	fill_reads(KEY, REGION_LEN);
	keep(1, begin_known, pour_frames);
}

static void unread_refusals(void)
{
	fill_reads(KEY + 1, 8);
	keep(12, begin_stranger, pour_frames);
}

static void unread_parks(void)
{
	struct tcp_hdr park = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_PARK, .hdr_size = sizeof(park),
				.size = sizeof(park) };

	fill_frames(&park, sizeof(park));
	keep(12, begin_stranger, pour_frames);
}

static void fill_messages(size_t len)
{
	struct {
		struct tcp_hdr hdr;
		uint64_t tag;
		char payload[1024];
	} msg = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_TAG, .hdr_size = 24, .size = 24 + len }, STRANGE_TAG,
		  { 0 } };

	fill_frames(&msg, 24 + len);
}

static void unexpected(void)
{
	fill_messages(1024);
	keep(16, begin_upstream, pour_frames);
}

static void unexpected_empty(void)
{
	fill_messages(0);
	keep(16, begin_upstream, pour_frames);
}

static void unexpected_many(void)
{
	fill_messages(0);
	keep(300, begin_upstream, pour_frames);
}

static void unexpected_known(void)
{
	fill_messages(1024);
	keep(1, begin_known_upstream, pour_frames);
}

static int begin_many_announced(void)
{
	static struct announcement rts[1000];
	int fd = meet_as_stranger(EXT_STRANGER);

	for (uint32_t sent = 0; fd >= 0 && sent < 8000; sent += 1000) {
		for (uint32_t i = 0; i < 1000; i++)
			rts[i] = announcement_of(sent + i);
		for (size_t at = 0; fd >= 0 && at < sizeof(rts); ) {
			ssize_t ret = send(fd, (char *) rts + at, sizeof(rts) - at, MSG_NOSIGNAL);

			if (ret > 0)
				at += ret;
			else if (errno != EAGAIN || !await(fd, POLLOUT, 200))
				hang_up(&fd);
		}
	}
	return fd;
}

/* Many announcements, then cancellations of others that there are not. */
static void cancels(void)
{
	struct {
		struct tcp_hdr hdr;
		struct tcp_xcancel cancel;
	} frame = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_XCANCEL, .hdr_size = sizeof(frame),
		      .size = sizeof(frame) }, { .id = 1 << 30 } };

	fill_frames(&frame, sizeof(frame));
	keep(2, begin_many_announced, pour_frames);
}

static void rubbish_frames(void)
{
	for (ready(); ; ) {
		int fd = meet_as_stranger(dice() & 1 ? EXT_STRANGER : 0);
		uint64_t junk[64];

		for (int i = 0; i < 64; i++)
			junk[i] = dice() * dice();
		junk[0] = (junk[0] & ~0xffffULL) | TCP_WIRE_VERSION | (dice() % 64) << 8;
		if (fd >= 0 && send(fd, junk, sizeof(junk), MSG_NOSIGNAL) > 0)
			await(fd, POLLIN, 10);
		hang_up(&fd);
	}
}

/* Refused accesses, each with another text, and answers to none. */
static bool complain(int fd, size_t *at)
{
	struct {
		struct tcp_hdr hdr;
		struct tcp_rma_iov rma;
	} read[64];
	char drain[4096];

	for (int i = 0; i < 64; i++) {
		read[i].hdr = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_READ_REQ, .rma_iov_cnt = 1,
						 .hdr_size = sizeof(*read), .size = sizeof(*read) };
		read[i].rma = (struct tcp_rma_iov) { dice(), dice() % 4096, dice() };
	}
	*at = 0;
	while (recv(fd, drain, sizeof(drain), MSG_DONTWAIT) > 0)
		;
	stroke();
	/* what does not fit would end in the middle of a frame */
	return send(fd, read, sizeof(read), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(read);
}

static void log_lines(void)
{
	keep(8, begin_stranger, complain);
}

/* ---- packets ---- */

static void flood(size_t len, bool random)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t junk[256] = { 0 };

	if (fd < 0 || connect(fd, (const struct sockaddr *) &page->server, sizeof(page->server)))
		give_up("no socket of udp");
	for (ready(); ; stroke()) {
		for (int i = 0; random && i < 8; i++)
			junk[i] = dice();
		if (send(fd, junk, random ? 1 + dice() % sizeof(junk) : len, MSG_DONTWAIT) < 0)
			nap_us(10);
	}
}

static void packets(void)
{
	flood(1, false);
}

static void rubbish_packets(void)
{
	flood(0, true);
}

/* ---- the list ---- */

#define STRANGERS_MIB	(64 + 16 + 16)	/* messages, answers; and the connections themselves */
#define KNOWN_MIB	(5 * 64 + 16)	/* FI_TCP_UNEXP_MAX; with --table they are five peers, one after another */
#define ANSWERS_MIB	(65536 / 1024 / 2 + 16)	/* 65,536 answers to reads, half a kilobyte each */
#define FEW_MIB		16
/* The packet buffers of so many connections: 64 of 16 KiB each. */
#define RXM_CONN_MIB(cnt)	((cnt) + 16)

const struct raid raids[] = {
	{ "none", "nobody attacks", RDM, NULL, FEW_MIB, 1024, true },
	{ "silent", "1,500 connections that say nothing", RDM, silent, FEW_MIB, 1024, true },
	{ "half", "1,500 connections with half a request", RDM, half_hello, FEW_MIB, 1024, true },
	{ "churn", "connects, resets at once", RDM, churn, FEW_MIB, 1024, true },
	{ "churn-bytes", "connects, a byte, resets", RDM, churn_bytes, FEW_MIB, 1024, true },
	{ "slow", "64 connections, a byte of the request at a time", RDM, slow_bytes, FEW_MIB, 1024, false },
	{ "rubbish-request", "random bytes in place of a request", RDM, rubbish_hello, FEW_MIB, 1024, true },
	{ "requests", "whole requests, each of another peer", RDM, hellos, FEW_MIB, 1024, false },
	{ "claims", "requests in the name of the honest client", RDM, claims, FEW_MIB, 1024, false },
	{ "reopen", "a peer that leaves and comes back at once", RDM, reopen, FEW_MIB, 1024, false },
	{ "descriptors", "400 strangers with an announcement each, `ulimit -n 256`", RDM, descriptors,
	  FEW_MIB, 256, false },
	{ "long-header", "32 headers of messages of 64 MiB", RDM, long_header, STRANGERS_MIB, 1024, false },
	{ "reads", "12 strangers that read 64 KiB each time, and take nothing", RDM, unread_reads, STRANGERS_MIB,
	  1024, false },
	{ "reads-known", "the same of a known peer", RDM, unread_reads_known, ANSWERS_MIB, 1024, false },
	{ "refusals", "12 strangers whose reads are refused, and who take nothing", RDM, unread_refusals, STRANGERS_MIB,
	  1024, false },
	{ "parks", "12 strangers that ask to park, and take nothing", RDM, unread_parks, STRANGERS_MIB, 1024, false },
	{ "unexpected", "16 strangers, messages of 1 KiB without a receive", RDM, unexpected,
	  STRANGERS_MIB, 1024, false },
	{ "unexpected-empty", "16 strangers, empty messages without a receive", RDM, unexpected_empty, STRANGERS_MIB,
	  1024, false },
	{ "unexpected-many", "300 strangers, empty messages without a receive", RDM, unexpected_many, STRANGERS_MIB,
	  1024, false },
	{ "unexpected-known", "known peers, one at a time, messages of 1 KiB without a receive", RDM, unexpected_known,
	  KNOWN_MIB, 1024, false },
	{ "cancels", "8,000 announcements, then cancellations of none", RDM, cancels, STRANGERS_MIB, 1024, false },
	{ "rubbish-frames", "random frames after a good request", RDM, rubbish_frames, FEW_MIB, 1024, false },
	{ "log", "refused reads, each with another address and key", RDM, log_lines, STRANGERS_MIB, 1024, false },
	{ "children", "the server forks children that close its endpoint", RDM, NULL, FEW_MIB, 1024, false },
	{ "msg-silent", "1,500 connections that say nothing", MSG, silent, FEW_MIB, 1024, false },
	{ "msg-churn", "connects, resets at once", MSG, churn, FEW_MIB, 1024, false },
	{ "msg-churn-bytes", "connects, a byte, resets", MSG, churn_bytes, FEW_MIB, 1024, false },
	{ "msg-requests", "64 requests at a time, which the program rejects", MSG, connreqs, FEW_MIB, 1024, false },
	{ "msg-rubbish", "random bytes in place of a request", MSG, rubbish_hello, FEW_MIB, 1024, false },
	{ "rxm-silent", "1,500 connections that say nothing", RXM, silent, FEW_MIB, 1024, false },
	{ "rxm-half", "1,500 connections with half a request", RXM, half_hello, FEW_MIB, 1024, false },
	{ "rxm-churn", "connects, resets at once", RXM, churn, FEW_MIB, 1024, false },
	{ "rxm-churn-bytes", "connects, a byte, resets", RXM, churn_bytes, FEW_MIB, 1024, false },
	{ "rxm-slow", "64 connections, a byte of the request at a time", RXM, slow_bytes, FEW_MIB, 1024, false },
	{ "rxm-rubbish-request", "random bytes in place of a request", RXM, rubbish_hello, FEW_MIB, 1024, false },
	{ "rxm-requests", "whole requests, each of another peer", RXM, rxm_requests, FEW_MIB, 1024, false },
	{ "rxm-claims", "requests in the name of the honest client", RXM, rxm_claims, FEW_MIB, 1024, false },
	{ "rxm-reopen", "a peer that leaves and comes back at once", RXM, rxm_reopen, FEW_MIB, 1024, false },
	{ "rxm-middle", "leaves in the middle of a message that a receive has taken", RXM, rxm_middle, FEW_MIB, 1024,
	  false },
	{ "rxm-descriptors", "400 strangers with an announcement each, `ulimit -n 256`", RXM, rxm_descriptors,
	  RXM_CONN_MIB(256), 256, false },
	{ "rxm-unexpected", "16 strangers, messages of 1 KiB without a receive", RXM, rxm_unexpected,
	  STRANGERS_MIB + RXM_CONN_MIB(16), 1024, false },
	{ "rxm-unexpected-empty", "16 strangers, empty messages without a receive", RXM, rxm_unexpected_empty,
	  STRANGERS_MIB + RXM_CONN_MIB(16), 1024, false },
	{ "rxm-unexpected-many", "300 strangers, empty messages without a receive", RXM, rxm_unexpected_many,
	  STRANGERS_MIB + RXM_CONN_MIB(300), 1024, false },
	{ "rxm-segments", "16 strangers, messages of 16 MiB of which one segment is missing", RXM, rxm_segments,
	  STRANGERS_MIB + RXM_CONN_MIB(16), 1024, false },
	{ "rxm-announced", "16 strangers, announcements of messages without a receive", RXM, rxm_announced,
	  STRANGERS_MIB + RXM_CONN_MIB(16), 1024, false },
	{ "rxm-reads", "12 strangers that read 64 KiB each time, and take nothing", RXM, rxm_reads,
	  STRANGERS_MIB + RXM_CONN_MIB(12), 1024, false },
	{ "rxm-refusals", "12 strangers whose reads are refused, and who take nothing", RXM, rxm_refusals,
	  STRANGERS_MIB + RXM_CONN_MIB(12), 1024, false },
	{ "rxm-atomics", "12 strangers, atomics whose results they do not take", RXM, rxm_atomics,
	  STRANGERS_MIB + RXM_CONN_MIB(12), 1024, false },
	{ "rxm-credit", "12 strangers that know credit, and send more", RXM, rxm_credit, STRANGERS_MIB, 1024, false },
	{ "rxm-rubbish-packets", "random packets after a good request", RXM, rxm_rubbish, FEW_MIB, 1024, false },
	{ "rxm-log", "refused atomics and reads, each with another address and key", RXM, rxm_log, STRANGERS_MIB, 1024,
	  false },
	{ "udp-packets", "packets of one byte", DGRAM, packets, FEW_MIB, 1024, true },
	{ "udp-rubbish", "packets of random bytes, of up to 2 KiB", DGRAM, rubbish_packets, FEW_MIB, 1024, true },
};
const unsigned raid_cnt = sizeof(raids) / sizeof(*raids);
