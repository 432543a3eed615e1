/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections that do not come about, and those that end before they are there: whoever waits for one is told, once,
 * with a text that names device, port and peer. Peers that die are processes of their own.
 */
#include "link.h"
#include "../softverbs/stand_in.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

#define NAME_LEN	16		/* of a struct sockaddr_in */

/* The other process of a case, and what the two say to each other: bytes. */
static struct {
	pid_t pid;
	int in, out;
} other;

/* Let the other process do this; it never returns. */
static void start(void (*run)(void))
{
	int there[2], back[2];

	MUST_BE(!pipe(there) && !pipe(back));
	other.pid = fork();
	MUST_BE(other.pid >= 0);
	other.in = other.pid ? back[0] : there[0];
	other.out = other.pid ? there[1] : back[1];
	close(other.pid ? back[1] : there[1]);
	close(other.pid ? there[0] : back[0]);
	if (other.pid)
		return;
	run();
	pause();
}

static void say(const void *data, size_t len)
{
	MUST_BE(write(other.out, data, len) == (ssize_t) len);
}

static void hear(void *data, size_t len)
{
	MUST_BE(read(other.in, data, len) == (ssize_t) len);
}

/* The same, of what the other end says while this one goes on. */
static void hear_from(const struct end *end, void *data, size_t len)
{
	struct pollfd pfd = { .fd = other.in, .events = POLLIN };

	while (!poll(&pfd, 1, 0))
		fi_cq_read(end->cq, NULL, 0);
	hear(data, len);
}

static void kill_other(void)
{
	MUST_BE(!kill(other.pid, SIGKILL));
	MUST_BE(waitpid(other.pid, NULL, 0) == other.pid);
}

/* As if it had lost its power: when this returns, nothing of it runs any more. */
static void stop_other(void)
{
	int status;

	MUST_BE(!kill(other.pid, SIGSTOP));
	MUST_BE(waitpid(other.pid, &status, WUNTRACED) == other.pid && WIFSTOPPED(status));
}

/* An end that can connect to this name. */
static void open_towards(struct end *end, const char *name)
{
	struct fi_info *hints = hints_new(), *info;

	hints->addr_format = FI_SOCKADDR_IN;
	hints->dest_addr = malloc(NAME_LEN);
	hints->dest_addrlen = NAME_LEN;
	memcpy(hints->dest_addr, name, NAME_LEN);
	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	end_open(end, info);
	MUST(end_open_ep(end));
}

static void expect_err(struct link *link, struct fid_eq *eq, int err)
{
	struct happened what = await_event(link, eq);

	if (what.event || what.err != err)
		die("event %u, error %d (%s), not %d", what.event, what.err, fi_strerror(what.err), err);
}

/* ---- no process dies ---- */

/* The data of this request of an RC endpoint looks like a request of upstream's for XRC: version 2, and a port for the
 * second request, at which nobody listens. */
static void upstream_listens_nowhere(void)
{
	struct link link = { 0 };
	struct fi_info *hints = hints_new(), *info;
	char name[NAME_LEN];

	link_listen(&link);
	memcpy(name, link.a.info->dest_addr, NAME_LEN);
	end_close(&link.a);
	hints->ep_attr->protocol = FI_PROTO_RDMA_CM_IB_RC;
	hints->addr_format = FI_SOCKADDR_IN;
	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	end_open(&link.a, info);
	MUST(end_open_ep(&link.a));
	MUST(fi_connect(link.a.ep, name, "\0\1", 2));
	link_open_b(&link, link_await_request(&link).info);
	MUST(fi_accept(link.b.ep, NULL, 0));
	expect_err(&link, link.b.eq, FI_ECONNREFUSED);
	link_close(&link);
}

/* A function of the stand-in's connection manager. */
#define CM(call) ((__typeof__(call) *) stand_in_cm(#call))

/* The next event of a channel, in which a's endpoint has a part. */
static struct rdma_cm_event *next_event(struct link *link, struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	while (CM(rdma_get_cm_event)(channel, &event)) {
		MUST_BE(errno == EAGAIN);
		MUST_FAIL(fi_cq_read(link->a.cq, NULL, 0), FI_EAGAIN);
	}
	return event;
}

