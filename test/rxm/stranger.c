/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers in no address vector of an endpoint of tcp;ofi_rxm: the endpoints of tcp below learn that they are strangers,
 * so that these have the time of strangers, and nothing is kept of them below. The peers are plain sockets, which send
 * whatever the other end reads.
 */
#include "base/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/own_clock.h"
#include "rxm/raw.h"
#include "rxm/rig.h"
#include "rxm/rxm.h"
#include "tcp/account/account.h"
#include "tcp/message/message.h"
#include "tcp/stream/stream.h"

#define PEERS		12
#define LOOKS		4000
#define RECVS		64
#define PORT		1100		/* the peers say they listen from here on */
#define BUFS_BELOW	RXM_CONN_RX	/* messages that receives of rxm take, before it keeps more */
#define A_READ		(FAB_STAGING_LEN / sizeof(struct message) + 1)	/* messages */

/* ---- the hub, and its peers ---- */

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *hub;

static struct recv {
	struct fi_context2 ctx;
	uint64_t from;			/* the payload: the number of the peer */
} recvs[RECVS];
static unsigned cnt[PEERS];		/* messages that the hub has received */

struct message {
	struct raw_frame frame;
	uint64_t from;
};

static struct peer {
	int fd;
	size_t at;			/* bytes of the message that are sent already */
	unsigned sent;			/* messages, whole or in part */
} peer[PEERS];

static void post(struct recv *recv)
{
	OK((int) fi_recv(hub, &recv->from, sizeof(recv->from), NULL, FI_ADDR_UNSPEC, recv));
}

static void look(void)
{
	struct fi_cq_tagged_entry entry[16];
	ssize_t got = fi_cq_read(cq, entry, 16);

	assert_true(got > 0 || got == -FI_EAGAIN);
	for (ssize_t i = 0; i < got; i++) {
		struct recv *recv = entry[i].op_context;

		assert_true(recv->from < PEERS);
		cnt[recv->from]++;
		post(recv);
	}
}

static void hub_open(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { 0 };

	info = rig_find("tcp;ofi_rxm", FI_EP_RDM);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_av_open(domain, &av_attr, &av, NULL));
	OK(fi_cq_open(domain, &cq_attr, &cq, NULL));
	OK(fi_endpoint(domain, info, &hub, NULL));
	OK(fi_ep_bind(hub, &av->fid, 0));
	OK(fi_ep_bind(hub, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(hub));
}

static void insert(unsigned i)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons((uint16_t) (PORT + i)),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	assert_int_equal(fi_av_insert(av, &addr, 1, NULL, 0, NULL), 1);
}

