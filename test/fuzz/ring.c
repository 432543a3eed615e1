/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile process of the same user at the other end of rings in shared memory. It connects as it should, and then
 * does with the memory that it shares what the input says. Whatever it is: only its own connection ends, each operation
 * with it has ended once after it has gone, and another peer of this host is served.
 *
 *   byte 0   1 the hostile peer speaks our extension; 2 a second thread changes bytes that were written
 *   byte 1   receives that are posted: 1 of a message, 2 of a tagged one, 4 of a long one
 *   byte 2   operations with the hostile peer: 1 send, 2 long send, 4 delivery complete, 8 read, 16 write, 32 fetch
 *   then     steps, as enum step says
 */
#include "fuzz/fuzz.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "base/clock.h"
#include "base/sock.h"
#include "fuzz/hello.h"
#include "tcp/local/local.h"
#include "tcp/stream/ep.h"

#define LONG_LEN	20000
#define STRAIGHT_LEN	40000
#define SHORT_LEN	64
#define PATIENCE_MS	20000
#define HOSTILE_PORT	6000
#define KEY		7

#define OK(call) FUZZ_MUST((call) == 0)

enum step {
	STEP_RECORD,			/* len, bytes: a record, written as it should be */
	STEP_WORD,			/* u32: a word where the next record will be */
	STEP_WRAP,			/* the same with TCP_RING_WRAP */
	STEP_BYTES,			/* u16 offset, len, bytes: anywhere in the ring */
	STEP_TAKEN,			/* u32: what was read of the other ring */
	STEP_WANTS_ROOM,		/* u32 */
	STEP_BITS,			/* n, u64: a word of the page of the endpoint */
	STEP_WORDS,			/* u64 */
	STEP_ASLEEP,			/* u32 */
	STEP_READ,			/* read the other ring, as it should be */
	STEP_PASSES,			/* n */
	STEP_WAKE,			/* a byte over the socket */
	STEP_FILL,			/* len: the whole ring with such records */
	STEP_TELL,			/* that there is a record */
	STEP_JUMP,			/* u16: the next record is written there */
	STEP_HANG_UP,
	STEP_HANDLED,			/* u32: what was handled of the other ring */
	STEP_BUSY,			/* u32: the window that is accessed */
	STEP_WINDOW,			/* access, u64 length, u64 address: a window for KEY that looks as it should */
	STEP_PERMIT,			/* u64 generation, u64 address of the table; 0: one with the window */
	STEP_ACCESS,			/* 1 write, 2 read: that the victim makes, long enough to need no frame */
	STEP_OPEN,			/* u16: an open record of so many bytes, where the next record will be */
	STEPS,
};

enum { SEND, SEND_LONG, SEND_ACKED, READ, WRITE, FETCH, READ_STRAIGHT, WRITE_STRAIGHT, RECV, RECV_TAGGED, RECV_LONG,
       GOOD, OPS };

struct end {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	union fab_sockaddr addr;
	fi_addr_t other, hostile;
};

static struct fi_info *info;
static struct fid_domain *domain;
static struct fid_mr *mr;
static uint8_t memory[LONG_LEN], data[STRAIGHT_LEN];

static struct life {
	struct end victim, good;
	struct tcp_link link;		/* of the hostile peer */
	struct tcp_pair *pair;
	uint8_t posted[OPS], done[OPS];
	uint8_t buf[3][LONG_LEN];
	pthread_t changer;
	_Atomic bool changing;
} life;

/* The windows of the hostile peer. */
static struct tcp_window_table windows;

/* The hostile peer is this process, so nothing is written where it says. */
static ssize_t no_writev(pid_t pid, const struct iovec *from, unsigned long from_cnt, const struct iovec *to,
			 unsigned long to_cnt, unsigned long flags)
{
	(void) pid, (void) from, (void) from_cnt, (void) flags;
	FUZZ_MUST(to_cnt == 1);
	return to->iov_len;
}

/* ---- the two good ends ---- */

static void world_open(void)
{
	static struct fab_sock_ops ops;
	struct fi_info *hints = fi_allocinfo();
	struct fid_fabric *fabric;

	ops = *fab_sock;
	ops.process_vm_writev = no_writev;
	fab_sock = &ops;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;
	hints->fabric_attr->prov_name = strdup("tcp");
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_mr_reg(domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
}

static void end_open(struct end *end)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	size_t len = sizeof(end->addr);

	OK(fi_cq_open(domain, &cq_attr, &end->cq, NULL));
	OK(fi_av_open(domain, &av_attr, &end->av, NULL));
	OK(fi_endpoint(domain, info, &end->ep, NULL));
	OK(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(end->ep, &end->av->fid, 0));
	OK(fi_enable(end->ep));
	OK(fi_getname(&end->ep->fid, &end->addr, &len));
}