static struct rdma_cm_id *id_at(struct rdma_event_channel *channel, const char *host)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(host) };
	struct rdma_cm_id *id;

	MUST_BE(!CM(rdma_create_id)(channel, &id, NULL, RDMA_PS_TCP));
	MUST_BE(!CM(rdma_bind_addr)(id, (struct sockaddr *) &addr));
	return id;
}

/* The second request of upstream's handshake, from this host and with this tag; how it is answered. */
static enum rdma_cm_event_type call_back(struct link *link, struct rdma_event_channel *channel, const char *host,
					 uint16_t port, uint32_t tag)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port,
	};
	const struct { uint8_t version, reciprocal; uint16_t port; uint32_t tgt, srqn, tag; } data = {
		.version = 2, .reciprocal = 1, .srqn = htonl(1), .tag = tag,
	};
	struct rdma_conn_param param = { .private_data = &data, .private_data_len = sizeof(data), .qp_num = 99 };
	struct rdma_cm_id *id = id_at(channel, host);
	enum rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_RESOLVED;
	struct rdma_cm_event *event;

	MUST_BE(!CM(rdma_resolve_addr)(id, NULL, (struct sockaddr *) &addr, 5000));
	for (int step = 0; step < 3; step++) {
		event = next_event(link, channel);
		type = event->event;
		MUST_BE(!CM(rdma_ack_cm_event)(event));
		if (type == RDMA_CM_EVENT_ADDR_RESOLVED)
			MUST_BE(!CM(rdma_resolve_route)(id, 5000));
		else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED)
			MUST_BE(!CM(rdma_connect)(id, &param));
	}
	MUST_BE(!CM(rdma_destroy_id)(id));
	return type;
}

/* An endpoint connects to upstream's, which connects the other direction by a request of its own. Requests of others
 * are refused. */
static void others_call_back(void)
{
	struct rdma_event_channel *channel = CM(rdma_create_event_channel)();
	struct rdma_cm_id *listener = id_at(channel, "127.0.0.1"), *id;
	struct rdma_cm_event *event;
	struct link link = { 0 };
	uint16_t port;
	uint32_t tag;

	MUST_BE(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	MUST_BE(!CM(rdma_listen)(listener, 4));
	link_listen(&link);
	MUST(fi_connect(link.a.ep, rdma_get_local_addr(listener), NULL, 0));
	for (int i = 0; i < 2; i++) {		/* our request, which upstream drops, and one in its way */
		event = next_event(&link, channel);
		MUST_BE(event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
		id = event->id;
		memcpy(&port, (const char *) event->param.conn.private_data + 2, sizeof(port));
		memcpy(&tag, (const char *) event->param.conn.private_data + 12, sizeof(tag));
		if (!i)
			MUST_BE(!CM(rdma_reject)(id, NULL, 0));
		MUST_BE(!CM(rdma_ack_cm_event)(event));
		if (!i)
			MUST_BE(!CM(rdma_destroy_id)(id));
	}
	MUST_BE(call_back(&link, channel, "127.0.0.1", port, ~tag) == RDMA_CM_EVENT_REJECTED);
	MUST_BE(call_back(&link, channel, "127.0.0.2", port, tag) == RDMA_CM_EVENT_REJECTED);
	MUST_BE(call_back(&link, channel, "127.0.0.1", port, tag) == RDMA_CM_EVENT_CONNECT_RESPONSE);
	MUST_BE(!CM(rdma_destroy_id)(id));
	MUST_BE(!CM(rdma_destroy_id)(listener));
	link_close(&link);
	CM(rdma_destroy_event_channel)(channel);
}

static void nobody_listens(void)
{
	struct link link = { 0 };

	link_listen(&link);
	MUST(fi_close(&link.pep->fid));
	link.pep = NULL;
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, NULL, 0));
	expect_err(&link, link.a.eq, FI_ECONNREFUSED);
	link_close(&link);
}

static void program_refuses(void)
{
	struct link link = { 0 };
	struct happened what;

	link_listen(&link);
	what = link_request(&link);
	MUST(fi_reject(link.pep, what.info->handle, "busy", 4));
	fi_freeinfo(what.info);
	what = await_event(&link, link.a.eq);
	MUST_BE(!what.event && what.err == FI_ECONNREFUSED);
	MUST_BE(what.data_len == 4 && !memcmp(what.data, "busy", 4));
	link_close(&link);
}

