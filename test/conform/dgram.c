/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram endpoints: what is true of each datagram that arrives, what a sender hears of those that do not, and
 * datagrams from sockets that are nobody's endpoint. Sources: fi_endpoint(3), fi_msg(3), fi_eq(3). On the loopback
 * interface nothing is lost while it fits into the socket, which the tests rely on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>

#include "ops.h"
#include "rawsock.h"
#include "waitobj.h"

#define DATAGRAM .types = BIT(FI_EP_DGRAM)

static size_t longest(const struct side *s)
{
	return s->info->ep_attr->max_msg_size;
}

static void need_udp(void)
{
	if (!run.ours || strcmp(run.prov, "udp"))
		ABSENT("for udp of this library");
}

/* ---- whole, or an error */

/* A datagram longer than its receive is FI_ETRUNC with what fitted; the next one is whole. */
TEST_PROV(truncated, FI_MSG, DATAGRAM)
{
	struct pair p = pair_open(t);
	char small[4], whole[8];

	post_recv(p.b, small, sizeof(small));
	post_recv(p.b, whole, sizeof(whole));
	send_bytes(p.a, "too long", 8);
	send_bytes(p.a, "12345678", 8);
	expect_rx_err(p.b, FI_ETRUNC, .len = 4, .olen = 4);
	CHECK_MEM(small, "too ", 4);
	expect_recv(p.b, "12345678", 8);
}

/* Any datagram but an empty one is too long for a receive without room. */
TEST_PROV(truncated_to_nothing, FI_MSG, DATAGRAM)
{
	struct pair p = pair_open(t);

	post(p.b, RECV, .buf = NULL, .len = 0);
	send_bytes(p.a, "gone", 4);
	expect_rx_err(p.b, FI_ETRUNC, .olen = 4);
}

/* The longest datagram is whole, in one buffer and scattered; one byte more is -FI_EMSGSIZE and nothing happens. */
TEST_PROV(longest_and_longer, FI_MSG, DATAGRAM)
{
	struct pair p = pair_open(t);
	size_t max;
	uint8_t *in, *out;

	need_udp();
	max = longest(p.a);
	in = mem(t, max);
	out = mem_pattern(t, max + 1, 3);
	post_recv(p.b, in, max);
	CHECK_RET(try_op(p.a, SEND, .buf = out, .len = max + 1), -FI_EMSGSIZE);
	send_bytes(p.a, out, max);
	expect_recv(p.b, out, max);
	expect_tx(p.a);
	expect_no_completion(p.a);
}

/* ---- nothing posted */

/* What arrives before a receive is posted waits for it. */
TEST_PROV(waits_for_a_receive, FI_MSG, DATAGRAM)
{
	struct pair p = pair_open(t);
	char in[2][4];

	send_bytes(p.a, "1111", 4);
	send_bytes(p.a, "2222", 4);
	expect_tx_cnt(p.a, 2);
	idle(t);
	post_recv(p.b, in[0], 4);
	expect_recv(p.b, "1111", 4);
	idle(t);
	post_recv(p.b, in[1], 4);
	expect_recv(p.b, "2222", 4);
}

/* While a datagram waits and nothing is posted there is nothing to do: the wait descriptor says so, and wakes when a
 * receive is posted. */
TEST_PROV(waiting_datagram_does_not_spin, FI_MSG, DATAGRAM)
{
	struct pair p = pair_open(t, .cq_wait = FI_WAIT_FD, .raw_cq = true);
	int fd = wait_fd(&p.b->rx_cq->fid);
	struct wait w = wait_begin();
	struct fi_cq_tagged_entry entry;
	char in[4];

	send_bytes(p.a, "1111", 4);
	do
		CHECK_RET(fi_cq_read(p.b->rx_cq, &entry, 1), -FI_EAGAIN);
	while ((trywait(p.b, &p.b->rx_cq->fid) || fd_readable(fd, 20)) && now_ms() < w.until);
	CHECK(now_ms() < w.until);
	post_recv(p.b, in, 4);
	CHECK(trywait(p.b, &p.b->rx_cq->fid) || fd_readable(fd, 30000));
	while (fi_cq_read(p.b->rx_cq, &entry, 1) == -FI_EAGAIN)
		wait_more(t, &w, "the datagram");
	CHECK_MEM(in, "1111", 4);
}

