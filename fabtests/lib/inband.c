/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The control channel over an endpoint of the fabric: a struct pp of its own (fabric, domain, endpoint, one receive)
 * beside that of the test. Every message has CHUNK bytes: how many of them count, and those. What has come is kept
 * until it has been asked for; only then the next is taken, so that the provider's flow control is ours.
 * Datagrams have none: where they come in order, which is where one that meets no receive is lost, a window of receives
 * is posted ahead.
 *
 *   server  an endpoint, or a listener, at -s and -B -> (MSG) request, accept | the client's address, its first message
 *   client  HOST and -P through fi_getinfo()         -> (MSG) connect | its own address, its first message
 *
 * Single-threaded, but for inband_is_closed(): that knows nothing on any thread but the one that opened.
 */
#include "inband.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "../../util/common.h"

#define CHUNK 256
#define DGRAM_WINDOW 64                 /* more than come before they are asked for: a name, and a step or two */
#define CHUNK_DATA (CHUNK - sizeof(uint16_t))

struct inband {
	struct pp pp;                   /* owned: all that is open */
	struct pp_opts opts;            /* what of the options is for this endpoint */
	char data[CHUNK_DATA];          /* of the last message: what has not been asked for */
	size_t start, len;
	bool ended;                     /* the peer has */
	pthread_t thread;               /* who opened it, and makes all calls */
};

/* The names behind -p, -f, -d and -s, the endpoint type and the limits are the test's. */
static struct inband *alloc_inband(const struct pp_opts *opts)
{
	struct inband *inband = calloc(1, sizeof(*inband));

	if (!inband)
		return NULL;
	inband->opts = (struct pp_opts) {
		.server = opts->server, .src = opts->src, .provider = opts->provider, .fabric = opts->fabric,
		.domain = opts->domain, .ep_type = opts->ep_type, .window = 1, .mode = FI_MSG_PREFIX,
		.progress = opts->progress, .av_type = opts->av_type, .threading = opts->threading,
		.wait_ms = opts->server ? opts->wait_ms : opts->accept_ms, .ipv6 = opts->ipv6, .verbose = opts->verbose,
		.alone = true, .one_size = true, .size_cnt = 1, .size = { CHUNK }, .own_bufs = true,
	};
	inband->thread = pthread_self();
	inband->pp = (struct pp) { .opts = &inband->opts, .ctrl = -1, .xfer = &pp_msg_xfer,
				   .peer_addr = FI_ADDR_UNSPEC };
	return inband;
}

/* Ask for an interface at, or on the way to, this host and port of the provider's. */
static int get_info(struct pp *pp, const char *node, uint16_t port, uint64_t flags)
{
	char service[8];
	int ret;

	snprintf(service, sizeof(service), "%u", port);
	ret = fi_getinfo(UTIL_API_VERSION, node, port ? service : NULL, node || port ? flags : 0, pp->hints, &pp->info);
	return ret ? pp_fail(pp, ret, "fi_getinfo for '%s', port %u, in band", node ? node : "any", port) : 0;
}

/* The client's source address is a hint, as its question is about the server. */
static int set_source(struct pp *pp)
{
	struct fi_info *found = NULL;
	int ret;

	if (!pp->opts->src)
		return 0;
	ret = fi_getinfo(UTIL_API_VERSION, pp->opts->src, NULL, FI_SOURCE, pp->hints, &found);
	if (ret)
		return pp_fail(pp, ret, "fi_getinfo for the source address '%s'", pp->opts->src);
	pp->hints->src_addr = found->src_addr;
	pp->hints->src_addrlen = found->src_addrlen;
	pp->hints->addr_format = found->addr_format;
	found->src_addr = NULL;
	fi_freeinfo(found);
	return 0;
}

static int open_endpoint(struct inband *inband)
{
	struct pp *pp = &inband->pp;
	int ret;

	if (inband->opts.ep_type == FI_EP_DGRAM && (pp->info->rx_attr->msg_order & FI_ORDER_SAS))
		inband->opts.window = DGRAM_WINDOW;
	ret = pp_open_domain(pp);
	if (!ret)
		ret = pp_open_ep(pp, &pp->ep);
	return ret ? ret : pp_post_recvs(pp);
}

