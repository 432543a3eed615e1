/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many connections at once: those that an endpoint of tcp;ofi_rxm makes go in turn, 64 at a time, and one that nobody
 * answers keeps its turn for a second; those that peers make are taken a few in a pass; and one that fails in the
 * making is made anew where that may help. The clock stands still unless a test moves it.
 */
#include "base/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "rxm/rig.h"
#include "rxm/rxm.h"
#include "tcp/params/params.h"

#define S		1000000000ULL	/* ns */
#define PASSES		300		/* far more than anything takes that is not to wait */
#define YOUNG		64		/* prov/rxm/peer.c */
#define MANY		150		/* more than two rounds of that */
#define CALLERS		200
#define A_PASS		32		/* of them, taken in one pass at most */

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct side {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
} side;
static unsigned done[MANY], errors[MANY];	/* completions of each operation, and of those, with FI_ETIMEDOUT */
static unsigned done_cnt, recv_cnt, failed_cnt;
static char buf[8];

/* ---- time ---- */

static uint64_t now_ns = 1000 * S;

static uint64_t clock_now(void)
{
	return now_ns;
}

static uint64_t clock_random(void)
{
	static uint64_t last;

	return ++last * 0x9e3779b97f4a7c15ULL;
}

/* ---- the endpoint ---- */

static void note(const void *context, int err)
{
	size_t i = (size_t) ((const char *) context - (const char *) done) / sizeof(*done);

	if (!context) {
		recv_cnt++;
		return;
	}
	assert_true(i < MANY);
	done[i]++;
	done_cnt++;
	errors[i] += err == FI_ETIMEDOUT;
	failed_cnt += err != 0;
}

static void drive(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry entry[16];
	ssize_t cnt = fi_cq_read(side.cq, entry, 16);

	for (ssize_t i = 0; i < cnt; i++)
		note(entry[i].op_context, 0);
	if (cnt == -FI_EAVAIL && fi_cq_readerr(side.cq, &err, 0) == 1)
		note(err.op_context, err.err);
}

#define until(cond)	rig_wait(cond, drive())

static struct fid_ep *open_ep(void)
{
	struct fid_ep *one;

	OK(fi_endpoint(side.domain, info, &one, NULL));
	OK(fi_ep_bind(one, &side.av->fid, 0));
	OK(fi_ep_bind(one, &side.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(one));
	return one;
}

static void side_open(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	OK(fi_domain(fabric, info, &side.domain, NULL));
	OK(fi_av_open(side.domain, &av_attr, &side.av, NULL));
	OK(fi_cq_open(side.domain, &cq_attr, &side.cq, NULL));
	side.ep = open_ep();
}

static void side_close(void)
{
	OK(fi_close(&side.ep->fid));
	OK(fi_close(&side.cq->fid));
	OK(fi_close(&side.av->fid));
	OK(fi_close(&side.domain->fid));
}

static int setup(void **state)
{
	(void) state;
	info = rig_find("tcp;ofi_rxm", FI_EP_RDM);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	side_open();
	memset(done, 0, sizeof(done));
	memset(errors, 0, sizeof(errors));
	done_cnt = recv_cnt = failed_cnt = 0;
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	side_close();
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return 0;
}

static void send_to(const struct sockaddr_in *addr, unsigned i)
{
	fi_addr_t to;

	assert_int_equal(fi_av_insert(side.av, addr, 1, &to, 0, NULL), 1);
	OK((int) fi_send(side.ep, buf, sizeof(buf), NULL, to, &done[i]));
}

/* ---- to peers that do not answer ---- */

/* One socket listens at every loopback address, which makes as many peers of it as one likes. */
static int listen_everywhere(struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(*addr);

	*addr = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY) };
	OK(bind(fd, (struct sockaddr *) addr, sizeof(*addr)));
	OK(listen(fd, MANY));
	OK(getsockname(fd, (struct sockaddr *) addr, &len));
	return fd;
}

static int taken[MANY];
static unsigned taken_cnt;