static void end_close(struct end *end)
{
	OK(fi_close(&end->ep->fid));
	OK(fi_close(&end->av->fid));
	OK(fi_close(&end->cq->fid));
}

static void count(uint8_t *done)
{
	if (!done)
		return;			/* a refusal of what the hostile peer was sent */
	FUZZ_MUST(done >= life.done && done < life.done + OPS);
	FUZZ_MUST(++*done <= life.posted[done - life.done]);
}

static void pass(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(life.victim.cq, &entry, 1)) != -FI_EAGAIN) {
		if (ret != 1)
			FUZZ_MUST(fi_cq_readerr(life.victim.cq, &err, 0) == 1);
		count(ret == 1 ? entry.op_context : err.op_context);
	}
	fi_cq_read(life.good.cq, NULL, 0);
}

static void posted(int op, ssize_t ret)
{
	life.posted[op] += !ret;
}

static void post(uint8_t receives, uint8_t sends)
{
	struct fid_ep *ep = life.victim.ep;
	fi_addr_t to = life.victim.hostile;
	struct iovec iov = { data, SHORT_LEN };
	struct fi_msg acked = { .msg_iov = &iov, .iov_count = 1, .addr = to, .context = &life.done[SEND_ACKED] };
	uint8_t *done = life.done;

	if (receives & 1)
		posted(RECV, fi_recv(ep, life.buf[0], SHORT_LEN, NULL, to, &done[RECV]));
	if (receives & 2)
		posted(RECV_TAGGED, fi_trecv(ep, life.buf[1], SHORT_LEN, NULL, to, 0, ~3ULL, &done[RECV_TAGGED]));
	if (receives & 4)
		posted(RECV_LONG, fi_recv(ep, life.buf[2], LONG_LEN, NULL, to, &done[RECV_LONG]));
	if (sends & 1)
		posted(SEND, fi_send(ep, data, SHORT_LEN, NULL, to, &done[SEND]));
	if (sends & 2)
		posted(SEND_LONG, fi_tsend(ep, data, LONG_LEN, NULL, to, 3, &done[SEND_LONG]));
	if (sends & 4)
		posted(SEND_ACKED, fi_sendmsg(ep, &acked, FI_DELIVERY_COMPLETE | FI_COMPLETION));
	if (sends & 8)
		posted(READ, fi_read(ep, data, SHORT_LEN, NULL, to, 0, 1, &done[READ]));
	if (sends & 16)
		posted(WRITE, fi_write(ep, data, LONG_LEN, NULL, to, 0, 1, &done[WRITE]));
	if (sends & 32)
		posted(FETCH, fi_fetch_atomic(ep, data, 1, NULL, data + 8, NULL, to, 0, 1, FI_UINT64, FI_SUM,
					      &done[FETCH]));
}

/* A message from the good peer to the victim. */
static void good_is_served(void)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	uint64_t text = fab_now_ns(), got = 0;
	ssize_t ret;

	life.posted[GOOD] = 1;
	life.done[GOOD] = 0;
	OK(fi_trecv(life.victim.ep, &got, sizeof(got), NULL, life.victim.other, 9, 0, &life.done[GOOD]));
	while ((ret = fi_tinject(life.good.ep, &text, sizeof(text), life.good.other, 9)) == -FI_EAGAIN) {
		pass();
		FUZZ_MUST(fab_now_ms() < end_ms);
	}
	OK(ret);
	while (!life.done[GOOD]) {
		pass();
		FUZZ_MUST(fab_now_ms() < end_ms);
	}
	FUZZ_MUST(got == text);
}

/* ---- the hostile peer ---- */

static struct fab_engine *engine_of(const struct end *end)
{
	return fab_container(end->ep, struct tcp_ep, base.ep_fid)->base.engine;
}