/* One request fills the backlog, and nobody reads it: another is dropped until its tries are over. The first can be
 * accepted all the same. */
static void server_takes_no_request(void)
{
	struct link link = { 0 }, second = { 0 };
	const char *from = link.a.room;
	struct end swap;
	uint32_t event;

	link_listen(&link);
	end_open(&second.a, fi_dupinfo(link.a.info));
	MUST(end_open_ep(&second.a));
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, NULL, 0));
	MUST(fi_connect(second.a.ep, second.a.info->dest_addr, NULL, 0));
	while (fi_eq_read(second.a.eq, &event, NULL, 0, 0) != -FI_EAVAIL) {
		fi_cq_read(link.a.cq, NULL, 0);
		fi_cq_read(second.a.cq, NULL, 0);
		if (fi_eq_read(link.a.eq, &event, NULL, 0, 0) != -FI_EAVAIL)
			continue;
		swap = link.a;
		link.a = second.a;
		second.a = swap;
		from = second.a.room;
	}
	expect_err(&second, second.a.eq, FI_ETIMEDOUT);
	end_close(&second.a);
	link_accept(&link, link_await_request(&link).info);
	link_send(&link, from, fi_mr_desc(link.a.mr), 8);
	link_close(&link);
}

static void device_is_removed(void)
{
	struct link link = { 0 };

	link_listen(&link);
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, NULL, 0));
	expect_err(&link, link.a.eq, FI_ENODEV);
	link_close(&link);
}

/* a has its connection and ends it; b, which has not heard of the first, hears of both. */
static void end_comes_first(void)
{
	struct link link = { 0 };

	link_listen(&link);
	link_open_b(&link, link_request(&link).info);
	MUST(fi_accept(link.b.ep, NULL, 0));
	MUST_BE(await_event(&link, link.a.eq).event == FI_CONNECTED);
	MUST(fi_shutdown(link.a.ep, 0));
	MUST_BE(await_event(&link, link.b.eq).event == FI_CONNECTED);
	MUST_BE(await_event(&link, link.b.eq).event == FI_SHUTDOWN);
	link_close(&link);
}

static void data_is_too_long_for_xrc(void)
{
	static const char data[64];
	struct link link = { 0 };
	struct happened what;

	link_listen(&link);
	MUST_BE(link.a.info->ep_attr->protocol == FI_PROTO_RDMA_CM_IB_XRC);
	MUST_FAIL(fi_connect(link.a.ep, link.a.info->dest_addr, data, 36), FI_EINVAL);
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, data, 35));
	what = link_await_request(&link);
	MUST_BE(what.data_len == 35);
	fi_freeinfo(what.info);
	link_close(&link);
}

/* ---- the other process dies ---- */

static void listen_and_wait(void)
{
	struct link link = { 0 };

	link_listen(&link);
	say(link.a.info->dest_addr, NAME_LEN);
	link_await_request(&link);
	say("r", 1);
}

static void listener_dies(void)
{
	struct link link = { 0 };
	char name[NAME_LEN];

	start(listen_and_wait);
	hear(name, sizeof(name));
	open_towards(&link.a, name);
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, NULL, 0));
	hear_from(&link.a, name, 1);
	kill_other();
	expect_err(&link, link.a.eq, FI_ETIMEDOUT);
	end_close(&link.a);
}

static void connect_and_wait(void)
{
	struct link link = { 0 };
	char name[NAME_LEN];

	hear(name, sizeof(name));
	open_towards(&link.a, name);
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, NULL, 0));
	MUST_BE(await_event(&link, link.a.eq).event == FI_CONNECTED);
	say("c", 1);
}

/* after: has the other one its connection, as far as it knows? */
static void connector_dies(bool after)
{
	struct link link = { 0 };
	struct fi_info *info;
	char word;

	start(connect_and_wait);
	link_listen(&link);
	say(link.a.info->dest_addr, NAME_LEN);
	info = link_await_request(&link).info;
	if (!after)
		kill_other();
	link_open_b(&link, info);
	MUST(fi_accept(link.b.ep, NULL, 0));
	if (after) {
		hear(&word, 1);
		kill_other();
	}
	expect_err(&link, link.b.eq, FI_ETIMEDOUT);
	link_close(&link);
}

static void connector_dies_before(void)
{
	connector_dies(false);
}

static void connector_dies_after(void)
{
	connector_dies(true);
}