/* More than the socket holds is lost, whole; what is received is in order here, and the endpoint works on. */
TEST_PROV(flood, FI_MSG, DATAGRAM)
{
	enum { N = 4000, LEN = 1000 };
	struct pair p = pair_open(t, .rx_size = 1024);
	uint8_t *out = mem_pattern(t, LEN, 5), *in = mem(t, 1000 * LEN);
	size_t got;

	need_udp();
	for (size_t i = 0; i < N; i++)
		post(p.a, INJECT, .buf = out, .len = LEN);
	for (size_t i = 0; i < 1000; i++)
		post_recv(p.b, in + i * LEN, LEN);
	idle(t);
	got = rx_waiting(p.b);
	CHECK(got > 0);
	for (size_t i = 0; i < got; i++)
		expect_recv(p.b, out, LEN);
	if (got == 1000)
		return;		/* a large socket: the rest is left to the kernel */
	send_bytes(p.a, out, LEN);
	expect_recv(p.b, out, LEN);
}

/* ---- many in a call */

/* Receives are filled in the order of posting, whatever their lengths, however many arrive at once. */
TEST_PROV(many_at_once, FI_MSG, DATAGRAM)
{
	enum { N = 100 };
	struct pair p = pair_open(t);
	uint32_t in[N], out[N];

	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < N; i++)
			post(p.b, RECV, .buf = &in[i], .len = 4, .ctx = &in[i]);
		for (uint32_t i = 0; i < N; i++) {
			out[i] = round * N + i;
			send_bytes(p.a, &out[i], 4);
		}
		for (uint32_t i = 0; i < N; i++) {
			CHECK(expect_rx(p.b).ctx == &in[i]);
			CHECK_EQ(in[i], out[i]);
		}
		expect_tx_cnt(p.a, N);
	}
}

static void set_manual(struct fi_info *hints)
{
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
}

/* FI_MORE fills the queue up to tx_attr->size, then -FI_EAGAIN; nobody needs to read a completion before all have
 * left. */
TEST_PROV(queue_full, FI_MSG, DATAGRAM)
{
	struct pair p = pair_open(t, .tx_size = 4, .hints = set_manual);
	size_t size = p.a->info->tx_attr->size;
	uint8_t *in = mem(t, size + 1);

	need_udp();
	for (size_t i = 0; i <= size; i++)
		post_recv(p.b, &in[i], 1);
	for (size_t i = 0; i < size; i++)
		CHECK_RET(try_op(p.a, SENDMSG, .buf = "x", .len = 1, .flags = FI_MORE), 0);
	CHECK_RET(try_op(p.a, SENDMSG, .buf = "x", .len = 1, .flags = FI_MORE), -FI_EAGAIN);
	send_bytes(p.a, "y", 1);
	expect_rx_cnt(p.b, size + 1);
	expect_tx_cnt(p.a, size + 1);
	CHECK_EQ(in[0], 'x');
	CHECK_EQ(in[size], 'y');
}

/* A send that is still queued can be cancelled; closing lets what is queued leave. */
TEST_PROV(cancel_and_close_queued, FI_MSG, DATAGRAM)
{
	struct pair p = pair_open(t, .hints = set_manual);
	struct side *b = p.b;
	char in[4];

	need_udp();
	post_recv(b, in, 4);
	post(p.a, SENDMSG, .buf = "1111", .len = 4, .flags = FI_MORE, .ctx = in);
	MUST((int) fi_cancel(&p.a->ep->fid, in));
	expect_tx_err(p.a, FI_ECANCELED);
	post(p.a, SENDMSG, .buf = "2222", .len = 4, .flags = FI_MORE);
	side_close_ep(p.a);
	expect_recv(b, "2222", 4);
}

/* ---- what did not arrive */

