/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Long messages and remote accesses between processes of one host, which are read from the memory of their sender: that
 * they are, and what happens where that is not possible, at the beginning or in the middle.
 */
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "remote.h"
#include "tcp/local/local.h"
#include "tcp/params/params.h"

#define LEN	(64 * 1024)
#define LONG	(5 << 20)		/* several steps */
#define CAPS	(FI_MSG | FI_TAGGED | FI_RMA)
#define KEY	5

static struct fab_sock_ops ops;
static struct node a, b;
static fi_addr_t a_to_b;
static uint8_t *from, *to;		/* LONG bytes each */

/* What the kernel is made to say. */
static unsigned reads;			/* calls so far */
static size_t read_most;		/* bytes of the largest */
static unsigned fail_at;		/* this call, from 1, and all later ones fail; 0: none */
static int fail_with;			/* with this errno; 0: they succeed, with another cookie */
static uint8_t *secret;			/* LEN bytes that only their own process may read; or NULL */
static unsigned secrets;		/* how often the kernel has refused them */

static ssize_t watched_readv(pid_t pid, const struct iovec *local, unsigned long local_cnt, const struct iovec *remote,
			     unsigned long remote_cnt, unsigned long flags)
{
	ssize_t n;

	/* the kernel on memory that only its own process may read */
	for (unsigned long i = 0; secret && i < remote_cnt; i++) {
		if ((uint8_t *) remote[i].iov_base >= secret && (uint8_t *) remote[i].iov_base < secret + LEN) {
			secrets++;
			errno = EFAULT;
			return -1;
		}
	}
	if (remote[0].iov_len == 1)	/* a look at one's own memory */
		return fab_sock_libc.process_vm_readv(pid, local, local_cnt, remote, remote_cnt, flags);
	reads++;
	if (fail_at && reads >= fail_at && fail_with) {
		errno = fail_with;
		return -1;
	}
	n = fab_sock_libc.process_vm_readv(pid, local, local_cnt, remote, remote_cnt, flags);
	read_most = fab_max(read_most, (size_t) fab_max(n, 0));
	if (fail_at && reads >= fail_at)
		memset(local[local_cnt - 1].iov_base, 0, local[local_cnt - 1].iov_len);
	return n;
}

static void fill(uint8_t seed)
{
	for (size_t i = 0; i < LONG; i++)
		from[i] = i * 31 + (i >> 12) + seed;
	memset(to, 0, LONG);
}

static int setup(void **state)
{
	struct iovec cookie = { &ops, 1 };
	char byte;

	(void) state;
	ops = fab_sock_libc;
	ops.process_vm_readv = watched_readv;
	fab_sock = &ops;
	reads = fail_at = read_most = fail_with = secrets = 0;
	secret = NULL;
	from = malloc(LONG);
	to = malloc(LONG);
	fill(1);
	node_open(&a, CAPS, FI_THREAD_UNSPEC);
	node_open(&b, CAPS, FI_THREAD_UNSPEC);
	a_to_b = node_insert(&a, &b.addr);
	node_insert(&b, &a.addr);
	return process_vm_readv(getpid(), &(struct iovec) { &byte, 1 }, 1, &cookie, 1, 0) == 1 ? 0 : -1;
}

static int teardown(void **state)
{
	(void) state;
	fab_sock = &fab_sock_libc;
	node_close(&a);
	node_close(&b);
	free(from);
	free(to);
	tcp_params.local = true;
	return 0;
}

/* The next completion of node, while the other one makes progress: its context, or NULL for an error, which is in
 * *err. */
static void *next(struct node *node, struct fi_cq_err_entry *err)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct fi_cq_data_entry entry;
	ssize_t ret;

	do {
		drive(node == &a ? &b : &a);
		ret = fi_cq_read(node->cq, &entry, 1);
	} while (ret == -FI_EAGAIN && fab_now_ms() < end_ms);
	if (ret == 1)
		return entry.op_context;
	assert_int_equal(ret, -FI_EAVAIL);
	assert_non_null(err);
	*err = (struct fi_cq_err_entry) { 0 };
	assert_int_equal(fi_cq_readerr(node->cq, err, 0), 1);
	return NULL;
}

static void expect(struct node *node, void *context)
{
	assert_ptr_equal(next(node, NULL), context);
}

static void expect_err(struct node *node, void *context, int err)
{
	struct fi_cq_err_entry entry;

	assert_null(next(node, &entry));
	assert_ptr_equal(entry.op_context, context);
	assert_int_equal(entry.err, err);
}

