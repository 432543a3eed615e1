/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See listen.h. At most ACCEPT_BATCH connections are accepted per pass, and no more than a turn has time for
 * (common/engine), so that many at a time do not delay the others. One that comes alone is accepted without asking for
 * a second one.
 *
 * Connections that have sent no request are few: 1024 of a listener, and an eighth of the limit on open files for all
 * listeners of the process. A further one takes the place of another, so that silent ones cannot delay peers that
 * speak: of the host with the most of them, the oldest goes. It is at least YOUNG_NS old, in which a peer that has been
 * waiting to be accepted sends its request, and nothing of it waits to be read. One of our own peers that was busy
 * meanwhile connects again (peer/dial.c). The same holds while the owner has no room: those without a request take part
 * of the backlog of a passive endpoint.
 *
 * When there are no more descriptors, accepting is paused: the kernel keeps further connections, and one log message
 * gives advice.
 */
#include "tcp/handshake/listen.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "common/net/net.h"
#include "tcp/account/account.h"
#include "tcp/sock/sock.h"
#include "tcp/params/params.h"

#define ACCEPT_BATCH	64
#define BATCH_PASSES	8		/* passes between two connections that do not come alone */
#define ACCEPT_PAUSE_NS	(10 * 1000000ULL)
#define STARVED_PAUSE_NS	(100 * 1000000ULL)
#define AWAITED_MAX	1024		/* most connections of a listener that wait for their request */
#define AWAITED_MIN	8		/* so many in any case */
#define YOUNG_NS	(20 * 1000000ULL)

/* ---- requests ---- */

