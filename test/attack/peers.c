/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The server and the honest peers. They use the public interface, as programs do.
 */
#include "attack.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define POSTED		128		/* receives of the server */
#define WINDOW		16		/* messages under way of the honest client */
#define SLICE_MS	1		/* longest sleep of the server */
#define ECHO_US		20000		/* after which a packet counts as lost */
#define HONEST_WORD	"honest"	/* private data of requests that the server accepts */

#define MUST(call) do {										\
	int must_ret = (int) (call);								\
	if (must_ret < 0)									\
		give_up("%s: %s", #call, fi_strerror(-must_ret));				\
} while (0)

struct end {
	enum kind kind;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq;		/* MSG */
	struct fid_pep *pep;		/* the server's, MSG */
	struct fid_ep *ep;		/* but the server's of MSG */
	struct fid_mr *mr;
	struct sockaddr_in addr;
};

static char region[REGION_LEN], out[HONEST_LEN], in[2048];

static const struct {
	const char *prov;
	enum fi_ep_type type;
	uint64_t caps;
} of[KINDS] = {
	[RDM] = { "tcp", FI_EP_RDM, FI_MSG | FI_TAGGED | FI_RMA },
	[RXM] = { "tcp;ofi_rxm", FI_EP_RDM, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC },
	[MSG] = { "tcp", FI_EP_MSG, FI_MSG | FI_TAGGED | FI_RMA },
	[DGRAM] = { "udp", FI_EP_DGRAM, FI_MSG },
};

static struct fi_info *hints_for(enum kind kind)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = of[kind].type;
	hints->caps = of[kind].caps;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup(of[kind].prov);
	return hints;
}

bool is_built(enum kind kind)
{
	struct fi_info *hints = hints_for(kind), *info = NULL;
	int ret = fi_getinfo(FI_VERSION(2, 6), NULL, NULL, 0, hints, &info);

	fi_freeinfo(hints);
	fi_freeinfo(info);
	return !ret;
}

static struct fi_info *info_for(enum kind kind, const struct sockaddr_in *dest)
{
	struct fi_info *hints = hints_for(kind), *info;
	const char *node = "127.0.0.1";

