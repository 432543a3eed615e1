/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints: what may be bound with which flags, whose engine they run on, what enabling wants, default flags, and
 * where completions and failures are reported.
 */
#include "unit.h"

#include <rdma/fi_errno.h>
#include "common/ops/ops.h"
#include "offer.h"
#include "world.h"

static int bind_ep(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return fab_ep_bind(fid, bfid, flags);
}

static int control_ep(struct fid *fid, int command, void *arg)
{
	struct fab_ep *ep = fab_ep_of(fid);
	int ret;

	if (command != FI_ENABLE)
		return fab_ep_control(fid, command, arg);
	ret = fab_ep_check_enable(ep);
	ep->enabled |= !ret;
	return ret;
}

static struct fi_ops fid_ops = { .bind = bind_ep, .control = control_ep };
static struct fi_ops_ep ep_ops;
static struct fi_ops_msg msg_ops;
static const struct fab_ep_ops ops = { .fid = &fid_ops, .ep = &ep_ops, .msg = &msg_ops };

static void open_ep(struct fab_ep *ep, struct world *world, uint64_t caps)
{
	struct fi_info *info = fi_dupinfo(world->info);

	info->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	if (caps) {
		info->caps = caps;
		info->tx_attr->caps = info->rx_attr->caps = 0;
	}
	assert_int_equal(fab_ep_init(ep, &world->domain, info, &ops, NULL), 0);
	fi_freeinfo(info);
}

static struct fab_engine *engine_of(struct fid_cq *cq)
{
	return fab_container(cq, struct fab_cq, cq_fid)->wait.engine;
}

/* ---- open ---- */

static void infos_that_do_not_suit_are_refused(void **state)
{
	struct fi_info *info, bare = { 0 };
	struct world world;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	assert_int_equal(fab_ep_init(&ep, &world.domain, NULL, &ops, NULL), -FI_EINVAL);
	assert_int_equal(fab_ep_init(&ep, &world.domain, &bare, &ops, NULL), -FI_EINVAL);
	info = fi_dupinfo(world.info);
	info->addr_format = FI_SOCKADDR_IN6;
	assert_int_equal(fab_ep_init(&ep, &world.domain, info, &ops, NULL), -FI_EINVAL);
	info->ep_attr->type = FI_EP_SOCK_DGRAM;
	assert_int_equal(fab_ep_init(&ep, &world.domain, info, &ops, NULL), -FI_EINVAL);
	fi_freeinfo(info);
	fail_alloc(0);
	assert_int_equal(fab_ep_init(&ep, &world.domain, world.info, &ops, NULL), -FI_ENOMEM);
	fail_alloc(-1);
	world_close(&world);
}