/* One message of len bytes arrives. late: when it is received, it has come already. */
static void exchange(size_t len, bool late)
{
	static uint8_t seed;

	fill(seed++);
	if (!late)
		assert_int_equal(fi_recv(b.ep, to, len, NULL, FI_ADDR_UNSPEC, to), 0);
	assert_int_equal(fi_send(a.ep, from, len, NULL, a_to_b, from), 0);
	if (late) {
		for (int i = 0; i < 100; i++) {
			drive(&a);
			drive(&b);
		}
		assert_int_equal(fi_recv(b.ep, to, len, NULL, FI_ADDR_UNSPEC, to), 0);
	}
	expect(&b, to);
	expect(&a, from);
	assert_memory_equal(from, to, len);
}

/* Connect, and let a learn that b reads its memory. */
static void get_permission(void)
{
	exchange(LEN, false);
	exchange(1, false);
	reads = 0;
}

/* Send LONG bytes from a to b, which reads one step of them. */
static void begin_long(void)
{
	get_permission();
	fill(77);
	assert_int_equal(fi_recv(b.ep, to, LONG, NULL, FI_ADDR_UNSPEC, to), 0);
	assert_int_equal(fi_send(a.ep, from, LONG, NULL, a_to_b, from), 0);
	while (reads < 1) {
		drive(&a);
		drive(&b);
	}
}

static void long_messages_are_read_from_the_sender(void **state)
{
	const size_t lens[] = { LEN, 200000, 1 << 20, LONG };

	(void) state;
	exchange(1, false);
	assert_int_equal(reads, 0);	/* short ones cost nothing */
	exchange(LEN, false);
	assert_int_equal(reads, 1);	/* the cookie */
	for (size_t i = 0; i < fab_countof(lens); i++) {
		for (int late = 0; late < 2; late++) {
			reads = 0;
			exchange(lens[i], late);
			assert_int_equal(reads, (lens[i] + (1 << 20) - 1) >> 20);
		}
	}
}

static void vectors_and_short_receives(void **state)
{
	struct iovec send[4] = { { from, 10 }, { from + 1000, 50000 }, { from, 0 }, { from + 99, 70001 } };
	struct iovec recv[3] = { { to, 40000 }, { to + 50000, 1 }, { to + 60000, 80010 } };
	struct fi_cq_err_entry err;

	(void) state;
	get_permission();
	assert_int_equal(fi_recvv(b.ep, recv, NULL, 3, FI_ADDR_UNSPEC, to), 0);
	assert_int_equal(fi_sendv(a.ep, send, NULL, 4, a_to_b, from), 0);
	expect(&b, to);
	expect(&a, from);
	assert_memory_equal(to, from, 10);
	assert_memory_equal(to + 10, from + 1000, 39990);
	assert_memory_equal(to + 50000, from + 1000 + 39990, 1);
	assert_memory_equal(to + 60000, from + 1000 + 39991, 10009);
	assert_memory_equal(to + 70009, from + 99, 70001);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_recv(b.ep, to, 20000, NULL, FI_ADDR_UNSPEC, to), 0);
		assert_int_equal(fi_send(a.ep, from, i ? 1 << 20 : LEN, NULL, a_to_b, from), 0);
		assert_null(next(&b, &err));
		assert_int_equal(err.err, FI_ETRUNC);
		assert_int_equal(err.len, 20000);
		expect(&a, from);
		assert_memory_equal(to, from, 20000);
	}
	exchange(LEN, true);
}

static struct fid_mr *target(size_t len)
{
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(b.domain, to, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), 0);
	return mr;
}

static void remote_accesses(void **state)
{
	const size_t lens[] = { LEN, LONG };
	struct fid_mr *mr;

	(void) state;
	mr = target(LONG);
	get_permission();
	for (size_t i = 0; i < fab_countof(lens); i++) {
		fill(i);
		reads = 0;
		assert_int_equal(fi_write(a.ep, from, lens[i], NULL, a_to_b, 0, KEY, from), 0);
		expect(&a, from);
		assert_memory_equal(from, to, lens[i]);
		assert_true(reads);
		/* b has not asked a before the first time */
		for (int k = 0; k < 2; k++) {
			reads = 0;
			memset(from, 0, lens[i]);
			assert_int_equal(fi_read(a.ep, from, lens[i], NULL, a_to_b, 0, KEY, from), 0);
			expect(&a, from);
			assert_memory_equal(from, to, lens[i]);
		}
		assert_true(reads);
	}
	reads = 0;
	assert_int_equal(fi_write(a.ep, from, LEN, NULL, a_to_b, 0, KEY + 1, from), 0);
	expect_err(&a, from, FI_ENOKEY);
	assert_int_equal(fi_close(&mr->fid), 0);
	exchange(LEN, false);
}