	if (dest) {
		hints->dest_addrlen = sizeof(*dest);
		hints->dest_addr = malloc(sizeof(*dest));
		memcpy(hints->dest_addr, dest, sizeof(*dest));
		node = NULL;
	}
	MUST(fi_getinfo(FI_VERSION(2, 6), node, NULL, node ? FI_SOURCE : 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void ep_open(struct end *end, struct fi_info *info, struct fid_ep **ep)
{
	MUST(fi_endpoint(end->domain, info, ep, NULL));
	if (end->av)
		MUST(fi_ep_bind(*ep, &end->av->fid, 0));
	if (end->eq)
		MUST(fi_ep_bind(*ep, &end->eq->fid, 0));
	MUST(fi_ep_bind(*ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_enable(*ep));
}

static struct end open_end(enum kind kind, const struct sockaddr_in *dest)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct end end = { .kind = kind, .info = info_for(kind, kind == MSG ? dest : NULL) };
	size_t len = sizeof(end.addr);

	MUST(fi_fabric(end.info->fabric_attr, &end.fabric, NULL));
	MUST(fi_domain(end.fabric, end.info, &end.domain, NULL));
	MUST(fi_cq_open(end.domain, &cq_attr, &end.cq, NULL));
	if (kind != MSG)
		MUST(fi_av_open(end.domain, &av_attr, &end.av, NULL));
	else
		MUST(fi_eq_open(end.fabric, &eq_attr, &end.eq, NULL));
	if (kind == MSG && !dest)
		return end;
	ep_open(&end, end.info, &end.ep);
	if (kind != MSG)
		MUST(fi_getname(&end.ep->fid, &end.addr, &len));
	return end;
}

static fi_addr_t insert(struct end *end, const struct sockaddr_in *addr)
{
	fi_addr_t to;

	if (fi_av_insert(end->av, addr, 1, &to, 0, NULL) != 1)
		give_up("fi_av_insert");
	return to;
}

/* ---- the server ---- */

static void post(struct fid_ep *ep, bool tagged)
{
	if (tagged)
		MUST(fi_trecv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, HONEST_TAG, FIRST_TAG ^ HONEST_TAG, ep));
	else
		MUST(fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, ep));
}

static void accept_or_reject(struct end *end)
{
	union {
		struct fi_eq_cm_entry entry;
		uint8_t space[sizeof(struct fi_eq_cm_entry) + 256];	/* with the data of fi_connect() */
	} event;
	struct fid_ep *ep;
	uint32_t what;
	ssize_t len = fi_eq_read(end->eq, &what, &event, sizeof(event), 0);

	if (len == -FI_EAVAIL) {
		fi_eq_readerr(end->eq, &(struct fi_eq_err_entry) { 0 }, 0);
		return;
	}
	if (len < 0 || what == FI_CONNECTED)
		return;
	if (what == FI_SHUTDOWN) {
		fi_close(event.entry.fid);
		return;
	}
	if (len < (ssize_t) (sizeof(event.entry) + strlen(HONEST_WORD)) ||
	    memcmp(event.entry.data, HONEST_WORD, strlen(HONEST_WORD))) {
		fi_reject(end->pep, event.entry.info->handle, NULL, 0);
		fi_freeinfo(event.entry.info);
		return;
	}
	ep_open(end, event.entry.info, &ep);
	for (int i = 0; i < POSTED; i++)
		post(ep, true);
	fi_accept(ep, NULL, 0);
	fi_freeinfo(event.entry.info);
}

/* What a program may do whose library knows nothing of fork(): the child cleans up as if all were its own. */
/* One at a time. It has the time that nobody else wants, so what it does is its own cost. */
static void fork_a_child(struct end *end, bool closes)
{
	static pid_t pid;

	if (pid > 0 && !waitpid(pid, NULL, WNOHANG))
		return;
	pid = fork();
	if (!pid) {
		sched_setscheduler(0, SCHED_IDLE, &(struct sched_param) { 0 });
		if (!closes)
			_exit(0);
		if (end->ep)
			fi_close(&end->ep->fid);
		if (end->mr)
			fi_close(&end->mr->fid);
		fi_close(&end->cq->fid);
		if (end->av)
			fi_close(&end->av->fid);
		fi_close(&end->domain->fid);
		_exit(0);
	}
	SET(children, page->children + 1);
}

static void serve_entry(struct end *end, const struct fi_cq_tagged_entry *entry, fi_addr_t from)
{
	if (!(entry->flags & FI_RECV))
		return;
	if (end->kind != DGRAM) {
		SET(taken, page->taken + 1);
		post(entry->op_context, true);
		return;
	}
	/* the answer goes to who is known */
	if (from != FI_ADDR_NOTAVAIL && entry->len == HONEST_LEN) {
		SET(taken, page->taken + 1);
		fi_inject(end->ep, in, HONEST_LEN, from);
	}
	post(end->ep, false);
}

_Noreturn void serve(enum kind kind)
{
	struct end end = open_end(kind, NULL);
	size_t len = sizeof(end.addr);

	if (kind == MSG) {
		MUST(fi_passive_ep(end.fabric, end.info, &end.pep, NULL));
		MUST(fi_pep_bind(end.pep, &end.eq->fid, 0));
		MUST(fi_listen(end.pep));
		MUST(fi_getname(&end.pep->fid, &end.addr, &len));
	} else {
		for (int i = 0; i < POSTED; i++)
			post(end.ep, kind != DGRAM);
	}
	if (of[kind].type == FI_EP_RDM)
		MUST(fi_mr_reg(end.domain, region, sizeof(region), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
			       &end.mr, NULL));
	page->server = end.addr;
	SET(ready, 1);
	for (;;) {
		struct fi_cq_tagged_entry entry[16];
		fi_addr_t from[16];
		ssize_t cnt = fi_cq_readfrom(end.cq, entry, 16, from);

		if (!cnt || cnt == -FI_EAGAIN)
			cnt = fi_cq_sreadfrom(end.cq, entry, 1, from, NULL, SLICE_MS);
		if (cnt == -FI_EAVAIL) {
			struct fi_cq_err_entry err = { 0 };

			/* a receive that had begun */
			fi_cq_readerr(end.cq, &err, 0);
			if (err.flags & FI_RECV && err.op_context && kind != MSG)
				post(err.op_context, kind != DGRAM);
		}
		for (ssize_t i = 0; i < cnt; i++)
			serve_entry(&end, &entry[i], from[i]);
		if (end.eq)
			accept_or_reject(&end);
		while (page->inserted < INSERT_MAX && GET(insert[page->inserted].sin_family)) {
			insert(&end, &page->insert[page->inserted]);
			SET(inserted, page->inserted + 1);
		}
		if (GET(fork_children) || GET(fork_only))
			fork_a_child(&end, GET(fork_children));
	}
}

/* ---- honest peers ---- */

static void connect_msg(struct end *end)
{
	struct fi_eq_cm_entry entry;
	uint32_t what = 0;
	ssize_t ret;

	MUST(fi_connect(end->ep, end->info->dest_addr, HONEST_WORD, strlen(HONEST_WORD)));
	ret = fi_eq_sread(end->eq, &what, &entry, sizeof(entry), PATIENCE_MS, 0);
	if (ret < 0 || what != FI_CONNECTED)
		give_up("an honest peer gets no connection: %s", fi_strerror((int) -ret));
}

static ssize_t send_one(struct end *end, fi_addr_t to, uint64_t tag)
{
	struct iovec iov = { out, sizeof(out) };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .addr = to, .tag = tag };