static void take_calls(int listener)
{
	int fd;

	while (taken_cnt < MANY && (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		taken[taken_cnt++] = fd;
}

/* A send to each of them; the socket. */
static int send_everywhere(void)
{
	struct sockaddr_in addr;
	int listener = listen_everywhere(&addr);

	taken_cnt = 0;
	for (unsigned i = 0; i < MANY; i++) {
		addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + i);
		send_to(&addr, i);
	}
	return listener;
}

/* So many have been called so far, and no more are. */
static void expect_calls(int listener, unsigned cnt)
{
	uint64_t end_ms = rig_now_ms() + RIG_PATIENCE_MS;

	while (taken_cnt < cnt && rig_now_ms() < end_ms) {
		drive();
		take_calls(listener);
	}
	for (int i = 0; i < PASSES; i++)
		drive();
	take_calls(listener);
	assert_int_equal(taken_cnt, cnt);
	assert_int_equal(done_cnt, 0);
}

static void nobody_answers(void **state)
{
	int listener = send_everywhere();

	(void) state;
	expect_calls(listener, YOUNG);
	now_ns += S + S / 10;
	expect_calls(listener, 2 * YOUNG);
	now_ns += S + S / 10;
	expect_calls(listener, MANY);
	/* all have had their time, which begins with their turn */
	now_ns += ((uint64_t) rxm_params.connect_timeout_ms / 1000 + 1) * S;
	until(done_cnt >= MANY);
	for (int i = 0; i < PASSES; i++)
		drive();
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(done[i], 1);
		assert_int_equal(errors[i], 1);
		close(taken[i]);
	}
	close(listener);
}

/* ---- to peers that do ---- */

static struct fid_ep *peers[MANY];

/* Who has been answered gives its turn to the next. */
static void all_answer(void **state)
{
	struct sockaddr_in addr;

	(void) state;
	for (unsigned i = 0; i < MANY; i++) {
		size_t len = sizeof(addr);

		peers[i] = open_ep();
		OK((int) fi_recv(peers[i], buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL));
		OK(fi_getname(&peers[i]->fid, &addr, &len));
		send_to(&addr, i);
	}
	until(done_cnt == MANY && recv_cnt == MANY);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(done[i], 1);
		assert_int_equal(errors[i], 0);
		OK(fi_close(&peers[i]->fid));
	}
}

/* Nor does one whose address is removed while it is in line stop the others, or that fails. */
static void some_go(void **state)
{
	int listener = send_everywhere();
	fi_addr_t to;

	(void) state;
	expect_calls(listener, YOUNG);
	/* of those in line, the first */
	to = YOUNG;
	OK(fi_cancel(&side.ep->fid, &done[to]));
	OK(fi_av_remove(side.av, &to, 1, 0));
	until(done_cnt == 1);
	assert_int_equal(done[YOUNG], 1);
	close(listener);
	for (unsigned i = 0; i < taken_cnt; i++)
		close(taken[i]);
	until(done_cnt == MANY || (now_ns += S / 1000, false));
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(done[i], 1);
}

/* ---- from peers ---- */

struct caller {
	struct fid_ep *ep;
	bool up;
};

static struct fi_info *caller_info;
static struct fid_fabric *caller_fabric;
static struct fid_domain *caller_domain;
static struct fid_eq *caller_eq;
static struct fid_cq *caller_cq;
static struct caller callers[CALLERS];
static unsigned up_cnt, ended_cnt, refused_cnt;

