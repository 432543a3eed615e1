/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What functional programs open: on a list from which all is closed in reverse. Runs on the program's thread.
 *
 * The server asks fi_getinfo() first and tells where it is (MSG: where it listens), so that the client's interface
 * is one that reaches it.
 */
#include "func.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIN_BUF_LEN 64

/* Where the server is, as it tells the client. */
struct place {
	uint32_t addr_format;
	uint32_t len;
	char addr[256];
};

static int own(struct func *func, const struct func_owned *owned)
{
	size_t max = func->owned_max ? 2 * func->owned_max : 64;
	struct func_owned *more;

	if (func->owned_cnt == func->owned_max) {
		more = realloc(func->owned, max * sizeof(*more));
		if (!more)
			return pp_fail(func->pp, -FI_ENOMEM, "remember what is open");
		func->owned = more;
		func->owned_max = max;
	}
	func->owned[func->owned_cnt++] = *owned;
	return 0;
}

int func_own(struct func *func, struct fid *fid, const char *what)
{
	int ret = own(func, &(struct func_owned) { .fid = fid, .what = what });

	if (ret)
		fi_close(fid);
	return ret;
}

/* No longer read a queue. */
static void forget_cq(struct func *func, const struct fid *fid)
{
	size_t i;

	for (i = 0; i < func->cq_cnt; i++) {
		if (&func->cqs[i].fid->fid == fid) {
			func->cqs[i] = func->cqs[--func->cq_cnt];
			return;
		}
	}
}

static int close_owned(struct func *func, const struct func_owned *owned)
{
	int ret;

	if (!owned->fid) {
		free(owned->free_it);
		return 0;
	}
	forget_cq(func, owned->fid);
	ret = fi_close(owned->fid);
	return ret ? pp_fail(func->pp, ret, "fi_close of the %s", owned->what) : 0;
}

/* Take the newest entry out that is this object or memory. */
static int drop(struct func *func, const struct fid *fid, const void *free_it)
{
	struct func_owned owned;
	size_t i = func->owned_cnt;

	while (i--) {
		owned = func->owned[i];
		if (owned.fid != fid || owned.free_it != free_it)
			continue;
		memmove(&func->owned[i], &func->owned[i + 1], (func->owned_cnt - i - 1) * sizeof(owned));
		func->owned_cnt--;
		return close_owned(func, &owned);
	}
	return pp_fail(func->pp, -FI_EINVAL, "close what is not open");
}

/* What was opened since `fid` is used by it: that closes first. Nothing is opened in between, so there is room. */
static void close_first(struct func *func, struct fid *fid)
{
	struct func_owned owned;
	size_t i = func->owned_cnt;

	while (func->owned[--i].fid != fid)
		;
	owned = func->owned[i];
	memmove(&func->owned[i], &func->owned[i + 1], (func->owned_cnt - i - 1) * sizeof(owned));
	func->owned[func->owned_cnt - 1] = owned;
}

int func_close(struct func *func, struct fid *fid)
{
	return drop(func, fid, NULL);
}

int func_close_all(struct func *func)
{
	int ret, first = 0;

	while (func->owned_cnt) {
		func->owned_cnt--;
		ret = close_owned(func, &func->owned[func->owned_cnt]);
		first = first ? first : ret;
	}
	free(func->owned);
	func->owned = NULL;
	func->owned_max = 0;
	while (func->info_cnt)
		fi_freeinfo(func->infos[--func->info_cnt]);
	return first;
}

void *func_alloc(struct func *func, size_t len)
{
	size_t page = (size_t) sysconf(_SC_PAGESIZE);
	size_t whole = (len + page - 1) / page * page;
	void *mem = aligned_alloc(page, whole ? whole : page);

	if (!mem) {
		pp_fail(func->pp, -FI_ENOMEM, "%zu bytes", len);
		return NULL;
	}
	memset(mem, 0, whole);
	if (!own(func, &(struct func_owned) { .free_it = mem, .what = "memory" }))
		return mem;
	free(mem);
	return NULL;
}

int func_mr_reg(struct func *func, struct fid_domain *domain, void *mem, size_t len, uint64_t access,
		struct fid_mr **mr)
{
	FUNC_CALL(func, fi_mr_reg(domain, mem, len, access, 0, func->next_key, 0, mr, NULL));
	func->next_key++;
	return func_own(func, &(*mr)->fid, "memory region");
}

