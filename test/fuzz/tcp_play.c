/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See tcp_play.h. Domains and what is registered with them are opened once; the rest lives as long as an input. */
#include "fuzz/tcp_play.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "fuzz/fuzz.h"
#include "fuzz/net.h"

#define LONG_LEN	2048
#define SHORT_LEN	64
#define STEPS_MAX	4096		/* passes of progress until the library has to be done with what came */
#define MR_KEY		7

#define OK(call) FUZZ_MUST((call) == 0)

static struct world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_mr *mr;
	uint8_t *memory;		/* that the peer may read and write: LONG_LEN */
} worlds[8];				/* by MSG, key, rxm */

/* An operation, of which the address is the context. */
struct op {
	unsigned posted, done;
};

enum { RECV_OPS = 6, SEND_OPS = 7 };

struct life {
	const struct tcp_play *how;
	struct world *world;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *sep, *ep, *tx;	/* tx is ep, unless scalable */
	fi_addr_t peer;
	bool up;			/* MSG: FI_CONNECTED has come */
	struct op receives[RECV_OPS], sends[SEND_OPS];
	uint8_t *bufs[RECV_OPS], *data;
	int fd;				/* the peer's end, -1: closed */
};

static struct world *world_get(const struct tcp_play *how)
{
	struct world *w = &worlds[how->msg + 2 * how->keyed + 4 * how->rxm];
	struct fi_info *hints;

	if (w->info)
		return w;
	hints = fi_allocinfo();
	hints->ep_attr->type = how->msg ? FI_EP_MSG : FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV;
	if (!how->msg && !how->rxm) {
		hints->domain_attr->max_group_id = 100;
		hints->caps |= FI_COLLECTIVE | FI_NAMED_RX_CTX | FI_DIRECTED_RECV | FI_SOURCE;
	}
	hints->fabric_attr->prov_name = strdup(how->rxm ? "tcp;ofi_rxm" : "tcp");
	if (how->keyed) {
		hints->domain_attr->auth_key = (uint8_t *) strdup(PLAY_KEY);
		hints->domain_attr->auth_key_size = strlen(PLAY_KEY);
	}
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &w->info));
	fi_freeinfo(hints);
	OK(fi_fabric(w->info->fabric_attr, &w->fabric, NULL));
	OK(fi_domain(w->fabric, w->info, &w->domain, NULL));
	w->memory = calloc(1, LONG_LEN);
	OK(fi_mr_reg(w->domain, w->memory, LONG_LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, MR_KEY, 0, &w->mr, NULL));
	return w;
}

/* ---- completions and events ---- */

static void count(struct life *l, void *context, uint64_t flags)
{
	struct op *op = context;

	if (op >= l->receives && op < l->receives + RECV_OPS) {
		FUZZ_MUST(op->posted);
		/* a multi-receive ends with FI_MULTI_RECV, which is said once */
		op->done += op != &l->receives[1] || (flags & FI_MULTI_RECV);
		FUZZ_MUST(op->done <= op->posted);
	} else if (op) {
		FUZZ_MUST(op >= l->sends && op < l->sends + SEND_OPS);
		op->done++;
		FUZZ_MUST(op->done <= op->posted);
	}
}

static void read_cq(struct life *l)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(l->cq, &entry, 1)) != -FI_EAGAIN) {
		struct fi_cq_err_entry err = { 0 };

		if (ret == 1) {
			FUZZ_MUST(entry.len <= LONG_LEN || !(entry.flags & FI_RECV));
			count(l, entry.op_context, entry.flags);
			continue;
		}
		FUZZ_MUST(ret == -FI_EAVAIL);
		FUZZ_MUST(fi_cq_readerr(l->cq, &err, 0) == 1);
		FUZZ_MUST(err.err > 0);
		count(l, err.op_context, err.flags);
	}
}

static void ep_open(struct life *l, struct fi_info *info);
static void post_sends(struct life *l);
static void post_receives(struct life *l);

static void read_eq(struct life *l)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + 256];
	} entry;
	struct fi_eq_err_entry err;
	uint32_t event;
	ssize_t ret;

	while (l->eq && (ret = fi_eq_read(l->eq, &event, &entry, sizeof(entry), 0)) != -FI_EAGAIN) {
		if (ret == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			FUZZ_MUST(fi_eq_readerr(l->eq, &err, 0) > 0);
			continue;
		}
		FUZZ_MUST(ret >= (ssize_t) sizeof(entry.cm));
		if (event == FI_CONNREQ && !l->ep && !(l->how->sends & PLAY_CANCEL_LONG)) {
			ep_open(l, entry.cm.info);
			if (!(l->how->receives & PLAY_POST_LATE))
				post_receives(l);
			if (fi_accept(l->ep, "yes", 3)) {
				fi_close(&l->ep->fid);
				l->ep = NULL;
			}
		} else if (event == FI_CONNREQ) {
			fi_reject(l->pep, entry.cm.info->handle, "no", 2);
		} else if (event == FI_CONNECTED) {
			l->up = true;
			post_sends(l);
		}
		if (event == FI_CONNREQ)
			fi_freeinfo(entry.cm.info);
	}
}