/* An address where nobody is any more. */
static void closed_port(struct test *t, struct sockaddr_storage *name)
{
	struct side *gone = side_open(t);

	memcpy(name, gone->name, gone->name_len);
	side_close(gone);
}

/* When the network says that a datagram did not arrive, the endpoint's event queue tells whose it was; the endpoint
 * works on, and its next send is not the one that fails. */
TEST_PROV(unreachable_is_told, FI_MSG, DATAGRAM)
{
	struct pair p = pair_open(t, .eq = true, .raw_eq = true);
	struct fi_eq_err_entry err = { 0 };
	struct sockaddr_storage name;
	struct wait w = wait_begin();
	uint8_t dest[128];
	fi_addr_t nobody;
	ssize_t ret;

	need_udp();
	closed_port(t, &name);
	CHECK_RET(fi_av_insert(p.a->av, &name, 1, &nobody, 0, NULL), 1);
	post(p.a, SEND, .buf = "lost", .len = 4, .addr = &nobody);
	expect_tx(p.a);
	err.err_data = dest;
	err.err_data_size = sizeof(dest);
	while ((ret = fi_eq_readerr(p.a->eq, &err, 0)) == -FI_EAGAIN)
		wait_more(t, &w, "word of the datagram that did not arrive");
	CHECK_EQ(ret, sizeof(err));
	CHECK_EQ(err.err, FI_ECONNREFUSED);
	CHECK(err.fid == &p.a->ep->fid);
	CHECK_EQ(err.err_data_size, p.a->name_len);
	CHECK(err.err_data_size <= p.a->info->domain_attr->max_err_data);
	CHECK_MEM(dest, &name, p.a->name_len);
	check_link(p.a, p.b);
}

/* Many of them: one event stands unread at most, nothing else suffers. */
TEST_PROV(unreachable_many, FI_MSG, DATAGRAM)
{
	struct pair p = pair_open(t, .eq = true, .raw_eq = true);
	struct fi_eq_err_entry err = { 0 };
	struct sockaddr_storage name;
	fi_addr_t nobody;

	need_udp();
	closed_port(t, &name);
	CHECK_RET(fi_av_insert(p.a->av, &name, 1, &nobody, 0, NULL), 1);
	for (int i = 0; i < 100; i++) {
		post(p.a, SEND, .buf = "lost", .len = 4, .addr = &nobody);
		check_link(p.a, p.b);
		expect_tx(p.a);
	}
	CHECK_RET(fi_eq_readerr(p.a->eq, &err, 0), sizeof(err));
	CHECK_RET(fi_eq_readerr(p.a->eq, &err, 0), -FI_EAGAIN);
}

/* Without an event queue nobody is disturbed. */
TEST_PROV(unreachable_without_eq, FI_MSG, DATAGRAM)
{
	struct pair p = pair_open(t);
	struct sockaddr_storage name;
	fi_addr_t nobody;

	need_udp();
	closed_port(t, &name);
	CHECK_RET(fi_av_insert(p.a->av, &name, 1, &nobody, 0, NULL), 1);
	for (int i = 0; i < 3; i++) {
		post(p.a, SEND, .buf = "lost", .len = 4, .addr = &nobody);
		expect_tx(p.a);
		check_link(p.a, p.b);
	}
}

/* ---- datagrams of strangers */