static void without_permission_they_go_through_the_stream(void **state)
{
	(void) state;
	fail_at = 1;
	fail_with = EPERM;
	exchange(LEN, false);
	exchange(LEN, true);
	exchange(LONG, false);
	assert_int_equal(reads, 1);
}

static int no_memfd(const char *name, unsigned int flags)
{
	(void) name, (void) flags;
	errno = ENOSYS;
	return -1;
}

static void without_rings(void **state)
{
	(void) state;
	ops.memfd_create = no_memfd;
	get_permission();
	exchange(LEN, false);
	exchange(LONG, true);
	assert_int_equal(reads, 1 + 5);
	begin_long();
	assert_int_equal(fi_send(a.ep, from, LEN, NULL, a_to_b, &ops), 0);
	expect(&b, to);
	expect(&a, from);
	assert_int_equal(fi_recv(b.ep, to, LEN, NULL, FI_ADDR_UNSPEC, to), 0);
	expect(&b, to);
	expect(&a, &ops);
	assert_memory_equal(from, to, LEN);
}

static void without_shared_memory(void **state)
{
	(void) state;
	assert_int_equal(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_SHARED_MEMORY_PERMITTED, &(bool) { false },
				   sizeof(bool)), 0);
	exchange(LEN, false);
	exchange(LONG, false);
	assert_int_equal(reads, 0);
}

static void another_process_with_the_number_is_noticed(void **state)
{
	(void) state;
	fail_at = 1;
	exchange(LEN, false);
	exchange(LEN, false);
	assert_int_equal(reads, 1);
}

/* The connection ends; the next one begins anew. */
static void permission_that_is_lost(void **state)
{
	const int errors[] = { EPERM, ESRCH, 0 };

	(void) state;
	for (size_t i = 0; i < fab_countof(errors); i++) {
		get_permission();
		fail_with = errors[i];
		fail_at = 3;
		assert_int_equal(fi_recv(b.ep, to, LONG, NULL, FI_ADDR_UNSPEC, to), 0);
		assert_int_equal(fi_send(a.ep, from, LONG, NULL, a_to_b, from), 0);
		expect_err(&b, to, errors[i] == EPERM ? FI_EIO : FI_ECONNRESET);
		expect_err(&a, from, FI_ECONNRESET);
		fail_at = 0;
	}
	get_permission();
}

/* Memory that is not there: each end has one error, and the next message arrives. */
static void bad_memory_of_one_operation(void **state)
{
	const size_t lens[] = { LEN, 1 << 20 };
	uint8_t *hole = mmap(NULL, 2 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fid_mr *mr;

	(void) state;
	assert_ptr_not_equal(hole, MAP_FAILED);
	mr = target(LONG);
	get_permission();
	for (size_t i = 0; i < fab_countof(lens); i++) {
		assert_int_equal(fi_recv(b.ep, to, lens[i], NULL, FI_ADDR_UNSPEC, to), 0);
		assert_int_equal(fi_send(a.ep, hole, lens[i], NULL, a_to_b, from), 0);
		expect_err(&b, to, FI_EFAULT);
		expect_err(&a, from, FI_EFAULT);
		assert_int_equal(fi_recv(b.ep, hole, lens[i], NULL, FI_ADDR_UNSPEC, to), 0);
		assert_int_equal(fi_send(a.ep, from, lens[i], NULL, a_to_b, from), 0);
		expect_err(&b, to, FI_EFAULT);
		expect_err(&a, from, FI_EFAULT);
		assert_int_equal(fi_write(a.ep, hole, lens[i], NULL, a_to_b, 0, KEY, from), 0);
		expect_err(&a, from, FI_EFAULT);
		exchange(lens[i], false);
	}
	/* nobody has asked for it yet: the sender has an error, the receiver nothing */
	assert_int_equal(fi_send(a.ep, hole, LEN, NULL, a_to_b, from), 0);
	expect_err(&a, from, FI_EFAULT);
	exchange(LEN, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_read(a.ep, i ? hole : from, i ? LEN : LONG, NULL, a_to_b, 0, KEY, from), 0);
		if (i)
			expect_err(&a, from, FI_EFAULT);
		else
			expect(&a, from);
	}
	assert_int_equal(fi_close(&mr->fid), 0);
	exchange(LEN, false);
	munmap(hole, 2 << 20);
}

