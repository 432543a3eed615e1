/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every way in which a peer can fail, times every kind of operation: each operation that was accepted completes exactly
 * once (an inject only if it fails), within the bound, without a busy processor meanwhile; and a peer that is started
 * again at the same port, as the same process by its number, is served.
 *
 * Peers that answer are children of this program, with an endpoint each; those that misbehave are plain sockets.
 *
 * The provider is tcp, or the argument: tcp;ofi_rxm.
 */
#include "config.h"
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "base/bits.h"
#include "base/clock.h"
#ifdef HAVE_RXM
#include "rxm/rxm.h"
#endif
#include "rxm/wire.h"
#include "tcp/node.h"
#include "tcp/raw.h"
#include "tcp/params/params.h"

#define CAPS		(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define CONNECT_MS	300
#define REPLY_MS	10000
#define SHORT_MS	100
#define STALL_MS	250		/* long enough for a peer that runs to answer, on a busy machine */
#define BOUND_MS	10000		/* for all that the parameters above bound */
#define WAKES_MAX	200		/* of a loop that sleeps on the queue's descriptor; a busy one has 100,000 */
#define CPU_MAX_MS	300
#define KEY		7
#define REGION_LEN	4096

/* Both lives of a peer have the same number, as those in containers have. Seen by all that is linked here. */
pid_t getpid(void)
{
	return 1;
}

static struct node node;
static char local[64];
static bool rxm;			/* the provider is tcp;ofi_rxm */

/* ---- operations ---- */

static ssize_t op_send(fi_addr_t to, void *context)
{
	return fi_send(node.ep, local, sizeof(local), NULL, to, context);
}

static ssize_t op_tagged(fi_addr_t to, void *context)
{
	return fi_tsend(node.ep, local, sizeof(local), NULL, to, 1, context);
}

/* Without this level, writes and atomics complete when their buffer is free, as sends do. */
#define ANSWERED	(FI_COMPLETION | FI_DELIVERY_COMPLETE)

static ssize_t op_write(fi_addr_t to, void *context)
{
	struct iovec iov = { local, sizeof(local) };
	struct fi_rma_iov rma_iov = { .len = sizeof(local), .key = KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .addr = to, .rma_iov = &rma_iov, .rma_iov_count = 1,
				  .context = context };

	return fi_writemsg(node.ep, &msg, ANSWERED);
}

static ssize_t op_read(fi_addr_t to, void *context)
{
	return fi_read(node.ep, local, sizeof(local), NULL, to, 0, KEY, context);
}

static ssize_t op_atomic(fi_addr_t to, void *context)
{
	struct fi_ioc ioc = { local, 4 };
	struct fi_rma_ioc rma_ioc = { .count = 4, .key = KEY };
	struct fi_msg_atomic msg = { .msg_iov = &ioc, .iov_count = 1, .addr = to, .rma_iov = &rma_ioc,
				     .rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM, .context = context };

	return fi_atomicmsg(node.ep, &msg, ANSWERED);
}

static ssize_t op_fetch(fi_addr_t to, void *context)
{
	return fi_fetch_atomic(node.ep, local, 1, NULL, local + 8, NULL, to, 0, KEY, FI_UINT64, FI_SUM, context);
}

static ssize_t op_inject(fi_addr_t to, void *context)
{
	(void) context;
	return fi_inject(node.ep, local, sizeof(local), to);
}

#define ANSWERING	6		/* of them have completions, the first ones */

static const struct op {
	const char *name;
	ssize_t (*post)(fi_addr_t to, void *context);
	bool silent;			/* no completion, unless it fails */
	bool answered;			/* complete only when the peer has answered */
	bool two_messages;		/* to the provider below ofi_rxm: one that asks, and one that answers */
} ops[] = {
	{ .name = "send", .post = op_send },
	{ .name = "tagged send", .post = op_tagged },
	{ .name = "write", .post = op_write, .answered = true },
	{ .name = "read", .post = op_read, .answered = true },
	{ .name = "atomic", .post = op_atomic, .answered = true, .two_messages = true },
	{ .name = "fetching atomic", .post = op_fetch, .answered = true, .two_messages = true },
	{ .name = "inject", .post = op_inject, .silent = true },
};