static void calls_without_the_capability_are_not_there(void **state)
{
	struct world world;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	open_ep(&ep, &world, 0);
	assert_ptr_equal(ep.ep_fid.msg, &msg_ops);
	assert_ptr_equal(ep.ep_fid.rma, &fab_no_rma);
	assert_int_equal(fi_read(&ep.ep_fid, NULL, 0, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fab_domain_fini(&world.domain), -FI_EBUSY);
	fab_ep_fini(&ep);
	world_close(&world);
}

static void capabilities_are_those_of_info_tx_and_rx(void **state)
{
	static const struct { uint64_t caps, tx, rx, result; } rows[] = {
		{ FI_MSG, 0, 0, FI_MSG | FI_SEND | FI_RECV },
		{ FI_MSG | FI_SEND, 0, 0, FI_MSG | FI_SEND },
		{ FI_RMA | FI_REMOTE_WRITE, 0, 0, FI_RMA | FI_REMOTE_WRITE },
		{ FI_MSG | FI_RMA, FI_RMA | FI_WRITE, FI_MSG,
		  FI_MSG | FI_RMA | FI_WRITE | FI_RECV },
		{ FI_MSG, FI_MSG, FI_MSG, FI_MSG | FI_SEND | FI_RECV },
	};
	struct fi_info *info;
	struct world world;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	for (size_t i = 0; i < fab_countof(rows); i++) {
		info = fi_dupinfo(world.info);
		info->caps = rows[i].caps;
		info->tx_attr->caps = rows[i].tx;
		info->rx_attr->caps = rows[i].rx;
		assert_int_equal(fab_ep_init(&ep, &world.domain, info, &ops, NULL), 0);
		assert_int_equal(ep.caps, rows[i].result);
		fab_ep_fini(&ep);
		fi_freeinfo(info);
	}
	world_close(&world);
}

/* ---- bind ---- */

static void queues_are_bound_by_direction_once(void **state)
{
	struct world world, other;
	struct fid_cq *cq, *foreign;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	world_open(&other, &(struct world_attr) { 0 });
	open_ep(&ep, &world, 0);
	cq = open_cq(&world);
	foreign = open_cq(&other);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, 0), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_SELECTIVE_COMPLETION), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_TRANSMIT | FI_READ), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &foreign->fid, FI_TRANSMIT), -FI_EDOMAIN);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &world.domain.domain_fid.fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_RECV), 0);
	assert_true(ep.report.tx_selective);
	assert_false(ep.report.rx_selective);
	assert_int_equal(ep.report.tx_msg_flags, 0);
	assert_int_equal(ep.report.rx_msg_flags, FI_COMPLETION);
	assert_int_equal(fi_close(&cq->fid), -FI_EBUSY);
	fab_ep_fini(&ep);
	assert_int_equal(fi_close(&cq->fid), 0);
	fi_close(&foreign->fid);
	world_close(&other);
	world_close(&world);
}

static void counters_are_bound_by_operation_and_also_late(void **state)
{
	struct world world;
	struct fid_cntr *cntr, *late;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { .caps = FI_MSG | FI_RMA });
	open_ep(&ep, &world, FI_MSG | FI_RMA);
	cntr = open_cntr(&world);
	late = open_cntr(&world);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cntr->fid, 0), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cntr->fid, FI_SEND | FI_MULTI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cntr->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cntr->fid, FI_SEND | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &late->fid, FI_RECV | FI_READ), -FI_EINVAL);
	ep.enabled = true;
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &late->fid, FI_READ | FI_WRITE), 0);
	assert_int_equal(fi_close(&late->fid), -FI_EBUSY);
	fab_ep_fini(&ep);
	fi_close(&cntr->fid);
	fi_close(&late->fid);
	world_close(&world);

	world_open(&world, &(struct world_attr) { 0 });
	open_ep(&ep, &world, FI_RMA | FI_RMA_EVENT);
	cntr = open_cntr(&world);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cntr->fid, FI_REMOTE_WRITE | FI_REMOTE_READ), 0);
	fab_ep_fini(&ep);
	fi_close(&cntr->fid);
	world_close(&world);
}

static void after_enable_no_queue_of_completions_is_bound(void **state)
{
	struct world world;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	open_ep(&ep, &world, 0);
	av = open_av_table(&world);
	cq = open_cq(&world);
	eq = open_eq(&world);
	ep.enabled = true;
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &av->fid, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_TRANSMIT), -FI_EOPBADSTATE);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &eq->fid, 0), -FI_EINVAL);
	ep.enabled = false;
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&eq->fid), -FI_EBUSY);
	fab_ep_fini(&ep);
	fi_close(&av->fid);
	fi_close(&cq->fid);
	fi_close(&eq->fid);
	world_close(&world);
}

static void a_connected_endpoint_takes_no_address_vector(void **state)
{
	struct world world;
	struct fid_av *av;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { .type = FI_EP_MSG });
	open_ep(&ep, &world, 0);
	av = open_av_table(&world);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &av->fid, 0), -FI_EINVAL);
	fab_ep_fini(&ep);
	fi_close(&av->fid);
	world_close(&world);
}

/* ---- engines: with FI_THREAD_COMPLETION each group of endpoints and queues has its own ---- */