/* Memory that its process can read, and no other, goes through the stream: messages, writes, and answers to reads. */
static void memory_that_others_may_not_read(void **state)
{
	struct fid_mr *mr = target(LONG);
	unsigned direct;

	(void) state;
	get_permission();
	exchange(LEN, false);
	/* of 2 MiB that nobody has seen */
	secret = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(secret, MAP_FAILED);
	memset(secret, 's', LEN);
	direct = reads;
	assert_int_equal(fi_recv(b.ep, to, LEN, NULL, FI_ADDR_UNSPEC, to), 0);
	assert_int_equal(fi_send(a.ep, secret, LEN, NULL, a_to_b, from), 0);
	expect(&b, to);
	expect(&a, from);
	assert_memory_equal(to, secret, LEN);
	assert_int_equal(reads, direct);
	assert_true(secrets > 0);
	memset(to, 0, LEN);
	assert_int_equal(fi_write(a.ep, secret, LEN, NULL, a_to_b, 0, KEY, from), 0);
	expect(&a, from);
	assert_memory_equal(to, secret, LEN);
	/* and what others may read does not */
	exchange(LEN, false);
	assert_true(reads > direct + 1);
	assert_int_equal(fi_close(&mr->fid), 0);
	munmap(secret, 4 << 20);
}

/* While a long message is read, a pass takes a part of it, and the next part is left to the next pass. */
static void others_have_their_turn(void **state)
{
	struct fi_cq_data_entry entry;
	struct node c;
	char in = 0;

	(void) state;
	node_open(&c, CAPS, FI_THREAD_UNSPEC);
	assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	assert_int_equal(fi_send(c.ep, "1", 1, NULL, node_insert(&c, &b.addr), NULL), 0);
	while (fi_cq_read(b.cq, &entry, 1) != 1)
		drive(&c);
	begin_long();
	assert_int_equal(reads, 1);
	assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	assert_int_equal(fi_send(c.ep, "2", 1, NULL, 0, NULL), 0);
	expect(&b, &in);
	assert_int_equal(in, '2');
	assert_true(reads < 5);
	/* what follows the long message on its stream follows it */
	assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	assert_int_equal(fi_send(a.ep, "3", 1, NULL, a_to_b, &in), 0);
	expect(&b, to);
	assert_memory_equal(from, to, LONG);
	expect(&b, &in);
	assert_int_equal(in, '3');
	assert_true(read_most <= (1 << 20) + 64);
	node_close(&c);
}

/* The sender of a payload that is read for a long time hears from its reader (peer/alive.c). */
static void the_sender_hears_of_each_step(void **state)
{
	const struct tcp_conn *conn;
	uint32_t heard;

	(void) state;
	begin_long();
	conn = node_conn(&a, a_to_b);
	for (unsigned steps = 2; steps < 5; steps++) {
		drive(&a);
		heard = conn->used.recv_pass;
		while (reads < steps)
			drive(&b);
		drive(&a);
		assert_int_not_equal(conn->used.recv_pass, heard);
	}
	expect(&b, to);
	expect(&a, from);
	assert_memory_equal(from, to, LONG);
}

static void a_region_that_is_closed_meanwhile(void **state)
{
	struct fid_mr *mr = target(LONG);

	(void) state;
	get_permission();
	assert_int_equal(fi_write(a.ep, from, LONG, NULL, a_to_b, 0, KEY, from), 0);
	while (reads < 1) {
		drive(&a);
		drive(&b);
	}
	assert_int_equal(fi_close(&mr->fid), 0);
	expect_err(&a, from, FI_ENOKEY);
	assert_int_equal(reads, 1);
	exchange(LEN, false);
}

/* What the receiver reads after the sender has gone is no message. */
static void the_sender_closes_in_the_middle(void **state)
{
	(void) state;
	begin_long();
	assert_int_equal(fi_close(&a.ep->fid), 0);
	node_open_ep(&a);
	expect_err(&b, to, FI_ECONNRESET);
}

