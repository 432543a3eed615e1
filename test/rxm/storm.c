/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many connections at once: those that an endpoint of tcp;ofi_rxm makes go in turn, 64 at a time, and one that nobody
 * answers keeps its turn for a second; those that peers make are taken a few in a pass. The clock stands still unless a
 * test moves it.
 */
#include "base/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "rxm/rxm.h"

#define OK(call)	assert_int_equal(call, 0)
#define S		1000000000ULL	/* ns */
#define PATIENCE_S	60
#define PASSES		300		/* far more than anything takes that is not to wait */
#define YOUNG		64		/* prov/rxm/peer.c */
#define MANY		150		/* more than two rounds of that */
#define CALLERS		200
#define A_PASS		32		/* of them, taken in one pass at most */

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static unsigned done[MANY], errors[MANY];	/* completions of each operation, and of those, with FI_ETIMEDOUT */
static unsigned done_cnt, recv_cnt;
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

static time_t real_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
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
}

static void drive(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry entry[16];
	ssize_t cnt = fi_cq_read(cq, entry, 16);

	for (ssize_t i = 0; i < cnt; i++)
		note(entry[i].op_context, 0);
	if (cnt == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1)
		note(err.op_context, err.err);
}

#define until(cond)								\
	do {									\
		time_t end_ = real_s() + PATIENCE_S;				\
		while (!(cond)) {						\
			drive();						\
			if (real_s() > end_)					\
				fail_msg("in vain waited for %s", #cond);	\
		}								\
	} while (0)

static struct fi_info *find(const char *prov, enum fi_ep_type type)
{
	struct fi_info *hints = fi_allocinfo(), *found;

	hints->caps = FI_MSG | (type == FI_EP_RDM ? FI_TAGGED : 0);
	hints->ep_attr->type = type;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup(prov);
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE | FI_NUMERICHOST, hints, &found));
	fi_freeinfo(hints);
	return found;
}

static struct fid_ep *open_ep(void)
{
	struct fid_ep *one;

	OK(fi_endpoint(domain, info, &one, NULL));
	OK(fi_ep_bind(one, &av->fid, 0));
	OK(fi_ep_bind(one, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(one));
	return one;
}

static int setup(void **state)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	(void) state;
	info = find("tcp;ofi_rxm", FI_EP_RDM);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_av_open(domain, &av_attr, &av, NULL));
	OK(fi_cq_open(domain, &cq_attr, &cq, NULL));
	ep = open_ep();
	memset(done, 0, sizeof(done));
	memset(errors, 0, sizeof(errors));
	done_cnt = recv_cnt = 0;
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	OK(fi_close(&ep->fid));
	OK(fi_close(&cq->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return 0;
}

static void send_to(const struct sockaddr_in *addr, unsigned i)
{
	fi_addr_t to;

	assert_int_equal(fi_av_insert(av, addr, 1, &to, 0, NULL), 1);
	OK((int) fi_send(ep, buf, sizeof(buf), NULL, to, &done[i]));
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
	time_t end = real_s() + PATIENCE_S;

	while (taken_cnt < cnt && real_s() < end) {
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

/* On all who have called so far. */
static void hang_up(int listener)
{
	static unsigned hung_up;

	if (hung_up > taken_cnt)
		hung_up = 0;
	take_calls(listener);
	for (; hung_up < taken_cnt; hung_up++)
		close(taken[hung_up]);
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
	OK(fi_cancel(&ep->fid, &done[to]));
	OK(fi_av_remove(av, &to, 1, 0));
	until(done_cnt == 1);
	assert_int_equal(done[YOUNG], 1);
	until(done_cnt == MANY || (hang_up(listener), false));
	assert_int_equal(taken_cnt, MANY - 1);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(done[i], 1);
	close(listener);
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
static unsigned up_cnt;

static void call(struct caller *caller, uint16_t port, const struct sockaddr_in *addr)
{
	/* by the port that it says it listens at each is another peer */
	const struct rxm_cm_req req = {
		.version = RXM_CM_VERSION, .endian = RXM_ENDIAN, .ctrl_version = RXM_CTRL_VERSION,
		.op_version = RXM_CM_OP_VERSION, .flow_ctrl = 2, .ext = RXM_EXT, .eager_limit = RXM_EAGER_MAX, .rx_size = 16,
		.conn_id = port, .port = port,
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

	while ((ret = fi_eq_read(caller_eq, &event, room, sizeof(room), 0)) > 0) {
		assert_int_equal(event, FI_CONNECTED);
		up_cnt++;
	}
	assert_int_equal(ret, -FI_EAGAIN);
}

/* Let their requests come into the queue below, and stay there. */
static void pile_up(void)
{
	struct fid_eq *eq = rxm_ep_of(&ep->fid)->poller->eq;
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

	fab_list_for_each(&rxm_ep_of(&ep->fid)->conns, link)
		cnt++;
	return cnt;
}

/* All are served, and in between is time for what else there is to do. */
static void many_call(void **state)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_eq_attr eq_attr = { 0 };
	time_t end = real_s() + PATIENCE_S;
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	unsigned before, after = 0;

	(void) state;
	caller_info = find("tcp", FI_EP_MSG);
	OK(fi_fabric(caller_info->fabric_attr, &caller_fabric, NULL));
	OK(fi_domain(caller_fabric, caller_info, &caller_domain, NULL));
	OK(fi_eq_open(caller_fabric, &eq_attr, &caller_eq, NULL));
	OK(fi_cq_open(caller_domain, &cq_attr, &caller_cq, NULL));
	OK(fi_getname(&ep->fid, &addr, &len));
	up_cnt = 0;
	for (unsigned i = 0; i < CALLERS; i++)
		call(&callers[i], (uint16_t) (1 + i), &addr);
	pile_up();
	while (up_cnt < CALLERS && real_s() < end) {
		drive_callers();
		now_ns += S / 1000000;	/* an engine looks at its idle sources from time to time */
		before = after;
		drive();
		after = conn_cnt();
		assert_true(after - before <= A_PASS);
	}
	assert_int_equal(up_cnt, CALLERS);
	assert_int_equal(after, CALLERS);
	for (unsigned i = 0; i < CALLERS; i++)
		OK(fi_close(&callers[i].ep->fid));
	OK(fi_close(&caller_cq->fid));
	OK(fi_close(&caller_eq->fid));
	OK(fi_close(&caller_domain->fid));
	OK(fi_close(&caller_fabric->fid));
	fi_freeinfo(caller_info);
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
	};

	fab_clock = &clock;
	return cmocka_run_group_tests_name("rxm/storm", tests, NULL, NULL);
}