/* Send what is in the buffer. */
static int send_chunk(struct pp *pp, const void *data, size_t len)
{
	uint16_t net_len = htons((uint16_t) len);
	char *chunk = pp_tx_buf(pp) + pp->tx_prefix;
	int ret;

	memcpy(chunk, &net_len, sizeof(net_len));
	memcpy(chunk + sizeof(net_len), data, len);
	ret = pp_send(pp, CHUNK);
	return ret ? ret : pp_flush(pp);
}

/* Take the message that has come, if there is one: 0, -FI_EAGAIN or an error. */
static int take_chunk(struct inband *inband)
{
	struct pp *pp = &inband->pp;
	const char *chunk = pp_rx_buf(pp) + pp->rx_prefix;
	uint16_t net_len;
	int ret = pp_progress(pp);

	if (ret || pp->rx[pp->rx_next].busy)
		return ret ? ret : -FI_EAGAIN;
	memcpy(&net_len, chunk, sizeof(net_len));
	inband->start = 0;
	inband->len = ntohs(net_len);
	if (inband->len > CHUNK_DATA)
		return pp_fail(pp, -FI_EIO, "a control message of %zu bytes: the peer is no program with --in-band",
			       inband->len);
	memcpy(inband->data, chunk + sizeof(net_len), inband->len);
	return pp_recv(pp, CHUNK);
}

/* The next message, within the limit. */
static int wait_chunk(struct inband *inband, const char *what)
{
	struct pp_wait wait = { .start = util_now_ns() };
	int ret = take_chunk(inband);

	while (ret == -FI_EAGAIN) {
		poll(NULL, 0, 1);
		wait.polls = PP_POLLS_PER_TICK - 1;
		ret = pp_wait_tick(&inband->pp, &wait, what);
		if (!ret)
			ret = take_chunk(inband);
	}
	return ret;
}

/* The port that a client has to know, where addresses have one; else the service that was asked for, if one was. */
static int announce(const struct pp *test, struct pp *pp, struct fid *fid)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		char bytes[256];
	} name = { .bytes = "" };
	size_t len = sizeof(name);
	int ret = fi_getname(fid, &name, &len);

	if (ret)
		return pp_fail(pp, ret, "fi_getname");
	switch (pp->info->addr_format) {
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
		return pp_ctrl_announce(test, ntohs(name.any.sa_family == AF_INET6 ? name.in6.sin6_port :
						    name.in.sin_port));
	}
	return test->opts->src_port ? pp_ctrl_announce(test, test->opts->src_port) : 0;
}

static int listen_msg(const struct pp *test, struct inband *inband)
{
	struct pp *pp = &inband->pp;
	int ret;

	ret = fi_passive_ep(pp->fabric, pp->info, &pp->pep, NULL);
	if (!ret)
		ret = fi_pep_bind(pp->pep, &pp->eq->fid, 0);
	if (!ret)
		ret = fi_listen(pp->pep);
	if (ret)
		return pp_fail(pp, ret, "listen on port %u, in band", test->opts->src_port);
	ret = announce(test, pp, &pp->pep->fid);
	if (!ret)
		ret = pp_wait_request(pp);
	if (!ret)
		ret = open_endpoint(inband);
	return ret ? ret : pp_accept(pp, pp->ep);
}

/* Connectionless: whoever sends the first message, which is its name, is the client. */
static int wait_for_name(const struct pp *test, struct inband *inband)
{
	struct pp *pp = &inband->pp;
	int ret;

	ret = open_endpoint(inband);
	if (!ret)
		ret = announce(test, pp, &pp->ep->fid);
	if (!ret)
		ret = wait_chunk(inband, "a client (-A sets how long)");
	if (ret)
		return ret;
	util_addr_to_host(pp->info->addr_format, inband->data, inband->len);
	ret = pp_insert_peer(pp, pp->av, inband->data, pp->info->addr_format, &pp->peer_addr);
	inband->len = 0;
	return ret;
}

static int open_server(const struct pp *test, struct inband *inband)
{
	struct pp *pp = &inband->pp;
	int ret;

	ret = get_info(pp, pp->opts->src, test->opts->src_port, FI_SOURCE);
	if (!ret)
		ret = pp_open_fabric(pp);
	if (!ret)
		ret = pp->opts->ep_type == FI_EP_MSG ? listen_msg(test, inband) : wait_for_name(test, inband);
	inband->opts.wait_ms = test->opts->wait_ms;
	return ret;
}

