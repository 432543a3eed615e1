/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections: requests, private data, refusal, shutdown, names, and peers that do not play by the rules. fi_cm(3). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ops.h"
#include "rawsock.h"

/* Connect @a to the listener and take the request. */
static struct event request(struct side *a, struct side *listener, const void *data, size_t len)
{
	MUST(fi_connect(a->ep, listener->name, data, len));
	return expect_event(listener, FI_CONNREQ);
}

/* Each event names its object; the request is of the listener and carries a handle. */
TEST_PROV(events_name_their_objects, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .unconnected = true);
	struct event e = request(p.a, p.listener, NULL, 0);
	struct side *b;

	CHECK(e.fid == &p.listener->pep->fid);
	CHECK(e.info->handle != NULL);
	CHECK_EQ(e.info->ep_attr->type, FI_EP_MSG);
	CHECK_EQ(e.info->caps & FI_MSG, FI_MSG);
	b = acceptor_open(p.listener, e.info, &p.a->o);
	MUST(fi_accept(b->ep, NULL, 0));
	CHECK(expect_event(p.a, FI_CONNECTED).fid == &p.a->ep->fid);
	CHECK(expect_event(b, FI_CONNECTED).fid == &b->ep->fid);
	expect_no_event(p.a);
	expect_no_event(b);
	expect_no_event(p.listener);
}

/* Endpoints need not be enabled by hand: connect and accept do it. */
TEST_PROV(connect_enables, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t), *a = connector_open(t, l, &(struct opts) { .unenabled = true }), *b;
	struct event e = request(a, l, NULL, 0);

	b = acceptor_open(l, e.info, &a->o);
	MUST(fi_accept(b->ep, NULL, 0));
	expect_event(a, FI_CONNECTED);
	expect_event(b, FI_CONNECTED);
	check_link(a, b);
}

/* ---- private data */

static size_t data_size(struct fid *fid)
{
	size_t size = 0, len = sizeof(size);

	MUST(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len));
	CHECK_EQ(len, sizeof(size));
	CHECK(size <= sizeof(((struct event *) NULL)->data));
	return size;
}

static const struct length_row data_rows[] = {
	{ "1", 1 }, { "31", 31 }, { "half", 1000 }, { "all", 1001 },
};

static size_t data_len(const struct length_row *row, size_t max)
{
	return row->len == 1000 ? max / 2 : row->len == 1001 ? max : MIN(row->len, max);
}

/* Data of fi_connect() comes with the request, that of fi_accept() with the connector's event, none with the
 * acceptor's. */
TEST_TABLE(private_data, data_rows, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .unconnected = true);
	size_t len = data_len(ROW(data_rows), data_size(&p.a->ep->fid));
	uint8_t *there = mem_pattern(t, len, 1), *back = mem_pattern(t, len, 2);
	struct event e = request(p.a, p.listener, there, len);
	struct side *b;

	CHECK(e.len >= len);
	CHECK_MEM(e.data, there, len);
	b = acceptor_open(p.listener, e.info, &p.a->o);
	MUST(fi_accept(b->ep, back, len));
	e = expect_event(p.a, FI_CONNECTED);
	CHECK(e.len >= len);
	CHECK_MEM(e.data, back, len);
	expect_event(b, FI_CONNECTED);
	check_link(p.a, b);
}

/* No data is no data. */
TEST_PROV(no_private_data, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .unconnected = true);
	struct event e = request(p.a, p.listener, NULL, 0);
	struct side *b = acceptor_open(p.listener, e.info, &p.a->o);

	if (run.ours)
		CHECK_EQ(e.len, 0);
	MUST(fi_accept(b->ep, NULL, 0));
	e = expect_event(p.a, FI_CONNECTED);
	if (run.ours)
		CHECK_EQ(e.len, 0);
	CHECK(!e.err);
}