/* With an address vector, which goes with the endpoint. */
static void enable(struct fab_ep *ep, struct world *world, int want)
{
	assert_int_equal(fi_ep_bind(&ep->ep_fid, &open_av_table(world)->fid, 0), 0);
	assert_int_equal(fi_enable(&ep->ep_fid), want);
}

static void close_enabled(struct fab_ep *ep)
{
	struct fid_av *av = &ep->bound.av->av_fid;

	fab_ep_fini(ep);
	assert_int_equal(fi_close(&av->fid), 0);
}

static void queues_of_one_endpoint_come_together(void **state)
{
	struct fid_cq *tx, *rx;
	struct fid_cntr *cntr;
	struct world world;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	open_ep(&ep, &world, 0);
	tx = open_cq(&world);
	rx = open_cq(&world);
	cntr = open_cntr(&world);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &tx->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &rx->fid, FI_RECV), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cntr->fid, FI_SEND), 0);
	assert_ptr_equal(engine_of(tx), &world.domain.engine);
	assert_ptr_equal(engine_of(rx), &world.domain.engine);
	enable(&ep, &world, 0);
	assert_ptr_not_equal(ep.engine, &world.domain.engine);
	assert_ptr_equal(ep.engine, engine_of(tx));
	assert_ptr_equal(engine_of(rx), ep.engine);
	assert_ptr_equal(fab_container(cntr, struct fab_cntr, cntr_fid)->wait.engine, ep.engine);
	close_enabled(&ep);
	/* in any order: the engine goes with the last of them */
	fi_close(&tx->fid);
	assert_int_equal(fi_cq_read(rx, NULL, 0), -FI_EAGAIN);
	fi_close(&cntr->fid);
	fi_close(&rx->fid);
	assert_true(fab_list_empty(&world.domain.engines.list));
	world_close(&world);
}