/* A peer loses its power, and its next queue pair gets the number of the last one. Its first request ends the old
 * connection, and is refused; the second is accepted. */
static void peer_is_restarted(void)
{
	struct link link = { 0 };
	uint32_t event;
	char word;

	start(connect_and_wait);
	link_listen(&link);
	say(link.a.info->dest_addr, NAME_LEN);
	link_open_b(&link, link_await_request(&link).info);
	MUST(fi_accept(link.b.ep, NULL, 0));
	MUST_BE(await_event(&link, link.b.eq).event == FI_CONNECTED);
	hear(&word, 1);
	stop_other();
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, NULL, 0));
	expect_err(&link, link.a.eq, FI_ECONNRESET);
	MUST_BE(await_event(&link, link.b.eq).event == FI_SHUTDOWN);
	MUST_FAIL(fi_eq_read(link.pep_eq, &event, NULL, 0, 0), FI_EAGAIN);
	MUST(fi_close(&link.a.ep->fid));
	MUST(fi_close(&link.b.ep->fid));
	MUST(end_open_ep(&link.a));
	link_accept(&link, link_request(&link).info);
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), 8);
	kill_other();
	link_close(&link);
}

/* ---- the other process is silent: it is stopped, or posts no receive ---- */

static void accept_and_wait(void)
{
	struct link link = { 0 };
	char word;

	link_listen(&link);
	say(link.a.info->dest_addr, NAME_LEN);
	link_open_b(&link, link_await_request(&link).info);
	MUST(fi_accept(link.b.ep, NULL, 0));
	MUST_BE(await_event(&link, link.b.eq).event == FI_CONNECTED);
	hear_from(&link.b, &word, 1);
	MUST(fi_recv(link.b.ep, link.b.room, 8, fi_mr_desc(link.b.mr), 0, NULL));
	MUST_BE(!await_comp(&link, &link.b, NULL));
	say("r", 1);
}

static void connect_to_other(struct link *link)
{
	char name[NAME_LEN];

	start(accept_and_wait);
	hear(name, sizeof(name));
	open_towards(&link->a, name);
	MUST(fi_connect(link->a.ep, link->a.info->dest_addr, NULL, 0));
	MUST_BE(await_event(link, link->a.eq).event == FI_CONNECTED);
}

static void expect_end(struct link *link, int err)
{
	struct fi_cq_err_entry error = { 0 };

	MUST_BE(await_event(link, link->a.eq).event == FI_SHUTDOWN);
	if (await_comp(link, &link->a, &error) != err)
		die("error %d (%s), not %d", error.err, fi_strerror(error.err), err);
	kill_other();
	end_close(&link->a);
}

/* Give an event to all ids of this process. */
static void tell_ids(enum rdma_cm_event_type type, int status)
{
	unsigned (*tell)(enum rdma_cm_event_type, int) = stand_in_cm("sv_test_tell_ids");

	MUST_BE(tell(type, status));
}

/* This end only receives, and the other one has lost its power. */
static void peer_is_silent(void)
{
	struct link link = { 0 };

	connect_to_other(&link);
	MUST(fi_recv(link.a.ep, link.a.room, 8, fi_mr_desc(link.a.mr), 0, NULL));
	stop_other();
	expect_end(&link, FI_EHOSTUNREACH);
}