static void call(struct caller *caller, uint16_t port, uint64_t life, bool ext, const struct sockaddr_in *addr)
{
	/* by the port that it says it listens at each is another peer */
	const struct rxm_cm_req req = {
		.version = RXM_CM_VERSION, .endian = RXM_ENDIAN, .ctrl_version = RXM_CTRL_VERSION,
		.op_version = RXM_CM_OP_VERSION, .flow_ctrl = 2, .eager_limit = RXM_EAGER_MAX,
		.rx_size = 16 | (ext ? RXM_EXT << RXM_EXT_SHIFT : 0), .conn_id = life, .port = port,
	};

	caller->up = false;
	OK(fi_endpoint(caller_domain, caller_info, &caller->ep, caller));
	OK(fi_ep_bind(caller->ep, &caller_eq->fid, 0));
	OK(fi_ep_bind(caller->ep, &caller_cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(caller->ep));
	OK(fi_connect(caller->ep, addr, &req, sizeof(req)));
}

static void drive_callers(void)
{
	uint8_t room[512];
	uint32_t event;
	ssize_t ret;

	while ((ret = fi_eq_read(caller_eq, &event, room, sizeof(room), 0)) > 0 || ret == -FI_EAVAIL) {
		struct fi_eq_err_entry err = { 0 };

		if (ret > 0) {
			up_cnt += event == FI_CONNECTED;
			ended_cnt += event == FI_SHUTDOWN;
			continue;
		}
		assert_int_equal(fi_eq_readerr(caller_eq, &err, 0), sizeof(err));
		assert_int_equal(err.err, FI_ECONNREFUSED);
		refused_cnt++;
	}
	assert_int_equal(ret, -FI_EAGAIN);
}

/* Let their requests come into the queue below, and stay there. */
static void pile_up(void)
{
	struct fid_eq *eq = rxm_ep_of(&side.ep->fid)->poller->eq;
	uint8_t room[512];
	uint32_t event;

	for (int i = 0; i < PASSES; i++) {
		drive_callers();
		fi_eq_read(eq, &event, room, sizeof(room), FI_PEEK);
	}
}

static unsigned conn_cnt(void)
{
	struct fab_list *link;
	unsigned cnt = 0;

	fab_list_for_each(&rxm_ep_of(&side.ep->fid)->conns, link)
		cnt++;
	return cnt;
}

static void callers_open(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_eq_attr eq_attr = { 0 };

	caller_info = rig_find("tcp", FI_EP_MSG);
	OK(fi_fabric(caller_info->fabric_attr, &caller_fabric, NULL));
	OK(fi_domain(caller_fabric, caller_info, &caller_domain, NULL));
	OK(fi_eq_open(caller_fabric, &eq_attr, &caller_eq, NULL));
	OK(fi_cq_open(caller_domain, &cq_attr, &caller_cq, NULL));
	up_cnt = ended_cnt = refused_cnt = 0;
}

static void callers_close(unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		OK(fi_close(&callers[i].ep->fid));
	OK(fi_close(&caller_cq->fid));
	OK(fi_close(&caller_eq->fid));
	OK(fi_close(&caller_domain->fid));
	OK(fi_close(&caller_fabric->fid));
	fi_freeinfo(caller_info);
}

/* Drive all until so many have been accepted; never more than a_pass of them in one pass. */
static void await_up(unsigned cnt, unsigned a_pass)
{
	uint64_t end_ms = rig_now_ms() + RIG_PATIENCE_MS;
	unsigned before, after = conn_cnt();

	while (up_cnt < cnt && rig_now_ms() < end_ms) {
		drive_callers();
		now_ns += S / 1000000;	/* an engine looks at its idle sources from time to time */
		before = after;
		drive();
		after = conn_cnt();
		assert_true(after <= before + a_pass);
	}
	assert_int_equal(up_cnt, cnt);
}

/* All are served, and in between is time for what else there is to do. */
static void many_call(void **state)
{
	struct sockaddr_in addr;
	size_t len = sizeof(addr);

	(void) state;
	callers_open();
	OK(fi_getname(&side.ep->fid, &addr, &len));
	for (unsigned i = 0; i < CALLERS; i++)
		call(&callers[i], (uint16_t) (1 + i), 1, true, &addr);
	pile_up();
	await_up(CALLERS, A_PASS);
	assert_int_equal(conn_cnt(), CALLERS);
	callers_close(CALLERS);
}

/* Who is in no address vector is known by its connection alone; its next life takes the place of the former, if it is
 * an upstream peer's: others are asked first (test/rxm/peer). */
static void stranger_comes_back(void **state)
{
	struct sockaddr_in addr;
	size_t len = sizeof(addr);

	(void) state;
	callers_open();
	OK(fi_getname(&side.ep->fid, &addr, &len));
	for (unsigned i = 0; i < 3; i++) {
		call(&callers[i], 1, 1 + i, false, &addr);
		await_up(1 + i, 1);
		assert_int_equal(conn_cnt(), 1);
	}
	callers_close(3);
}

/* Of two that ask at once in the name of one peer, the first to be accepted stays: it is up before the other request is
 * read, and then its peer is asked. */
static void first_is_not_stolen(void **state)
{
	const struct rxm_conn *conn;
	struct sockaddr_in addr;
	size_t len = sizeof(addr);

	(void) state;
	callers_open();
	OK(fi_getname(&side.ep->fid, &addr, &len));
	call(&callers[0], 1, 1, true, &addr);
	call(&callers[1], 1, 2, true, &addr);
	for (int i = 0; i < PASSES; i++)
		drive_callers();
	pile_up();
	until(refused_cnt == 1 || (drive_callers(), false));
	await_up(1, 1);
	assert_int_equal(conn_cnt(), 1);
	conn = fab_list_first(&rxm_ep_of(&side.ep->fid)->conns, struct rxm_conn, link);
	assert_in_range(conn->peer_id, 1, 2);
	/* the one that is up has not seen the end of its connection */
	assert_int_equal(ended_cnt, 0);
	callers_close(2);
}

#define LET_IN	10			/* strangers */

/* Requests that endpoints have refused, as the page of the process says. */
static uint64_t refused_figure(void)
{
	rxm_account_show(rxm_ep_of(&side.ep->fid));
	return *fab_stats_figure(&rxm_prov, "rxm_refused_requests", FI_STATS_COUNTER);
}

/* Only so many strangers are let in; who is in the address vector finds a place. */
static void strangers_are_turned_away(void **state)
{
	uint64_t refused_before = refused_figure();
	struct sockaddr_in addr, known = { .sin_family = AF_INET, .sin_port = htons(1),
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	size_t len = sizeof(addr);

	(void) state;
	rxm_params.stranger_conn = LET_IN;
	callers_open();
	OK(fi_getname(&side.ep->fid, &addr, &len));
	for (unsigned i = 0; i < 2 * LET_IN; i++)
		call(&callers[i], (uint16_t) (2 + i), 1, true, &addr);
	await_up(LET_IN, A_PASS);
	until(refused_cnt == LET_IN || (drive_callers(), false));
	assert_int_equal(fi_av_insert(side.av, &known, 1, NULL, 0, NULL), 1);
	call(&callers[2 * LET_IN], 1, 1, true, &addr);
	await_up(LET_IN + 1, A_PASS);
	assert_int_equal(conn_cnt(), LET_IN + 1);
	assert_int_equal(refused_cnt, LET_IN);
	assert_int_equal(refused_figure() - refused_before, LET_IN);
	callers_close(2 * LET_IN + 1);
	rxm_params.stranger_conn = RXM_STRANGER_CONN;
}

/* ---- a busy peer ---- */

/* What is below has no patience with a peer that is there, and busy with other things: our attempts end, one after the
 * other, and the message waits until the peer has time. */
static void busy_peer(void **state)
{
	const int reply_timeout_ms = tcp_params.reply_timeout_ms;
	struct side ours = side, busy;
	uint64_t end_ms = rig_now_ms() + RIG_PATIENCE_MS;
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	char in[8];

	(void) state;
	tcp_params.reply_timeout_ms = 10000;
	rxm_ep_of(&side.ep->fid)->domain->patient = false;
	side_open();
	busy = side;
	OK(fi_getname(&side.ep->fid, &addr, &len));
	OK((int) fi_recv(side.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
	side = ours;
	send_to(&addr, 0);
	for (int i = 0; i < 3; i++) {
		for (int pass = 0; pass < PASSES; pass++) {
			now_ns += S / 1000;
			drive();
		}
		now_ns += 12 * S;
	}
	assert_int_equal(done_cnt, 0);
	/* now it has time */
	while ((done_cnt < 1 || recv_cnt < 1) && rig_now_ms() < end_ms) {
		now_ns += S / 10000;
		side = ours;
		drive();
		side = busy;
		drive();
	}
	assert_int_equal(done_cnt, 1);
	assert_int_equal(recv_cnt, 1);
	assert_int_equal(failed_cnt, 0);
	side_close();
	side = ours;
	tcp_params.reply_timeout_ms = reply_timeout_ms;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct fab_clock_ops clock = { .now_ns = clock_now, .random64 = clock_random };
	const struct CMUnitTest tests[] = {
		CASE(nobody_answers),
		CASE(all_answer),
		CASE(some_go),
		CASE(many_call),
		CASE(stranger_comes_back),
		CASE(first_is_not_stolen),
		CASE(strangers_are_turned_away),
		CASE(busy_peer),
	};

	fab_clock = &clock;
	return cmocka_run_group_tests_name("rxm/storm", tests, NULL, NULL);
}