static void step(struct life *l)
{
	read_cq(l);
	read_eq(l);
	if (l->fd >= 0 && !net_drain(l->fd)) {
		close(l->fd);
		l->fd = -1;
	}
}

/* ---- opening ---- */

static void ep_open(struct life *l, struct fi_info *info)
{
	if (l->how->scalable) {
		info->ep_attr->rx_ctx_cnt = 2;
		OK(fi_scalable_ep(l->world->domain, info, &l->sep, NULL));
		OK(fi_scalable_ep_bind(l->sep, &l->av->fid, 0));
		OK(fi_rx_context(l->sep, 0, NULL, &l->ep, NULL));
		OK(fi_tx_context(l->sep, 0, NULL, &l->tx, NULL));
		OK(fi_ep_bind(l->ep, &l->cq->fid, FI_RECV));
		OK(fi_ep_bind(l->tx, &l->cq->fid, FI_TRANSMIT));
		OK(fi_enable(l->ep));
		OK(fi_enable(l->tx));
		return;
	}
	OK(fi_endpoint(l->world->domain, info, &l->ep, NULL));
	l->tx = l->ep;
	OK(fi_ep_bind(l->ep, &l->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(l->ep, l->how->msg ? &l->eq->fid : &l->av->fid, 0));
	OK(fi_enable(l->ep));
}

static void life_open(struct life *l, const struct tcp_play *how)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_eq_attr eq_attr = { 0 };
	struct sockaddr_in peer = {
		.sin_family = AF_INET, .sin_port = htons(PLAY_PEER), .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct fi_info *info;

	memset(l, 0, sizeof(*l));
	l->how = how;
	l->world = world_get(how);
	l->peer = FI_ADDR_UNSPEC;
	l->fd = -1;
	for (int i = 0; i < RECV_OPS; i++)
		l->bufs[i] = malloc(SHORT_LEN);
	l->data = calloc(1, LONG_LEN);
	OK(fi_cq_open(l->world->domain, &cq_attr, &l->cq, NULL));
	info = fi_dupinfo(l->world->info);
	if (how->msg) {
		OK(fi_eq_open(l->world->fabric, &eq_attr, &l->eq, NULL));
		if (how->dial) {
			ep_open(l, info);
		} else {
			OK(fi_passive_ep(l->world->fabric, info, &l->pep, NULL));
			OK(fi_pep_bind(l->pep, &l->eq->fid, 0));
			OK(fi_listen(l->pep));
		}
	} else {
		OK(fi_av_open(l->world->domain, &av_attr, &l->av, NULL));
		ep_open(l, info);
		if (!how->stranger)
			FUZZ_MUST(fi_av_insert(l->av, &peer, 1, &l->peer, 0, NULL) == 1);
	}
	fi_freeinfo(info);
	net_listen(how->dial);
	if (how->dial && how->msg)
		OK(fi_connect(l->ep, &peer, "who", 3));
}

/* ---- operations ---- */

static void posted(struct op *op, ssize_t ret)
{
	op->posted += !ret;
}

static void post_receives(struct life *l)
{
	uint8_t want = l->how->receives;
	struct op *r = l->receives;
	struct iovec iov = { l->bufs[1], SHORT_LEN };
	struct fi_msg multi = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &r[1] };
	struct fi_msg_tagged peek = { .addr = FI_ADDR_UNSPEC, .tag = 1, .context = &r[5] };

	if (!l->ep)
		return;
	if (want & PLAY_RECV)
		posted(&r[0], fi_recv(l->ep, l->bufs[0], SHORT_LEN, NULL, FI_ADDR_UNSPEC, &r[0]));
	if (want & PLAY_RECV_MULTI)
		posted(&r[1], fi_recvmsg(l->ep, &multi, FI_MULTI_RECV | FI_COMPLETION));
	if (want & PLAY_RECV_TAGGED)
		posted(&r[2], fi_trecv(l->ep, l->bufs[2], SHORT_LEN, NULL, FI_ADDR_UNSPEC, 1, 0, &r[2]));
	if (want & PLAY_RECV_FROM)
		posted(&r[4], fi_trecv(l->ep, l->bufs[4], SHORT_LEN, NULL, l->peer, 2, 0, &r[4]));
	if (want & PLAY_RECV_ANY_TAG)
		posted(&r[3], fi_trecv(l->ep, l->bufs[3], SHORT_LEN, NULL, FI_ADDR_UNSPEC, 0, ~0ULL, &r[3]));
	if (want & PLAY_PEEK)
		posted(&r[5], fi_trecvmsg(l->ep, &peek, FI_PEEK | FI_COMPLETION));
}