/* ---- a peer in a process of its own ---- */

/* Serves until it is killed. This program does it, started again with a port. */
static _Noreturn void peer_main(uint16_t port)
{
	static char region[REGION_LEN], buf[256];
	struct fi_cq_data_entry entry;
	struct fid_mr *mr;
	struct node peer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	node_open_at(&peer, CAPS, port);
	assert_int_equal(fi_mr_reg(peer.domain, region, sizeof(region), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
				   &mr, NULL), 0);
	assert_int_equal(fi_recv(peer.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_trecv(peer.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	assert_int_equal(write(STDOUT_FILENO, &peer.addr.sin_port, sizeof(port)), sizeof(port));
	for (;;)
		fi_cq_sread(peer.cq, &entry, 1, NULL, -1);
}

/* Start one at this port, of raw_port(), so that its next life can have it, too. *addr is where. */
static pid_t peer_start(uint16_t port, struct sockaddr_in *addr)
{
	char text[8];
	int pipefd[2];
	pid_t pid;

	snprintf(text, sizeof(text), "%u", port);
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		dup2(pipefd[1], STDOUT_FILENO);
		execl("/proc/self/exe", "sweep", node_provider, text, (char *) NULL);
		_exit(127);
	}
	close(pipefd[1]);
	*addr = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(read(pipefd[0], &addr->sin_port, sizeof(addr->sin_port)), sizeof(addr->sin_port));
	close(pipefd[0]);
	return pid;
}

static void peer_kill(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- what comes of an operation ---- */

/* An inject that was refused with -FI_EAGAIN and is to be posted again, or NULL; and what it was refused with then. */
static const struct op *refused;
static fi_addr_t refused_to;
static int refused_err;

static void begin(const struct op *op, fi_addr_t to)
{
	ssize_t ret = op->post(to, local);

	if (!op->silent || ret != -FI_EAGAIN) {
		assert_int_equal(ret, 0);
		return;
	}
	refused = op;
	refused_to = to;
	refused_err = 0;
}

static void begin_again(void)
{
	ssize_t ret = refused ? refused->post(refused_to, local) : -FI_EAGAIN;

	if (ret == -FI_EAGAIN)
		return;
	refused = NULL;
	refused_err = (int) -ret;
}

static uint64_t cpu_ms(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
	       (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

static int inject_err;			/* which the inject under way has yet to fail with; 0: none comes */

/* A completion of an operation: its error, 0, or -1 for none. That of an inject is looked at here. */
static int take(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret = fi_cq_read(node.cq, &entry, 1);

	if (ret == -FI_EAGAIN)
		return -1;
	if (ret == 1) {
		assert_ptr_equal(entry.op_context, local);
		return 0;
	}
	assert_int_equal(fi_cq_readerr(node.cq, &err, 0), 1);
	if (err.op_context == local)
		return err.err;
	assert_null(err.op_context);
	if (!inject_err || err.err != inject_err)
		fail_msg("of an inject: %s, expected %s", fi_strerror(err.err), inject_err ? fi_strerror(inject_err) :
			 "nothing");
	inject_err = 0;
	return -1;
}

/* Sleep on the queue until there is a completion, for so long at most: its error, 0, or -1 for none. Asleep is
 * asleep. */
static int await(int for_ms)
{
	uint64_t end_ms = fab_now_ms() + for_ms, cpu = cpu_ms();
	struct fid *fids[] = { &node.cq->fid };
	struct pollfd pfd = { .events = POLLIN };
	int wakes = 0, err;

	assert_int_equal(fi_control(&node.cq->fid, FI_GETWAIT, &pfd.fd), 0);
	while ((err = take()) < 0 && fab_now_ms() < end_ms) {
		if (!fi_trywait(node.fabric, fids, 1))
			poll(&pfd, 1, fab_max((int) (end_ms - fab_now_ms()), 0));
		assert_true(++wakes < WAKES_MAX);
	}
	assert_true(cpu_ms() - cpu < CPU_MAX_MS);
	return err;
}

/* An inject that fails says so, by the call or, as there is no other way to hear of it, an entry (fi_msg(3)). */
static void await_inject(void)
{
	uint64_t end_ms = fab_now_ms() + BOUND_MS;

	for (begin_again(); refused; begin_again()) {
		assert_true(fab_now_ms() < end_ms);
		assert_int_equal(await(5), -1);
	}
	if (refused_err) {
		assert_int_equal(refused_err, inject_err);
		refused_err = inject_err = 0;
	}
	while (inject_err) {
		assert_true(fab_now_ms() < end_ms);
		assert_int_equal(await(5), -1);
	}
}

static void expect(const struct op *op, int err)
{
	int got;

	inject_err = op->silent ? err : 0;
	if (op->silent) {
		await_inject();
		return;
	}
	got = await(BOUND_MS);
	if (got != err)
		fail_msg("%s: %d (%s), expected %d (%s)", op->name, got, got < 0 ? "nothing" : fi_strerror(got), err,
			 fi_strerror(err));
}

/* Nothing more comes, and a peer that is there now, at the same port, is served. */
static void expect_served(const struct op *op, fi_addr_t to)
{
	uint64_t end_ms = fab_now_ms() + BOUND_MS;
	int err;

	assert_int_equal(await(5), -1);
	do {
		assert_true(fab_now_ms() < end_ms);
		while ((err = op_read(to, local)))
			await(5);		/* the hold-off, in which it fails at once */
		err = await(BOUND_MS);
	} while (err == FI_ECONNREFUSED || err == FI_ETIMEDOUT);
	if (err)
		fail_msg("a read after a failed %s: %s", op->name, fi_strerror(err));
	assert_int_equal(await(5), -1);
}

static void expect_restart(const struct op *op, fi_addr_t to, const struct sockaddr_in *addr)
{
	struct sockaddr_in again;
	pid_t pid = peer_start(ntohs(addr->sin_port), &again);

	expect_served(op, to);
	peer_kill(pid);
}

/* ---- faults ---- */

static void refuse(const struct op *op)
{
	struct sockaddr_in addr;
	fi_addr_t to;

	close(raw_listen(&addr, 1));
	to = node_insert(&node, &addr);
	begin(op, to);
	expect(op, FI_ECONNREFUSED);
	expect_restart(op, to, &addr);
}

/* A listener whose queue is full answers no SYN. */
static void black_hole(const struct op *op)
{
	struct sockaddr_in addr;
	int fd = raw_listen(&addr, 0), fill = raw_connect(&addr);
	fi_addr_t to = node_insert(&node, &addr);

	begin(op, to);
	expect(op, FI_ETIMEDOUT);
	close(fill);
	close(fd);
	expect_restart(op, to, &addr);
}

static void drive(void *arg)
{
	(void) arg;
	fi_cq_read(node.cq, NULL, 0);
	begin_again();
}

static struct cm_bytes raw_answer(uint16_t port)
{
	const struct rxm_cm_rsp rsp = { .conn_id = 1, .rx_size = 64, .flow_ctrl = 2, .ext = RXM_EXT };

	return rxm ? raw_cm(TCP_CM_CONNRESP, &rsp, sizeof(rsp)) : raw_rdm_cm(TCP_CM_CONNRESP, port, 1);
}

/* A plain socket that the node has connected to, and its operation in it. */
static int misbehaving_peer(const struct op *op, struct sockaddr_in *addr, fi_addr_t *to)
{
	const size_t private = rxm ? sizeof(struct rxm_cm_req) : sizeof(struct tcp_rdm_cm);
	uint8_t request[sizeof(struct tcp_cm_hdr) + TCP_CM_DATA_MAX];
	int listener = raw_listen(addr, 1), fd;
	struct cm_bytes reply = raw_answer(ntohs(addr->sin_port));
	uint8_t header[sizeof(struct tcp_hdr)];

	/* so that the next one can be bound there at once */
	assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int) { 1 }, sizeof(int)), 0);
	*to = node_insert(&node, addr);
	begin(op, *to);
	fd = raw_accept(listener, drive, NULL);
	raw_recv(fd, request, sizeof(struct tcp_cm_hdr) + private, drive, NULL);
	reply.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_AMO);
	reply.hdr.incarnation = 1;
	reply.hdr.eager_max = reply.hdr.credit = htobe32(REGION_LEN);
	raw_send(fd, &reply, raw_len(&reply));
	raw_recv(fd, header, sizeof(header), drive, NULL);
	close(listener);
	return fd;
}

static void reset_in_a_header(const struct op *op)
{
	struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(hdr) };
	struct linger reset = { .l_onoff = 1 };
	struct sockaddr_in addr;
	fi_addr_t to;
	int fd = misbehaving_peer(op, &addr, &to);

	raw_send(fd, &hdr, 7);
	drive(NULL);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	close(fd);
	expect(op, op->answered ? FI_ECONNRESET : 0);
	expect_restart(op, to, &addr);
}

