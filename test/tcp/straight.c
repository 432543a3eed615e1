/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes that the initiator carries out itself in the memory of a peer of this host: that they need nothing
 * of the target, that they are what a frame would be, and what closing a region waits for.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
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
#include "tcp/peer/peers.h"

#define LEN	(64 * 1024)
#define LONG	(4 << 20)		/* the longest */
#define CAPS	(FI_MSG | FI_TAGGED | FI_RMA)
#define KEY	5
#define ACCESS	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct fab_sock_ops ops;
static struct node a, b;
static fi_addr_t a_to_b;
static struct fid_mr *mr;
static uint8_t *from, *to;		/* LONG + 1 bytes each; `to` is b's, and shared with children */

/* What the kernel is made to say, and to whom. */
static unsigned reads, writes;		/* calls so far */
static int fail_with;			/* writes fail with this errno; 0: they do not */
static bool other_cookie;		/* the memory read has another one */
static int slow_reads;			/* so many reads return later than what they have read is of use for */
static int signal_at_write;		/* the caller gets this signal before a write; 0: none */
static int wait_at_write;		/* it says so through this descriptor, and waits for a byte; 0: not */
static bool exec_at_write;		/* another thread calls exec(2) before a write ends */
static sem_t exec_now;

/* More than the time for which what was read of a peer is fresh. */
static void pass_time(void)
{
	for (uint64_t end_ns = fab_now_ns() + MS; fab_now_ns() < end_ns; )
		;
}

static ssize_t watched_readv(pid_t pid, const struct iovec *local, unsigned long local_cnt, const struct iovec *remote,
			     unsigned long remote_cnt, unsigned long flags)
{
	ssize_t n = fab_sock_libc.process_vm_readv(pid, local, local_cnt, remote, remote_cnt, flags);

	reads++;
	if (slow_reads > 0 && slow_reads--)
		pass_time();
	if (other_cookie)
		memset(local[local_cnt - 1].iov_base, 0, local[local_cnt - 1].iov_len);
	return n;
}

static ssize_t watched_writev(pid_t pid, const struct iovec *local, unsigned long local_cnt, const struct iovec *remote,
			      unsigned long remote_cnt, unsigned long flags)
{
	char byte;

	writes++;
	if (signal_at_write)
		raise(signal_at_write);
	if (wait_at_write && (write(wait_at_write, "l", 1) != 1 || read(wait_at_write, &byte, 1) != 1))
		_exit(1);
	wait_at_write = 0;
	if (exec_at_write) {
		sem_post(&exec_now);
		for (;;)
			pause();
	}
	errno = fail_with;
	return fail_with ? -1 : fab_sock_libc.process_vm_writev(pid, local, local_cnt, remote, remote_cnt, flags);
}

/* ---- the two ends ---- */

static struct fid_mr *region(uint64_t access, uint64_t key, uint64_t flags)
{
	struct iovec iov = { to, LONG };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = access, .requested_key = key };
	struct fid_mr *opened;

	assert_int_equal(fi_mr_regattr(b.domain, &attr, flags, &opened), 0);
	return opened;
}

static void fill(uint8_t seed)
{
	for (size_t i = 0; i < LONG; i++)
		from[i] = i * 31 + (i >> 12) + seed;
	memset(to, 0, LONG);
}