/* A refusal is one error event, FI_ECONNREFUSED, with the data of fi_reject(); nothing else follows. */
TEST_TABLE(reject_with_data, data_rows, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .unconnected = true);
	size_t len = data_len(ROW(data_rows), data_size(&p.listener->pep->fid));
	uint8_t *why = mem_pattern(t, len, 3);
	struct event e = request(p.a, p.listener, NULL, 0);

	MUST(fi_reject(p.listener->pep, e.info->handle, why, len));
	e = expect_event_err(p.a, FI_ECONNREFUSED);
	CHECK(e.fid == &p.a->ep->fid);
	CHECK(e.len >= len);
	CHECK(!run.ours || e.len <= p.a->info->domain_attr->max_err_data);
	CHECK_MEM(e.data, why, len);
	expect_no_event(p.a);
	expect_no_event(p.listener);
	check_listener(p.listener);
}

/* More data than fits is refused, or cut off (fi_cm(3)): never an accident, and the endpoint is still good. */
TEST_PROV(private_data_too_long, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .unconnected = true);
	size_t max = data_size(&p.a->ep->fid);
	uint8_t *data = mem_pattern(t, 4 * max, 1);
	struct side *b;
	struct event e;
	int ret;

	ret = fi_connect(p.a->ep, p.listener->name, data, 4 * max);
	if (ret) {
		CHECK(ret == -FI_EINVAL || ret == -FI_EMSGSIZE);
		MUST(fi_connect(p.a->ep, p.listener->name, data, max));
	}
	e = expect_event(p.listener, FI_CONNREQ);
	CHECK(e.len >= MIN(max, e.len));
	CHECK_MEM(e.data, data, MIN(e.len, max));
	b = acceptor_open(p.listener, e.info, &p.a->o);
	ret = fi_accept(b->ep, data, 4 * max);
	if (ret) {
		CHECK(ret == -FI_EINVAL || ret == -FI_EMSGSIZE);
		MUST(fi_accept(b->ep, data, max));
	}
	expect_event(p.a, FI_CONNECTED);
	expect_event(b, FI_CONNECTED);
	check_link(p.a, b);
}

/* The event buffer limits what is read of the data; a buffer without room for the entry is -FI_ETOOSMALL, and
 * nothing is lost. */
TEST_PROV(event_buffer_is_small, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t, .raw_eq = true), *a = connector_open(t, l, &(struct opts) { 0 });
	uint8_t buf[sizeof(struct fi_eq_cm_entry) + 4], *data = mem_pattern(t, 16, 1);
	struct fi_eq_cm_entry *entry = (struct fi_eq_cm_entry *) buf;
	struct wait w = wait_begin();
	uint32_t event;
	ssize_t ret;

	if (!run.ours)
		ABSENT("fi_eq(3) does not say what too small is");
	MUST(fi_connect(a->ep, l->name, data, 16));
	while ((ret = fi_eq_read(l->eq, &event, buf, 8, 0)) == -FI_EAGAIN)
		wait_more(t, &w, "the request");
	CHECK_RET(ret, -FI_ETOOSMALL);
	CHECK_RET(fi_eq_read(l->eq, &event, buf, sizeof(buf), 0), sizeof(buf));
	own_info(t, entry->info);
	CHECK_EQ(event, FI_CONNREQ);
	CHECK_MEM(entry->data, data, 4);
	CHECK_RET(fi_eq_read(l->eq, &event, buf, sizeof(buf), 0), -FI_EAGAIN);
	MUST(fi_reject(l->pep, entry->info->handle, NULL, 0));
}

/* ---- failure to connect */

/* A port where nobody listens: FI_ECONNREFUSED, soon. */
TEST_PROV(nobody_listens, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t), *a = connector_open(t, l, &(struct opts) { 0 });
	struct event e;
	int ret;

	side_close(l);
	ret = fi_connect(a->ep, l->name, NULL, 0);
	if (ret == -FI_ECONNREFUSED)
		return;
	MUST(ret);
	e = expect_event_err(a, FI_ECONNREFUSED);
	CHECK(e.fid == &a->ep->fid);
	expect_no_event(a);
}