/* The receiver goes on while the sender waits. */
static int poll_beside_b(struct pollfd *fds, nfds_t cnt, int timeout)
{
	(void) timeout;
	drive(&b);
	return fab_sock_libc.poll(fds, cnt, 0);
}

/* A sender that closes waits until all of its memory was read. */
static void a_reader_has_time_to_finish(void **state)
{
	(void) state;
	begin_long();
	ops.poll = poll_beside_b;
	assert_int_equal(fi_close(&a.ep->fid), 0);
	node_open_ep(&a);
	expect(&b, to);
	assert_memory_equal(from, to, LONG);
}

static void the_receiver_closes_in_the_middle(void **state)
{
	(void) state;
	begin_long();
	assert_int_equal(fi_close(&b.ep->fid), 0);
	node_open_ep(&b);
	expect_err(&a, from, FI_ECONNRESET);
}

/* The sender of another process: it gets b's address, sends its own, and then messages until it is killed. */
static void sender(int fd)
{
	struct sockaddr_in addr;
	struct node node;
	fi_addr_t dest;

	fab_sock = &fab_sock_libc;
	node_open(&node, CAPS, FI_THREAD_UNSPEC);
	if (read(fd, &addr, sizeof(addr)) != sizeof(addr) || write(fd, &node.addr, sizeof(addr)) != sizeof(addr))
		_exit(1);
	dest = node_insert(&node, &addr);
	for (int i = 0; i < 3; i++) {
		fi_send(node.ep, from, i < 2 ? LEN : LONG, NULL, dest, NULL);
		if (i < 2)
			completion(&node, NULL);
	}
	for (;;)
		drive(&node);
}

static void the_sender_is_killed_in_the_middle(void **state)
{
	struct sockaddr_in addr;
	struct fi_cq_err_entry err;
	struct node *me = &b;
	int fds[2];
	pid_t pid;

	(void) state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	pid = fork();
	if (!pid)
		sender(fds[1]);
	assert_int_equal(write(fds[0], &b.addr, sizeof(addr)), sizeof(addr));
	assert_int_equal(read(fds[0], &addr, sizeof(addr)), sizeof(addr));
	node_insert(me, &addr);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_recv(me->ep, to, LONG, NULL, FI_ADDR_UNSPEC, to), 0);
		expect(me, to);
	}
	assert_memory_equal(from, to, LEN);
	reads = 0;
	assert_int_equal(fi_recv(me->ep, to, LONG, NULL, FI_ADDR_UNSPEC, to), 0);
	while (reads < 2)
		drive(me);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_null(next(me, &err));
	assert_int_equal(err.err, FI_ECONNRESET);
	close(fds[0]);
	close(fds[1]);
}

/* ---- peers that break the rules ---- */

/* Bytes that the peer of b sends, which is this process. */
struct hostile {
	const char *what;
	bool asks;			/* it asks first, and is answered */
	uint32_t len;
	union {
		struct tcp_hdr hdr;
		uint8_t bytes[512];
	};
};

static struct tcp_cookie cookie;

/* A question. */
static uint32_t make_ask(uint8_t *bytes)
{
	const struct tcp_direct_ask ask = {
		.addr = (uintptr_t) &cookie, .cookie = { cookie.word[0], cookie.word[1] },
		.piece_size = sizeof(struct iovec),
	};
	const struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_DIRECT,
				     .hdr_size = sizeof(hdr) + sizeof(ask), .size = sizeof(hdr) + sizeof(ask) };

	memcpy(bytes, &hdr, sizeof(hdr));
	memcpy(bytes + sizeof(hdr), &ask, sizeof(ask));
	return hdr.hdr_size;
}

/* A direct message of len bytes in cnt pieces of piece_len bytes. */
static uint32_t make_message(uint8_t *bytes, uint8_t op, uint16_t flags, uint32_t cnt, void *piece, uint64_t piece_len,
			     uint64_t len)
{
	struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = op, .flags = flags | TCP_PIECES(cnt),
			       .hdr_size = sizeof(hdr), .size = sizeof(hdr) + len };
	struct iovec iov = { piece, piece_len };

	memcpy(bytes, &hdr, sizeof(hdr));
	for (uint32_t i = 0; i < cnt; i++)
		memcpy(bytes + sizeof(hdr) + i * sizeof(iov), &iov, sizeof(iov));
	return sizeof(hdr) + cnt * sizeof(iov);
}