/* A message from a that b receives, so that there is a connection on which nothing is under way. */
static void greet(struct node *node, struct node *peer, fi_addr_t dest)
{
	char in = 0;

	assert_int_equal(fi_recv(peer->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	assert_int_equal(fi_send(node->ep, "x", 1, NULL, dest, &in), 0);
	for (uint32_t done = 0; done < 2; ) {
		struct fi_cq_data_entry entry;

		done += fi_cq_read(node->cq, &entry, 1) == 1;
		done += fi_cq_read(peer->cq, &entry, 1) == 1;
	}
	assert_int_equal(in, 'x');
}

static void open_nodes(uint64_t caps)
{
	node_open(&a, caps, FI_THREAD_UNSPEC);
	node_open(&b, caps, FI_THREAD_UNSPEC);
	a_to_b = node_insert(&a, &b.addr);
	node_insert(&b, &a.addr);
}

static int setup_caps(uint64_t caps)
{
	ops = fab_sock_libc;
	ops.process_vm_readv = watched_readv;
	ops.process_vm_writev = watched_writev;
	fab_sock = &ops;
	fail_with = signal_at_write = slow_reads = 0;
	other_cookie = false;
	from = malloc(LONG + 1);
	to = mmap(NULL, LONG + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!from || to == MAP_FAILED)
		return -1;
	fill(1);
	open_nodes(caps);
	mr = region(ACCESS, KEY, 0);
	greet(&a, &b, a_to_b);
	reads = writes = 0;
	return 0;
}

static int setup(void **state)
{
	(void) state;
	return setup_caps(CAPS);
}

static int setup_events(void **state)
{
	(void) state;
	return setup_caps(CAPS | FI_RMA_EVENT);
}

static int teardown(void **state)
{
	(void) state;
	fab_sock = &fab_sock_libc;
	if (mr)
		assert_int_equal(fi_close(&mr->fid), 0);
	node_close(&a);
	node_close(&b);
	free(from);
	munmap(to, LONG + 1);
	tcp_params.shared_memory = true;
	return 0;
}

/* The completion of the operation that a has just posted, of which b has learned nothing. */
static void expect_at_once(void *context, uint64_t flags)
{
	struct fi_cq_data_entry entry = { 0 };

	assert_int_equal(fi_cq_read(a.cq, &entry, 1), 1);
	assert_ptr_equal(entry.op_context, context);
	assert_true((entry.flags & flags) == flags);
}

static void expect_not_at_once(void)
{
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
}

/* The next completion of a, while b makes progress. Returns the error, or 0. */
static int next_of_a(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	ssize_t ret;

	do {
		drive(&b);
		ret = fi_cq_read(a.cq, &entry, 1);
		assert_true(fab_now_ms() < end_ms);
	} while (ret == -FI_EAGAIN);
	if (ret == 1)
		return 0;
	assert_int_equal(fi_cq_readerr(a.cq, &err, 0), 1);
	return err.err;
}

/* A write from `from` whose completion waits until the target has the bytes. */
static void post_write(struct fid_ep *ep, fi_addr_t dest, size_t len, uint64_t addr, uint64_t key)
{
	struct iovec iov = { from, len };
	struct fi_rma_iov rma = { addr, len, key };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .addr = dest, .rma_iov = &rma, .rma_iov_count = 1,
				  .context = from };

	assert_int_equal(fi_writemsg(ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
}

static void write_to_b(size_t len, uint64_t addr, uint64_t key)
{
	post_write(a.ep, a_to_b, len, addr, key);
}

/* ---- what it is for ---- */

static void the_target_makes_no_call(void **state)
{
	const size_t lens[] = { 4096, 5000, 32768, LEN, 1 << 20, LONG };

	(void) state;
	for (size_t i = 0; i < fab_countof(lens); i++) {
		fill(i);
		write_to_b(lens[i], 0, KEY);
		assert_memory_equal(from, to, lens[i]);
		expect_at_once(from, FI_RMA | FI_WRITE);
		memset(from, 0, lens[i]);
		assert_int_equal(fi_read(a.ep, from, lens[i], NULL, a_to_b, 0, KEY, to), 0);
		assert_memory_equal(from, to, lens[i]);
		expect_at_once(to, FI_RMA | FI_READ);
	}
	/* a write that need not wait for the target is straight from the length on where that costs less */
	for (size_t i = 2; i < fab_countof(lens); i++) {
		fill(i + 100);
		assert_int_equal(fi_write(a.ep, from, lens[i], NULL, a_to_b, 0, KEY, to), 0);
		assert_memory_equal(from, to, lens[i]);
		expect_at_once(to, FI_RMA | FI_WRITE);
	}
}

/* A program that reads again and again finds a completion each time. It serves its peers all the same. */
static void who_only_reads_serves_others(void **state)
{
	struct fid_mr *of_a;
	char flag = 0;

	(void) state;
	assert_int_equal(fi_mr_reg(a.domain, "x", 1, FI_REMOTE_READ, 0, KEY, 0, &of_a, NULL), 0);
	assert_int_equal(fi_read(b.ep, &flag, 1, NULL, 0, 0, KEY, &flag), 0);
	for (int i = 0; i < 16; i++) {
		assert_int_equal(fi_read(a.ep, from, 4096, NULL, a_to_b, 0, KEY, from), 0);
		expect_at_once(from, FI_RMA | FI_READ);
	}
	for (int i = 0; i < 100 && !flag; i++)
		drive(&b);
	assert_int_equal(flag, 'x');
	assert_int_equal(fi_close(&of_a->fid), 0);
}

static void vectors_and_offsets(void **state)
{
	struct iovec parts[4] = { { from + 7, 10000 }, { from + 50000, 0 }, { from + 60001, 30000 }, { from, 3 } };

	(void) state;
	assert_int_equal(fi_writev(a.ep, parts, NULL, 4, a_to_b, LONG - 40003, KEY, from), 0);
	expect_at_once(from, FI_WRITE);
	assert_memory_equal(to + LONG - 40003, from + 7, 10000);
	assert_memory_equal(to + LONG - 30003, from + 60001, 30000);
	assert_memory_equal(to + LONG - 3, from, 3);
	assert_int_equal(to[LONG - 40004] | to[LONG], 0);
	memset(from, 0, 100000);
	assert_int_equal(fi_readv(a.ep, parts, NULL, 4, a_to_b, LONG - 40003, KEY, from), 0);
	expect_at_once(from, FI_READ);
	assert_memory_equal(to + LONG - 40003, from + 7, 10000);
	assert_memory_equal(to + LONG - 30003, from + 60001, 30000);
	assert_memory_equal(to + LONG - 3, from, 3);
}

static void counters_and_injected_writes(void **state)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	size_t len = a.info->tx_attr->inject_size;

	(void) state;
	assert_int_equal(fi_close(&a.ep->fid), 0);
	node_open_ep(&a);
	assert_int_equal(fi_close(&a.ep->fid), 0);
	assert_int_equal(fi_cntr_open(a.domain, &attr, &cntr, NULL), 0);
	assert_int_equal(fi_endpoint(a.domain, a.info, &a.ep, NULL), 0);
	assert_int_equal(fi_ep_bind(a.ep, &a.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(a.ep, &a.cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION), 0);
	assert_int_equal(fi_ep_bind(a.ep, &cntr->fid, FI_WRITE | FI_READ), 0);
	assert_int_equal(fi_enable(a.ep), 0);
	assert_int_equal(fi_inject(a.ep, "x", 0, a_to_b), -FI_EAGAIN);
	while (fi_inject_write(a.ep, from, 8, a_to_b, 0, KEY)) {
		drive(&a);
		drive(&b);
	}
	while (memcmp(from, to, 8))
		drive(&b);
	reads = writes = 0;
	assert_int_equal(fi_write(a.ep, from, LEN, NULL, a_to_b, 0, KEY, from), 0);
	assert_int_equal(fi_read(a.ep, from, LEN, NULL, a_to_b, 0, KEY, from), 0);
	assert_int_equal(writes, 1);
	assert_int_equal(fi_cntr_read(cntr), 3);
	expect_not_at_once();
	if (len >= 32768) {
		fill(3);
		assert_int_equal(fi_inject_write(a.ep, from, len, a_to_b, 0, KEY), 0);
		assert_memory_equal(from, to, len);
		assert_int_equal(fi_cntr_read(cntr), 4);
	}
	assert_int_equal(fi_close(&a.ep->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	node_open_ep(&a);
}

static void one_system_call(void **state)
{
	(void) state;
	/* a busy machine may take long between two of them */
	for (int i = 0; i < 1000 && (reads || writes != 1); i++) {
		reads = writes = 0;
		assert_int_equal(fi_write(a.ep, from, LEN, NULL, a_to_b, 0, KEY, from), 0);
		expect_at_once(from, FI_WRITE);
	}
	assert_int_equal(writes, 1);
	assert_int_equal(reads, 0);
	assert_int_equal(fi_read(a.ep, from, LEN, NULL, a_to_b, 0, KEY, from), 0);
	expect_at_once(from, FI_READ);
	assert_int_equal(reads, 1);
}

/* ---- what is a frame ---- */

/* Frames that the target refuses, as it refuses those of other hosts. */
static void the_target_refuses(void **state)
{
	struct fid_mr *write_only = region(FI_REMOTE_WRITE, 6, 0), *read_only = region(FI_REMOTE_READ, 7, 0);

	(void) state;
	write_to_b(LEN, 0, KEY + 100);
	assert_int_equal(next_of_a(), FI_ENOKEY);
	write_to_b(LEN, LONG - LEN + 1, KEY);
	assert_int_equal(next_of_a(), FI_EINVAL);
	write_to_b(LEN, -(uint64_t) 1, KEY);
	assert_int_equal(next_of_a(), FI_EINVAL);
	write_to_b(LEN, 0, 7);
	assert_int_equal(next_of_a(), FI_EACCES);
	assert_int_equal(fi_read(a.ep, from, LEN, NULL, a_to_b, 0, 6, from), 0);
	assert_int_equal(next_of_a(), FI_EACCES);
	assert_int_equal(fi_read(a.ep, from, LEN, NULL, a_to_b, LONG - LEN + 1, KEY, from), 0);
	assert_int_equal(next_of_a(), FI_EINVAL);
	assert_int_equal(writes, 0);
	write_to_b(LEN, LONG - LEN, 6);
	expect_at_once(from, FI_WRITE);
	assert_int_equal(fi_read(a.ep, from, LEN, NULL, a_to_b, LONG - LEN, 7, from), 0);
	expect_at_once(from, FI_READ);
	assert_int_equal(fi_close(&write_only->fid), 0);
	assert_int_equal(fi_close(&read_only->fid), 0);
	write_to_b(LEN, 0, 6);
	assert_int_equal(next_of_a(), FI_ENOKEY);
}

/* A region for peers that have proved a key, which a has not, and one of several buffers. */
static void regions_without_a_window(void **state)
{
	static uint8_t secret[] = "secret";
	struct iovec iov[2] = { { to, LEN / 2 }, { to + LEN, LEN / 2 } };
	struct fi_mr_attr keyed = { .mr_iov = iov, .iov_count = 1, .access = ACCESS, .requested_key = 6,
				    .auth_key = secret, .auth_key_size = sizeof(secret) };
	struct fi_mr_attr parts = { .mr_iov = iov, .iov_count = 2, .access = ACCESS, .requested_key = 7 };
	struct fid_mr *opened[2];

	(void) state;
	assert_int_equal(fi_mr_regattr(b.domain, &keyed, 0, &opened[0]), 0);
	assert_int_equal(fi_mr_regattr(b.domain, &parts, 0, &opened[1]), 0);
	write_to_b(LEN / 2, 0, 6);
	assert_int_equal(next_of_a(), FI_EACCES);
	write_to_b(LEN, 0, 7);
	assert_int_equal(next_of_a(), 0);
	assert_memory_equal(to + LEN, from + LEN / 2, LEN / 2);
	assert_int_equal(writes, 0);
	assert_int_equal(fi_close(&opened[0]->fid), 0);
	assert_int_equal(fi_close(&opened[1]->fid), 0);
}

/* A region that is opened under the key of another, and at other memory, is the one that is reached. */
static void a_key_that_is_used_again(void **state)
{
	struct iovec iov = { to + LEN, LEN };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = ACCESS, .requested_key = KEY };

	(void) state;
	write_to_b(LEN, 0, KEY);
	expect_at_once(from, FI_WRITE);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_mr_regattr(b.domain, &attr, 0, &mr), 0);
	fill(9);
	write_to_b(LEN, 0, KEY);
	expect_at_once(from, FI_WRITE);
	assert_memory_equal(to + LEN, from, LEN);
	assert_int_equal(to[0] | to[LEN - 1], 0);
}

/* Nothing that was sent before is overtaken. */
static void earlier_messages_come_first(void **state)
{
	char in = 0;

	(void) state;
	assert_int_equal(fi_inject(a.ep, "m", 1, a_to_b), 0);
	write_to_b(LEN, 0, KEY);
	assert_int_equal(to[1], 0);
	expect_not_at_once();
	assert_int_equal(next_of_a(), 0);
	assert_memory_equal(from, to, LEN);
	assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	assert_int_equal(in, 'm');
	fill(2);
	write_to_b(LEN, 0, KEY);
	expect_at_once(from, FI_WRITE);
	assert_int_equal(completion(&b, NULL) == &in, 1);
}

/* What the target's program is told of. */
static void the_target_is_told_of_data(void **state)
{
	struct fi_cq_data_entry entry = { 0 };

	(void) state;
	assert_int_equal(fi_writedata(a.ep, from, LEN, NULL, 77, a_to_b, 0, KEY, from), 0);
	while (fi_cq_read(b.cq, &entry, 1) != 1)
		drive(&a);
	assert_int_equal(entry.data, 77);
	assert_true(entry.flags & FI_REMOTE_CQ_DATA);
	assert_memory_equal(from, to, LEN);
	assert_int_equal(writes, 0);
}

static void the_target_counts(void **state)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_mr *flagged = region(ACCESS, 6, FI_RMA_EVENT);
	struct fid_cntr *cntr;

	(void) state;
	write_to_b(LEN, 0, KEY);
	expect_at_once(from, FI_WRITE);
	assert_int_equal(fi_cntr_open(b.domain, &attr, &cntr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_mr_bind(flagged, &cntr->fid, FI_REMOTE_WRITE), 0);
	writes = 0;
	for (uint64_t i = 0; i < 2; i++) {
		write_to_b(LEN, 0, KEY + i);
		assert_int_equal(next_of_a(), 0);
		assert_int_equal(fi_cntr_read(cntr), i + 1);
	}
	assert_int_equal(writes, 0);
	assert_int_equal(fi_close(&flagged->fid), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	mr = NULL;
}

/* An endpoint that counts all accesses of its peers. */
static void the_targets_endpoint_counts(void **state)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	(void) state;
	assert_int_equal(fi_close(&b.ep->fid), 0);
	assert_int_equal(fi_cntr_open(b.domain, &attr, &cntr, NULL), 0);
	assert_int_equal(fi_endpoint(b.domain, b.info, &b.ep, NULL), 0);
	assert_int_equal(fi_ep_bind(b.ep, &b.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(b.ep, &b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(b.ep, &cntr->fid, FI_REMOTE_READ), 0);
	assert_int_equal(fi_enable(b.ep), 0);
	assert_int_equal(fi_getname(&b.ep->fid, &b.addr, &(size_t) { sizeof(b.addr) }), 0);
	a_to_b = node_insert(&a, &b.addr);
	greet(&a, &b, a_to_b);
	assert_int_equal(fi_read(a.ep, from, LEN, NULL, a_to_b, 0, KEY, from), 0);
	assert_int_equal(next_of_a(), 0);
	assert_int_equal(fi_cntr_read(cntr), 1);
	assert_int_equal(writes, 0);
	assert_int_equal(fi_close(&b.ep->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	node_open_ep(&b);
}

static void refused_by_the_kernel(void **state)
{
	(void) state;
	fail_with = EPERM;
	for (int i = 0; i < 3; i++) {
		fill(i);
		write_to_b(LEN, 0, KEY);
		assert_int_equal(next_of_a(), 0);
		assert_memory_equal(from, to, LEN);
	}
	assert_int_equal(writes, 1);
}

/* The peer's number belongs to another process: nothing is written there. */
static void another_process_is_not_written_to(void **state)
{
	(void) state;
	write_to_b(LEN, 0, KEY);
	expect_at_once(from, FI_WRITE);
	other_cookie = true;
	/* what was read of it is fresh for a short time only */
	pass_time();
	write_to_b(LEN, 0, KEY);
	assert_int_equal(writes, 1);
	other_cookie = false;
	assert_int_equal(next_of_a(), 0);
}

/* Nothing is written by what was read too long ago: it is read again, or the target is asked. */
static void a_slow_initiator(void **state)
{
	(void) state;
	slow_reads = 1;
	write_to_b(LEN, 0, KEY);
	expect_at_once(from, FI_WRITE);
	assert_memory_equal(from, to, LEN);
	assert_true(reads >= 2);
	pass_time();
	reads = writes = 0;
	slow_reads = 1000;
	write_to_b(LEN, 0, KEY);
	assert_int_equal(writes, 0);
	slow_reads = 0;
	assert_int_equal(next_of_a(), 0);
}

/* b asks to park, and a answers. Returns true if the connection was parked. */
static bool asks_to_park(struct tcp_conn *conn)
{
	tcp_park_ask(conn);
	while (conn->park.asked && !conn->park.parked) {
		drive(&a);
		drive(&b);
	}
	return conn->park.parked;
}

/* A connection that only such accesses use is not an idle one to their initiator. */
static void an_initiator_does_not_park(void **state)
{
	struct tcp_conn *conn = node_conn(&b, 0);

	(void) state;
	write_to_b(LEN, 0, KEY);
	expect_at_once(from, FI_WRITE);
	assert_false(asks_to_park(conn));
	write_to_b(LEN, 0, KEY);
	expect_at_once(from, FI_WRITE);
	for (int i = 0; i < 100; i++)
		drive(&a);
	assert_true(asks_to_park(conn));
	write_to_b(LEN, 0, KEY);
	assert_int_equal(next_of_a(), 0);
}

static void without_shared_memory(void **state)
{
	(void) state;
	assert_int_equal(fi_close(&a.ep->fid), 0);
	tcp_params.shared_memory = false;
	node_open_ep(&a);
	greet(&a, &b, a_to_b);
	write_to_b(LEN, 0, KEY);
	expect_not_at_once();
	assert_int_equal(next_of_a(), 0);
	assert_memory_equal(from, to, LEN);
	assert_int_equal(writes, 0);
}

/* ---- closing ---- */

#define CHILD_LEN	(256 * 1024)

static struct sockaddr_in child_addr;

/* Take the next completion, of a success or a refusal. */
static void take(struct node *node)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(node->cq, &entry, 1)) == -FI_EAGAIN)
		;
	if (ret == -FI_EAVAIL)
		fi_cq_readerr(node->cq, &err, 0);
}

/* Another program for this process. It is killed in the end. */
static void *exec_other(void *arg)
{
	while (sem_wait(&exec_now))
		;
	execlp("sleep", "sleep", "60", NULL);
	_exit(1);
	return arg;
}

/* Do during the first write what the byte stands for; fd is the other process's. */
static void child_prepare(char byte, int fd)
{
	pthread_t thread;

	wait_at_write = byte == 'l' ? fd : 0;

	signal_at_write = byte == 's' || byte == 'x' ? SIGSTOP : byte == 'k' ? SIGKILL : 0;
	exec_at_write = byte == 'e' || byte == 'x';
	sem_init(&exec_now, 0, 0);
	if (exec_at_write && pthread_create(&thread, NULL, exec_other, NULL))
		_exit(1);
}

/* A process that connects to b, is told by a byte from fd to begin, and says when it has begun. Then it writes as fast
 * as it can. */
static _Noreturn void child(int fd)
{
	struct node node;
	fi_addr_t dest;
	char byte;

	reads = writes = 0;
	node_open(&node, CAPS, FI_THREAD_UNSPEC);
	dest = node_insert(&node, &b.addr);
	if (write(fd, &node.addr, sizeof(node.addr)) != sizeof(node.addr))
		_exit(1);
	fi_send(node.ep, "c", 1, NULL, dest, NULL);
	while (!node_conn(&node, dest) || node_conn(&node, dest)->state != TCP_CONN_UP)
		drive(&node);
	if (read(fd, &byte, 1) != 1)
		_exit(1);
	take(&node);
	child_prepare(byte, fd);
	for (;;) {
		post_write(node.ep, dest, CHILD_LEN, 0, KEY);
		take(&node);
		if (writes == 1 && write(fd, "w", 1) != 1)
			_exit(1);
		writes += writes == 1;
	}
}

/* Start it, and receive its first message. Returns its descriptor. */
static int child_start(pid_t *pid)
{
	struct fi_cq_data_entry entry;
	char in = 0;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	*pid = fork();
	if (!*pid)
		child(fds[1]);
	close(fds[1]);
	assert_int_equal(read(fds[0], &child_addr, sizeof(child_addr)), sizeof(child_addr));
	node_insert(&b, &child_addr);
	assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	while (fi_cq_read(b.cq, &entry, 1) != 1)
		;
	assert_int_equal(in, 'c');
	return fds[0];
}

static void child_end(pid_t pid, int fd)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
}

/* Something comes without a look of ours. If not, what was sent may wait for one. */
static bool comes_straight(void)
{
	volatile uint8_t *last = to + CHILD_LEN - 1;

	for (int i = 0; i < 20; i++)
		drive(&b);
	*last = 'c';
	for (int i = 0; i < 100000 && *last == 'c'; i++)
		;
	return *last == 'w';
}

/* While another process writes to a region as fast as it can, the region is closed, and no byte comes after that. */
static void no_byte_after_closing(void **state)
{
	char byte;
	pid_t pid;
	int fd;

	(void) state;
	memset(from, 'w', CHILD_LEN);
	fd = child_start(&pid);
	assert_int_equal(write(fd, "g", 1), 1);
	assert_int_equal(read(fd, &byte, 1), 1);
	for (uint64_t i = 0; i < 300; i++) {
		assert_int_equal(fi_close(&mr->fid), 0);
		memset(to, 'c', CHILD_LEN);
		/* what it has sent meanwhile is refused */
		for (int k = 0; k < 20; k++)
			drive(&b);
		for (size_t k = 0; k < CHILD_LEN; k++)
			assert_int_equal(to[k], 'c');
		mr = region(ACCESS, KEY, 0);
		for (uint64_t end_ms = fab_now_ms() + PATIENCE_MS; !comes_straight(); )
			assert_true(fab_now_ms() < end_ms);
	}
	child_end(pid, fd);
}

/* A peer that is stopped before its copy would go on with it: the region stays open until then. */
static void a_stopped_peer_keeps_the_region(void **state)
{
	uint64_t end_ms;
	int fd, status;
	pid_t pid;

	(void) state;
	fd = child_start(&pid);
	assert_int_equal(write(fd, "s", 1), 1);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(fi_close(&mr->fid), -FI_EBUSY);
	/* others are served, through the stream */
	write_to_b(LEN, 0, KEY);
	assert_int_equal(next_of_a(), 0);
	end_ms = fab_now_ms() + PATIENCE_MS;
	kill(pid, SIGCONT);
	while (fi_close(&mr->fid) == -FI_EBUSY)
		assert_true(fab_now_ms() < end_ms);
	mr = NULL;
	child_end(pid, fd);
}

/* Let a peer go on a good second after its region begins to close: its copy is then over before the region is. */
static void *let_go(void *fd)
{
	poll(NULL, 0, 1300);
	assert_int_equal(write((int) (intptr_t) fd, "g", 1), 1);
	return NULL;
}

/* A peer that is only slow, on a busy machine, is waited for. */
static void a_slow_peer_is_waited_for(void **state)
{
	pthread_t thread;
	char byte;
	pid_t pid;
	int fd;

	(void) state;
	fd = child_start(&pid);
	assert_int_equal(write(fd, "l", 1), 1);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(pthread_create(&thread, NULL, let_go, (void *) (intptr_t) fd), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	pthread_join(thread, NULL);
	child_end(pid, fd);
}

static void a_killed_peer_keeps_nothing(void **state)
{
	int fd, status;
	pid_t pid;

	(void) state;
	fd = child_start(&pid);
	assert_int_equal(write(fd, "k", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	child_end(pid, fd);
}

/* A child that stops in the middle of a copy, as `how` says, and whose stream has then ended here. Its socket. */
static int child_left_busy(const char *how, pid_t *pid)
{
	int fd = child_start(pid), status;

	assert_int_equal(write(fd, how, 1), 1);
	assert_int_equal(waitpid(*pid, &status, WUNTRACED), *pid);
	assert_int_equal(fi_close(&b.ep->fid), 0);
	assert_int_equal(fi_close(&mr->fid), -FI_EBUSY);
	return fd;
}

/* The stream of a stopped peer ends here. Its memory is kept while the peer may look at it. */
static void an_endpoint_is_closed_meanwhile(void **state)
{
	int fd, status;
	pid_t pid;

	(void) state;
	fd = child_left_busy("s", &pid);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	node_open_ep(&b);
	close(fd);
}

/* Wait until the child has called exec(2), which closes the other end of fd. */
static void expect_exec(int fd)
{
	char byte;

	assert_int_equal(read(fd, &byte, 1), 0);
}

/* The process lives on, but its copy does not. */
static void a_peer_that_calls_exec_keeps_nothing(void **state)
{
	pid_t pid;
	int fd;

	(void) state;
	fd = child_start(&pid);
	assert_int_equal(write(fd, "e", 1), 1);
	expect_exec(fd);
	assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	assert_int_equal(kill(pid, 0), 0);
	child_end(pid, fd);
}

/* The same if its stream has ended here before. */
static void a_peer_calls_exec_after_its_stream(void **state)
{
	pid_t pid;
	int fd;

	(void) state;
	fd = child_left_busy("x", &pid);
	kill(pid, SIGCONT);
	expect_exec(fd);
	assert_int_equal(fi_close(&mr->fid), 0);
	mr = NULL;
	node_open_ep(&b);
	child_end(pid, fd);
}

/* A child of fork(2) may close the regions that it has got, and open others: it has none of what peers use. */
static void a_child_closes_a_region(void **state)
{
	int status;
	pid_t pid;

	(void) state;
	write_to_b(LEN, 0, KEY);	/* so that there is a table */
	expect_at_once(from, FI_WRITE);
	pid = fork();
	if (!pid) {
		struct fid_mr *other;

		_exit(fi_mr_reg(b.domain, to, LEN, ACCESS, 0, KEY + 1, 0, &other, NULL) ||
		      fi_close(&other->fid) || fi_close(&mr->fid));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	write_to_b(LEN, 0, KEY);
	expect_at_once(from, FI_WRITE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_target_makes_no_call, setup, teardown),
		cmocka_unit_test_setup_teardown(who_only_reads_serves_others, setup, teardown),
		cmocka_unit_test_setup_teardown(vectors_and_offsets, setup, teardown),
		cmocka_unit_test_setup_teardown(counters_and_injected_writes, setup, teardown),
		cmocka_unit_test_setup_teardown(one_system_call, setup, teardown),
		cmocka_unit_test_setup_teardown(the_target_refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(regions_without_a_window, setup, teardown),
		cmocka_unit_test_setup_teardown(a_key_that_is_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(earlier_messages_come_first, setup, teardown),
		cmocka_unit_test_setup_teardown(the_target_is_told_of_data, setup, teardown),
		cmocka_unit_test_setup_teardown(the_target_counts, setup_events, teardown),
		cmocka_unit_test_setup_teardown(the_targets_endpoint_counts, setup_events, teardown),
		cmocka_unit_test_setup_teardown(refused_by_the_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(another_process_is_not_written_to, setup, teardown),
		cmocka_unit_test_setup_teardown(a_slow_initiator, setup, teardown),
		cmocka_unit_test_setup_teardown(an_initiator_does_not_park, setup, teardown),
		cmocka_unit_test_setup_teardown(without_shared_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(no_byte_after_closing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stopped_peer_keeps_the_region, setup, teardown),
		cmocka_unit_test_setup_teardown(a_slow_peer_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(a_killed_peer_keeps_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(an_endpoint_is_closed_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(a_peer_that_calls_exec_keeps_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_peer_calls_exec_after_its_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(a_child_closes_a_region, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
