/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What attackers do to an endpoint of tcp;ofi_rxm. A stranger connects as a MSG endpoint of tcp, and sends packets of
 * rxm as its messages. One of upstream has no credit, so it may send as much as is read.
 */
#include "raid.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include "rxm/raw.h"

#define SEGS		1024		/* of a message of 16 MiB */
#define MSG_LEN		(SEGS * RAW_BUFFER_SIZE)

/* ---- requests ---- */

/* Connect as a peer that says it listens at this port: the socket, or -1. */
static int meet(uint16_t port, bool ext, uint64_t incarnation)
{
	struct raw_request req = raw_request_of(port, ext, incarnation);
	struct raw_answer answer;

	return shake_hands(&req, sizeof(req), &answer, sizeof(answer));
}

static int begin_upstream(void)
{
	return meet(strange_port(), false, dice());
}

static int begin_ours(void)
{
	return meet(strange_port(), true, dice());
}

void rxm_requests(void)
{
	for (ready(); ; ) {
		int fd = begin_ours();

		hang_up(&fd);
	}
}

void rxm_claims(void)
{
	for (ready(); ; ) {
		int fd = meet(ntohs(page->honest.sin_port), dice() & 1, dice());

		if (fd >= 0)
			SET(stolen, page->stolen + 1);
		hang_up(&fd);
	}
}

/* ---- packets ---- */

/* Send all of it. False: the connection has ended, or is not read for a second. */
static bool send_all(int fd, const void *buf, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t ret = send(fd, (const char *) buf + at, len - at, MSG_NOSIGNAL);

		if (ret > 0)
			at += ret;
		else if (errno != EAGAIN || !await(fd, POLLOUT, 1000))
			return false;
	}
	stroke();
	return true;
}

static struct {
	struct raw_frame frame;
	struct rxm_rndv rndv;
} announcement;

static void make_announcement(uint64_t tag)
{
	announcement.frame = raw_frame_of(RXM_RNDV_REQ, RXM_OP_TAGGED, tag, sizeof(announcement.rndv));
	announcement.frame.pkt.op.size = 1 << 20;
	announcement.frame.pkt.ctrl.msg_id = dice();
	announcement.rndv = (struct rxm_rndv) { .iov[0] = { .len = 1 << 20, .key = dice() }, .count = 1 };
}

/* The first segment of a message of MSG_LEN. */
static struct {
	struct raw_frame frame;
	char payload[RAW_BUFFER_SIZE];
} segment;

static void make_segment(uint64_t tag)
{
	segment.frame = raw_frame_of(RXM_SEG, RXM_OP_TAGGED, tag, sizeof(segment.payload));
	segment.frame.pkt.op.size = MSG_LEN;
	segment.frame.pkt.ctrl.seg_size = sizeof(segment.payload);
	segment.frame.pkt.ctrl.msg_id = dice();
}