static void post_sends(struct life *l)
{
	uint8_t want = l->how->sends;
	struct op *s = l->sends;
	struct iovec iov = { l->data, SHORT_LEN };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = l->peer, .context = &s[2] };
	uint64_t *operand = (uint64_t *) l->data, *result = (uint64_t *) (l->data + 64);

	if (!l->tx || (l->how->stranger && !l->how->msg))
		return;
	if (want & PLAY_SEND)
		posted(&s[0], fi_send(l->tx, l->data, SHORT_LEN, NULL, l->peer, &s[0]));
	if (want & PLAY_SEND_LONG)
		posted(&s[1], fi_tsend(l->tx, l->data, LONG_LEN, NULL, l->peer, 3, &s[1]));
	if (want & PLAY_SEND_ACKED)
		posted(&s[2], fi_sendmsg(l->tx, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
	if (want & PLAY_READ)
		posted(&s[3], fi_read(l->tx, l->data + 1024, SHORT_LEN, NULL, l->peer, 0, 1, &s[3]));
	if (want & PLAY_WRITE)
		posted(&s[4], fi_write(l->tx, l->data, SHORT_LEN, NULL, l->peer, 0, 1, &s[4]));
	if (want & PLAY_ATOMIC)
		posted(&s[5], fi_atomic(l->tx, operand, 1, NULL, l->peer, 0, 1, FI_UINT64, FI_SUM, &s[5]));
	if (want & PLAY_FETCH)
		posted(&s[6], fi_fetch_atomic(l->tx, operand, 1, NULL, result, NULL, l->peer, 0, 1, FI_UINT64, FI_SUM,
					      &s[6]));
}

static void cancel(struct life *l)
{
	if (l->ep && (l->how->receives & PLAY_CANCEL))
		fi_cancel(&l->ep->fid, &l->receives[2]);
	if (l->tx && (l->how->sends & PLAY_CANCEL_LONG))
		fi_cancel(&l->tx->fid, &l->sends[1]);
}

/* ---- the peer ---- */

static void connect_peer(struct life *l)
{
	if (!l->how->dial)
		l->fd = net_call(PLAY_PORT);
	for (int i = 0; i < 8; i++) {
		if (l->how->dial && l->fd < 0)
			l->fd = net_answer();
		step(l);
	}
}

static void feed(struct life *l, const uint8_t *bytes, size_t len)
{
	size_t chunk = l->how->chunk ? l->how->chunk : len, half = len / 2;

	for (size_t at = 0, n; at < len && l->fd >= 0; at += n) {
		n = chunk < len - at ? chunk : len - at;
		net_send(l->fd, bytes + at, n);
		step(l);
		if (at < half && at + n >= half)
			cancel(l);
	}
	for (int i = 0; i < 8; i++)
		step(l);
}

/* It closes; so does the library. */
static void hang_up(struct life *l)
{
	if (l->fd < 0)
		return;
	shutdown(l->fd, SHUT_WR);
	for (int i = 0; i < STEPS_MAX && l->fd >= 0; i++) {
		step(l);
		net_pass_ms(i);
	}
	FUZZ_MUST(l->fd < 0);
}

static bool all_sent(const struct life *l)
{
	for (int i = 0; i < SEND_OPS; i++)
		if (l->sends[i].done < l->sends[i].posted)
			return false;
	return true;
}

/* Whatever was sent has an end, be it that nobody answers any more. */
static void await_sends(struct life *l)
{
	net_listen(false);
	for (int i = 0; i < STEPS_MAX && !all_sent(l); i++) {
		step(l);
		net_pass_ms(1000);
	}
	FUZZ_MUST(all_sent(l));
}

static void close_fid(struct fid *fid)
{
	OK(fi_close(fid));
}

static void life_close(struct life *l)
{
	if (l->tx && l->tx != l->ep)
		close_fid(&l->tx->fid);
	if (l->ep)
		close_fid(&l->ep->fid);
	if (l->sep)
		close_fid(&l->sep->fid);
	read_cq(l);
	if (l->pep)
		close_fid(&l->pep->fid);
	if (l->av)
		close_fid(&l->av->fid);
	if (l->eq)
		close_fid(&l->eq->fid);
	close_fid(&l->cq->fid);
	for (int i = 0; i < RECV_OPS; i++)
		free(l->bufs[i]);
	free(l->data);
}

void tcp_play(const struct tcp_play *how, const uint8_t *bytes, size_t len)
{
	struct life l;
	int fd;

	net_reset();
	life_open(&l, how);
	if (!(how->receives & PLAY_POST_LATE))
		post_receives(&l);
	if (!how->msg && how->dial)
		post_sends(&l);
	connect_peer(&l);
	if (how->hello_len && !how->dial) {
		net_send(l.fd, bytes, how->hello_len);
		bytes += how->hello_len;
		len -= how->hello_len;
		for (int i = 0; i < 4; i++)
			step(&l);
		if (!how->msg)
			post_sends(&l);
	}
	feed(&l, bytes, len);
	if (how->receives & PLAY_POST_LATE)
		post_receives(&l);
	hang_up(&l);
	await_sends(&l);
	while ((fd = net_answer()) >= 0)
		close(fd);
	life_close(&l);
}