/* Requests that nobody has read when the listener closes are errors at their connectors. */
TEST_PROV(listener_closes_with_requests, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t, .raw_eq = true), *a[3];
	unsigned int i;

	for (i = 0; i < COUNT(a); i++) {
		a[i] = connector_open(t, l, &(struct opts) { 0 });
		MUST(fi_connect(a[i]->ep, l->name, NULL, 0));
	}
	idle(t);
	side_close(l);
	for (i = 0; i < COUNT(a); i++) {
		struct wait w = wait_begin();

		note("connector %u", i);
		while (a[i]->event_taken == a[i]->event_cnt)
			wait_more(t, &w, "an answer to a request that nobody will answer");
		CHECK(a[i]->events[a[i]->event_taken++].err != 0);
	}
}

/* Calls that come too early, too often, or on the wrong object. */
TEST_PROV(wrong_state, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .unconnected = true);
	char buf[4];
	ssize_t ret;

	if (!run.ours)
		ABSENT("upstream does not look");
	note("send before connect");
	ret = try_op(p.a, SEND, .buf = buf, .len = 4);
	if (ret != -FI_ENOTCONN && ret != -FI_EOPBADSTATE)
		FAIL("%zd (%s)", ret, fi_strerror((int) -ret));
	note("inject before connect");
	ret = try_op(p.a, INJECT, .buf = buf, .len = 4);
	if (ret != -FI_ENOTCONN && ret != -FI_EOPBADSTATE)
		FAIL("%zd (%s)", ret, fi_strerror((int) -ret));
	note("getpeer before connect");
	CHECK(fi_getpeer(p.a->ep, buf, &(size_t) { 4 }) < 0);
	note("accept of an endpoint without request");
	CHECK(fi_accept(p.a->ep, NULL, 0) < 0);
	note("shutdown before connect");
	ret = fi_shutdown(p.a->ep, 0);
	if (ret != -FI_ENOTCONN && ret != -FI_EOPBADSTATE)
		FAIL("%zd (%s)", ret, fi_strerror((int) -ret));
	note("reject of nothing");
	CHECK(fi_reject(p.listener->pep, NULL, NULL, 0) < 0);
	note("listen twice");
	ret = fi_listen(p.listener->pep);
	CHECK(ret == 0 || ret == -FI_EOPBADSTATE);
	note(NULL);
	p.b = side_connect(p.a, p.listener);
	note("connect twice");
	CHECK(fi_connect(p.a->ep, p.listener->name, NULL, 0) < 0);
	note("accept twice");
	CHECK(fi_accept(p.b->ep, NULL, 0) < 0);
	note(NULL);
	check_link(p.a, p.b);
	expect_no_event(p.a);
}

/* An address of another family or length is refused. */
TEST_PROV(bad_address, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .unconnected = true);
	struct sockaddr_in6 addr = { .sin6_family = 99 };

	if (!run.ours || !has_sockaddr())
		ABSENT("upstream does not look");
	CHECK(fi_connect(p.a->ep, &addr, NULL, 0) < 0);
	addr.sin6_family = run.family == AF_INET ? AF_INET6 : AF_INET;
	addr.sin6_port = 1;
	CHECK(fi_connect(p.a->ep, &addr, NULL, 0) < 0);
	p.b = side_connect(p.a, p.listener);
	check_link(p.a, p.b);
}

/* A listener needs an event queue. */
TEST_PROV(listen_without_eq, FI_MSG, CONNECTED)
{
	struct side *s = domain_side(t);
	struct fid_pep *pep;

	MUST(fi_passive_ep(s->fabric, s->info, &pep, NULL));
	own_fid(t, &pep->fid);
	CHECK(fi_listen(pep) < 0);
}

/* ---- the end of a connection */