/* The same with `prefix` bytes in front. */
static int buf_open(struct func *func, struct func_buf *buf, size_t len, size_t prefix, uint64_t access)
{
	bool local = func->pp->info->domain_attr->mr_mode & FI_MR_LOCAL;
	char *mem = func_alloc(func, len + prefix);

	*buf = (struct func_buf) { .len = len, .prefix = prefix };
	if (!mem)
		return -FI_ENOMEM;
	buf->mem = mem + prefix;
	if (!local && !(access & (FI_REMOTE_READ | FI_REMOTE_WRITE)))
		return 0;
	FUNC_TRY(func_mr_reg(func, func->domain, mem, len + prefix, access, &buf->mr));
	buf->desc = fi_mr_desc(buf->mr);
	return 0;
}

int func_buf(struct func *func, struct func_buf *buf, size_t len, uint64_t access)
{
	return buf_open(func, buf, len, 0, access);
}

/* Of messages, with the room in front that the provider wants: `mode` is that of its transmit or receive context. */
static int msg_buf(struct func *func, struct func_buf *buf, size_t len, uint64_t mode, uint64_t access)
{
	return buf_open(func, buf, len, mode & FI_MSG_PREFIX ? func->pp->info->ep_attr->msg_prefix_size : 0, access);
}

void func_buf_close(struct func *func, struct func_buf *buf)
{
	if (buf->mr)
		func_close(func, &buf->mr->fid);
	drop(func, NULL, func_msg(buf));
	*buf = (struct func_buf) { .len = 0 };
}

/* What -c needs to wait for. */
static enum fi_wait_obj usual_wait_obj(const struct func *func)
{
	if (func->pp->opts->look == PP_LOOK_FD)
		return FI_WAIT_FD;
	return func->pp->opts->look == PP_LOOK_SREAD ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
}

/* Both ends come here, so both skip. */
static int check_wait(struct func *func, struct fid *fid, enum fi_wait_obj wait_obj)
{
	int fd, ret = wait_obj == FI_WAIT_FD ? fi_control(fid, FI_GETWAIT, &fd) : 0;

	if (ret == -FI_ENOSYS)
		return func_skip(func, "the provider's queues and counters have no descriptor to wait for");
	return ret ? pp_fail(func->pp, ret, "fi_control(FI_GETWAIT)") : 0;
}

int func_cq_open(struct func *func, const struct func_ep_attr *attr, struct fid_domain *domain, struct fid_cq **cq)
{
	struct fi_cq_attr cq_attr = { .size = attr->cq_size, .wait_set = attr->wait_set,
				      .wait_obj = attr->wait_obj ? attr->wait_obj : usual_wait_obj(func),
				      .format = attr->format ? attr->format : FI_CQ_FORMAT_TAGGED };

	if (func->cq_cnt == FUNC_MAX_CQS)
		return pp_fail(func->pp, -FI_ENOMEM, "more than %d queues", FUNC_MAX_CQS);
	FUNC_CALL(func, fi_cq_open(domain ? domain : func->domain, &cq_attr, cq, func));
	FUNC_TRY(func_own(func, &(*cq)->fid, "completion queue"));
	FUNC_TRY(check_wait(func, &(*cq)->fid, cq_attr.wait_obj));
	func->cqs[func->cq_cnt].fid = *cq;
	func->cqs[func->cq_cnt++].format = cq_attr.format;
	return 0;
}

int func_cntr_open(struct func *func, struct fid_cntr **cntr)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = usual_wait_obj(func) };

	FUNC_CALL(func, fi_cntr_open(func->domain, &attr, cntr, NULL));
	FUNC_TRY(func_own(func, &(*cntr)->fid, "counter"));
	return check_wait(func, &(*cntr)->fid, attr.wait_obj);
}

int func_av_open(struct func *func, struct fid_domain *domain, const struct fi_av_attr *attr, struct fid_av **av)
{
	struct fi_av_attr copy = *attr;

	FUNC_CALL(func, fi_av_open(domain, &copy, av, NULL));
	return func_own(func, &(*av)->fid, "address vector");
}

int func_exchange(struct func *func, const void *ours, void *theirs, size_t len, const char *what)
{
	FUNC_TRY(pp_ctrl_send(func->pp, ours, len, what));
	return pp_ctrl_recv(func->pp, theirs, len, what);
}

int func_exchange_regions(struct func *func, const struct func_buf *ours, struct func_region *theirs)
{
	bool virt_addr = func->pp->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	struct func_region region = { .addr = htobe64(virt_addr ? (uintptr_t) ours->mem : 0),
				      .key = htobe64(fi_mr_key(ours->mr)) };

	FUNC_TRY(func_exchange(func, &region, theirs, sizeof(region), "memory regions"));
	theirs->addr = be64toh(theirs->addr);
	theirs->key = be64toh(theirs->key);
	return 0;
}

int func_exchange_names(struct func *func, struct fid *fid, struct fid_av *av, fi_addr_t *peer)
{
	return pp_swap_names(func->pp, fid, av, peer);
}

