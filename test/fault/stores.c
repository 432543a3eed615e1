/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer of this host is killed, or stops, before each single store to the memory that it shares with us, and before
 * each system call that tells us of one: as the end that connected and as the other, in the middle of messages, writes,
 * reads and atomics in both directions that fill the rings and wake sleepers. Each operation that we posted completes
 * once; we go on with a third peer; and no descriptor, mapping or file is left. A peer that was stopped goes on where
 * it was, and everything arrives.
 *
 * ring.c, ready.c, windows.c, reach.c and io_ring.c are compiled for this program with stores.h. (The bytes of a short
 * frame are written by the calls. They are nothing to the reader before their length is, which these files write.) The
 * peer is this program, started anew.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/sock.h"
#include "tcp/node.h"
#include "tcp/local/local.h"
#include "tcp/params/params.h"
#include "tcp/stream/ep.h"

#define CAPS		(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define KEY		7
#define MESSAGES	24		/* from each end, of MESSAGE_LEN: more than a ring has room for */
#define MESSAGE_LEN	4000
#define BOUND_MS	20000
#define STALL_MS	500		/* long enough for a peer that runs to answer, on a busy machine */
#define STALL_STRIDE	24		/* between points at which a peer stops for good, which takes long */
/* Between points of the other fates. What AddressSanitizer finds depends on the path, which neighbours share. */
#ifdef FAB_ASAN
#define STRIDE		5
#else
#define STRIDE		1
#endif

#define COOL_LOOKS	1100		/* without anything: a ring is not hot any more */

#define STRAIGHT_LEN	16384		/* of accesses that the initiator carries out in the memory of the target */

/* The messages; the last one, which goes over rings that are not hot; and so on. */
enum { LAST = MESSAGES, WRITE, READ, FETCH, WRITE_STRAIGHT, READ_STRAIGHT, POSTED, RECEIVE = POSTED,
       RECEIVE_LAST = RECEIVE + LAST, OPERATIONS, THIRD = OPERATIONS };

/* ---- the n-th store ---- */

static unsigned long points, fatal_point;
static int fatal_signal;

void stores_point(void)
{
	if (++points == fatal_point)
		raise(fatal_signal);
}

static ssize_t point_send(int fd, const void *buf, size_t len, int flags)
{
	stores_point();
	return fab_sock_libc.send(fd, buf, len, flags);
}

static ssize_t point_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	stores_point();
	return fab_sock_libc.sendmsg(fd, msg, flags);
}

static unsigned long copies;		/* of memory of the peer */

static ssize_t point_readv(pid_t pid, const struct iovec *to, unsigned long to_cnt, const struct iovec *from,
			   unsigned long from_cnt, unsigned long flags)
{
	copies++;
	stores_point();
	return fab_sock_libc.process_vm_readv(pid, to, to_cnt, from, from_cnt, flags);
}

static ssize_t point_writev(pid_t pid, const struct iovec *from, unsigned long from_cnt, const struct iovec *to,
			    unsigned long to_cnt, unsigned long flags)
{
	copies++;
	stores_point();
	return fab_sock_libc.process_vm_writev(pid, from, from_cnt, to, to_cnt, flags);
}

/* ---- an end ---- */

static struct end {
	struct node node;
	struct fid_mr *mr;
	fi_addr_t peer;
	uint8_t region[STRAIGHT_LEN], straight[2][STRAIGHT_LEN], local[MESSAGE_LEN], got[MESSAGE_LEN];
	uint8_t out[LAST + 1][MESSAGE_LEN], in[LAST + 1][MESSAGE_LEN];
	uint8_t posted[OPERATIONS + 1], done[OPERATIONS + 1], failed[OPERATIONS + 1];	/* each 0 or 1 */
} end;

static void end_open(void)
{
	node_open_at(&end.node, CAPS, 0);
	assert_int_equal(fi_mr_reg(end.node.domain, end.region, sizeof(end.region), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
				   KEY, 0, &end.mr, NULL), 0);
	for (int i = 0; i <= LAST; i++)
		memset(end.out[i], 'a' + i, MESSAGE_LEN);
}