static bool has_answer(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

/* It has asked for a connection. */
static void peer_ask(unsigned i)
{
	const struct raw_request req = raw_request_of((uint16_t) (PORT + i), false, 1);
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	int size = 16384;

	OK(fi_getname(&hub->fid, &addr, &len));
	peer[i] = (struct peer) { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	setsockopt(peer[i].fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	OK(connect(peer[i].fd, (const struct sockaddr *) &addr, sizeof(addr)));
	assert_int_equal(send(peer[i].fd, &req, sizeof(req), 0), sizeof(req));
}

static void peer_open(unsigned i)
{
	struct raw_answer answer;

	peer_ask(i);
	rig_wait(has_answer(peer[i].fd), look());
	assert_int_equal(recv(peer[i].fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(answer.hdr.type, TCP_CM_CONNRESP);
}

/* Send what goes. */
static void pour(unsigned i)
{
	struct peer *one = &peer[i];
	struct message msg[16];
	ssize_t ret;

	for (unsigned k = 0; k < 16; k++)
		msg[k] = (struct message) { raw_frame_of(RXM_EAGER, RXM_OP_MSG, 0, sizeof(msg->from)), i };
	do {
		ret = send(one->fd, (const char *) msg + one->at, sizeof(msg) - one->at, MSG_DONTWAIT | MSG_NOSIGNAL);
		assert_true(ret > 0 || errno == EAGAIN);
		if (ret > 0) {
			one->sent += (unsigned) ((one->at + (size_t) ret - 1) / sizeof(*msg) - one->at / sizeof(*msg)) +
				     !(one->at % sizeof(*msg));
			one->at = (one->at + (size_t) ret) % sizeof(msg);
		}
	} while (ret > 0);
}

static void pour_and_look(unsigned i)
{
	pour(i);
	look();
}

static void keep_all_busy(void)
{
	for (unsigned n = 0; n < LOOKS; n++) {
		for (unsigned i = 0; i < PEERS; i++)
			pour(i);
		look();
	}
}

/* The first `known` are in the address vector. */
static void all_open(unsigned peers, unsigned known)
{
	hub_open();
	for (unsigned i = 0; i < known; i++)
		insert(i);
	for (unsigned i = 0; i < peers; i++)
		peer_open(i);
	memset(cnt, 0, sizeof(cnt));
}

static void all_close(unsigned peers)
{
	for (unsigned i = 0; i < peers; i++)
		close(peer[i].fd);
	OK(fi_close(&hub->fid));
	OK(fi_close(&cq->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

/* ---- time ---- */

#define STEP_NS		15000		/* by which the clock goes on whenever it is read */

/* All have data all the time. Of what the hub takes, the one that it knows gets the most. */
static void have_a_part_together(void **state)
{
	unsigned strangers = 0, least = UINT32_MAX;

	(void) state;
	all_open(PEERS, 1);
	for (unsigned i = 0; i < RECVS; i++)
		post(&recvs[i]);
	own_clock_step(STEP_NS);
	keep_all_busy();
	memset(cnt, 0, sizeof(cnt));
	for (int i = 0; i < 4; i++)
		keep_all_busy();
	own_clock_off();
	for (unsigned i = 1; i < PEERS; i++) {
		strangers += cnt[i];
		least = cnt[i] < least ? cnt[i] : least;
	}
	print_message("# %u messages of the known one, %u of %u strangers, %u or more of each\n", cnt[0], strangers,
		      PEERS - 1, least);
	assert_true(cnt[0] > LOOKS);
	assert_true(strangers < cnt[0] / 2);
	assert_true(least > 0);
	all_close(PEERS);
}

static unsigned conn_cnt(void)
{
	return rxm_ep_of(&hub->fid)->conn_cnt;
}

/* A clock that goes on when it is read, and not otherwise. */
static uint64_t read_now_ns(void)
{
	static uint64_t now_ns;

	now_ns = now_ns ? now_ns + STEP_NS / 10 : own_clock_real->now_ns();
	return now_ns;
}

/* Requests of strangers are looked at one at a time, beside a known peer that has data, and it has the time between two
 * of them. */
static void requests_wait_for_their_time(void **state)
{
	unsigned looks = 0;

	(void) state;
	all_open(2, 1);
	for (unsigned i = 0; i < RECVS; i++)
		post(&recvs[i]);
	own_clock_on(read_now_ns);
	for (unsigned i = 2; i < PEERS; i++)
		peer_ask(i);
	while (conn_cnt() < PEERS) {
		unsigned before = conn_cnt();

		pour_and_look(0);
		looks++;
		assert_in_range(conn_cnt(), before, before + 1);
	}
	own_clock_off();
	print_message("# %u looks for %u requests, with %u messages\n", looks, PEERS - 2, cnt[0]);
	assert_true(looks >= 3 * (PEERS - 2));
	assert_true(cnt[0] >= looks / 2);
	all_close(PEERS);
}

/* ---- memory ---- */

#define KEPT_MAX	(1 << 20)
#define PASSES		5000		/* in which 50 times as much would be kept below */

/* The connection below of the only peer. */
static const struct tcp_conn *below(void)
{
	const struct rxm_conn *conn = fab_list_first(&rxm_ep_of(&hub->fid)->conns, struct rxm_conn, link);

	return fab_container(fab_ep_of(&conn->below->fid), struct tcp_ep, base)->conn;
}

/* Messages of a stranger beyond what rxm keeps stay where they are, and come when there are receives. */
static void nothing_is_kept_below(void **state)
{
	unsigned sent;

	(void) state;
	rxm_params.stranger_max = KEPT_MAX;
	all_open(1, 0);
	rig_wait(rxm_ep_of(&hub->fid)->stranger_len >= KEPT_MAX, pour_and_look(0));
	for (int i = 0; i < PASSES; i++)
		pour_and_look(0);
	sent = peer[0].sent;
	print_message("# %u messages, of which %llu bytes are kept below\n", sent,
		      (unsigned long long) below()->holding.len[TCP_HELD_MESSAGES]);
	assert_true(sent > BUFS_BELOW);
	assert_in_range(rxm_ep_of(&hub->fid)->stranger_len, KEPT_MAX, KEPT_MAX + BUFS_BELOW * 1024);
	/* the read that reaches the limit is the last one */
	assert_in_range(below()->holding.len[TCP_HELD_MESSAGES], 0,
			TCP_LAYERED_OWN_MAX + A_READ * sizeof(struct tcp_unexp));
	for (unsigned i = 0; i < RECVS; i++)
		post(&recvs[i]);
	rig_wait(cnt[0] >= sent - 1, look());
	all_close(1);
	rxm_params.stranger_max = RXM_STRANGER_MAX;
}

/* One that is inserted has what others have that the hub knows, and one that is removed has not. */
static void class_follows_the_vector(void **state)
{
	fi_addr_t first = 0;

	(void) state;
	all_open(1, 0);
	assert_true(below()->src.outsider);
	insert(0);
	assert_false(below()->src.outsider);
	assert_int_equal(below()->holding.class, TCP_KNOWN);
	OK(fi_av_remove(av, &first, 1, 0));
	assert_true(below()->src.outsider);
	assert_int_equal(below()->holding.class, TCP_STRANGER);
	all_close(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(have_a_part_together),
		cmocka_unit_test(requests_wait_for_their_time),
		cmocka_unit_test(nothing_is_kept_below),
		cmocka_unit_test(class_follows_the_vector),
	};

	return cmocka_run_group_tests_name("rxm/stranger", tests, NULL, NULL);
}
