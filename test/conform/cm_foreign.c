/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections with what speaks something else than the provider does. fi_cm(3). */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ops.h"
#include "rawsock.h"

struct rubbish_row {
	const char *name;
	const char *bytes;
	size_t len;
	bool wait;			/* keep the socket open */
};

static const struct rubbish_row rubbish_rows[] = {
	{ "nothing", "", 0, false }, { "silence", "", 0, true }, { "one_byte", "\003", 1, false },
	{ "one_byte_and_silence", "\003", 1, true },
	{ "http", "GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", 36, true },
	{ "zeros", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 40, true },
	{ "ones", "\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377"
	  "\377\377\377\377\377\377\377\377\377\377\377", 36, true },
	{ "wrong_version",
	  "\002\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
	  "\000\000\000\000\000\000\000\000", 32, true },
	{ "wrong_type",
	  "\003\005\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
	  "\000\000\000\000\000\000\000\000", 32, true },
	{ "data_too_long",
	  "\003\000\377\377\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
	  "\000\000\000\000\000\000\000\000", 32, true },
	{ "half_a_request",
	  "\003\000\000\020\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
	  "\001\000\000\000\000\000\000\000half", 36, false },
};

/* Whatever connects and says whatever: no event, and real peers are served. */
TEST_TABLE(rubbish_at_the_listener, rubbish_rows, FI_MSG, CONNECTED)
{
	const struct rubbish_row *row = ROW(rubbish_rows);
	struct side *l = listener_open(t);
	unsigned int i;
	int fd;

	need_tcp_wire();
	for (i = 0; i < 3; i++) {
		fd = raw_connect(t, l->name, l->name_len);
		CHECK(send(fd, row->bytes, row->len, MSG_NOSIGNAL) == (ssize_t) row->len);
		if (!row->wait)
			shutdown(fd, SHUT_RDWR);
	}
	idle(t);
	check_listener(l);
	expect_no_event(l);
}

/* The same against an RDM endpoint, which listens, too. */
TEST_TABLE(rubbish_at_rdm, rubbish_rows, FI_MSG, RDM_ONLY)
{
	const struct rubbish_row *row = ROW(rubbish_rows);
	struct pair p = pair_open(t);
	unsigned int i;
	int fd;

	need_tcp_wire();
	for (i = 0; i < 3; i++) {
		fd = raw_connect(t, p.b->name, p.b->name_len);
		CHECK(send(fd, row->bytes, row->len, MSG_NOSIGNAL) == (ssize_t) row->len);
		if (!row->wait)
			shutdown(fd, SHUT_RDWR);
	}
	idle(t);
	check_link(p.a, p.b);
	check_link(p.b, p.a);
	expect_no_completion(p.b);
}

/* A listener that answers rubbish, or hangs up: the connector gets one error event. */
TEST_TABLE(rubbish_from_the_listener, rubbish_rows, FI_MSG, CONNECTED)
{
	const struct rubbish_row *row = ROW(rubbish_rows);
	struct side *l = listener_open(t), *a = connector_open(t, l, &(struct opts) { 0 });
	struct sockaddr_storage name;
	struct wait w = wait_begin();
	int lfd, fd = -1;

	need_tcp_wire();
	if (row->wait && row->len < 32 && !getenv("FI_TCP_CONNECT_TIMEOUT"))
		ABSENT("silence: the deadline of a connection is longer than a test");
	lfd = raw_listen(t, l->name, l->name_len, &name);
	MUST(fi_connect(a->ep, &name, NULL, 0));
	while ((fd = accept(lfd, NULL, NULL)) < 0)
		wait_more(t, &w, "the connector");
	own_fd(t, fd);
	idle(t);
	CHECK(send(fd, row->bytes, row->len, MSG_NOSIGNAL) == (ssize_t) row->len);
	if (!row->wait)
		shutdown(fd, SHUT_RDWR);
	while (a->event_taken == a->event_cnt)
		wait_more(t, &w, "the error event");
	CHECK(a->events[a->event_taken++].err != 0);
	expect_no_event(a);
}
