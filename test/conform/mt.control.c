/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Control calls by several threads, and while others transfer: always safe. Source: fi_domain(3). */
#include <poll.h>

#include "mt_worker.h"

static void *open_and_close(void *arg)
{
	struct worker *w = arg;
	struct fi_info *info = w->arg;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	unsigned int i;

	for (i = 0; i < 30 && !w->wrong[0]; i++) {
		struct fid_fabric *fabric;
		struct fid_domain *domain;
		struct fi_info *list;
		struct fid_ep *ep;
		struct fid_cq *cq;
		struct fid_av *av;

		if (fi_getinfo(run.version, NULL, NULL, 0, info, &list)) {
			WRONG(w, "fi_getinfo");
			return NULL;
		}
		if (fi_fabric(list->fabric_attr, &fabric, NULL) || fi_domain(fabric, list, &domain, NULL) ||
		    fi_cq_open(domain, &cq_attr, &cq, NULL) || fi_av_open(domain, &av_attr, &av, NULL) ||
		    fi_endpoint(domain, list, &ep, NULL) ||
		    fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) || fi_ep_bind(ep, &av->fid, 0) || fi_enable(ep)) {
			WRONG(w, "opening");
			return NULL;
		}
		if (fi_close(&ep->fid) || fi_close(&av->fid) || fi_close(&cq->fid) || fi_close(&domain->fid) ||
		    fi_close(&fabric->fid))
			WRONG(w, "closing");
		fi_freeinfo(list);
	}
	return NULL;
}

/* Four threads open and close objects of one domain at the same time. */
TEST_PROV(open_and_close_at_once, FI_MSG, RDM_ONLY)
{
	struct fi_info *hints = hints_new(t, &(struct opts) { .hints = set_safe });
	struct worker w[4] = { 0 };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		w[i] = (struct worker) { .t = t, .id = i, .fn = open_and_close, .arg = hints };
		worker_start(&w[i]);
	}
	for (i = 0; i < 4; i++)
		worker_finish(&w[i]);
}

/* Addresses are inserted and removed by some threads while others send to those that stay. */
static void *churn_addresses(void *arg)
{
	struct worker *w = arg;
	struct side *s = w->s, *other = w->arg;
	fi_addr_t addr;
	unsigned int i;

	for (i = 0; i < 200 && !w->wrong[0]; i++) {
		if (fi_av_insert(s->av, other->name, 1, &addr, 0, NULL) != 1)
			WRONG(w, "fi_av_insert");
		else if (fi_av_remove(s->av, &addr, 1, 0))
			WRONG(w, "fi_av_remove");
	}
	return NULL;
}

/* Control calls may come from any thread, also where data calls are serialised. */
struct level_row {
	const char *name;
	void (*hints)(struct fi_info *hints);
};

static const struct level_row level_rows[] = {
	{ "safe", set_safe }, { "fid", set_fid }, { "endpoint", set_endpoint }, { "completion", set_completion },
	{ "domain", set_domain },
};

static struct pair level_pair(struct test *t, const struct level_row *row)
{
	struct pair p;

	if (!info_find(t, hints_new(t, &(struct opts) { .hints = row->hints }), NULL, NULL, 0))
		ABSENT("%s has no threading level %s", run.prov, row->name);
	p = pair_open(t, .hints = row->hints);
	check_link(p.a, p.b);
	return p;
}

/* Addresses are inserted and removed while another thread sends. */
TEST_TABLE(addresses_change_while_sending, level_rows, FI_MSG, RDM_ONLY)
{
	const struct level_row *row = ROW(level_rows);
	struct pair p = level_pair(t, row);
	struct side *c = side_open(t, .hints = row->hints);
	struct worker w = { .t = t, .s = p.a, .fn = churn_addresses, .arg = c };
	unsigned int i;
	char in[4];

	worker_start(&w);
	for (i = 0; i < 200; i++) {
		post_recv(p.b, in, 4);
		post(p.a, SEND, .buf = "abcd", .len = 4);
		expect_recv(p.b, "abcd", 4);
		expect_tx(p.a);
	}
	worker_finish(&w);
}

/* Regions come and go while a peer writes to one that stays. */
static void *churn_regions(void *arg)
{
	struct worker *w = arg;
	uint8_t buf[64];
	struct fid_mr *mr;
	unsigned int i;

	for (i = 0; i < 300 && !w->wrong[0]; i++) {
		if (fi_mr_reg(w->s->domain, buf, sizeof(buf), FI_REMOTE_WRITE, 0, 1000 + i % 7 + 10 * w->id, 0, &mr,
			      NULL))
			WRONG(w, "fi_mr_reg");
		else if (fi_close(&mr->fid))
			WRONG(w, "fi_close");
	}
	return NULL;
}

/* Regions are registered and closed while another one is written to. */
TEST_TABLE(regions_change_while_written, level_rows, FI_MSG | FI_RMA, RELIABLE)
{
	struct pair p = level_pair(t, ROW(level_rows));
	struct region r = region_open(p.b, NULL, 64, FI_REMOTE_WRITE);
	struct worker w[2] = { { .t = t, .s = p.b, .id = 0, .fn = churn_regions },
			       { .t = t, .s = p.b, .id = 1, .fn = churn_regions } };
	/* which a write of verbs is without asking */
	const uint64_t delivered = strcmp(run.prov, "verbs") ? FI_DELIVERY_COMPLETE : 0;
	unsigned int i;

	worker_start(&w[0]);
	worker_start(&w[1]);
	for (i = 0; i < 200; i++) {
		post(p.a, WRITEMSG, .buf = "8 bytes.", .len = 8, .raddr = r.addr, .key = r.key, .flags = delivered);
		expect_tx(p.a);
	}
	worker_finish(&w[0]);
	worker_finish(&w[1]);
	CHECK_MEM(r.buf, "8 bytes.", 8);
}