static void a_fresh_queue_comes_to_the_engine_of_one_in_use(void **state)
{
	struct fid_cq *shared, *fresh;
	struct world world;
	struct fab_ep a, b;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	open_ep(&a, &world, 0);
	open_ep(&b, &world, 0);
	shared = open_cq(&world);
	fresh = open_cq(&world);
	assert_int_equal(fi_ep_bind(&a.ep_fid, &shared->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(&b.ep_fid, &fresh->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(&b.ep_fid, &shared->fid, FI_RECV), 0);
	enable(&a, &world, 0);
	enable(&b, &world, 0);
	assert_ptr_equal(engine_of(fresh), engine_of(shared));
	assert_ptr_equal(b.engine, a.engine);
	close_enabled(&a);
	assert_ptr_equal(b.engine, engine_of(shared));
	close_enabled(&b);
	fi_close(&shared->fid);
	fi_close(&fresh->fid);
	world_close(&world);
}

static void an_endpoint_of_two_busy_engines_is_on_the_domains_which_they_follow(void **state)
{
	struct fid_cq *one, *two;
	struct world world;
	struct fab_ep a, b, c;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	open_ep(&a, &world, 0);
	open_ep(&b, &world, 0);
	open_ep(&c, &world, 0);
	one = open_cq(&world);
	two = open_cq(&world);
	assert_int_equal(fi_ep_bind(&a.ep_fid, &one->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(&b.ep_fid, &two->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(&c.ep_fid, &one->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(&c.ep_fid, &two->fid, FI_RECV), 0);
	enable(&a, &world, 0);
	enable(&b, &world, 0);
	assert_null(a.engine->lead);
	enable(&c, &world, 0);
	assert_ptr_not_equal(engine_of(one), engine_of(two));
	assert_ptr_equal(c.engine, &world.domain.engine);
	assert_ptr_equal(a.engine, engine_of(one));
	assert_ptr_equal(a.engine->lead, c.engine);
	assert_ptr_equal(b.engine->lead, c.engine);
	close_enabled(&c);
	close_enabled(&b);
	close_enabled(&a);
	fi_close(&one->fid);
	fi_close(&two->fid);
	world_close(&world);
}

/* Two queues, each with the engine of an endpoint that has gone since. */
static void queues_of_endpoints_that_have_gone_serve_another(void **state)
{
	struct fid_cq *cq[2];
	struct world world;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	for (int i = 0; i < 2; i++) {
		cq[i] = open_cq(&world);
		open_ep(&ep, &world, 0);
		assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq[i]->fid, FI_TRANSMIT | FI_RECV), 0);
		enable(&ep, &world, 0);
		close_enabled(&ep);
	}
	open_ep(&ep, &world, 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq[0]->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq[1]->fid, FI_RECV), 0);
	enable(&ep, &world, 0);
	assert_ptr_equal(ep.engine, &world.domain.engine);
	close_enabled(&ep);
	fi_close(&cq[0]->fid);
	fi_close(&cq[1]->fid);
	assert_true(fab_list_empty(&world.domain.engines.list));
	assert_int_equal(atomic_load(&world.domain.engine.watchers), 0);
	world_close(&world);
}

/* Two contexts on different engines, shared by one endpoint. */
static void an_endpoint_of_two_contexts_is_on_the_domains_engine(void **state)
{
	struct fab_ep ctx[2], user[2], both;
	struct fid_cq *cq[2];
	struct world world;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	for (int i = 0; i < 2; i++) {
		cq[i] = open_cq(&world);
		open_ep(&ctx[i], &world, 0);
		open_ep(&user[i], &world, 0);
		assert_int_equal(fi_ep_bind(&user[i].ep_fid, &cq[i]->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fab_ep_share_engine(&user[i], &ctx[i]), 0);
		enable(&user[i], &world, 0);
		assert_ptr_equal(ctx[i].engine, engine_of(cq[i]));
	}
	open_ep(&both, &world, 0);
	assert_int_equal(fab_ep_share_engine(&both, &ctx[0]), 0);
	assert_ptr_equal(both.engine, ctx[0].engine);
	assert_int_equal(fab_ep_share_engine(&both, &ctx[1]), 0);
	assert_ptr_equal(both.engine, &world.domain.engine);
	assert_ptr_equal(ctx[0].engine->lead, both.engine);
	assert_ptr_equal(ctx[1].engine->lead, both.engine);
	fab_ep_fini(&both);
	for (int i = 0; i < 2; i++) {
		close_enabled(&user[i]);
		fab_ep_fini(&ctx[i]);
		fi_close(&cq[i]->fid);
	}
	assert_true(fab_list_empty(&world.domain.engines.list));
	world_close(&world);
}

/* An enabled endpoint stays where it is. */
static void a_late_counter_of_another_engine_is_refused(void **state)
{
	struct fid_cntr *cntr[2];
	struct fid_cq *cq[2];
	struct fab_ep ep[2];
	struct world world;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	for (int i = 0; i < 2; i++) {
		cq[i] = open_cq(&world);
		cntr[i] = open_cntr(&world);
		open_ep(&ep[i], &world, 0);
		assert_int_equal(fi_ep_bind(&ep[i].ep_fid, &cq[i]->fid, FI_TRANSMIT | FI_RECV), 0);
		enable(&ep[i], &world, 0);
	}
	assert_int_equal(fi_ep_bind(&ep[0].ep_fid, &cntr[0]->fid, FI_SEND), 0);
	assert_ptr_equal(fab_container(cntr[0], struct fab_cntr, cntr_fid)->wait.engine, ep[0].engine);
	assert_int_equal(fi_ep_bind(&ep[1].ep_fid, &cntr[0]->fid, FI_SEND), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(&ep[1].ep_fid, &cntr[1]->fid, FI_SEND), 0);
	for (int i = 0; i < 2; i++) {
		close_enabled(&ep[i]);
		fi_close(&cntr[i]->fid);
		fi_close(&cq[i]->fid);
	}
	world_close(&world);
}

/* A counter of memory regions is on the domain's engine and stays there: endpoints come to it. */
static void a_counter_of_regions_draws_the_endpoint_to_it(void **state)
{
	static uint8_t memory[64];
	struct fid_cntr *cntr;
	struct world world;
	struct fid_mr *mr;
	struct fid_cq *cq;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	open_ep(&ep, &world, 0);
	cntr = open_cntr(&world);
	cq = open_cq(&world);
	assert_int_equal(fi_mr_reg(&world.domain.domain_fid, memory, 64, FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cntr->fid, FI_REMOTE_WRITE), 0);
	enable(&ep, &world, 0);
	assert_ptr_equal(ep.engine, &world.domain.engine);
	assert_ptr_equal(engine_of(cq), &world.domain.engine);
	close_enabled(&ep);
	fi_close(&mr->fid);
	fi_close(&cntr->fid);
	fi_close(&cq->fid);
	world_close(&world);
}

/* ---- enable ---- */

static void enabling_wants_what_the_endpoint_needs(void **state)
{
	struct world world;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av_table(&world);
	cq = open_cq(&world);
	open_ep(&ep, &world, FI_MSG);
	assert_int_equal(fi_enable(&ep.ep_fid), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_enable(&ep.ep_fid), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(&ep.ep_fid), -FI_ENOAV);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &av->fid, 0), 0);
	assert_int_equal(fi_enable(&ep.ep_fid), 0);
	assert_int_equal(fi_enable(&ep.ep_fid), -FI_EOPBADSTATE);
	fab_ep_fini(&ep);

	/* one direction wants one queue; a mere target any, to be progressed by */
	open_ep(&ep, &world, FI_MSG | FI_RECV);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(&ep.ep_fid), 0);
	fab_ep_fini(&ep);
	open_ep(&ep, &world, FI_RMA | FI_REMOTE_READ);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &av->fid, 0), 0);
	assert_int_equal(fi_enable(&ep.ep_fid), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_enable(&ep.ep_fid), 0);
	fab_ep_fini(&ep);
	fi_close(&av->fid);
	fi_close(&cq->fid);
	world_close(&world);
}