/* The client: ask for an interface that reaches the server, where that has told. */
static int get_client_info(struct func *func, const struct place *place)
{
	struct fi_info *hints = func->pp->hints;

	if (!place->len)
		return pp_get_info(func->pp);
	hints->dest_addr = malloc(place->len);
	if (!hints->dest_addr)
		return pp_fail(func->pp, -FI_ENOMEM, "the server's address");
	memcpy(hints->dest_addr, place->addr, place->len);
	hints->dest_addrlen = place->len;
	hints->addr_format = place->addr_format;
	return pp_get_info(func->pp);
}

/* Whether the interface can complete operations when they are done at the peer. */
static bool can_deliver(const struct func *func)
{
	struct fi_info *hints = fi_dupinfo(func->pp->info), *found = NULL;
	int ret = -FI_ENOMEM;

	if (hints) {
		hints->tx_attr->op_flags |= FI_DELIVERY_COMPLETE;
		ret = fi_getinfo(UTIL_API_VERSION, NULL, NULL, 0, hints, &found);
	}
	fi_freeinfo(found);
	fi_freeinfo(hints);
	return !ret;
}

static int open_fabric(struct func *func)
{
	if (func->pp->info->mode & FI_MSG_PREFIX && !func->program->prefix)
		return func_skip(func, "messages without room in front (FI_MSG_PREFIX)");
	func->delivery = can_deliver(func);
	return pp_open_fabric(func->pp);
}

/* The server: interface, fabric and, for MSG, a listener, and where that is. */
static int open_server(struct func *func, struct place *place)
{
	struct pp *pp = func->pp;
	size_t len = sizeof(place->addr);

	FUNC_TRY(pp_get_info(pp));
	FUNC_TRY(open_fabric(func));
	place->addr_format = pp->info->addr_format;
	if (func->pp->opts->ep_type == FI_EP_MSG) {
		FUNC_CALL(func, fi_passive_ep(pp->fabric, pp->info, &pp->pep, NULL));
		FUNC_CALL(func, fi_pep_bind(pp->pep, &pp->eq->fid, 0));
		FUNC_CALL(func, fi_listen(pp->pep));
		FUNC_CALL(func, fi_getname(&pp->pep->fid, place->addr, &len));
		place->len = (uint32_t) len;
	} else if (pp->info->src_addr && pp->info->src_addrlen <= len) {
		place->len = (uint32_t) pp->info->src_addrlen;
		memcpy(place->addr, pp->info->src_addr, pp->info->src_addrlen);
	}
	return 0;
}

static int open_client(struct func *func, const struct place *place)
{
	FUNC_TRY(get_client_info(func, place));
	return open_fabric(func);
}

/* The domain, and where its endpoints' peers are named. */
static int open_domain(struct func *func)
{
	struct fi_av_attr attr = { .count = 64 };

	FUNC_CALL(func, fi_domain(func->pp->fabric, func->pp->info, &func->domain, NULL));
	FUNC_TRY(func_own(func, &func->domain->fid, "domain"));
	if (func->pp->opts->ep_type == FI_EP_MSG)
		return 0;
	attr.type = func->pp->info->domain_attr->av_type;
	return func_av_open(func, func->domain, &attr, &func->av);
}

static int all_open(struct func *func)
{
	const struct pp_opts *opts = func->pp->opts;

	return opts->opened ? opts->opened(func->pp) : 0;
}

int func_open(struct func *func)
{
	struct place place = { .len = 0 };
	int ret = pp_fill_hints(func->pp);

	if (func->alone) {
		FUNC_TRY(ret);
		FUNC_TRY(open_server(func, &place));
		FUNC_TRY(open_domain(func));
		return all_open(func);
	}
	if (!ret && !func->client)
		ret = open_server(func, &place);
	FUNC_TRY(func_agree(func, ret));
	if (func->client) {
		FUNC_TRY(pp_ctrl_recv(func->pp, &place, sizeof(place), "where the server is"));
		if (place.len > sizeof(place.addr))
			return pp_fail(func->pp, -FI_EIO, "where the server is: %u bytes of address", place.len);
		ret = open_client(func, &place);
	} else {
		FUNC_TRY(pp_ctrl_send(func->pp, &place, sizeof(place), "where we are"));
	}
	FUNC_TRY(func_agree(func, ret));
	FUNC_TRY(func_agree(func, open_domain(func)));
	return all_open(func);
}

/* MSG server: the info of the next connection request. */
static int take_request(struct func *func, struct func_ep *ep)
{
	struct fi_eq_cm_entry entry;

	FUNC_TRY(pp_wait_event(func->pp, FI_CONNREQ, &entry, "a connection request"));
	if (func->info_cnt == FUNC_MAX_CQS) {
		fi_freeinfo(entry.info);
		return pp_fail(func->pp, -FI_ENOMEM, "more than %d connections", FUNC_MAX_CQS);
	}
	func->infos[func->info_cnt++] = ep->info = entry.info;
	return 0;
}