static void half_close(const struct op *op)
{
	struct sockaddr_in addr;
	fi_addr_t to;
	int fd = misbehaving_peer(op, &addr, &to);

	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	expect(op, op->answered ? FI_ECONNRESET : 0);
	assert_true(raw_recv_end(fd, drive, NULL));
	close(fd);
	expect_restart(op, to, &addr);
}

/* Its kernel is well, so it is slow and not gone: nothing fails, and all completes when it goes on. */
static void stop(const struct op *op, bool connected)
{
	struct sockaddr_in addr;
	pid_t pid = peer_start(raw_port(), &addr);
	fi_addr_t to = node_insert(&node, &addr);
	bool waits = op->answered || !connected;

	if (connected)
		expect_served(op, to);
	kill(pid, SIGSTOP);
	begin(op, to);
	if (waits)
		assert_int_equal(await(100), -1);
	kill(pid, SIGCONT);
	expect(op, 0);
	assert_int_equal(await(5), -1);
	peer_kill(pid);
}

static void stop_before_connect(const struct op *op)
{
	stop(op, false);
}

static void stop_connected(const struct op *op)
{
	stop(op, true);
}

/* Where a bound is set for those that are slow, they are given up, and served when they go on. */
static void stop_past_the_bound(const struct op *op)
{
	struct sockaddr_in addr;
	pid_t pid = peer_start(raw_port(), &addr);
	fi_addr_t to = node_insert(&node, &addr);

	tcp_params.connect_timeout_ms = tcp_params.reply_timeout_ms = SHORT_MS;
	kill(pid, SIGSTOP);
	begin(op, to);
	expect(op, FI_ETIMEDOUT);
	tcp_params.connect_timeout_ms = CONNECT_MS;
	tcp_params.reply_timeout_ms = REPLY_MS;
	kill(pid, SIGCONT);
	expect_served(op, to);
	peer_kill(pid);
}