/* The peer of a shutdown hears of it once, also when the endpoint is closed after it. */
TEST_PROV(shutdown_is_told_once, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t);

	check_link(p.a, p.b);
	MUST(fi_shutdown(p.a->ep, 0));
	CHECK(expect_event(p.b, FI_SHUTDOWN).fid == &p.b->ep->fid);
	idle(t);
	side_close_ep(p.a);
	expect_no_event(p.b);
}

/* So does that of a close. */
TEST_PROV(close_is_told_once, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t);

	check_link(p.a, p.b);
	side_close_ep(p.a);
	CHECK(expect_event(p.b, FI_SHUTDOWN).fid == &p.b->ep->fid);
	expect_no_event(p.b);
}

/* Who shuts down hears at most once of it, and not again when the other side follows. */
TEST_PROV(shutdown_of_both, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t);

	MUST(fi_shutdown(p.a->ep, 0));
	expect_event(p.b, FI_SHUTDOWN);
	fi_shutdown(p.b->ep, 0);
	idle(t);
	CHECK(p.a->event_cnt - p.a->event_taken <= 1);
	expect_no_event(p.b);
}

/* What was sent and completed before the shutdown arrives. */
TEST_PROV(shutdown_loses_nothing_sent, FI_MSG, CONNECTED)
{
	enum { N = 20 };
	struct pair p = pair_open(t);
	uint32_t in[N], out[N], i;

	for (i = 0; i < N; i++) {
		out[i] = i;
		post_recv(p.b, &in[i], sizeof(in[0]));
	}
	for (i = 0; i < N; i++)
		send_bytes(p.a, &out[i], sizeof(out[0]));
	expect_tx_cnt(p.a, N);
	MUST(fi_shutdown(p.a->ep, 0));
	expect_rx_cnt(p.b, N);
	for (i = 0; i < N; i++)
		CHECK_EQ(in[i], i);
	expect_event(p.b, FI_SHUTDOWN);
}

/* After a shutdown transfers are refused or fail, each posted one once; receives that wait are told or dropped. */
TEST_PROV(calls_after_shutdown, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t);
	char in[4];
	ssize_t ret;

	post_recv(p.b, in, 4);
	MUST(fi_shutdown(p.a->ep, 0));
	expect_event(p.b, FI_SHUTDOWN);
	ret = try_op(p.a, SEND, .buf = "lost", .len = 4);
	if (!ret)
		expect_tx_failed(p.a);
	else
		CHECK(ret == -FI_ENOTCONN || ret == -FI_EOPBADSTATE || ret == -FI_ECONNRESET || ret == -FI_ESHUTDOWN ||
		      ret == -FI_ECONNABORTED);
	idle(t);
	CHECK(rx_waiting(p.b) <= 1);
	if (rx_waiting(p.b))
		CHECK(p.b->rx.list[p.b->rx.taken].err != 0);
}

/* Flags of fi_shutdown() are reserved. */
TEST_PROV(shutdown_flags, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t);

	if (!run.ours)
		ABSENT("upstream does not look");
	CHECK(fi_shutdown(p.a->ep, 1) < 0);
	check_link(p.a, p.b);
}

/* ---- names */

/* Both ends agree on who they are. */
TEST_PROV(getname_and_getpeer, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t);
	uint8_t name[128], peer[128], exact[128];
	size_t len = sizeof(name), peer_len = sizeof(peer);

	MUST(fi_getpeer(p.a->ep, peer, &peer_len));
	CHECK_EQ(peer_len, p.listener->name_len);
	CHECK_MEM(peer, p.listener->name, peer_len);
	MUST(fi_getname(&p.a->ep->fid, name, &len));
	peer_len = sizeof(peer);
	MUST(fi_getpeer(p.b->ep, peer, &peer_len));
	CHECK_EQ(peer_len, len);
	CHECK_MEM(peer, name, len);
	memset(exact, 0x5a, sizeof(exact));
	peer_len = 3;
	CHECK_RET(fi_getpeer(p.b->ep, exact, &peer_len), -FI_ETOOSMALL);
	CHECK_EQ(peer_len, len);
	CHECK_EQ(exact[3], 0x5a);
	len = 0;
	CHECK_RET(fi_getname(&p.listener->pep->fid, NULL, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, p.listener->name_len);
}

