/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What two of our programs tell each other over the control channel, and upstream's program does not: their options
 * before the test, the number of iterations that fit a time, and why one of them fails.
 *
 * The client begins with a byte of urgent data, which a program that does not ask for it never sees. A server that has
 * seen it answers likewise, and the client sends its options:
 *
 *   options    length, 32 bits, network order; that many bytes of text, lines of "option value"
 *   answer     likewise: the name of the server's provider
 *   count      32 bits, network order, from client to server: iterations of the next batch; 0: it was the last one
 *   failure    bytes 0xff and 'w', then text up to the end of the connection, in place of anything else
 */
#include "pp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#include "common.h"

#define MARK 'w'
/* Longest wait of a server for the client's mark, which follows the connection. Other clients send nothing so early. */
#define MARK_MS 200
/* Longest wait for the text of a failure. */
#define FAILURE_MS 200
#define TEXT_LEN 2048

static const char failure_mark[] = { (char) 0xff, MARK };

static int send_mark(const struct pp *pp)
{
	const char mark = MARK;

	return send(pp->ctrl, &mark, 1, MSG_OOB | MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

/* True if the peer's mark arrives within wait_ms, and before anything of `events`. */
static bool see_mark(const struct pp *pp, short events, int wait_ms)
{
	struct pollfd poll_fd = { .fd = pp->ctrl, .events = (short) (POLLPRI | events) };
	char mark;

	return poll(&poll_fd, 1, wait_ms) > 0 && poll_fd.revents & POLLPRI &&
	       recv(pp->ctrl, &mark, 1, MSG_OOB | MSG_DONTWAIT) == 1 && mark == MARK;
}

/* Write the options that must be the same on both sides. */
static void put_options(const struct pp_opts *opts, char *text, size_t size)
{
	size_t used, i;

	used = (size_t) snprintf(text, size, "-e %s\n-m %s\n-c %s\n-I %u\n-S ",
				 util_tostr(&opts->ep_type, FI_TYPE_EP_TYPE), opts->tagged ? "tagged" : "msg",
				 opts->check ? "yes" : "no", opts->iterations);
	for (i = 0; i < opts->size_cnt && used < size; i++)
		used += (size_t) snprintf(text + used, size - used, "%s%llu", i ? "," : "",
					  (unsigned long long) opts->size[i]);
	if (used < size)
		snprintf(text + used, size - used, "\n-p %s\n", opts->provider ? opts->provider : "");
}

static int send_text(struct pp *pp, const char *text)
{
	uint32_t len = htonl((uint32_t) strlen(text));
	int ret;

	ret = pp_ctrl_send(pp, &len, sizeof(len), "our options");
	return ret ? ret : pp_ctrl_send(pp, text, strlen(text), "our options");
}

/* Replace what could control a terminal. */
static void tame(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		text[i] = (text[i] >= ' ' && text[i] < 127) || text[i] == '\n' ? text[i] : '?';
}

static int recv_text(struct pp *pp, char text[TEXT_LEN])
{
	uint32_t len;
	int ret;

	ret = pp_ctrl_recv(pp, &len, sizeof(len), "the peer's options");
	if (ret)
		return ret;
	len = ntohl(len);
	if (len >= TEXT_LEN)
		return pp_fail(pp, -EPROTO, "receive the peer's options: %u bytes", len);
	ret = pp_ctrl_recv(pp, text, len, "the peer's options");
	if (ret)
		return ret;
	text[len] = '\0';
	tame(text, len);
	return 0;
}

/* True if endpoints of the two providers can talk: they are the same, or both are names of tcp. */
static bool are_peers(const char *one, const char *other)
{
	return !strcasecmp(!strcasecmp(one, "sockets") ? "tcp" : one, !strcasecmp(other, "sockets") ? "tcp" : other);
}

/* Server: compare the client's options, which are cut up, with ours. */
static int compare(struct pp *pp, char *theirs)
{
	char text[TEXT_LEN], *ours = text, *our, *their;

	put_options(pp->opts, text, sizeof(text));
	for (;;) {
		our = strsep(&ours, "\n");
		their = strsep(&theirs, "\n");
		if (!our || !their || !*our)
			return 0;
		if (!strncmp(our, "-p ", 3) && !strncmp(their, "-p ", 3)) {
			if (!their[3] || are_peers(their + 3, pp->provider))
				continue;
			return pp_fail(pp, -FI_EINVAL, "the server uses provider %s (-p), the client %s", pp->provider,
				       their + 3);
		}
		if (strcmp(our, their))
			return pp_fail(pp, -FI_EINVAL, "the server has option %.300s, the client %.300s; both need the "
				       "same", our, their);
	}
}

static int meet_client(struct pp *pp)
{
	char text[TEXT_LEN];
	int ret;

	put_options(pp->opts, text, sizeof(text));
	ret = send_text(pp, text);
	if (!ret)
		ret = recv_text(pp, text);
	if (!ret && !pp->opts->provider)
		snprintf(pp->provider, sizeof(pp->provider), "%.255s", text);
	return ret;
}

static int meet_server(struct pp *pp)
{
	char text[TEXT_LEN];
	int ret;

	ret = recv_text(pp, text);
	if (!ret)
		ret = compare(pp, text);
	return ret ? ret : send_text(pp, pp->provider);
}

int pp_meet(struct pp *pp)
{
	int ret;

	if (!pp->opts->meet)
		return 0;
	if (pp->opts->server) {
		ret = send_mark(pp);
		pp->met = !ret && see_mark(pp, POLLIN, pp->opts->wait_ms);
	} else {
		pp->met = see_mark(pp, 0, MARK_MS) && !send_mark(pp);
	}
	pp_debug(pp, "the peer is %s", pp->met ? "weft's program" : "upstream's program, or another one");
	if (!pp->met)
		return 0;
	return pp->opts->server ? meet_client(pp) : meet_server(pp);
}

int pp_meet_count(struct pp *pp, uint32_t *cnt)
{
	uint32_t net = htonl(*cnt);
	int ret;

	if (pp->opts->server)
		return pp_ctrl_send(pp, &net, sizeof(net), "the number of iterations");
	ret = pp_ctrl_recv(pp, &net, sizeof(net), "the number of iterations");
	*cnt = ntohl(net);
	return ret;
}

void pp_meet_tell(const struct pp *pp, const char *text)
{
	char message[sizeof(failure_mark) + 512];
	int len;

	if (!pp->met)
		return;
	memcpy(message, failure_mark, sizeof(failure_mark));
	len = snprintf(message + sizeof(failure_mark), sizeof(message) - sizeof(failure_mark), "%s", text);
	if (len >= (int) (sizeof(message) - sizeof(failure_mark)))
		len = (int) (sizeof(message) - sizeof(failure_mark)) - 1;
	/* whoever does not read it sees that the connection ends */
	if (send(pp->ctrl, message, sizeof(failure_mark) + (size_t) len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		pp_debug(pp, "the peer was not told");
}

bool pp_meet_failed(const struct pp *pp)
{
	char mark[sizeof(failure_mark)];

	return pp->met && recv(pp->ctrl, mark, sizeof(mark), MSG_PEEK | MSG_DONTWAIT) == sizeof(mark) &&
	       !memcmp(mark, failure_mark, sizeof(mark));
}

bool pp_meet_report(const struct pp *pp)
{
	struct pollfd poll_fd = { .fd = pp->ctrl, .events = POLLIN };
	char text[512];
	size_t len = 0;
	ssize_t ret = 1;

	if (!pp_meet_failed(pp))
		return false;
	while (ret > 0 && len < sizeof(text) - 1 && poll(&poll_fd, 1, FAILURE_MS) > 0) {
		ret = recv(pp->ctrl, text + len, sizeof(text) - 1 - len, MSG_DONTWAIT);
		len += ret > 0 ? (size_t) ret : 0;
	}
	text[len] = '\0';
	tame(text + sizeof(failure_mark), len - sizeof(failure_mark));
	util_err("peer %s: it has failed: %s", pp->peer, text + sizeof(failure_mark));
	return true;
}