static void listener_free_awaited(struct tcp_listener *listener, struct tcp_cm *cm)
{
	fab_list_remove(&cm->link);
	listener->awaited_cnt--;
	listener->awaited_of[cm->host]--;
	tcp_descriptor_give(TCP_FD_AWAITED);
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

/* The host of a connection, as an index of awaited_of. */
static uint8_t listener_host(const union fab_sockaddr *remote)
{
	union fab_sockaddr host = { 0 };

	if (remote)
		host = *remote;
	fab_addr_set_port(&host.sa, 0);
	return fab_addr_hash(&host.sa);
}

/* Wait for the request of a connection from remote; over a Unix socket remote is NULL. */
static void listener_await(struct tcp_listener *listener, struct tcp_link *link, const union fab_sockaddr *remote)
{
	struct tcp_cm *cm = tcp_cm_new(listener->engine, &awaited_owner, listener);
	int ret = -FI_ENOMEM;

	if (cm) {
		cm->keyring = listener->keyring;
		ret = tcp_cm_await(cm, link, &listener->addr, remote);
	}
	if (ret) {
		TCP_WARN(FI_LOG_EP_CTRL, "an incoming connection is dropped: %s\n", strerror(-ret));
		tcp_link_close(link);
		tcp_cm_free(cm);
		return;
	}
	fab_list_add_tail(&listener->awaited, &cm->link);
	cm->host = listener_host(remote);
	listener->awaited_cnt++;
	listener->awaited_of[cm->host]++;
	tcp_descriptor_take(TCP_FD_AWAITED);
}

/* ---- accepting ---- */

/* True if no connection may wait for its request beside those that do. */
static bool listener_is_full(const struct tcp_listener *listener)
{
	return listener->awaited_cnt >= AWAITED_MAX || (listener->awaited_cnt >= AWAITED_MIN &&
	       tcp_descriptors_held(TCP_FD_AWAITED) >= listener->awaited_max);
}

/* True if bytes that have arrived were not read yet. */
static bool awaited_has_more(const struct tcp_cm *cm)
{
	char byte;

	return fab_sock->recv(cm->src.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Drop the connection whose place another one takes. False: it is too young, or about to be read. */
static bool listener_drop_silent(struct tcp_listener *listener)
{
	struct fab_list *link = listener->awaited.next;
	unsigned host = 0;
	struct tcp_cm *cm;

	for (unsigned i = 1; i < fab_countof(listener->awaited_of); i++) {
		if (listener->awaited_of[i] > listener->awaited_of[host])
			host = i;
	}
	while (fab_container(link, struct tcp_cm, link)->host != host)
		link = link->next;
	cm = fab_container(link, struct tcp_cm, link);
	if (fab_now_ns() - cm->since_ns < YOUNG_NS || awaited_has_more(cm))
		return false;
	TCP_WARN(FI_LOG_EP_CTRL, "too many connections have sent no request: the oldest ones of the host that has the "
		 "most are closed to admit new ones\n");
	tcp_descriptor_drop();
	listener_free_awaited(listener, cm);
	return true;
}

static bool listener_has_room(struct tcp_listener *listener)
{
	bool room = !listener->room || listener->room(listener);

	if (room && !listener_is_full(listener))
		return true;
	return listener->awaited_cnt && listener_drop_silent(listener);
}

static void listener_pause(struct tcp_listener *listener, uint64_t pause_ns)
{
	fab_source_mod(&listener->src, 0);
	if (listener->near.engine)
		fab_source_mod(&listener->near, 0);
	fab_timer_start(listener->engine, &listener->again, fab_now_ns() + pause_ns);
}

static void listener_again(struct fab_timer *timer)
{
	struct tcp_listener *listener = fab_container(timer, struct tcp_listener, again);

	fab_source_mod(&listener->src, EPOLLIN);
	if (listener->near.engine)
		fab_source_mod(&listener->near, EPOLLIN);
}

/* accept() has failed for lack of a resource that may be available later. */
static void listener_starve(struct tcp_listener *listener, int err)
{
	tcp_sock_shortage("cannot accept connections; they wait", err);
	if (listener->starved)
		listener->starved(listener);
	listener_pause(listener, STARVED_PAUSE_NS);
}

/* accept() has failed. True: it may be called again at once. */
static bool listener_accept_failed(struct tcp_listener *listener, int err)
{
	if (err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS)
		listener_starve(listener, err);
	if (err == EPERM || err == ENOSYS) {
		TCP_WARN(FI_LOG_EP_CTRL, "cannot accept connections, which wait: %s. Does a filter of system calls "
			 "(seccomp) deny accept4()?\n", strerror(err));
		listener_pause(listener, STARVED_PAUSE_NS);
	}
	/* All other errors concern a connection that has died in the queue, or is not wanted. */
	return err == ECONNABORTED || err == EINTR || err == EPROTO || err == EACCES;
}

/* Accept a connection over TCP. False: no more now. */
static bool listener_accept_tcp(struct tcp_listener *listener)
{
	union fab_sockaddr remote = { 0 };
	struct tcp_link link = { .local = NULL };
	socklen_t len = sizeof(remote);

	link.fd = fab_sock->accept4(listener->src.fd, &remote.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (link.fd < 0)
		return listener_accept_failed(listener, errno);
	listener_await(listener, &link, &remote);
	return true;
}

/* The same over the Unix socket. */
static bool listener_accept_near(struct tcp_listener *listener)
{
	struct tcp_link link;
	int ret = tcp_local_accept(listener->near.fd, &link);

	if (ret)
		return listener_accept_failed(listener, -ret);
	listener_await(listener, &link, NULL);
	return true;
}

/* How many connections to accept now: one, and twice as many as before while they keep coming. */
static uint32_t listener_next_batch(struct tcp_listener *listener)
{
	uint32_t pass = listener->engine->pass_cnt;
	bool busy = listener->batch && pass - listener->batch_pass <= BATCH_PASSES;

	listener->batch = busy ? fab_min(2 * listener->batch, (uint32_t) ACCEPT_BATCH) : 1;
	listener->batch_pass = pass;
	return listener->batch;
}

/* Accept connections from a source of the listener. */
static void listener_accept(struct tcp_listener *listener, const struct fab_source *src)
{
	uint32_t batch = listener_next_batch(listener);

	for (uint32_t i = 0; i < batch && src->fd >= 0; i++) {
		if (!listener_has_room(listener)) {
			listener_pause(listener, ACCEPT_PAUSE_NS);
			return;
		}
		if (!(src == &listener->src ? listener_accept_tcp(listener) : listener_accept_near(listener)) ||
		    fab_engine_turn_is_over(listener->engine))
			return;
	}
}

static void listener_ready(struct fab_source *src, uint32_t events)
{
	(void) events;
	listener_accept(fab_container(src, struct tcp_listener, src), src);
}

static void listener_near_ready(struct fab_source *src, uint32_t events)
{
	(void) events;
	listener_accept(fab_container(src, struct tcp_listener, near), src);
}

/* Listen for peers of this host, too. Without success they use TCP. */
static void listener_start_near(struct tcp_listener *listener, int backlog)
{
	struct fab_source *near = &listener->near;
	int fd = tcp_local_listen(&listener->addr, backlog);

	*near = (struct fab_source) { .fd = fd, .ready = listener_near_ready, .outsider = true };
	fab_list_init(&near->hot);
	if (fd >= 0 && fab_source_add(listener->engine, near, EPOLLIN))
		fab_sock_close(&near->fd);
	if (near->fd < 0 && fd != -ENOSYS)
		TCP_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "peers of this host will use TCP: no Unix socket to listen on: "
			"%s\n", strerror(fd < 0 ? -fd : ENOMEM));
}

/* The kernel keeps connections to itself until they have sent something, for as long as we would wait for that. Those
 * that connect speak first, in every version of the wire format. */
static void listener_await_data(int fd)
{
	int wait_s = (int) fab_max(tcp_params.connect_timeout_ms / 1000, 1);
	int ret = fab_sock_set_int(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, wait_s);

	if (ret)
		TCP_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "TCP_DEFER_ACCEPT is refused: %s\n", strerror(-ret));
}

int tcp_listener_start(struct tcp_listener *listener, struct fab_engine *engine, int fd, int backlog)
{
	int ret;

	if (fab_sock->listen(fd, backlog)) {
		ret = -errno;
		TCP_WARN(FI_LOG_EP_CTRL, "cannot listen: %s\n", strerror(-ret));
		return ret;
	}
	tcp_sock_tune(fd);	/* accepted sockets inherit the options, tcp(7) */
	listener_await_data(fd);
	fab_timer_init(&listener->again, listener_again);
	fab_list_init(&listener->awaited);
	listener->awaited_max = tcp_descriptors_awaited_max();
	listener->engine = engine;
	listener->src = (struct fab_source) { .fd = fd, .ready = listener_ready, .outsider = true };
	fab_list_init(&listener->src.hot);
	ret = fab_source_add(engine, &listener->src, EPOLLIN);
	if (ret) {
		listener->engine = NULL;
		return ret;
	}
	fab_name_local(fd, &listener->addr);
	listener_start_near(listener, backlog);
	return 0;
}

void tcp_listener_stop(struct tcp_listener *listener)
{
	int fd = listener->src.fd;
	struct fab_list *link, *next;

	if (!listener->engine)
		return;
	fab_timer_stop(&listener->again);
	/* first the name, so that the next listener at this port finds it free */
	fab_source_del(&listener->near);
	fab_sock_close(&listener->near.fd);
	fab_source_del(&listener->src);
	fab_sock_close(&fd);
	listener->src.fd = -1;
	fab_list_for_each_safe(&listener->awaited, link, next)
		listener_free_awaited(listener, fab_container(link, struct tcp_cm, link));
	listener->engine = NULL;
}