/* fi_setname() gives a passive endpoint its address, and port 0 becomes a real one. */
TEST_PROV(setname, FI_MSG, CONNECTED)
{
	struct side *s = domain_side(t);
	struct sockaddr_in6 addr = { 0 }, name;
	size_t len = sizeof(name);
	struct fid_pep *pep;

	if (!has_sockaddr())
		ABSENT("%s has no socket addresses", run.prov);
	MUST(fi_passive_ep(s->fabric, s->info, &pep, NULL));
	own_fid(t, &pep->fid);
	MUST(fi_pep_bind(pep, &s->eq->fid, 0));
	memcpy(&addr, s->info->src_addr, s->info->src_addrlen);
	MUST(fi_setname(&pep->fid, &addr, s->info->src_addrlen));
	MUST(fi_listen(pep));
	MUST(fi_getname(&pep->fid, &name, &len));
	CHECK_EQ(len, s->info->src_addrlen);
	CHECK(name.sin6_port != 0);
}

/* A passive endpoint as info->handle gives its address to the endpoint, fi_endpoint(3), which says so before it
 * connects; one that listens does not. */
TEST_PROV(passive_endpoint_as_handle, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t), *first = connector_open(t, l, &(struct opts) { .unenabled = true }), *a, *b;
	struct fi_info *info = fi_dupinfo(first->info);
	uint8_t bound[128], name[128];
	size_t bound_len = sizeof(bound), len = sizeof(name);
	struct fid_pep *pep;
	struct fid_ep *ep;

	own_info(t, info);
	MUST(fi_passive_ep(first->fabric, first->info, &pep, NULL));
	own_fid(t, &pep->fid);
	MUST(fi_pep_bind(pep, &first->eq->fid, 0));
	MUST(fi_getname(&pep->fid, bound, &bound_len));
	info->handle = &pep->fid;
	a = side_open(t, .info = info, .domain_of = first);
	CHECK(fi_accept(a->ep, NULL, 0) < 0);
	MUST(fi_getname(&a->ep->fid, name, &len));
	CHECK_EQ(len, bound_len);
	CHECK_MEM(name, bound, len);
	len = sizeof(name);
	a->o = (struct opts) { 0 };	/* the other end has its own */
	b = side_connect(a, l);
	MUST(fi_getpeer(b->ep, name, &len));
	CHECK_EQ(len, bound_len);
	CHECK_MEM(name, bound, len);
	check_link(a, b);
	MUST(fi_setname(&pep->fid, first->info->src_addr, first->info->src_addrlen));
	MUST(fi_listen(pep));
	CHECK_RET(fi_endpoint(first->domain, info, &ep, NULL), -FI_EOPBADSTATE);
}

/* The socket of a connected endpoint may be asked for, to set options on it. */
TEST_PROV(get_fd, FI_MSG, CONNECTED)
{
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(2, 2))
	struct pair p = pair_open(t);
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	int fd = -1;

	need_tcp_wire();
	need_tcp_sockets();
	MUST(fi_control(&p.a->ep->fid, FI_GET_FD, &fd));
	CHECK(!getpeername(fd, (struct sockaddr *) &peer, &len));
	CHECK_MEM(&peer, p.listener->name, p.listener->name_len);
	check_link(p.a, p.b);
#else
	ABSENT("headers without FI_GET_FD");
#endif
}

/* ---- many */

