/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See frames.h.
 */
#include "sim/frames.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"

/* The bytes that one end sends, or reads. */
struct reader {
	bool frames;			/* the handshake is over */
	uint32_t cnt;			/* told */
	size_t have;			/* bytes of head */
	uint64_t left;			/* bytes behind it */
	uint8_t head[FRAME_HEAD];
};

static struct reader readers[FRAME_CONNS][2][2];	/* by connection, its end, and whether it reads */
static const struct frames_watch *watch;

static struct reader *reader_of(const struct net_end *end, bool got)
{
	if (end->conn >= FRAME_CONNS) {
		fprintf(stderr, "sim: more than %d connections\n", FRAME_CONNS);
		abort();
	}
	return &readers[end->conn][end->asked][got];
}

static struct tcp_cm_hdr cm_of(const struct reader *reader)
{
	struct tcp_cm_hdr hdr;

	memcpy(&hdr, reader->head, sizeof(hdr));
	return hdr;
}

/* How long the head is, as far as that is known. */
static size_t head_len(const struct reader *reader)
{
	const struct tcp_hdr *hdr = (const void *) reader->head;

	if (reader->frames)
		return reader->have < sizeof(*hdr) ? sizeof(*hdr) : hdr->hdr_size;
	if (reader->have < sizeof(struct tcp_cm_hdr))
		return sizeof(struct tcp_cm_hdr);
	return sizeof(struct tcp_cm_hdr) + be16toh(cm_of(reader).seg_size);
}

/* True if frames follow this message of the handshake in its direction. */
static bool is_last(const struct tcp_cm_hdr *hdr)
{
	switch (hdr->type) {
	case TCP_CM_CONNREQ:
		return !(be32toh(hdr->ext) & TCP_EXT_AUTH);
	case TCP_CM_PROOF:
	case TCP_CM_CONNRESP:
		return true;
	default:
		return false;
	}
}

static struct frame frame_of(const struct net_end *end, bool got, const struct reader *reader)
{
	struct frame frame = { .end = *end, .got = got, .cm = !reader->frames, .nth = reader->cnt,
			       .head_len = reader->have };

	memcpy(frame.head, reader->head, reader->have);
	frame.type = reader->head[1];		/* of both */
	if (frame.cm)
		frame.ext = (uint16_t) be32toh(cm_of(reader).ext);
	return frame;
}

/* The reader has all of a message or frame. */
static void tell(const struct net_end *end, bool got, struct reader *reader)
{
	struct frame frame = frame_of(end, got, reader);

	if (frame.cm) {
		struct tcp_cm_hdr hdr = cm_of(reader);

		reader->frames = is_last(&hdr);
	}
	reader->cnt++;
	reader->have = 0;
	watch->frame(&frame);
}

/* Take bytes up to the end of a message or frame. Returns how many. *begun: they end its head; *whole: it has ended. */
static size_t take(struct reader *reader, const uint8_t *buf, size_t len, bool *begun, bool *whole)
{
	const struct tcp_hdr *hdr = (const void *) reader->head;
	size_t used = 0, need;

	*begun = false;
	while (!reader->left && used < len && reader->have < (need = head_len(reader))) {
		size_t n = fab_min(len - used, need - reader->have);

		memcpy(reader->head + reader->have, buf + used, n);
		reader->have += n;
		used += n;
		*begun = reader->have == head_len(reader);
		if (*begun && reader->frames)
			reader->left = hdr->size - hdr->hdr_size;
	}
	if (reader->left) {
		uint64_t n = fab_min((uint64_t) (len - used), reader->left);

		reader->left -= n;
		used += n;
	}
	*whole = !reader->left && reader->have == head_len(reader);
	return used;
}

static void pass(const struct net_end *end, bool got, const uint8_t *buf, size_t len)
{
	struct reader *reader = reader_of(end, got);
	bool begun, whole;

	while (len) {
		size_t used = take(reader, buf, len, &begun, &whole);

		buf += used;
		len -= used;
		if (begun && !got && watch->begun) {
			struct frame frame = frame_of(end, got, reader);

			watch->begun(&frame);
		}
		if (whole)
			tell(end, got, reader);
	}
}

static void sent(const struct net_end *end, const uint8_t *buf, size_t len)
{
	pass(end, false, buf, len);
}

static void got(const struct net_end *end, const uint8_t *buf, size_t len)
{
	pass(end, true, buf, len);
	if (reader_of(end, true)->frames && reader_of(end, true)->have && watch->got_part)
		watch->got_part(end);
}

static size_t may_get(const struct net_end *end, const uint8_t *buf, size_t len)
{
	struct reader copy = *reader_of(end, true);
	bool begun, whole;

	return take(&copy, buf, len, &begun, &whole);
}

static void closed(const struct net_end *end)
{
	if (watch->closed)
		watch->closed(end);
}

static void got_end(const struct net_end *end)
{
	if (watch->got_end)
		watch->got_end(end);
}

void frames_watch(const struct frames_watch *who)
{
	static const struct net_watch net = {
		.sent = sent, .got = got, .may_get = may_get, .closed = closed, .got_end = got_end,
	};

	memset(readers, 0, sizeof(readers));
	watch = who;
	net_watch(&net);
}