static void a_connected_endpoint_wants_an_event_queue_or_its_domains(void **state)
{
	struct world world;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { .type = FI_EP_MSG });
	cq = open_cq(&world);
	eq = open_eq(&world);
	open_ep(&ep, &world, FI_MSG);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(&ep.ep_fid), -FI_ENOEQ);
	assert_int_equal(fi_domain_bind(&world.domain.domain_fid, &eq->fid, 0), 0);
	assert_int_equal(fi_enable(&ep.ep_fid), 0);
	assert_ptr_equal(&ep.bound.eq->eq_fid, eq);
	fab_ep_fini(&ep);
	fi_close(&cq->fid);
	assert_int_equal(fab_domain_fini(&world.domain), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fab_fabric_fini(&world.fabric), 0);
	fi_freeinfo(world.info);
}

/* ---- flags, completions ---- */

static void default_flags_are_read_and_set_by_direction(void **state)
{
	struct world world;
	struct fab_ep ep;
	uint64_t flags;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	open_ep(&ep, &world, 0);
	flags = FI_TRANSMIT;
	assert_int_equal(fi_control(&ep.ep_fid.fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, FI_DELIVERY_COMPLETE);
	flags = FI_TRANSMIT | FI_INJECT | FI_COMPLETION;
	assert_int_equal(fi_control(&ep.ep_fid.fid, FI_SETOPSFLAG, &flags), 0);
	assert_int_equal(ep.own.tx_op_flags, FI_INJECT | FI_COMPLETION);
	flags = FI_RECV | FI_MULTI_RECV;
	assert_int_equal(fi_control(&ep.ep_fid.fid, FI_SETOPSFLAG, &flags), 0);
	assert_int_equal(ep.own.rx_op_flags, FI_MULTI_RECV);
	flags = FI_RECV | FI_INJECT;
	assert_int_equal(fi_control(&ep.ep_fid.fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	flags = FI_RECV | FI_TRANSMIT;
	assert_int_equal(fi_control(&ep.ep_fid.fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	assert_int_equal(fi_control(&ep.ep_fid.fid, FI_GETOPSFLAG, NULL), -FI_EINVAL);
	assert_int_equal(fi_control(&ep.ep_fid.fid, FI_GETWAIT, NULL), -FI_ENOSYS);
	fab_ep_fini(&ep);
	world_close(&world);
}

static void operations_end_once_in_queue_and_counter(void **state)
{
	struct fab_comp comp = { .context = &comp, .flags = FI_MSG | FI_SEND, .len = 5, .src = FI_ADDR_NOTAVAIL };
	struct fab_cq_fail fail = { .err = FI_ETIMEDOUT, .prov_errno = 110, .text = "nobody there" };
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	struct fid_cq *tx, *rx;
	struct fid_cntr *cntr;
	struct world world;
	struct fab_ep ep;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	open_ep(&ep, &world, 0);
	tx = open_cq(&world);
	rx = open_cq(&world);
	cntr = open_cntr(&world);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &tx->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &rx->fid, FI_RECV), 0);
	assert_int_equal(fi_ep_bind(&ep.ep_fid, &cntr->fid, FI_SEND), 0);
	fab_engine_lock(ep.engine);
	fab_ep_complete(&ep, FAB_OP_SEND, &comp, true);
	fab_ep_complete(&ep, FAB_OP_SEND, &comp, false);
	fab_ep_complete(&ep, FAB_OP_RECV, &comp, true);
	fab_ep_fail(&ep, FAB_OP_SEND, &comp, &fail);
	fab_engine_unlock(ep.engine);

	assert_int_equal(fi_cq_read(tx, &entry, 1), 1);
	assert_ptr_equal(entry.op_context, &comp);
	assert_int_equal(fi_cq_read(tx, &entry, 1), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(tx, &err, 0), 1);
	assert_int_equal(err.err, FI_ETIMEDOUT);
	assert_int_equal(fi_cq_read(tx, &entry, 1), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(rx, &entry, 1), 1);
	assert_int_equal(fi_cq_read(rx, &entry, 1), -FI_EAGAIN);
	assert_int_equal(fi_cntr_read(cntr), 2);
	assert_int_equal(fi_cntr_readerr(cntr), 1);
	fab_ep_fini(&ep);
	fi_close(&tx->fid);
	fi_close(&rx->fid);
	fi_close(&cntr->fid);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(infos_that_do_not_suit_are_refused),
		cmocka_unit_test(calls_without_the_capability_are_not_there),
		cmocka_unit_test(capabilities_are_those_of_info_tx_and_rx),
		cmocka_unit_test(queues_are_bound_by_direction_once),
		cmocka_unit_test(counters_are_bound_by_operation_and_also_late),
		cmocka_unit_test(after_enable_no_queue_of_completions_is_bound),
		cmocka_unit_test(a_connected_endpoint_takes_no_address_vector),
		cmocka_unit_test(queues_of_one_endpoint_come_together),
		cmocka_unit_test(a_fresh_queue_comes_to_the_engine_of_one_in_use),
		cmocka_unit_test(an_endpoint_of_two_busy_engines_is_on_the_domains_which_they_follow),
		cmocka_unit_test(queues_of_endpoints_that_have_gone_serve_another),
		cmocka_unit_test(an_endpoint_of_two_contexts_is_on_the_domains_engine),
		cmocka_unit_test(a_late_counter_of_another_engine_is_refused),
		cmocka_unit_test(a_counter_of_regions_draws_the_endpoint_to_it),
		cmocka_unit_test(enabling_wants_what_the_endpoint_needs),
		cmocka_unit_test(a_connected_endpoint_wants_an_event_queue_or_its_domains),
		cmocka_unit_test(default_flags_are_read_and_set_by_direction),
		cmocka_unit_test(operations_end_once_in_queue_and_counter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