/* A burst of requests is served, each once. */
TEST_PROV(many_requests_at_once, FI_MSG, CONNECTED)
{
	enum { N = 20 };
	struct side *l = listener_open(t), *a[N], *b[N];
	unsigned int i, j;

	for (i = 0; i < N; i++) {
		a[i] = connector_open(t, l, &(struct opts) { 0 });
		MUST(fi_connect(a[i]->ep, l->name, &i, sizeof(i)));
	}
	for (i = 0; i < N; i++) {
		struct event e = expect_event(l, FI_CONNREQ);

		memcpy(&j, e.data, sizeof(j));
		CHECK(j < N);
		b[j] = acceptor_open(l, e.info, &a[j]->o);
		MUST(fi_accept(b[j]->ep, NULL, 0));
	}
	for (i = 0; i < N; i++) {
		expect_event(a[i], FI_CONNECTED);
		expect_event(b[i], FI_CONNECTED);
		check_link(a[i], b[i]);
		check_link(b[i], a[i]);
	}
	expect_no_event(l);
}

/* The backlog may be set before listening. */
TEST_PROV(backlog, FI_MSG, CONNECTED)
{
	struct side *s = domain_side(t);
	struct fid_pep *pep;
	int backlog = 7, ret;

	MUST(fi_passive_ep(s->fabric, s->info, &pep, NULL));
	own_fid(t, &pep->fid);
	MUST(fi_pep_bind(pep, &s->eq->fid, 0));
	ret = fi_control(&pep->fid, FI_BACKLOG, &backlog);
	if (ret == -FI_ENOSYS)
		ABSENT("%s has no FI_BACKLOG", run.prov);
	MUST(ret);
	MUST(fi_listen(pep));
}

/* No more requests are reported than the backlog says, until one of them is answered; then the next comes. */
TEST_PROV(backlog_limits_requests, FI_MSG, CONNECTED)
{
	enum { N = 4, BACKLOG = 2 };
	struct side *l = listener_open(t), *a[N];
	int backlog = BACKLOG, i;
	struct event e[N];

	if (!run.ours || !strcmp(run.prov, "verbs"))
		ABSENT("the kernel, or upstream, has a backlog of its own");
	MUST(fi_control(&l->pep->fid, FI_BACKLOG, &backlog));
	for (i = 0; i < N; i++) {
		a[i] = connector_open(t, l, &(struct opts) { 0 });
		MUST(fi_connect(a[i]->ep, l->name, NULL, 0));
	}
	for (i = 0; i < BACKLOG; i++)
		e[i] = expect_event(l, FI_CONNREQ);
	expect_no_event(l);
	for (i = 0; i < N; i++) {
		MUST(fi_reject(l->pep, e[i].info->handle, NULL, 0));
		if (i + BACKLOG < N)
			e[i + BACKLOG] = expect_event(l, FI_CONNREQ);
		expect_no_event(l);
	}
}

/* Receives posted before the connection are there for it. */
TEST_PROV(receives_before_connect, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t), *a = connector_open(t, l, &(struct opts) { 0 }), *b;
	struct event e = request(a, l, NULL, 0);
	char in[2][4];

	b = acceptor_open(l, e.info, &a->o);
	post_recv(b, in[0], 4);
	post_recv(a, in[1], 4);
	MUST(fi_accept(b->ep, NULL, 0));
	expect_event(a, FI_CONNECTED);
	expect_event(b, FI_CONNECTED);
	send_bytes(a, "1111", 4);
	send_bytes(b, "2222", 4);
	expect_recv(b, "1111", 4);
	expect_recv(a, "2222", 4);
}

/* The side that closes at once after connecting does not disturb the other. */
TEST_PROV(close_while_connecting, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t), *a;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		a = connector_open(t, l, &(struct opts) { 0 });
		MUST(fi_connect(a->ep, l->name, NULL, 0));
		if (i % 2)
			idle(t);
		side_close(a);
	}
	/* Requests of connectors that are gone may have come: answer them. */
	idle(t);
	while (l->event_taken < l->event_cnt) {
		struct event e = l->events[l->event_taken++];

		if (e.info)
			fi_reject(l->pep, e.info->handle, NULL, 0);
	}
	check_listener(l);
}