static int bind_usual(struct func *func, struct func_ep *ep, const struct func_ep_attr *attr)
{
	struct fid_av *av = attr->av ? attr->av : func->av;

	if (func->pp->eq && ep->info->ep_attr->type == FI_EP_MSG)
		FUNC_CALL(func, fi_ep_bind(ep->ep, &func->pp->eq->fid, 0));
	else
		FUNC_CALL(func, fi_ep_bind(ep->ep, &av->fid, 0));
	FUNC_CALL(func, fi_ep_bind(ep->ep, &ep->cq->fid, FI_TRANSMIT | FI_RECV | attr->cq_flags));
	if (attr->bind)
		FUNC_TRY(attr->bind(func, ep, attr->arg));
	close_first(func, &ep->ep->fid);
	FUNC_CALL(func, fi_enable(ep->ep));
	return 0;
}

int func_ep_create(struct func *func, struct func_ep *ep, const struct func_ep_attr *attr)
{
	static const struct func_ep_attr usual;
	struct fid_domain *domain;
	size_t len;

	attr = attr ? attr : &usual;
	domain = attr->domain ? attr->domain : func->domain;
	len = attr->buf_len ? attr->buf_len : func_size(func, 0);
	len = len < MIN_BUF_LEN ? MIN_BUF_LEN : len;
	*ep = (struct func_ep) { .info = func->pp->info, .cq = attr->cq, .peer = FI_ADDR_UNSPEC };
	FUNC_TRY(msg_buf(func, &ep->tx, len, func->pp->info->tx_attr->mode, FI_SEND | FI_READ | FI_WRITE));
	FUNC_TRY(msg_buf(func, &ep->rx, len, func->pp->info->rx_attr->mode, FI_RECV));
	if (!ep->cq)
		FUNC_TRY(func_cq_open(func, attr, domain, &ep->cq));
	if (func->pp->opts->ep_type == FI_EP_MSG && !func->client)
		FUNC_TRY(take_request(func, ep));
	FUNC_CALL(func, fi_endpoint(domain, ep->info, &ep->ep, ep));
	FUNC_TRY(func_own(func, &ep->ep->fid, "endpoint"));
	FUNC_TRY(bind_usual(func, ep, attr));
	if (func->pp->opts->ep_type == FI_EP_MSG && func->client)
		FUNC_CALL(func, fi_connect(ep->ep, ep->info->dest_addr, NULL, 0));
	return 0;
}

int func_ep_connect(struct func *func, struct func_ep *ep, struct fid_av *av)
{
	struct fi_eq_cm_entry entry;

	if (func->pp->opts->ep_type != FI_EP_MSG)
		return func_exchange_names(func, &ep->ep->fid, av ? av : func->av, &ep->peer);
	if (!func->client)
		FUNC_CALL(func, fi_accept(ep->ep, NULL, 0));
	FUNC_TRY(pp_wait_event(func->pp, FI_CONNECTED, &entry, "the connection"));
	FUNC_EXPECT(func, entry.fid == &ep->ep->fid, "FI_CONNECTED of another endpoint");
	/* the other end may hear of it later: a request for the next connection would overtake that */
	return func_sync(func);
}

int func_ep_open(struct func *func, struct func_ep *ep, const struct func_ep_attr *attr)
{
	FUNC_TRY(func_ep_create(func, ep, attr));
	FUNC_TRY(func_ep_connect(func, ep, attr ? attr->av : NULL));
	return 0;
}

int func_ep_to_self(struct func *func, struct func_ep *ep, const struct func_ep_attr *attr)
{
	char name[256];
	size_t len = sizeof(name);
	int ret;

	FUNC_TRY(func_ep_create(func, ep, attr));
	FUNC_CALL(func, fi_getname(&ep->ep->fid, name, &len));
	ret = fi_av_insert(func->av, name, 1, &ep->peer, 0, NULL);
	return ret == 1 ? 0 : pp_fail(func->pp, ret < 0 ? ret : -FI_EINVAL, "fi_av_insert");
}

int func_ep_bind_eq(struct func *func, struct func_ep *ep, void *arg)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	(void) arg;
	FUNC_CALL(func, fi_eq_open(func->pp->fabric, &attr, &func->pp->eq, NULL));
	FUNC_CALL(func, fi_ep_bind(ep->ep, &func->pp->eq->fid, 0));
	return 0;
}

int func_ep_close(struct func *func, struct func_ep *ep)
{
	return func_close(func, &ep->ep->fid);
}