static int tell_name(struct pp *pp)
{
	char name[CHUNK_DATA] = "";
	size_t len = sizeof(name);
	int ret;

	ret = pp_insert_peer(pp, pp->av, pp->info->dest_addr, pp->info->addr_format, &pp->peer_addr);
	if (ret)
		return ret;
	ret = fi_getname(&pp->ep->fid, name, &len);
	return ret ? pp_fail(pp, ret, "fi_getname, at most %zu bytes in band", sizeof(name)) :
	       send_chunk(pp, name, len);
}

static int open_client(const struct pp *test, struct inband *inband)
{
	struct pp *pp = &inband->pp;
	int ret;

	ret = set_source(pp);
	if (!ret)
		ret = get_info(pp, test->opts->server, test->opts->dst_port, 0);
	if (!ret)
		ret = pp_open_fabric(pp);
	if (!ret)
		ret = open_endpoint(inband);
	if (ret)
		return ret;
	return pp->opts->ep_type == FI_EP_MSG ? pp_connect(pp, pp->ep) : tell_name(pp);
}

static void inband_close(struct pp *test)
{
	struct inband *inband = test->carried;

	if (inband)
		pp_fabric_close(&inband->pp);
	free(inband);
	test->carried = NULL;
}

static int inband_open(struct pp *test)
{
	struct inband *inband = alloc_inband(test->opts);
	int ret;

	if (!inband)
		return pp_fail(test, -FI_ENOMEM, "the control channel");
	test->carried = inband;
	ret = pp_fill_hints(&inband->pp);
	if (!ret)
		ret = test->opts->server ? open_client(test, inband) : open_server(test, inband);
	snprintf(test->peer, sizeof(test->peer), "in band");
	inband->pp.leaving = true;      /* who waits for the peer says that it has ended */
	if (ret)
		inband_close(test);
	return ret;
}

/* What a failure on the control endpoint means to the test. */
static ssize_t failed(struct inband *inband, int ret)
{
	if (ret == -FI_EAGAIN || ret == -FI_ETIMEDOUT)
		return ret;
	inband->ended = true;
	return -FI_ECONNRESET;
}

static ssize_t inband_send(struct pp *test, const void *buf, size_t len)
{
	struct inband *inband = test->carried;
	size_t part = len < CHUNK_DATA ? len : CHUNK_DATA;
	int ret = inband->ended ? -FI_ECONNRESET : send_chunk(&inband->pp, buf, part);

	return ret ? failed(inband, ret) : (ssize_t) part;
}

static ssize_t inband_recv(struct pp *test, void *buf, size_t len)
{
	struct inband *inband = test->carried;
	int ret = inband->len ? 0 : take_chunk(inband);

	if (ret == -FI_EAGAIN && inband->ended)
		return -FI_ECONNRESET;
	if (ret == -FI_EAGAIN)
		poll(NULL, 0, 1);
	if (ret)
		return failed(inband, ret);
	len = len < inband->len ? len : inband->len;
	memcpy(buf, inband->data + inband->start, len);
	inband->start += len;
	inband->len -= len;
	return (ssize_t) len;
}

/* Connections say that the peer has closed; of an endpoint without one nothing is heard. */
static bool inband_is_closed(const struct pp *test, int wait_ms)
{
	struct inband *inband = test->carried;
	struct fi_eq_cm_entry entry;
	uint32_t event;
	ssize_t ret;

	if (!pthread_equal(inband->thread, pthread_self()))
		return false;
	if (inband->ended)
		return true;
	if (!inband->pp.eq)
		return pp_progress(&inband->pp) != 0;
	ret = wait_ms ? fi_eq_sread(inband->pp.eq, &event, &entry, sizeof(entry), wait_ms, 0) :
			fi_eq_read(inband->pp.eq, &event, &entry, sizeof(entry), 0);
	inband->ended = ret == -FI_EAVAIL || (ret > 0 && event == FI_SHUTDOWN);
	return inband->ended;
}

const struct pp_carrier ft_inband = {
	.open = inband_open,
	.close = inband_close,
	.send = inband_send,
	.recv = inband_recv,
	.is_closed = inband_is_closed,
};