/* The kernel finds another hardware address behind the peer's IP address, and the old one leads nowhere. */
static void peer_has_another_address(void)
{
	struct link link = { 0 };

	connect_to_other(&link);
	MUST(fi_recv(link.a.ep, link.a.room, 8, fi_mr_desc(link.a.mr), 0, NULL));
	stop_other();
	tell_ids(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	expect_end(&link, FI_EHOSTUNREACH);
}

/* The old one still leads there. */
static void peer_has_two_addresses(void)
{
	struct link link = { 0 };
	uint32_t event;
	char word;

	connect_to_other(&link);
	tell_ids(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	say("g", 1);
	MUST(fi_send(link.a.ep, link.a.room, 8, fi_mr_desc(link.a.mr), 0, NULL));
	MUST_BE(!await_comp(&link, &link.a, NULL));
	hear_from(&link.a, &word, 1);
	MUST_FAIL(fi_eq_read(link.a.eq, &event, NULL, 0, 0), FI_EAGAIN);
	kill_other();
	end_close(&link.a);
}

static void peer_posts_no_receive(void)
{
	struct link link = { 0 };

	connect_to_other(&link);
	MUST(fi_send(link.a.ep, link.a.room, 8, fi_mr_desc(link.a.mr), 0, NULL));
	expect_end(&link, FI_ETIMEDOUT);
}

static void idle(struct link *link, long ms)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		fi_cq_read(link->a.cq, NULL, 0);
		usleep(1000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

/* An idle connection, whose last request is not reported, stays for longer than FI_VERBS_STALL_TIMEOUT, and takes
 * messages: one must come through within that time. */
static void peer_is_idle(void)
{
	struct link link = { 0 };
	char word;

	connect_to_other(&link);
	idle(&link, 1500);
	say("g", 1);
	MUST(fi_send(link.a.ep, link.a.room, 8, fi_mr_desc(link.a.mr), 0, NULL));
	MUST_BE(!await_comp(&link, &link.a, NULL));
	hear_from(&link.a, &word, 1);
	kill_other();
	end_close(&link.a);
}

static unsigned posted(void)
{
	return ((unsigned (*)(void)) stand_in("sv_test_post_cnt"))();
}

/* An engine with more endpoints than are probed: an idle connection costs nothing. */
static void crowd_is_not_probed(void)
{
	struct link link = { 0 };
	unsigned before;

	link_open(&link);
	before = posted();
	idle(&link, 200);
	MUST_BE(posted() == before);
	link_close(&link);
}

#define FULL		7		/* operations outstanding; with the probe, all entries of the ring are taken */
#define AWAITED		2		/* of these, with a completion */

/* fi_tx_size_left(), which is deprecated. */
static ssize_t left(const struct end *end)
{
	return end->ep->ops->tx_size_left(end->ep);
}

/* A connection of which a reports the sends alone that ask for it. */
static void connect_selective(struct link *link)
{
	link_listen(link);
	MUST(fi_close(&link->a.ep->fid));
	link->a.info->tx_attr->size = FULL;
	MUST(fi_endpoint(link->a.domain, link->a.info, &link->a.ep, NULL));
	MUST(fi_ep_bind(link->a.ep, &link->a.eq->fid, 0));
	MUST(fi_ep_bind(link->a.ep, &link->a.cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
	MUST(fi_enable(link->a.ep));
	link_accept(link, link_request(link).info);
}

static void send_selective(struct link *link, void *context, bool report)
{
	const struct iovec iov = { link->a.room, 8 };
	void *desc = fi_mr_desc(link->a.mr);
	const struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .context = context };

	MUST(fi_sendmsg(link->a.ep, &msg, report ? FI_COMPLETION : 0));
}

/* Fill the send queue of a, whose peer posts no receive. The last request is not reported. */
static void fill(struct link *link, int *mark)
{
	for (int i = 0; i < FULL; i++)
		send_selective(link, &mark[i], i < AWAITED);
}

/* The same, and wait for the probe. */
static void fill_and_probe(struct link *link, int *mark)
{
	unsigned before;

	connect_selective(link);
	before = posted();
	fill(link, mark);
	while (posted() == before + FULL)
		fi_cq_read(link->a.cq, NULL, 0);
	MUST_BE(left(&link->a) == 0);
}

/* A probe is behind a full queue: there is no room for another operation, and each keeps its context. */
static void full_queue_is_probed(void)
{
	struct fi_cq_data_entry entry;
	struct link link = { 0 };
	int mark[FULL + 1], cnt = 0;
	ssize_t ret;

	fill_and_probe(&link, mark);
	MUST_FAIL(fi_send(link.a.ep, link.a.room, 8, fi_mr_desc(link.a.mr), 0, &mark[FULL]), FI_EAGAIN);
	for (int i = 0; i < FULL; i++) {
		MUST(fi_recv(link.b.ep, link.b.room, 8, fi_mr_desc(link.b.mr), 0, NULL));
		MUST_BE(!await_comp(&link, &link.b, NULL));
	}
	while (cnt < AWAITED || left(&link.a) < FULL) {
		ret = fi_cq_read(link.a.cq, &entry, 1);
		MUST_BE(ret == -FI_EAGAIN || (ret == 1 && cnt < AWAITED && entry.op_context == &mark[cnt]));
		cnt += ret == 1;
	}
	MUST_FAIL(fi_cq_read(link.a.cq, &entry, 1), FI_EAGAIN);
	link_close(&link);
}

/* The same where the endpoint is closed: all of its operations are cancelled, each once. */
static void full_queue_is_probed_and_closed(void)
{
	struct fi_cq_err_entry error = { 0 };
	struct link link = { 0 };
	int mark[FULL];

	fill_and_probe(&link, mark);
	MUST(fi_close(&link.a.ep->fid));
	link.a.ep = NULL;
	for (int i = 0; i < FULL; i++) {
		MUST_BE(await_comp(&link, &link.a, &error) == FI_ECANCELED);
		MUST_BE(error.op_context == &mark[i]);
	}
	link_close(&link);
}

/* A peer that posts no receive is given up, also where the last request is not reported, and nobody probes. */
static void full_queue_is_given_up(void)
{
	struct fi_cq_err_entry error = { 0 };
	struct link link = { 0 };
	int mark[FULL];

	connect_selective(&link);
	fill(&link, mark);
	MUST_BE(await_event(&link, link.a.eq).event == FI_SHUTDOWN);
	for (int i = 0; i < FULL; i++)
		MUST_BE(await_comp(&link, &link.a, &error) == FI_ETIMEDOUT);
	link_close(&link);
}

/* The device has no room for a probe: the connection stays, though nobody knows that its last request has completed. */
static void refused_probe_ends_nothing(void)
{
	struct link link = { 0 };

	connect_selective(&link);
	for (int i = 0; i < 2; i++) {
		MUST(fi_recv(link.b.ep, link.b.room, 8, fi_mr_desc(link.b.mr), 0, NULL));
		send_selective(&link, NULL, i == 1);
		setenv("SOFTVERBS_FAIL", "ibv_post_send:1+=ENOMEM", 1);
		MUST_BE(!await_comp(&link, &link.b, NULL));
		if (!i)
			idle(&link, 1300);
		unsetenv("SOFTVERBS_FAIL");
	}
	MUST_BE(!await_comp(&link, &link.a, NULL));
	link_close(&link);
}

#define LOST	"event said: soft0, port 1: no connection "
#define PEER	" fi_sockaddr_in://127.0.0.1:[0-9]+: "

static const struct vcase cases[] = {
	{ "nobody listens", NULL, nobody_listens, LOST "to" PEER "nobody listens there" },
	{ "the peer's program refuses", NULL, program_refuses, LOST "to" PEER "the peer's program rejected it" },
	{ "XRC: the peer's program refuses", "FI_VERBS_PREFER_XRC=1", program_refuses,
	  LOST "to" PEER "the peer's program rejected it" },
	{ "a server takes no request", "SOFTVERBS_LIMITS=max_backlog=1,cm_retry=1,cm_retries=3",
	  server_takes_no_request, LOST "to" PEER "unreachable" },
	{ "a peer was restarted, and has a queue pair of the same number", "SOFTVERBS_LIMITS=cm_qpn=77",
	  peer_is_restarted, LOST "to" PEER "the peer still had an older connection.*connect again" },
	{ "XRC: a peer was restarted", "FI_VERBS_PREFER_XRC=1 SOFTVERBS_LIMITS=cm_qpn=77", peer_is_restarted,
	  LOST "to" PEER "the peer still had an older connection.*connect again" },
	{ "the device is removed while an endpoint connects", "SOFTVERBS_FAIL=cm_removal:1=ENODEV", device_is_removed,
	  LOST "to" PEER "the device is being removed" },
	{ "the device is removed, and no event is read", "SOFTVERBS_FAIL=cm_removal:1=ENODEV FI_VERBS_ASYNC_EVENTS=0",
	  device_is_removed, LOST "to" PEER "the device is being removed" },
	{ "the end comes before the last word of the handshake", "SOFTVERBS_FAIL=cm_rtu:1=EIO", end_comes_first, NULL },
	{ "private data too long for XRC", "FI_VERBS_PREFER_XRC=1", data_is_too_long_for_xrc,
	  "36 bytes of connection data: over XRC at most 35" },
	{ "XRC: a peer that looks like upstream's listens nowhere", "FI_VERBS_PREFER_XRC=1", upstream_listens_nowhere,
	  LOST "from" PEER "nobody listens there" },
	{ "XRC: others answer in place of upstream's endpoint",
	  "FI_VERBS_PREFER_XRC=1 SOFTVERBS_DEVICES=soft0=127.0.0.1;127.0.0.2", others_call_back, NULL },
	{ "the listener dies before it answers", NULL, listener_dies, LOST "to" PEER "unreachable" },
	{ "who connects dies before it is answered", NULL, connector_dies_before, LOST "from" PEER "unreachable" },
	{ "who connects dies before its last word", "SOFTVERBS_FAIL=cm_rtu:1=EIO", connector_dies_after,
	  LOST "from" PEER "unreachable" },
	{ "a peer without power is noticed", "FI_VERBS_KEEPALIVE_INTERVAL=100 SOFTVERBS_LIMITS=silence=200",
	  peer_is_silent, "the connection to fi_sockaddr_in.*ends: the peer's device does not answer" },
	{ "a peer without power is noticed where no event is read",
	  "FI_VERBS_ASYNC_EVENTS=0 FI_VERBS_KEEPALIVE_INTERVAL=100 SOFTVERBS_LIMITS=silence=200",
	  peer_is_silent, "the connection to fi_sockaddr_in.*ends: the peer's device does not answer" },
	{ "XRC: a peer without power is noticed",
	  "FI_VERBS_PREFER_XRC=1 FI_VERBS_KEEPALIVE_INTERVAL=100 SOFTVERBS_LIMITS=silence=200",
	  peer_is_silent, "the connection to fi_sockaddr_in.*ends: the peer's device does not answer" },
	{ "a peer has another hardware address", "FI_VERBS_KEEPALIVE_INTERVAL=0 SOFTVERBS_LIMITS=silence=200",
	  peer_has_another_address,
	  "the connection to fi_sockaddr_in.*ends: the peer's device does not answer" },
	{ "XRC: a peer has another hardware address",
	  "FI_VERBS_PREFER_XRC=1 FI_VERBS_KEEPALIVE_INTERVAL=0 SOFTVERBS_LIMITS=silence=200",
	  peer_has_another_address, "the connection to fi_sockaddr_in.*ends: the peer's device does not answer" },
	{ "a peer has two hardware addresses", NULL, peer_has_two_addresses, NULL },
	{ "XRC: a peer that is idle is kept",
	  "FI_VERBS_PREFER_XRC=1 FI_VERBS_KEEPALIVE_INTERVAL=20 FI_VERBS_STALL_TIMEOUT=1000", peer_is_idle, NULL },
	{ "a peer that posts no receive is given up", "FI_VERBS_STALL_TIMEOUT=200", peer_posts_no_receive,
	  "the connection to fi_sockaddr_in.*ends: the peer has posted no receive" },
	{ "a peer that posts no receive is given up where nobody probes",
	  "FI_VERBS_KEEPALIVE_INTERVAL=0 FI_VERBS_STALL_TIMEOUT=200", full_queue_is_given_up,
	  "the connection to fi_sockaddr_in.*ends: the peer has posted no receive" },
	{ "a crowd is not probed", "FI_VERBS_KEEPALIVE_INTERVAL=20 FI_VERBS_KEEPALIVE_PEERS=0", crowd_is_not_probed,
	  NULL },
	{ "a probe that the device refuses", "FI_VERBS_KEEPALIVE_INTERVAL=20 FI_VERBS_STALL_TIMEOUT=1000",
	  refused_probe_ends_nothing, NULL },
	{ "a probe behind a full queue", "FI_VERBS_KEEPALIVE_INTERVAL=20", full_queue_is_probed, NULL },
	{ "a probe behind a full queue that is longer than asked",
	  "FI_VERBS_KEEPALIVE_INTERVAL=20 SOFTVERBS_DEVICE=mlx5", full_queue_is_probed, NULL },
	{ "a probe behind a full queue, and the endpoint is closed", "FI_VERBS_KEEPALIVE_INTERVAL=20",
	  full_queue_is_probed_and_closed, NULL },
	{ "XRC: a probe behind a full queue", "FI_VERBS_PREFER_XRC=1 FI_VERBS_KEEPALIVE_INTERVAL=20",
	  full_queue_is_probed, NULL },
	{ "a peer that is idle is kept", "FI_VERBS_KEEPALIVE_INTERVAL=20 FI_VERBS_STALL_TIMEOUT=1000", peer_is_idle,
	  NULL },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