static int stranger_open(struct test *t, const struct side *to)
{
	const struct sockaddr *sa = (const struct sockaddr *) to->name;
	int fd = socket(sa->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	need_udp();
	CHECK(fd >= 0);
	own_fd(t, fd);
	CHECK(!connect(fd, sa, (socklen_t) to->name_len));
	return fd;
}

/* From a plain socket: empty, short, longer than the receive, as long as can be. All come as they are. */
TEST_PROV(from_a_plain_socket, FI_MSG | FI_SOURCE, DATAGRAM)
{
	struct side *s = side_open(t);
	int fd = stranger_open(t, s);
	size_t max = longest(s);
	uint8_t *in = mem(t, max), *out = mem_pattern(t, max, 9);
	char tiny[2];

	post_recv(s, in, 8);
	CHECK_EQ(send(fd, out, 0, 0), 0);
	CHECK_EQ(expect_rx(s).len, 0);
	post_recv(s, in, 8);
	CHECK_EQ(send(fd, out, 1, 0), 1);
	CHECK_EQ(expect_recv(s, out, 1).src, FI_ADDR_NOTAVAIL);
	post_recv(s, tiny, 2);
	CHECK_EQ(send(fd, out, max, 0), max);
	expect_rx_err(s, FI_ETRUNC, .len = 2, .olen = max - 2);
	post_recv(s, in, max);
	CHECK_EQ(send(fd, out, max, 0), max);
	expect_recv(s, out, max);
}

/* A datagram whose source address is forged to be a peer's counts as that peer's: the network's word is all there
 * is. One from port 0, where nobody can be, is nobody's. */
TEST_PROV(forged_source, FI_MSG | FI_SOURCE, DATAGRAM)
{
	struct pair p = pair_open(t);
	struct sockaddr_in *a = (struct sockaddr_in *) p.a->name, *b = (struct sockaddr_in *) p.b->name, to;
	struct {
		struct udphdr udp;
		char text[4];
	} packet = { .udp.len = htons(sizeof(packet)), .text = { 'f', 'a', 'k', 'e' } };
	char in[4];
	int fd;

	need_udp();
	if (run.family == AF_INET6)
		ABSENT("forged in IPv4 only");
	fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP);
	if (fd < 0)
		SKIP("no raw socket: %s", strerror(errno));
	own_fd(t, fd);
	CHECK(!bind(fd, (struct sockaddr *) &(struct sockaddr_in) { .sin_family = AF_INET, .sin_addr = a->sin_addr },
		    sizeof(*a)));
	to = *b;
	to.sin_port = 0;
	packet.udp.dest = b->sin_port;
	for (int forged = 0; forged < 2; forged++) {
		packet.udp.source = forged ? a->sin_port : 0;
		post_recv(p.b, in, 4);
		CHECK_EQ(sendto(fd, &packet, sizeof(packet), 0, (struct sockaddr *) &to, sizeof(to)), sizeof(packet));
		CHECK_EQ(expect_recv(p.b, "fake", 4).src, forged ? p.b->peer : FI_ADDR_NOTAVAIL);
	}
}

/* The name of a source follows the address vector: known, removed, known again. */
TEST_PROV(source_follows_av, FI_MSG | FI_SOURCE, DATAGRAM)
{
	struct pair p = pair_open(t);
	char in[4];

	for (int round = 0; round < 2; round++) {
		post_recv(p.b, in, 4);
		send_bytes(p.a, "1111", 4);
		CHECK_EQ(expect_recv(p.b, "1111", 4).src, p.b->peer);
		MUST(fi_av_remove(p.b->av, &p.b->peer, 1, 0));
		post_recv(p.b, in, 4);
		send_bytes(p.a, "2222", 4);
		CHECK_EQ(expect_recv(p.b, "2222", 4).src, FI_ADDR_NOTAVAIL);
		p.b->peer = side_insert(p.b, p.a);
	}
}

/* Nobody proves a key here, so none is accepted: neither in hints nor slipped in afterwards. */
TEST_PROV(keys_are_refused, FI_MSG, DATAGRAM)
{
	struct fi_info *hints = hints_new(t, &(struct opts) { 0 }), *info = info_find(t, hints, NULL, NULL, 0);
	static uint8_t key[] = { 1, 2, 3, 4 };
	struct side *s = domain_side(t);
	struct fid_ep *ep;

	need_udp();
	hints->ep_attr->auth_key = mem(t, sizeof(key));
	hints->ep_attr->auth_key_size = sizeof(key);
	CHECK(!info_find(t, hints, NULL, NULL, 0));
	hints->ep_attr->auth_key = NULL;
	hints->ep_attr->auth_key_size = 0;
	info->ep_attr->auth_key = key;
	info->ep_attr->auth_key_size = sizeof(key);
	CHECK_RET(fi_endpoint(s->domain, info, &ep, NULL), -FI_EINVAL);
	info->ep_attr->auth_key = NULL;
	info->ep_attr->auth_key_size = 0;
}