/* Connect to b over its Unix socket, as a peer that knows direct frames. */
static int connect_to_b(void)
{
	struct cm_bytes request = raw_rdm_cm(TCP_CM_CONNREQ, 1, 1), reply;
	union fab_sockaddr addr = { .sin = b.addr };
	struct tcp_greeting greeting;
	struct tcp_link link;
	int fd;

	request.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_DIRECT);
	request.hdr.incarnation = 1;
	request.hdr.eager_max = request.hdr.credit = htobe32(1 << 20);
	assert_int_equal(tcp_local_dial(NULL, &addr, -1, NULL, &request, raw_len(&request), &link), 0);
	fd = dup(link.fd);
	tcp_link_close(&link);
	raw_recv(fd, &greeting, sizeof(greeting), drive, &b);
	raw_recv(fd, &reply, sizeof(reply.hdr) + sizeof(struct tcp_rdm_cm), drive, &b);
	assert_int_equal(reply.hdr.type, TCP_CM_CONNRESP);
	return fd;
}

static uint32_t answer_of_b(int fd)
{
	struct {
		struct tcp_hdr hdr;
		struct tcp_direct_answer answer;
	} frame;

	raw_recv(fd, &frame, sizeof(frame), drive, &b);
	assert_int_equal(frame.hdr.op, TCP_WIRE_DIRECT_ANSWER);
	return frame.answer.err;
}

static void broken_rules_end_the_connection(void **state)
{
	const uint16_t ack = TCP_FLAG_DELIVERY;
	struct hostile row[] = {
		{ .what = "a direct frame without a question", .asks = false },
		{ .what = "a question again", .asks = true },
		{ .what = "an answer without a question", .asks = false },
		{ .what = "too many pieces", .asks = true },
		{ .what = "less memory than payload", .asks = true },
		{ .what = "no acknowledgement asked for", .asks = true },
		{ .what = "a read request with pieces", .asks = true },
		{ .what = "the cookie has changed", .asks = true },
	};
	struct tcp_hdr ok = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_DIRECT_ANSWER, .hdr_size = 24, .size = 24 };
	uint8_t ask[64];
	int fd;

	(void) state;
	cookie = (struct tcp_cookie) { { 1, 2 } };
	row[0].len = make_message(row[0].bytes, TCP_WIRE_MSG, ack, 1, from, 100, 100);
	row[1].len = make_ask(row[1].bytes);
	memcpy(row[2].bytes, &ok, sizeof(ok));
	row[2].len = 24;
	row[3].len = make_message(row[3].bytes, TCP_WIRE_MSG, ack, 9, from, 100, 100);
	row[4].len = make_message(row[4].bytes, TCP_WIRE_MSG, ack, 8, from, 100, 801);
	row[5].len = make_message(row[5].bytes, TCP_WIRE_MSG, 0, 1, from, 100, 100);
	row[6].len = make_message(row[6].bytes, TCP_WIRE_READ_REQ, ack, 1, from, 100, 24);
	row[6].hdr.rma_iov_cnt = 1;
	row[6].hdr.hdr_size = 40;
	row[7].len = make_message(row[7].bytes, TCP_WIRE_MSG, ack, 1, from, 100, 100);
	for (size_t i = 0; i < fab_countof(row); i++) {
		print_message("# %s\n", row[i].what);
		cookie.word[0] = 1;
		fd = connect_to_b();
		if (row[i].asks) {
			raw_send(fd, ask, make_ask(ask));
			assert_int_equal(answer_of_b(fd), 0);
		}
		cookie.word[0] += i == 7;
		raw_send(fd, row[i].bytes, row[i].len);
		assert_true(raw_recv_end(fd, drive, &b));
		close(fd);
	}
	exchange(LEN, false);
}

/* Questions that are answered with no; the connection goes on. */
static void questions_that_are_refused(void **state)
{
	const struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(hdr),
				     .size = sizeof(hdr) + 1 };
	uint8_t ask[64];
	char in;
	int fd;

	(void) state;
	for (int i = 0; i < 3; i++) {
		cookie = (struct tcp_cookie) { { 1, 2 } };
		fd = connect_to_b();
		make_ask(ask);
		if (i == 0)
			memset(ask + 16, 0, 8);		/* no memory at this address */
		else if (i == 1)
			ask[24]++;			/* another cookie */
		else
			ask[40] = 8;			/* a process with other pointers */
		raw_send(fd, ask, make_ask((uint8_t [64]) { 0 }));
		assert_int_not_equal(answer_of_b(fd), 0);
		assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
		raw_send(fd, &hdr, sizeof(hdr));
		raw_send(fd, "x", 1);
		expect(&b, &in);
		close(fd);
	}
}