static void count_posted(int op, ssize_t ret)
{
	assert_int_equal(ret, 0);
	end.posted[op] = 1;
}

static void post_receives(void)
{
	for (int i = 0; i <= LAST; i++)
		count_posted(RECEIVE + i, fi_recv(end.node.ep, end.in[i], MESSAGE_LEN, NULL, FI_ADDR_UNSPEC,
						  &end.done[RECEIVE + i]));
}

static void post_message(int i)
{
	count_posted(i, fi_send(end.node.ep, end.out[i], MESSAGE_LEN, NULL, end.peer, &end.done[i]));
}

static void post_all(void)
{
	struct iovec iov = { end.local, MESSAGE_LEN };
	struct fi_rma_iov rma_iov = { .len = MESSAGE_LEN, .key = KEY };
	struct fi_msg_rma write = { .msg_iov = &iov, .iov_count = 1, .addr = end.peer, .rma_iov = &rma_iov,
				    .rma_iov_count = 1, .context = &end.done[WRITE] };

	for (int i = 0; i < MESSAGES; i++)
		post_message(i);
	count_posted(WRITE, fi_writemsg(end.node.ep, &write, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	count_posted(READ, fi_read(end.node.ep, end.got, MESSAGE_LEN, NULL, end.peer, 0, KEY, &end.done[READ]));
	count_posted(FETCH, fi_fetch_atomic(end.node.ep, end.local, 1, NULL, end.local + 8, NULL, end.peer, 0, KEY,
					    FI_UINT64, FI_SUM, &end.done[FETCH]));
}

/* Accesses that need nothing of the peer, if it has handled all that was sent. */
static void post_straight(void)
{
	struct iovec iov = { end.straight[0], STRAIGHT_LEN };
	struct fi_rma_iov rma_iov = { .len = STRAIGHT_LEN, .key = KEY };
	struct fi_msg_rma write = { .msg_iov = &iov, .iov_count = 1, .addr = end.peer, .rma_iov = &rma_iov,
				    .rma_iov_count = 1, .context = &end.done[WRITE_STRAIGHT] };

	count_posted(WRITE_STRAIGHT, fi_writemsg(end.node.ep, &write, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	count_posted(READ_STRAIGHT, fi_read(end.node.ep, end.straight[1], STRAIGHT_LEN, NULL, end.peer, 0, KEY,
					    &end.done[READ_STRAIGHT]));
}

/* Sleep until there is a completion, which is counted, for so long at most. */
static void take(int ms)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret = fi_cq_sread(end.node.cq, &entry, 1, NULL, ms);
	uint8_t *done = entry.op_context;

	if (ret == -FI_EAVAIL) {
		assert_int_equal(fi_cq_readerr(end.node.cq, &err, 0), 1);
		done = err.op_context;
		end.failed[done - end.done] = 1;
	} else if (ret != 1) {
		assert_true(ret == -FI_EAGAIN || ret == -FI_EINTR);
		return;
	}
	assert_in_range(done - end.done, 0, THIRD);
	if (++*done != 1)
		fail_msg("operation %td completes %u times", done - end.done, *done);
}

/* All of these have completed. */
static bool all_done(int from, int to)
{
	for (int op = from; op < to; op++) {
		if (end.done[op] != end.posted[op])
			return false;
	}
	return true;
}

/* All but the last messages. */
static bool most_is_done(void)
{
	return end.posted[0] && all_done(0, RECEIVE_LAST);
}

static bool everything_is_done(void)
{
	return all_done(0, OPERATIONS);
}

/* Look until the rings are not hot. */
static void cool(void)
{
	for (int i = 0; i < COOL_LOOKS; i++)
		take(0);
}

/* Wait until the other process has handled what was sent: an access before that would not go straight. */
static void await_handled(void)
{
	const struct tcp_conn *conn = ((struct tcp_ep *) end.node.ep)->rdm.by_addr[end.peer];

	while (conn && conn->io == &tcp_io_ring && !tcp_ring_is_handled(&conn->local->pair->out))
		take(0);
}

static void end_close(void)
{
	assert_int_equal(fi_close(&end.mr->fid), 0);
	node_close(&end.node);
}

/* ---- the peer ---- */

/* stores PORT connects|accepts SIGNAL POINT */
static _Noreturn void peer_main(char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				    .sin_port = htons(atoi(argv[1])) };
	struct fab_sock_ops ops = fab_sock_libc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ops.send = point_send;
	ops.sendmsg = point_sendmsg;
	ops.process_vm_readv = point_readv;
	ops.process_vm_writev = point_writev;
	fab_sock = &ops;
	end_open();
	end.peer = node_insert(&end.node, &addr);
	post_receives();
	assert_int_equal(write(STDOUT_FILENO, &end.node.addr.sin_port, 2), 2);
	fatal_signal = atoi(argv[3]);
	fatal_point = strtoul(argv[4], NULL, 10);
	points = 0;
	while (!strcmp(argv[2], "accepts") && !end.done[RECEIVE])
		take(-1);
	post_all();
	while (!most_is_done())
		take(-1);
	cool();
	await_handled();
	copies = 0;
	post_straight();
	while (!end.done[RECEIVE_LAST])
		take(-1);
	post_message(LAST);
	while (!everything_is_done())
		take(-1);
	end_close();
	assert_true(copies > 1 || strcmp(argv[2], "connects"));
	assert_int_equal(write(STDOUT_FILENO, "d", 1), 1);
	for (;;)
		pause();
}

static struct peer {
	pid_t pid;
	int out;		/* what it writes: its port, and a byte when it has done everything */
	char name[64];		/* of its Unix socket */
	unsigned long point;
	bool met_fate, has_died;
} peer;

static void peer_start(const char *role, int signal, unsigned long point)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char port[8], signal_text[8], point_text[24];
	int pipefd[2];

	snprintf(port, sizeof(port), "%u", ntohs(end.node.addr.sin_port));
	snprintf(signal_text, sizeof(signal_text), "%d", signal);
	snprintf(point_text, sizeof(point_text), "%lu", point);
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	peer = (struct peer) { .pid = fork(), .out = pipefd[0], .point = point };
	if (!peer.pid) {
		dup2(pipefd[1], STDOUT_FILENO);
		execl("/proc/self/exe", "stores", port, role, signal_text, point_text, (char *) NULL);
		_exit(127);
	}
	close(pipefd[1]);
	assert_int_equal(read(peer.out, &addr.sin_port, 2), 2);
	assert_int_equal(fcntl(peer.out, F_SETFL, O_NONBLOCK), 0);
	snprintf(peer.name, sizeof(peer.name), "libfabric-tcp/fi_sockaddr_in://127.0.0.1:%u\n", ntohs(addr.sin_port));
	end.peer = node_insert(&end.node, &addr);
}

/* It has done everything, or has met its fate. */
static bool peer_is_over(void)
{
	int status;
	char byte;

	if (waitpid(peer.pid, &status, WNOHANG | WUNTRACED) == peer.pid) {
		assert_true(WIFSTOPPED(status) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
		peer.met_fate = true;
		peer.has_died = WIFSIGNALED(status);
	}
	return peer.met_fate || read(peer.out, &byte, 1) == 1;
}

static void peer_end(void)
{
	if (!peer.has_died) {
		assert_int_equal(kill(peer.pid, SIGKILL), 0);
		assert_int_equal(waitpid(peer.pid, NULL, 0), peer.pid);
	}
	close(peer.out);
	assert_int_equal(fi_av_remove(end.node.av, &end.peer, 1, 0), 0);
}

/* ---- a third ---- */

static struct node third;
static fi_addr_t to_third, to_end;

/* Inject, as soon as there is a connection. */
static void inject(struct node *from, fi_addr_t to, const char *byte)
{
	uint64_t end_ms = fab_now_ms() + BOUND_MS;
	ssize_t ret;

	while ((ret = fi_tinject(from->ep, byte, 1, to, 3)) == -FI_EAGAIN) {
		take(0);
		fi_cq_read(third.cq, NULL, 0);
		assert_true(fab_now_ms() < end_ms);
	}
	assert_int_equal(ret, 0);
}

/* A message to the third peer, and one back. */
static void talk_to_third(void)
{
	uint64_t end_ms = fab_now_ms() + BOUND_MS;
	struct fi_cq_data_entry entry;
	char in = 0, back = 0;

	assert_int_equal(fi_trecv(third.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 3, 0, NULL), 0);
	inject(&end.node, to_third, "x");
	while (fi_cq_read(third.cq, &entry, 1) != 1) {
		take(0);
		assert_true(fab_now_ms() < end_ms);
	}
	assert_int_equal(in, 'x');
	end.done[THIRD] = 0;
	count_posted(THIRD, fi_trecv(end.node.ep, &back, 1, NULL, FI_ADDR_UNSPEC, 3, 0, &end.done[THIRD]));
	inject(&third, to_end, "y");
	while (!end.done[THIRD]) {
		take(0);
		fi_cq_read(third.cq, NULL, 0);
		assert_true(fab_now_ms() < end_ms);
	}
	assert_int_equal(back, 'y');
}

/* ---- what is left ---- */

static unsigned entries_with(const char *folder, const char *text)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	unsigned cnt = 0;

	while (dir && (entry = readdir(dir)))
		cnt += !!strstr(entry->d_name, text);
	if (dir)
		closedir(dir);
	return cnt;
}

static unsigned lines_with(const char *path, const char *text)
{
	unsigned cnt = 0;
	char line[512];
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		cnt += !!strstr(line, text);
	if (file)
		fclose(file);
	return cnt;
}

static struct left {
	unsigned fds, mappings;
} before;

static struct left left_now(void)
{
	return (struct left) { entries_with("/proc/self/fd", ""), lines_with("/proc/self/maps", "memfd:libfabric") };
}

static void nothing_is_left(void)
{
	uint64_t end_ms = fab_now_ms() + BOUND_MS;
	struct fid_mr *mr;
	struct left now;

	/* a look at streams that have ended while their peer was in the middle of an access */
	assert_int_equal(fi_mr_reg(end.node.domain, end.straight, STRAIGHT_LEN, FI_REMOTE_WRITE, 0, KEY + 1, 0, &mr,
				   NULL), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	do {
		take(0);
		now = left_now();
		if (fab_now_ms() > end_ms)
			fail_msg("%u descriptors and %u mappings are left, of %u and %u; or a socket %s", now.fds,
				 now.mappings, before.fds, before.mappings, peer.name);
		/* another program may have been given the peer's port, for a while */
	} while (now.fds != before.fds || now.mappings != before.mappings || lines_with("/proc/net/unix", peer.name));
	assert_int_equal(entries_with("/dev/shm", "libfabric"), 0);
}

/* ---- rounds ---- */

static int setup(void **state)
{
	(void) state;
	tcp_params.holdoff_ms = 20;
	end_open();
	node_open_at(&third, CAPS, 0);
	to_third = node_insert(&end.node, &third.addr);
	to_end = node_insert(&third, &end.node.addr);
	talk_to_third();
	before = left_now();
	assert_true(before.mappings > 0);
	return 0;
}

static int setup_stall(void **state)
{
	tcp_params.stall_timeout_ms = tcp_params.connect_timeout_ms = tcp_params.reply_timeout_ms = STALL_MS;
	return setup(state);
}

static int teardown(void **state)
{
	(void) state;
	tcp_params.stall_timeout_ms = 0;
	tcp_params.connect_timeout_ms = tcp_params.reply_timeout_ms = BOUND_MS;
	node_close(&third);
	end_close();
	return 0;
}

static void sleep_1ms(void)
{
	take(1);
}

static void await(bool (*over)(void), void (*pass)(void))
{
	uint64_t end_ms = fab_now_ms() + BOUND_MS;

	while (!over()) {
		pass();
		if (fab_now_ms() > end_ms)
			fail_msg("point %lu%s, %s: no end", peer.point, peer.met_fate ? " has come" : "",
				 over == peer_is_over ? "until then" : "after it");
	}
}

static bool posted_are_done(void)
{
	return all_done(0, POSTED);
}

/* Post what is due. */
static void step(void)
{
	take(1);
	if (!end.posted[0] && end.done[RECEIVE])
		post_all();
	if (end.posted[LAST] || !most_is_done())
		return;
	cool();
	post_straight();
	post_message(LAST);
}

/* Both ends post everything; the peer's point comes, or there is none any more. */
static void exchange_until_fate(const char *role, int signal, unsigned long point)
{
	memset(end.posted, 0, sizeof(end.posted));
	memset(end.done, 0, sizeof(end.done));
	memset(end.failed, 0, sizeof(end.failed));
	memset(end.in, 0, sizeof(end.in));
	peer_start(role, signal, point);
	post_receives();
	if (!strcmp(role, "accepts"))
		post_all();
	await(peer_is_over, step);
}

static void check_received(void)
{
	for (int i = 0; i <= LAST; i++) {
		if (!end.failed[RECEIVE + i])
			assert_memory_equal(end.in[i], end.out[i], MESSAGE_LEN);
	}
}

/* What we have asked of the peer ends, and so does it. Receives that have got nothing then are ours to cancel. */
static void finish(void)
{
	await(posted_are_done, sleep_1ms);
	peer_end();
	nothing_is_left();
	for (int op = RECEIVE; op < OPERATIONS; op++) {
		if (!end.done[op])
			assert_int_equal(fi_cancel(&end.node.ep->fid, &end.done[op]), 0);
	}
	await(everything_is_done, sleep_1ms);
	check_received();
}

static void die(const char *role, unsigned long point)
{
	exchange_until_fate(role, SIGKILL, point);
	finish();
}

/* Stop, and go on when we have talked to somebody else. */
static void stop_and_go_on(const char *role, unsigned long point)
{
	exchange_until_fate(role, SIGSTOP, point);
	talk_to_third();
	if (peer.met_fate)
		assert_int_equal(kill(peer.pid, SIGCONT), 0);
	await(everything_is_done, step);
	for (int op = 0; op < OPERATIONS; op++)
		assert_int_equal(end.failed[op], 0);
	finish();
}

/* Stop for good: the peer stalls. */
static void stop_for_good(const char *role, unsigned long point)
{
	exchange_until_fate(role, SIGSTOP, point);
	finish();
}

/* At every point, until there are no more. */
static void at_each_point(void (*round)(const char *role, unsigned long point), const char *role, unsigned stride)
{
	unsigned long point = 1;

	for (round(role, point); peer.met_fate; point += stride) {
		talk_to_third();
		round(role, point + stride);
	}
	print_message("%lu points\n", point - 1);
	assert_true(point > 100);
}

static void a_peer_that_has_connected_dies(void **state)
{
	(void) state;
	at_each_point(die, "connects", STRIDE);
}

static void a_peer_that_has_accepted_dies(void **state)
{
	(void) state;
	at_each_point(die, "accepts", STRIDE);
}

static void a_peer_that_has_connected_stops_for_a_while(void **state)
{
	(void) state;
	at_each_point(stop_and_go_on, "connects", STRIDE);
}

static void a_peer_that_has_accepted_stops_for_a_while(void **state)
{
	(void) state;
	at_each_point(stop_and_go_on, "accepts", STRIDE);
}

static void a_peer_stops_for_good(void **state)
{
	(void) state;
	at_each_point(stop_for_good, "accepts", STALL_STRIDE);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_peer_that_has_connected_dies),
		TEST(a_peer_that_has_accepted_dies),
		TEST(a_peer_that_has_connected_stops_for_a_while),
		TEST(a_peer_that_has_accepted_stops_for_a_while),
		cmocka_unit_test_setup_teardown(a_peer_stops_for_good, setup_stall, teardown),
	};

	if (argc == 5)
		peer_main(argv);
	tcp_params.connect_timeout_ms = tcp_params.reply_timeout_ms = BOUND_MS;
	return cmocka_run_group_tests_name("fault/stores", tests, NULL, NULL);
}