/* A peer that leaves and comes back as the same, after a message each time, or half of one. */
void rxm_reopen(void)
{
	uint16_t port = strange_port();
	uint64_t incarnation = dice();

	for (ready(); ; ) {
		struct raw_frame msg = raw_frame_of(RXM_EAGER, RXM_OP_TAGGED, HONEST_TAG, 0);
		int fd = meet(port, dice() & 1, incarnation);

		if (fd >= 0) {
			send(fd, &msg, dice() & 1 ? sizeof(msg) : sizeof(msg) / 2, MSG_NOSIGNAL);
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

/* A receive of the server takes the message, which never comes. */
void rxm_middle(void)
{
	for (ready(); ; ) {
		int fd = begin_ours();
		bool segments = dice() & 1;

		make_announcement(HONEST_TAG);
		make_segment(HONEST_TAG);
		/* the server reads what was announced, and gets no answer */
		if (fd >= 0 && segments)
			send_all(fd, &segment, sizeof(segment));
		else if (fd >= 0 && send_all(fd, &announcement, sizeof(announcement)))
			await(fd, POLLIN, 100);
		hang_up(&fd);
	}
}

static int begin_announced(void)
{
	int fd = begin_ours();

	make_announcement(STRANGE_TAG);
	if (fd >= 0 && !send_all(fd, &announcement, sizeof(announcement)))
		hang_up(&fd);
	return fd;
}

void rxm_descriptors(void)
{
	keep(400, begin_announced, NULL);
}

/* ---- what is repeated ---- */

static char packets[256 * 1024];
static size_t packets_len;

static void fill(const void *packet, size_t len)
{
	for (packets_len = 0; packets_len + len <= sizeof(packets); packets_len += len)
		memcpy(packets + packets_len, packet, len);
}

static bool pour_packets(int fd, size_t *at)
{
	return pour(fd, packets, packets_len, at) && !(at[0] == 0 && has_ended(fd));
}

static void fill_messages(size_t len)
{
	struct {
		struct raw_frame frame;
		char payload[1024];
	} msg = { .frame = raw_frame_of(RXM_EAGER, RXM_OP_TAGGED, STRANGE_TAG, len) };

	fill(&msg, sizeof(msg.frame) + len);
}

void rxm_unexpected(void)
{
	fill_messages(1024);
	keep(16, begin_upstream, pour_packets);
}

void rxm_unexpected_empty(void)
{
	fill_messages(0);
	keep(16, begin_upstream, pour_packets);
}

void rxm_unexpected_many(void)
{
	fill_messages(0);
	keep(300, begin_upstream, pour_packets);
}

void rxm_credit(void)
{
	fill_messages(0);
	keep(12, begin_ours, pour_packets);
}

void rxm_announced(void)
{
	make_announcement(STRANGE_TAG);
	fill(&announcement, sizeof(announcement));
	keep(16, begin_upstream, pour_packets);
}

/* Eight messages, all but the last segment of each. */
static int begin_segments(void)
{
	int fd = begin_ours();

	for (int i = 0; fd >= 0 && i < 8; i++) {
		make_segment(STRANGE_TAG);
		for (uint32_t no = 0; fd >= 0 && no < SEGS - 1; no++) {
			/* the credit for three quarters of them is waited for */
			segment.frame.pkt.ctrl.seg_no = no;
			if (!send_all(fd, &segment, sizeof(segment)) ||
			    (no % 16 == 15 && !await(fd, POLLIN, 20)))
				hang_up(&fd);
		}
	}
	return fd;
}

static bool read_credit(int fd, size_t *at)
{
	char drain[4096];

	*at = 0;
	while (recv(fd, drain, sizeof(drain), MSG_DONTWAIT) > 0)
		;
	return !has_ended(fd);
}

void rxm_segments(void)
{
	keep(16, begin_segments, read_credit);
}

static void fill_reads(uint64_t key, uint64_t len)
{
	const struct read_frame read = read_of(key, len);

	fill(&read, sizeof(read));
}

void rxm_reads(void)
{
	fill_reads(KEY, REGION_LEN);
	keep(12, begin_upstream, pour_packets);
}

void rxm_refusals(void)
{
	fill_reads(KEY + 1, 8);
	keep(12, begin_upstream, pour_packets);
}

struct atomic {
	struct raw_frame frame;
	struct rxm_ioc ioc[RXM_IOV_MAX];
	uint64_t operand;
};

static struct atomic atomic_of(uint64_t addr, uint64_t key)
{
	struct atomic atomic = {
		.frame = raw_frame_of(RXM_ATOMIC, RXM_OP_AMO_FETCH, 0, sizeof(atomic) - sizeof(struct raw_frame)),
		.ioc = { { .addr = addr, .count = 1, .key = key } }, .operand = 1,
	};

	atomic.frame.pkt.op.amo.datatype = FI_UINT64;
	atomic.frame.pkt.op.amo.op = FI_SUM;
	atomic.frame.pkt.op.amo.ioc_count = 1;
	return atomic;
}

void rxm_atomics(void)
{
	struct atomic atomic = atomic_of(0, KEY);

	fill(&atomic, sizeof(atomic));
	keep(12, begin_upstream, pour_packets);
}

/* Refused accesses, each with another text, and answers to none. */
static bool complain(int fd, size_t *at)
{
	struct atomic atomic[32];
	char drain[16384];

	for (int i = 0; i < 32; i++)
		atomic[i] = atomic_of(dice(), dice());
	*at = 0;
	while (recv(fd, drain, sizeof(drain), MSG_DONTWAIT) > 0)
		;
	stroke();
	/* what does not fit would end in the middle of a frame */
	return send(fd, atomic, sizeof(atomic), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(atomic);
}

void rxm_log(void)
{
	keep(8, begin_upstream, complain);
}

void rxm_rubbish(void)
{
	for (ready(); ; ) {
		struct {
			struct raw_frame frame;
			uint64_t junk[64];
		} msg;
		int fd = meet(strange_port(), dice() & 1, dice());
		bool is_packet = dice() & 1;

		for (size_t i = 0; i < sizeof(msg) / sizeof(uint64_t); i++) {
			uint64_t word = dice() * dice();

			memcpy((char *) &msg + i * sizeof(word), &word, sizeof(word));
		}
		/* some are looked at further */
		msg.frame.hdr = raw_frame_of(RXM_EAGER, RXM_OP_TAGGED, 0, sizeof(msg.junk)).hdr;
		if (!is_packet)
			msg.frame.hdr.op = dice() % 64;
		msg.frame.pkt.ctrl.version = RXM_CTRL_VERSION;
		msg.frame.pkt.ctrl.type = dice() % (RXM_TYPE_MAX + 1);
		if (dice() & 1)
			msg.frame.pkt.op.size = sizeof(msg.junk);
		if (fd >= 0 && send(fd, &msg, sizeof(msg), MSG_NOSIGNAL) > 0)
			await(fd, POLLIN, 10);
		hang_up(&fd);
	}
}