/* Connect to b, and be told that it reads our memory. */
static int connect_and_ask(void)
{
	uint8_t ask[64];
	int fd;

	cookie = (struct tcp_cookie) { { 1, 2 } };
	fd = connect_to_b();
	raw_send(fd, ask, make_ask(ask));
	assert_int_equal(answer_of_b(fd), 0);
	return fd;
}

/* A header, its pieces, and what follows, in any number of parts. */
static void frames_that_come_in_pieces(void **state)
{
	uint8_t bytes[1024];
	struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(hdr),
			       .size = sizeof(hdr) + 1 };
	uint32_t len;
	char in;
	int fd;

	(void) state;
	fd = connect_and_ask();
	len = make_message(bytes, TCP_WIRE_MSG, TCP_FLAG_DELIVERY, 5, from, 1 << 20, LONG);
	memcpy(bytes + len, &hdr, sizeof(hdr));
	bytes[len + sizeof(hdr)] = 'y';
	len += sizeof(hdr) + 1;
	for (uint32_t part = 1; part <= len; part += 1 + part / 2) {
		assert_int_equal(fi_recv(b.ep, to, LONG, NULL, FI_ADDR_UNSPEC, to), 0);
		assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
		for (uint32_t at = 0; at < len; at += part) {
			raw_send(fd, bytes + at, fab_min(part, len - at));
			drive(&b);
		}
		expect(&b, to);
		expect(&b, &in);
		for (int i = 0; i < 5; i++)
			assert_memory_equal(to + (i << 20), from, 1 << 20);
		assert_int_equal(in, 'y');
	}
	close(fd);
}

/* Each pass continues a payload at its beginning, and once more when epoll says that its stream has more. */
static void more_comes_meanwhile(void **state)
{
	struct fab_engine *engine = tcp_ep_of(&b.ep->fid)->base.engine;
	struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(hdr),
			       .size = sizeof(hdr) + 1 };
	uint8_t bytes[512];
	char in;
	int fd;

	(void) state;
	fd = connect_and_ask();
	for (uint32_t steps = 2; steps <= 5; steps++) {
		reads = 0;
		assert_int_equal(fi_recv(b.ep, to, LONG, NULL, FI_ADDR_UNSPEC, to), 0);
		assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
		raw_send(fd, bytes, make_message(bytes, TCP_WIRE_MSG, TCP_FLAG_DELIVERY, steps, from, 1 << 20,
						 (uint64_t) steps << 20));
		while (!reads)
			drive(&b);
		raw_send(fd, &hdr, sizeof(hdr));
		raw_send(fd, "z", 1);
		for (uint32_t i = 0; i < 2 * steps; i++) {
			fab_engine_lock(engine);
			engine->epoll.ask = true;
			fab_engine_run(engine);
			fab_engine_unlock(engine);
		}
		expect(&b, to);
		expect(&b, &in);
		assert_int_equal(in, 'z');
		assert_int_equal(reads, steps);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(long_messages_are_read_from_the_sender, setup, teardown),
		cmocka_unit_test_setup_teardown(vectors_and_short_receives, setup, teardown),
		cmocka_unit_test_setup_teardown(remote_accesses, setup, teardown),
		cmocka_unit_test_setup_teardown(without_permission_they_go_through_the_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(without_rings, setup, teardown),
		cmocka_unit_test_setup_teardown(without_shared_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(another_process_with_the_number_is_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(permission_that_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_memory_of_one_operation, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_that_others_may_not_read, setup, teardown),
		cmocka_unit_test_setup_teardown(others_have_their_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(the_sender_hears_of_each_step, setup, teardown),
		cmocka_unit_test_setup_teardown(a_region_that_is_closed_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(the_sender_closes_in_the_middle, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reader_has_time_to_finish, setup, teardown),
		cmocka_unit_test_setup_teardown(the_receiver_closes_in_the_middle, setup, teardown),
		cmocka_unit_test_setup_teardown(the_sender_is_killed_in_the_middle, setup, teardown),
		cmocka_unit_test_setup_teardown(broken_rules_end_the_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(questions_that_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_that_come_in_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(more_comes_meanwhile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