	return fi_tsendmsg(end->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

/* Send a packet until it comes back. */
static void echo_one(struct end *end, fi_addr_t to)
{
	struct fi_cq_tagged_entry entry;
	uint64_t end_us = 0;

	for (;;) {
		ssize_t ret;

		if (now_us() >= end_us) {
			fi_inject(end->ep, out, sizeof(out), to);
			end_us = now_us() + ECHO_US;
		}
		ret = fi_cq_sread(end->cq, &entry, 1, NULL, ECHO_US / 1000);
		if (ret == 1 && entry.flags & FI_RECV) {
			post(end->ep, false);
			return;
		}
	}
}

/* Wait for the completion of a message. False: it failed. */
static bool await_one(struct end *end)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	do
		ret = fi_cq_sread(end->cq, &entry, 1, NULL, PATIENCE_MS);
	while (!ret);
	if (ret == 1)
		return true;
	if (ret != -FI_EAVAIL)
		give_up("an honest message has no completion: %s", fi_strerror((int) -ret));
	fi_cq_readerr(end->cq, &err, 0);
	return false;
}

static fi_addr_t meet_server(struct end *end)
{
	if (end->kind == DGRAM)
		post(end->ep, false);
	return end->kind == MSG ? FI_ADDR_UNSPEC : insert(end, &page->server);
}

_Noreturn void be_honest(enum kind kind)
{
	struct end end = open_end(kind, &page->server);
	fi_addr_t to = meet_server(&end);
	unsigned under_way = 0;

	page->honest = end.addr;
	if (kind == MSG)
		connect_msg(&end);
	else
		want_known(&end.addr);
	while (kind == DGRAM) {
		echo_one(&end, to);
		SET(done, page->done + 1);
	}
	for (;;) {
		while (under_way < WINDOW && !send_one(&end, to, HONEST_TAG))
			under_way++;
		under_way--;
		if (await_one(&end))
			SET(done, page->done + 1);
		else
			SET(failed, page->failed + 1);
	}
}

uint64_t first_message(enum kind kind, bool known)
{
	struct end end = open_end(kind, &page->server);
	fi_addr_t to = meet_server(&end);
	uint64_t begun_us;

	if (known && kind != MSG)
		want_known(&end.addr);
	begun_us = now_us();
	if (kind == DGRAM) {
		echo_one(&end, to);
		return now_us() - begun_us;
	}
	if (kind == MSG)
		connect_msg(&end);
	do
		MUST(send_one(&end, to, FIRST_TAG));
	while (!await_one(&end));
	return now_us() - begun_us;
}