/* Connect to the victim; the pair is for the page of the good end, which does not look at it. */
static void hostile_connect(bool ext)
{
	union fab_sockaddr from = { .sin = { .sin_family = AF_INET, .sin_port = htons(HOSTILE_PORT),
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct hello hello = hello_make(HOSTILE_PORT, ext, 4096, 65536), answer;
	int ret;

	FUZZ_MUST(fi_av_insert(life.victim.av, &from, 1, &life.victim.hostile, 0, NULL) == 1);
	OK(tcp_local_dial(&from, &life.victim.addr, -1, engine_of(&life.good), &hello, sizeof(hello), &life.link));
	life.pair = life.link.local->pair;
	FUZZ_MUST(life.pair);
	while ((ret = tcp_local_greet(&life.link, NULL)) == -EAGAIN) {
		pass();
		FUZZ_MUST(fab_now_ms() < end_ms);
	}
	OK(ret);
	while (recv(life.link.fd, &answer, sizeof(answer), MSG_DONTWAIT) != sizeof(answer)) {
		pass();
		FUZZ_MUST(fab_now_ms() < end_ms);
	}
	while ((ret = tcp_pair_take_answer(life.pair, life.link.fd)) == -EAGAIN) {
		pass();
		FUZZ_MUST(fab_now_ms() < end_ms);
	}
	OK(ret);
	FUZZ_MUST(life.pair->peer);
}

/* Changes bytes of the beginning of the ring, and the words of records there, until it is told to stop. */
static void *changer_main(void *arg)
{
	uint8_t *room = life.pair->out.room;
	uint32_t seed = 1;

	(void) arg;
	while (atomic_load(&life.changing)) {
		seed = seed * 1664525u + 1013904223u;
		__atomic_fetch_xor(&room[(seed >> 8) % 256], seed >> 24, __ATOMIC_RELAXED);
	}
	return NULL;
}

static uint64_t take_number(const uint8_t **bytes, size_t *len, int size)
{
	uint64_t number = 0;

	for (int i = 0; i < size; i++)
		number |= (uint64_t) fuzz_byte(bytes, len) << 8 * i;
	return number;
}

static size_t take_bytes(const uint8_t **bytes, size_t *len, uint8_t *to)
{
	size_t n = fuzz_byte(bytes, len);

	for (size_t i = 0; i < n; i++)
		to[i] = fuzz_byte(bytes, len);
	return n;
}

static void hostile_write(enum step step, const uint8_t **bytes, size_t *len)
{
	struct tcp_ring_writer *out = &life.pair->out;
	uint8_t buf[256];
	struct iovec iov = { buf, 0 };
	uint32_t at, record;

	switch (step) {
	case STEP_RECORD:
		iov.iov_len = take_bytes(bytes, len, buf);
		tcp_ring_put(out, &iov, 1, iov.iov_len);
		break;
	case STEP_BYTES:
		at = take_number(bytes, len, 2) % (TCP_RING_ROOM - sizeof(buf));
		record = take_bytes(bytes, len, buf);
		memcpy(out->room + at, buf, record);
		break;
	case STEP_FILL:
		record = fuzz_byte(bytes, len);
		for (at = 0; at + tcp_ring_size(record) <= TCP_RING_ROOM; at += tcp_ring_size(record))
			atomic_store(tcp_ring_word(out->room, at), record);
		if (at < TCP_RING_ROOM)
			atomic_store(tcp_ring_word(out->room, at), TCP_RING_WRAP);
		break;
	case STEP_JUMP:
		out->pos = take_number(bytes, len, 2) % TCP_RING_ROOM & ~(TCP_RING_WORD - 1);
		break;
	default:
		record = step == STEP_WRAP ? TCP_RING_WRAP :
			 step == STEP_OPEN ? TCP_RING_OPEN | take_number(bytes, len, 2) : take_number(bytes, len, 4);
		atomic_store(tcp_ring_word(out->room, out->pos), record);
	}
}

static void hostile_read(void)
{
	const uint8_t *buf;
	uint32_t len;

	while ((buf = tcp_ring_peek(&life.pair->in, &len)))
		tcp_ring_take(&life.pair->in, len);
	tcp_ring_tell(&life.pair->in);
}

static void hostile_permit(enum step step, const uint8_t **bytes, size_t *len)
{
	struct tcp_permit *permit = &life.pair->in.words->permit;
	struct tcp_window *window = &windows.window[tcp_window_place(KEY)];
	uint64_t gen;

	switch (step) {
	case STEP_HANDLED:
		atomic_store(&life.pair->in.words->handled, take_number(bytes, len, 4));
		break;
	case STEP_BUSY:
		atomic_store(&life.pair->out.words->busy, take_number(bytes, len, 4));
		break;
	case STEP_WINDOW:
		*window = (struct tcp_window) { .number = 1, .key = KEY };
		window->access = (uint64_t) fuzz_byte(bytes, len) << 8;
		window->len = take_number(bytes, len, 8);
		window->at = take_number(bytes, len, 8);
		window->check = tcp_window_check(window);
		break;
	default:
		gen = take_number(bytes, len, 8);
		permit->table = take_number(bytes, len, 8);
		permit->table = permit->table ? permit->table : (uintptr_t) &windows;
		atomic_store(&permit->gen, gen);
	}
}

static void victim_access(uint8_t how)
{
	struct fid_ep *ep = life.victim.ep;
	uint8_t *done = life.done;

	if (how & 1)
		posted(WRITE_STRAIGHT, fi_write(ep, data, STRAIGHT_LEN, NULL, life.victim.hostile, 0, KEY,
						&done[WRITE_STRAIGHT]));
	if (how & 2)
		posted(READ_STRAIGHT, fi_read(ep, data, STRAIGHT_LEN, NULL, life.victim.hostile, 0, KEY,
					      &done[READ_STRAIGHT]));
}

static void hostile_step(const uint8_t **bytes, size_t *len)
{
	struct tcp_ready_mem *page = life.pair->peer;
	enum step step = fuzz_byte(bytes, len) % STEPS;
	uint8_t n;

	switch (step) {
	case STEP_TAKEN:
		atomic_store(&life.pair->in.words->taken, take_number(bytes, len, 4));
		break;
	case STEP_WANTS_ROOM:
		atomic_store(&life.pair->out.words->wants_room, take_number(bytes, len, 4));
		break;
	case STEP_BITS:
		n = fuzz_byte(bytes, len) % TCP_READY_WORDS;
		atomic_store(&page->word[n], take_number(bytes, len, 8));
		break;
	case STEP_WORDS:
		atomic_store(&page->words, take_number(bytes, len, 8));
		break;
	case STEP_ASLEEP:
		atomic_store(&page->asleep, take_number(bytes, len, 4));
		break;
	case STEP_READ:
		hostile_read();
		break;
	case STEP_PASSES:
		for (n = fuzz_byte(bytes, len); n; n--)
			pass();
		break;
	case STEP_WAKE:
		(void) !send(life.link.fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case STEP_TELL:
		tcp_ready_tell(page, life.pair->peer_bit);
		break;
	case STEP_HANG_UP:
		shutdown(life.link.fd, SHUT_RDWR);
		break;
	case STEP_HANDLED:
	case STEP_BUSY:
	case STEP_WINDOW:
	case STEP_PERMIT:
		hostile_permit(step, bytes, len);
		break;
	case STEP_ACCESS:
		victim_access(fuzz_byte(bytes, len));
		break;
	default:
		hostile_write(step, bytes, len);
	}
}

/* It is gone. What it has done to the bits of the page delays others until the next look; that look comes now. */
static void hostile_end(void)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	bool done = false;

	for (int n = 0; n < TCP_READY_WORDS; n++)
		atomic_store(&life.pair->peer->word[n], UINT64_MAX);
	atomic_store(&life.pair->peer->words, UINT64_MAX);
	atomic_store(&life.pair->out.words->busy, 0);
	tcp_link_close(&life.link);
	while (!done) {
		FUZZ_MUST(fab_now_ms() < end_ms);
		pass();
		done = true;
		for (int op = 0; op < RECV; op++)
			done &= life.done[op] == life.posted[op];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t how = fuzz_byte(&bytes, &len), receives, sends;

	if (!info)
		world_open();
	memset(&life, 0, sizeof(life));
	end_open(&life.victim);
	end_open(&life.good);
	FUZZ_MUST(fi_av_insert(life.victim.av, &life.good.addr, 1, &life.victim.other, 0, NULL) == 1);
	FUZZ_MUST(fi_av_insert(life.good.av, &life.victim.addr, 1, &life.good.other, 0, NULL) == 1);
	good_is_served();
	hostile_connect(how & 1);
	receives = fuzz_byte(&bytes, &len);
	sends = fuzz_byte(&bytes, &len);
	post(receives, sends);
	if (how & 2) {
		atomic_store(&life.changing, true);
		OK(pthread_create(&life.changer, NULL, changer_main, NULL));
	}
	while (len) {
		hostile_step(&bytes, &len);
		pass();
	}
	if (how & 2) {
		atomic_store(&life.changing, false);
		pthread_join(life.changer, NULL);
	}
	hostile_end();
	good_is_served();
	end_close(&life.victim);
	end_close(&life.good);
	return 0;
}