/* The same of one that is connected, where tcp waits for it: for the answer to a message nobody knows how long. */
static void stop_connected_past_the_bound(const struct op *op)
{
	struct sockaddr_in addr;
	fi_addr_t to;
	pid_t pid;

	if (rxm && op->two_messages)
		return;
	pid = peer_start(raw_port(), &addr);
	to = node_insert(&node, &addr);
	expect_served(op, to);
	kill(pid, SIGSTOP);
	begin(op, to);
	expect(op, op->answered ? FI_ETIMEDOUT : 0);
	kill(pid, SIGCONT);
	expect_served(op, to);
	peer_kill(pid);
}

/* Stopped first, so that it is sure to die with the operation unanswered. */
static void die(const struct op *op, bool connected)
{
	struct sockaddr_in addr;
	pid_t pid = peer_start(raw_port(), &addr);
	fi_addr_t to = node_insert(&node, &addr);

	if (connected)
		expect_served(op, to);
	kill(pid, SIGSTOP);
	begin(op, to);
	drive(NULL);
	peer_kill(pid);
	if (connected)
		expect(op, op->answered ? FI_ECONNRESET : 0);
	else
		expect(op, FI_ECONNREFUSED);
	expect_restart(op, to, &addr);
}

static void die_before_connect(const struct op *op)
{
	die(op, false);
}

static void die_connected(const struct op *op)
{
	die(op, true);
}

/* ---- any order of them ---- */

#define SEEDS	6
#define STEPS	24

static uint8_t done[STEPS];
static uint64_t seed;

