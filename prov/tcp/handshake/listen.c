/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See listen.h. At most ACCEPT_BATCH connections are accepted per pass, so that many at a time do not delay the others.
 * When there are no more descriptors, accepting is paused: the kernel keeps further connections, and one log message
 * gives advice.
 */
#include "tcp/handshake/listen.h"

#include <errno.h>
#include <string.h>
#include "base/clock.h"
#include "base/sock.h"
#include "tcp/sock/sock.h"
#include "tcp/params/params.h"

#define ACCEPT_BATCH	64
#define ACCEPT_PAUSE_NS	(10 * 1000000ULL)
#define STARVED_PAUSE_NS	(100 * 1000000ULL)
#define AWAITED_MAX	1024		/* most connections that wait for their request */

/* ---- requests ---- */

static void listener_free_awaited(struct tcp_listener *listener, struct tcp_cm *cm)
{
	fab_list_remove(&cm->link);
	listener->awaited_cnt--;
	tcp_cm_free(cm);
}

static void listener_request_done(struct tcp_cm *cm)
{
	struct tcp_listener *listener = cm->ctx;

	listener->request(listener, cm);
	listener_free_awaited(listener, cm);
}

static void listener_request_failed(struct tcp_cm *cm, int err)
{
	char text[256];

	tcp_cm_text(cm, err, text, sizeof(text));
	/* the peer has closed again by itself: both sides had connected at once */
	TCP_LOG(err == FI_ECONNRESET ? FI_LOG_INFO : FI_LOG_WARN, FI_LOG_EP_CTRL, "incoming %s\n", text);
	listener_free_awaited(cm->ctx, cm);
}

static const struct tcp_cm_owner awaited_owner = { .done = listener_request_done, .fail = listener_request_failed };

static void listener_await(struct tcp_listener *listener, int fd, const union fab_sockaddr *remote)
{
	struct tcp_cm *cm = tcp_cm_new(listener->engine, &awaited_owner, listener);
	int ret = -FI_ENOMEM;

	if (cm) {
		cm->keyring = listener->keyring;
		ret = tcp_cm_await(cm, fd, remote);
	}
	if (ret) {
		TCP_WARN(FI_LOG_EP_CTRL, "a connection is dropped: %s\n", strerror(-ret));
		fab_sock_close(&fd);
		tcp_cm_free(cm);
		return;
	}
	fab_list_add_tail(&listener->awaited, &cm->link);
	listener->awaited_cnt++;
}

/* ---- accepting ---- */

static bool listener_has_room(struct tcp_listener *listener)
{
	return listener->awaited_cnt < AWAITED_MAX && (!listener->room || listener->room(listener));
}

static void listener_pause(struct tcp_listener *listener, uint64_t pause_ns)
{
	fab_source_mod(&listener->src, 0);
	fab_timer_start(listener->engine, &listener->again, fab_now_ns() + pause_ns);
}

static void listener_again(struct fab_timer *timer)
{
	struct tcp_listener *listener = fab_container(timer, struct tcp_listener, again);

	fab_source_mod(&listener->src, EPOLLIN);
}

/* accept() has failed for lack of a resource that may be available later. */
static void listener_starve(struct tcp_listener *listener, int err)
{
	tcp_sock_shortage("cannot accept connections; they wait", err);
	if (listener->starved)
		listener->starved(listener);
	listener_pause(listener, STARVED_PAUSE_NS);
}

/* Accept a connection. False: no more now. */
static bool listener_accept(struct tcp_listener *listener)
{
	union fab_sockaddr remote = { 0 };
	socklen_t len = sizeof(remote);
	int fd;

	if (!listener_has_room(listener)) {
		listener_pause(listener, ACCEPT_PAUSE_NS);
		return false;
	}
	fd = fab_sock->accept4(listener->src.fd, &remote.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		tcp_sock_tune(fd);
		listener_await(listener, fd, &remote);
		return true;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
		listener_starve(listener, errno);
	/* All other errors concern a connection that has died in the queue. */
	return errno == ECONNABORTED || errno == EINTR || errno == EPROTO;
}

static void listener_ready(struct fab_source *src, uint32_t events)
{
	struct tcp_listener *listener = fab_container(src, struct tcp_listener, src);

	(void) events;
	for (int i = 0; i < ACCEPT_BATCH && src->fd >= 0; i++) {
		if (!listener_accept(listener))
			break;
	}
}

int tcp_listener_start(struct tcp_listener *listener, struct fab_engine *engine, int fd, int backlog)
{
	int ret;

	if (fab_sock->listen(fd, backlog)) {
		ret = -errno;
		TCP_WARN(FI_LOG_EP_CTRL, "cannot listen: %s\n", strerror(-ret));
		return ret;
	}
	fab_timer_init(&listener->again, listener_again);
	fab_list_init(&listener->awaited);
	listener->engine = engine;
	listener->src = (struct fab_source) { .fd = fd, .ready = listener_ready };
	fab_list_init(&listener->src.hot);
	ret = fab_source_add(engine, &listener->src, EPOLLIN);
	if (ret)
		listener->engine = NULL;
	return ret;
}

void tcp_listener_stop(struct tcp_listener *listener)
{
	int fd = listener->src.fd;
	struct fab_list *link, *next;

	if (!listener->engine)
		return;
	fab_timer_stop(&listener->again);
	fab_source_del(&listener->src);
	fab_sock_close(&fd);
	listener->src.fd = -1;
	fab_list_for_each_safe(&listener->awaited, link, next)
		listener_free_awaited(listener, fab_container(link, struct tcp_cm, link));
	listener->engine = NULL;
}
