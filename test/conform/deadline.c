/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that are there and say nothing: every wait for them ends. The waits are long by default, so these tests want
 * them short in the environment (test/conform/tcp-deadlines sets it) and are skipped otherwise.
 * Source: fi_cm(3), fi_cq(3).
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "rawsock.h"

static void need_short_waits(void)
{
	need_tcp_wire();
	if (!getenv("FI_TCP_REPLY_TIMEOUT") || !getenv("FI_TCP_CONNECT_TIMEOUT"))
		ABSENT("FI_TCP_REPLY_TIMEOUT and FI_TCP_CONNECT_TIMEOUT are not set");
}

/* An operation to a peer that takes the connection and never answers ends with FI_ETIMEDOUT, and the next one at
 * once. */
TEST_PROV(mute_peer, FI_MSG | FI_TAGGED | FI_RMA, RDM_ONLY)
{
	static const enum call kinds[] = { SEND, TSEND, WRITE, READ };
	struct pair p = pair_open(t);
	struct sockaddr_storage addr;
	fi_addr_t mute;
	double start;
	char buf[4] = "";
	size_t i;
	ssize_t ret;

	need_short_waits();
	raw_listen(t, p.a->name, p.a->name_len, &addr);
	CHECK_RET(fi_av_insert(p.a->av, &addr, 1, &mute, 0, NULL), 1);
	for (i = 0; i < COUNT(kinds); i++)
		MUST(post_ret(p.a, kinds[i], .buf = buf, .len = 4, .addr = &mute, .key = 1));
	for (i = 0; i < COUNT(kinds); i++)
		expect_tx_err(p.a, FI_ETIMEDOUT);
	start = now_ms();
	ret = post_ret(p.a, SEND, .buf = buf, .len = 4, .addr = &mute);
	if (!ret)
		expect_tx_err(p.a, FI_ETIMEDOUT);
	else
		CHECK_RET(ret, -FI_ETIMEDOUT);
	CHECK(now_ms() - start < 200.0 * run.slow);
	check_link(p.a, p.b);
}

/* One that cannot be connected to and does not come: FI_EFIREWALLADDR, likewise. */
TEST_PROV(firewalled_peer_that_never_comes, FI_MSG | FI_TAGGED | FI_RMA, RDM_ONLY)
{
	static const enum call kinds[] = { SEND, TSEND, WRITE, READ };
	struct pair p = pair_open(t);
	struct sockaddr_storage addr;
	char buf[4] = "";
	fi_addr_t away;
	size_t i;

	need_short_waits();
	raw_listen(t, p.a->name, p.a->name_len, &addr);
	CHECK_RET(fi_av_insert(p.a->av, &addr, 1, &away, FI_FIREWALL_ADDR, NULL), 1);
	for (i = 0; i < COUNT(kinds); i++)
		MUST(post_ret(p.a, kinds[i], .buf = buf, .len = 4, .addr = &away, .key = 1));
	for (i = 0; i < COUNT(kinds); i++)
		expect_tx_err(p.a, FI_EFIREWALLADDR);
	CHECK_RET(post_ret(p.a, SEND, .buf = buf, .len = 4, .addr = &away), -FI_EFIREWALLADDR);
	check_link(p.a, p.b);
}

/* The text of such an error names both addresses. */
TEST_PROV(error_names_both_ends, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	struct sockaddr_storage addr;
	struct wait w = wait_begin();
	char peer[128], buf[512] = "";
	size_t len = sizeof(peer);
	const char *text, *host;
	fi_addr_t mute;
	ssize_t ret;

	need_short_waits();
	raw_listen(t, p.a->name, p.a->name_len, &addr);
	CHECK_RET(fi_av_insert(p.a->av, &addr, 1, &mute, 0, NULL), 1);
	MUST(post_ret(p.a, SEND, .buf = buf, .len = 4, .addr = &mute));
	while ((ret = fi_cq_read(p.a->tx_cq, &entry, 1)) == -FI_EAGAIN)
		wait_more(t, &w, "the error");
	CHECK_RET(ret, -FI_EAVAIL);
	CHECK_RET(fi_cq_readerr(p.a->tx_cq, &err, 0), 1);
	text = fi_cq_strerror(p.a->tx_cq, err.prov_errno, err.err_data, buf, sizeof(buf));
	fi_av_straddr(p.a->av, &addr, peer, &len);
	/* The peer with its port, and this host, whose port is another for each connection. */
	host = strstr(text, loopback());
	if (!strstr(text, strrchr(peer, ':')) || !host || !strstr(host + 1, loopback()))
		FAIL("'%s' does not name both ends of a connection to %s", text, peer);
}

/* A listener that never answers a request: one error event. */
TEST_PROV(mute_listener, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t), *a = connector_open(t, l, &(struct opts) { 0 });
	struct sockaddr_storage addr;

	need_short_waits();
	raw_listen(t, l->name, l->name_len, &addr);
	MUST(fi_connect(a->ep, &addr, NULL, 0));
	expect_event_err(a, FI_ETIMEDOUT);
	expect_no_event(a);
}

/* Who connects and says nothing is dropped. */
TEST_PROV(silent_connection_is_dropped, FI_MSG, RELIABLE)
{
	struct wait w = wait_begin();
	struct pollfd pfd = { .events = POLLIN };
	struct side *s;

	need_short_waits();
	s = run.type == FI_EP_MSG ? listener_open(t) : side_open(t);
	pfd.fd = raw_connect(t, s->name, s->name_len);
	while (!poll(&pfd, 1, 0))
		wait_more(t, &w, "the connection to be dropped");
}

/* A request that nobody answers at the listener ends at the connector. */
TEST_PROV(unanswered_request, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .unconnected = true);
	struct event request;

	need_short_waits();
	MUST(fi_connect(p.a->ep, p.listener->name, NULL, 0));
	request = expect_event(p.listener, FI_CONNREQ);
	expect_event_err(p.a, FI_ETIMEDOUT);
	fi_reject(p.listener->pep, request.info->handle, NULL, 0);
	expect_no_event(p.a);
}