static uint32_t dice(uint32_t cnt)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % cnt;
}

/* Take all completions that there are. */
static void collect(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(node.cq, &entry, 1)) != -FI_EAGAIN) {
		if (ret == -FI_EAVAIL)
			fi_cq_readerr(node.cq, &err, 0);
		(*(uint8_t *) (ret == 1 ? entry.op_context : err.op_context))++;
	}
}

static void random_event(pid_t *pid, const struct sockaddr_in *addr)
{
	struct sockaddr_in again;

	switch (dice(6)) {
	case 0:
		kill(*pid, SIGSTOP);
		break;
	case 1:
		kill(*pid, SIGCONT);
		break;
	case 2:
		peer_kill(*pid);
		collect();
		*pid = peer_start(ntohs(addr->sin_port), &again);
		break;
	default:
		collect();
	}
}

/* Whatever order these come in: what was accepted completes once, and in the end the peer is served. */
static void random_lives(void **state)
{
	(void) state;
	for (uint64_t i = 1; i <= SEEDS; i++) {
		uint64_t end_ms = fab_now_ms() + 2 * BOUND_MS;
		struct sockaddr_in addr;
		pid_t pid = peer_start(raw_port(), &addr);
		fi_addr_t to = node_insert(&node, &addr);
		uint32_t posted = 0, completed;

		seed = i;
		memset(done, 0, sizeof(done));
		for (int step = 0; step < STEPS; step++) {
			posted += !ops[dice(ANSWERING)].post(to, &done[posted]);
			random_event(&pid, &addr);
		}
		kill(pid, SIGCONT);
		do {
			collect();
			completed = 0;
			for (uint32_t n = 0; n < posted; n++)
				completed += done[n];
			assert_true(fab_now_ms() < end_ms);
		} while (completed < posted);
		for (uint32_t n = 0; n < posted; n++)
			assert_int_equal(done[n], 1);
		expect_served(&ops[0], to);
		peer_kill(pid);
	}
}

/* ---- the sweep ---- */

static int setup(void **state)
{
	(void) state;
	tcp_params.connect_timeout_ms = CONNECT_MS;
	tcp_params.reply_timeout_ms = REPLY_MS;
	tcp_params.holdoff_ms = 20;
#ifdef HAVE_RXM
	rxm_params.holdoff_ms = 20;
#endif
	node_open_at(&node, CAPS, 0);
	return 0;
}

static int setup_stall(void **state)
{
	tcp_params.stall_timeout_ms = STALL_MS;
	return setup(state);
}

static int teardown(void **state)
{
	(void) state;
	node_close(&node);
	tcp_params.stall_timeout_ms = 0;
	return 0;
}

static void sweep(void (*fault)(const struct op *op))
{
	for (size_t i = 0; i < fab_countof(ops); i++)
		fault(&ops[i]);
}

#define SWEEP(fault) \
	static void sweep_ ## fault(void **state) { (void) state; sweep(fault); }
SWEEP(refuse)
SWEEP(black_hole)
SWEEP(reset_in_a_header)
SWEEP(half_close)
SWEEP(stop_before_connect)
SWEEP(stop_connected)
SWEEP(stop_past_the_bound)
SWEEP(stop_connected_past_the_bound)
SWEEP(die_before_connect)
SWEEP(die_connected)

#define TEST(fault) { #fault, sweep_ ## fault, setup, teardown, NULL }

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(refuse), TEST(black_hole), TEST(reset_in_a_header), TEST(half_close), TEST(stop_before_connect),
		TEST(stop_connected), TEST(stop_past_the_bound), TEST(die_before_connect), TEST(die_connected),
		{ "stop_connected_past_the_bound", sweep_stop_connected_past_the_bound, setup_stall, teardown, NULL },
		cmocka_unit_test_setup_teardown(random_lives, setup, teardown),
	};

	if (argc > 1)
		node_provider = argv[1];
	rxm = !strcmp(node_provider, "tcp;ofi_rxm");
	if (argc == 3)
		peer_main(atoi(argv[2]));
	return cmocka_run_group_tests_name("fault/sweep", tests, NULL, NULL);
}