/* ---- a queue that no endpoint uses yet, read while its first endpoint comes ---- */

enum reading { READ_AGAIN, SLEEP, POLL, READING_CNT };

struct reading_of {
	enum reading how;
	_Atomic bool stop;
};

/* fi_trywait(3), and a sleep outside of the library until there may be something to read. */
static int sleep_outside(struct side *s)
{
	struct fid *fids[] = { &s->rx_cq->fid };
	struct pollfd pollfd = { .events = POLLIN };
	int ret;

	ret = fi_control(fids[0], FI_GETWAIT, &pollfd.fd);
	if (ret)
		return ret;
	ret = fi_trywait(s->fabric, fids, 1);
	if (!ret)
		poll(&pollfd, 1, -1);
	return ret == -FI_EAGAIN ? 0 : ret;
}

static void *read_until_told(void *arg)
{
	struct worker *w = arg;
	struct reading_of *of = w->arg;
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while (!of->stop && !w->wrong[0]) {
		if (of->how == POLL && sleep_outside(w->s))
			WRONG(w, "fi_trywait");
		if (of->how == SLEEP)
			ret = fi_cq_sread(w->s->rx_cq, &entry, 1, NULL, -1);
		else
			ret = fi_cq_read(w->s->rx_cq, &entry, 1);
		if (ret != -FI_EAGAIN)
			WRONG(w, "a read returned %zd", ret);
		w->done++;
	}
	return NULL;
}

/* fi_enable() is control: another thread may read one of the endpoint's two queues, or sleep on it. */
TEST_TABLE(queue_is_read_while_its_first_endpoint_comes, level_rows, FI_MSG, UNCONNECTED)
{
	const struct level_row *row = ROW(level_rows);
	struct side *base = domain_side(t, .hints = row->hints);

	for (unsigned int i = 0; i < 10 * READING_CNT; i++) {
		struct reading_of of = { .how = i % READING_CNT };
		struct side *s = side_open(t, .hints = row->hints, .domain_of = base, .unenabled = true,
					   .cq_wait = of.how == READ_AGAIN ? FI_WAIT_NONE : FI_WAIT_FD);
		struct worker w = { .t = t, .s = s, .fn = read_until_told, .arg = &of };

		worker_start(&w);
		side_enable(s);
		of.stop = true;
		if (of.how != READ_AGAIN)
			MUST(fi_cq_signal(s->rx_cq));
		worker_finish(&w);
		s->peer = side_insert(s, s);
		check_link(s, s);
		side_close(s);
	}
}

/* A domain, and what its threads bind their endpoints to. */
struct bound_to {
	struct side *s;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
};

static int bind_all(const struct bound_to *to, struct fid_ep *ep, struct fid_cq *own, struct fid_av *av)
{
	int ret = fi_ep_bind(ep, &own->fid, FI_TRANSMIT);

	if (!ret)
		ret = fi_ep_bind(ep, &to->cq->fid, FI_RECV);
	if (!ret)
		ret = fi_ep_bind(ep, &to->cntr->fid, FI_SEND | FI_RECV);
	return ret ? ret : fi_ep_bind(ep, &av->fid, 0);
}

/* One endpoint's life, up to its own address in its address vector. Two of three are enabled. */
static void live(struct worker *w, unsigned int round, struct fid_ep *ep, struct fid_cq *own, struct fid_av *av)
{
	uint8_t name[128];
	size_t len = sizeof(name);
	fi_addr_t addr;
	int ret;

	ret = bind_all(w->arg, ep, own, av);
	if (ret)
		WRONG(w, "fi_ep_bind: %d", ret);
	if (ret || round % 3 == 0)
		return;
	if (fi_enable(ep) || fi_getname(&ep->fid, name, &len))
		WRONG(w, "fi_enable");
	else if (fi_av_insert(av, name, 1, &addr, 0, NULL) != 1 || fi_av_remove(av, &addr, 1, 0))
		WRONG(w, "fi_av_insert or fi_av_remove");
}

static void *bind_and_close(void *arg)
{
	struct worker *w = arg;
	struct side *s = ((struct bound_to *) w->arg)->s;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;

	for (unsigned int i = 0; i < 150 && !w->wrong[0]; i++) {
		if (fi_cq_open(s->domain, &cq_attr, &cq, NULL) || fi_av_open(s->domain, &av_attr, &av, NULL) ||
		    fi_endpoint(s->domain, s->info, &ep, NULL)) {
			WRONG(w, "opening");
			return NULL;
		}
		live(w, i, ep, cq, av);
		if (fi_close(&ep->fid) || fi_close(&av->fid) || fi_close(&cq->fid))
			WRONG(w, "closing");
	}
	return NULL;
}

/* Four threads open, bind, enable and close endpoints on one queue and one counter: all of it works, and nothing of it
 * is left. */
TEST_TABLE(endpoints_of_one_queue_come_and_go, level_rows, FI_MSG, UNCONNECTED)
{
	struct bound_to to = { .s = domain_side(t, .hints = ROW(level_rows)->hints) };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct worker w[4] = { 0 };

	MUST(fi_cq_open(to.s->domain, &cq_attr, &to.cq, NULL));
	MUST(fi_cntr_open(to.s->domain, &cntr_attr, &to.cntr, NULL));
	for (unsigned int i = 0; i < COUNT(w); i++) {
		w[i] = (struct worker) { .t = t, .id = i, .fn = bind_and_close, .arg = &to };
		worker_start(&w[i]);
	}
	for (unsigned int i = 0; i < COUNT(w); i++)
		worker_finish(&w[i]);
	MUST(fi_close(&to.cntr->fid));
	MUST(fi_close(&to.cq->fid));
}
