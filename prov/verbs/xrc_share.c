/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects that XRC endpoints share: the XRC domain, initiators and targets. `lock` guards their lists and the
 * reference counts of domains and targets. It is taken inside of engines' locks, only to set up and to end connections.
 */
#include "verbs/xrc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "verbs/xrc_domain.h"

#define RNR_FOR_EVER	7
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the domain ---- */

/* The file of the XRC domain. By default each user has one, since a user cannot open the file of another. */
static const char *file_name(char *room, size_t size)
{
	if (vrb_params.xrcd_filename)
		return vrb_params.xrcd_filename;
	snprintf(room, size, "/tmp/verbs_xrcd.%u", (unsigned) geteuid());
	return room;
}

/* The default file stands in a folder where any user can make it. Whoever owns it could let others open it, and who can
 * open the domain can send to its receive queues. A file that the user has named is shared with whom the user likes. */
static int check_owner(const struct vrb_device *dev, const char *name, const struct stat *st)
{
	if (vrb_params.xrcd_filename || st->st_uid == geteuid())
		return 0;
	VRB_WARN(FI_LOG_DOMAIN, "the file of the XRC domain on device %s, %s: user %u made it, and this process is "
		 "user %u's; set FI_VERBS_XRCD_FILENAME to a file of your own\n",
		 dev->name, name, (unsigned) st->st_uid, (unsigned) geteuid());
	return -FI_EACCES;
}

static int open_domain(struct vrb_xrc *xrc, const struct vrb_device *dev)
{
	char room[64];
	const char *name = file_name(room, sizeof(room));
	int fd = open(name, O_RDONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600), ret = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		ret = -errno;
		VRB_WARN(FI_LOG_DOMAIN, "the file of the XRC domain on device %s, %s: %s; set FI_VERBS_XRCD_FILENAME "
			 "to one that can be opened\n", dev->name, name, strerror(errno));
	} else {
		ret = check_owner(dev, name, &st);
	}
	if (!ret) {
		xrc->tag = (uint32_t) fab_mix64(fab_mix64(st.st_dev) ^ st.st_ino);
		xrc->xrcd = vrb_open_xrc_domain(dev->verbs, fd, O_CREAT);
		ret = xrc->xrcd ? 0 : -errno;
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

int vrb_xrc_get(struct vrb_domain *domain)
{
	struct vrb_xrc *xrc;
	int ret = 0;

	pthread_mutex_lock(&lock);
	xrc = domain->xrc ? domain->xrc : calloc(1, sizeof(*xrc));
	if (!xrc)
		ret = -FI_ENOMEM;
	else if (!xrc->ref_cnt)
		ret = open_domain(xrc, domain->dev);
	if (!ret && !xrc->ref_cnt++) {
		fab_list_init(&xrc->inis);
		fab_list_init(&xrc->tgts);
		domain->xrc = xrc;
	} else if (ret) {
		free(xrc);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

void vrb_xrc_put(struct vrb_domain *domain)
{
	struct vrb_xrc *xrc = domain->xrc;

	pthread_mutex_lock(&lock);
	if (!--xrc->ref_cnt) {
		vrb_close_xrc_domain(xrc->xrcd);
		free(xrc);
		domain->xrc = NULL;
	}
	pthread_mutex_unlock(&lock);
}

/* ---- queue pairs ---- */

static int xrc_share_failed(const struct vrb_ep *ep, const char *call, int err)
{
	VRB_WARN(FI_LOG_EP_CTRL, "XRC queue pair on %s: %s: %s\n", vrb_domain_of(ep)->dev->name, call, strerror(err));
	errno = err;
	return -err;
}

/* Limit the reads and atomics that may be outstanding, in both directions. Before the request is answered, the CM has
 * the numbers of the peer's device. */
static void limit_reads(const struct vrb_ep *ep, struct ibv_qp_attr *attr)
{
	const struct ibv_device_attr *dev = &vrb_domain_of(ep)->dev->attr;

	attr->max_rd_atomic = (uint8_t) fab_min(attr->max_rd_atomic, dev->max_qp_init_rd_atom);
	attr->max_dest_rd_atomic = (uint8_t) fab_min(attr->max_dest_rd_atomic, dev->max_qp_rd_atom);
}

/* Move a queue pair to the next state, with the path of a CM id. The CM's attributes have the queue pair number of the
 * CM messages; dest replaces it, unless it is 0. */
static int qp_step(const struct vrb_ep *ep, struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state,
		   uint32_t dest, int not_mask)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask, ret;

	if (rdma_init_qp_attr(id, &attr, &mask))
		return xrc_share_failed(ep, "rdma_init_qp_attr", errno);
	attr.qp_access_flags = ACCESS;
	if (dest)
		attr.dest_qp_num = dest;
	attr.rnr_retry = RNR_FOR_EVER;	/* the CM's value is meant for its own messages */
	attr.min_rnr_timer = (uint8_t) vrb_params.min_rnr_timer;
	limit_reads(ep, &attr);
	ret = ibv_modify_qp(qp, &attr, mask & ~not_mask);
	return ret ? xrc_share_failed(ep, "ibv_modify_qp", ret) : 0;
}

/* ---- initiators ---- */

/* False if a request on an initiator has failed; then all later ones fail, too. */
static bool works(const struct vrb_ini *ini)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ini->state != VRB_INI_READY ||
	       (!ibv_query_qp(ini->qp, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_RTS);
}

/* True if an endpoint sends on the initiator to the shared context that ep will send to, or may be about to. An
 * endpoint that asks does not know the SRQ yet, but endpoints that listen at an address have one context, as a rule.
 * One that has answered may have a peer that does not know of it yet, and that peer would accept a request on the same
 * target. */
static bool may_meet(const struct vrb_ini *ini, const struct vrb_ep *ep)
{
	const struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	struct fab_list *link;

	fab_list_for_each(&ini->users, link) {
		const struct vrb_xrc_ep *user = fab_container(link, struct vrb_xrc_ep, user);

		if (x->peer_shares && (!user->peer_srqn || user->peer_srqn == x->peer_srqn))
			return true;
		if (!x->peer_srqn && user->peer_shares && (user->conn.ep.state != VRB_EP_CONNECTED ||
							   fab_addr_equal(&user->conn.peer.sa, &x->conn.peer.sa)))
			return true;
	}
	return false;
}

static bool xrc_share_suits(const struct vrb_ini *ini, const struct vrb_ep *ep, const uint32_t *tag)
{
	return ini->state != VRB_INI_OLD && ini->size >= ep->sq_size &&
	       fab_addr_equal_host(&ini->node.sa, &vrb_conn_of(ep)->peer.sa) &&
	       (!tag || ini->state == VRB_INI_CONNECTING || ini->tag == *tag) && !may_meet(ini, ep) &&
	       works(ini);
}

struct vrb_ini *vrb_ini_find(const struct vrb_ep *ep, const uint32_t *tag)
{
	struct vrb_ini *best = NULL;
	struct fab_list *link;

	pthread_mutex_lock(&lock);
	fab_list_for_each(&vrb_xrc_of(ep)->inis, link) {
		struct vrb_ini *ini = fab_container(link, struct vrb_ini, link);

		if (ini->engine == ep->base.engine && xrc_share_suits(ini, ep, tag) &&
		    (!best || ini->state > best->state))
			best = ini;
	}
	pthread_mutex_unlock(&lock);
	return best;
}

struct vrb_ini *vrb_ini_make(struct vrb_ep *ep, struct rdma_cm_id *id, enum vrb_ini_state state)
{
	struct vrb_domain *domain = vrb_domain_of(ep);
	struct ibv_qp_init_attr base = vrb_qp_attr(ep);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND, .send_cq = base.send_cq, .cap = base.cap,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = domain->pd,
	};
	struct vrb_ini *ini = calloc(1, sizeof(*ini));

	if (!ini)
		return NULL;
	attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	attr.cap.max_inline_data = domain->dev->inline_max;	/* later endpoints may need more than ep */
	attr.cap.max_send_sge = fab_min((uint32_t) domain->dev->attr.max_sge, (uint32_t) VRB_IOV_LIMIT);
	errno = 0;
	ini->qp = ibv_create_qp_ex(domain->dev->verbs, &attr);
	if (!ini->qp) {
		vrb_qp_refused(ep, "ibv_create_qp_ex, XRC initiator");
		goto free_ini;
	}
	if (qp_step(ep, id, ini->qp, IBV_QPS_INIT, 0, 0))
		goto destroy_qp;
	ini->engine = ep->base.engine;
	ini->node = vrb_conn_of(ep)->peer;
	ini->state = state;
	ini->size = base.cap.max_send_wr;
	ini->maker = ep;
	ini->completes_to = ep->hw_cq;
	fab_list_init(&ini->users);
	fab_list_init(&ini->waiters);
	pthread_mutex_lock(&lock);
	fab_list_add_tail(&domain->xrc->inis, &ini->link);
	pthread_mutex_unlock(&lock);
	vrb_ini_use(ep, ini);
	return ini;

destroy_qp:
	ibv_destroy_qp(ini->qp);
free_ini:
	free(ini);
	return NULL;
}

void vrb_ini_use(struct vrb_ep *ep, struct vrb_ini *ini)
{
	ini->user_cnt++;
	fab_list_add_tail(&ini->users, &vrb_xrc_ep_of(ep)->user);
	vrb_xrc_ep_of(ep)->ini = ini;
	ep->qp = ini->qp;
	ep->tx_hw = ini->completes_to;
	vrb_watch_start(&ep->qp_watch, vrb_hw_cq_alarm(ep->hw_cq), ep->qp);
}

int vrb_ini_connect(struct vrb_ep *ep, struct rdma_cm_id *id, uint32_t tgt)
{
	struct vrb_ini *ini = vrb_xrc_ep_of(ep)->ini;
	int ret = qp_step(ep, id, ini->qp, IBV_QPS_RTR, tgt, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

	if (!ret)
		ret = qp_step(ep, id, ini->qp, IBV_QPS_RTS, tgt, 0);
	ini->tgt = tgt;
	return ret;
}

void vrb_ini_settle(struct vrb_ini *ini, enum vrb_ini_state state)
{
	ini->state = state;
	while (!fab_list_empty(&ini->waiters)) {
		struct vrb_xrc_ep *x = fab_container(fab_list_pop_front(&ini->waiters), struct vrb_xrc_ep, wait);

		fab_list_init(&x->wait);
		fab_timer_start(ini->engine, &x->timer, fab_now_ns());
	}
}

void vrb_ini_leave(struct vrb_ep *ep)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	struct vrb_ini *ini = x->ini;

	if (!ini)
		return;
	vrb_watch_stop(&ep->qp_watch);
	fab_list_remove(&x->user);
	x->ini = NULL;
	ep->qp = NULL;
	ep->tx_hw = NULL;
	if (ini->state < VRB_INI_READY && ini->maker == ep)
		vrb_ini_settle(ini, VRB_INI_OLD);
	if (--ini->user_cnt) {
		if (ini->maker != ep)
			return;
		/* the initiator completes to the same hardware queue: keep its entries reserved */
		ini->maker = NULL;
		ini->hw_cq = ep->hw_cq;
		ini->reserved = ep->reserved;
		ep->hw_cq = NULL;
		return;
	}
	pthread_mutex_lock(&lock);
	fab_list_remove(&ini->link);
	pthread_mutex_unlock(&lock);
	ibv_destroy_qp(ini->qp);
	if (ini->hw_cq) {		/* of another endpoint, so for ep's first initiator at most */
		x->put_cq = ini->hw_cq;
		x->put_cnt = ini->reserved;
	}
	free(ini);
}

/* ---- targets ---- */

static struct vrb_tgt *tgt_add(struct vrb_xrc *xrc, struct ibv_qp *qp)
{
	struct vrb_tgt *tgt = qp ? calloc(1, sizeof(*tgt)) : NULL;

	if (!tgt) {
		if (qp)
			ibv_destroy_qp(qp);
		return NULL;
	}
	tgt->qp = qp;
	tgt->ref_cnt = 1;
	fab_list_add_tail(&xrc->tgts, &tgt->link);
	return tgt;
}

struct vrb_tgt *vrb_tgt_make(struct vrb_ep *ep)
{
	struct vrb_xrc *xrc = vrb_xrc_of(ep);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrc->xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(vrb_domain_of(ep)->dev->verbs, &attr);
	struct vrb_tgt *tgt;

	if (!qp) {
		xrc_share_failed(ep, "ibv_create_qp_ex of a target", errno);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	tgt = tgt_add(xrc, qp);
	pthread_mutex_unlock(&lock);
	return tgt;
}

static struct vrb_tgt *tgt_known(struct vrb_xrc *xrc, uint32_t qpn)
{
	struct fab_list *link;

	fab_list_for_each(&xrc->tgts, link) {
		struct vrb_tgt *tgt = fab_container(link, struct vrb_tgt, link);

		if (tgt->qp->qp_num != qpn)
			continue;
		tgt->ref_cnt++;
		return tgt;
	}
	return NULL;
}

struct vrb_tgt *vrb_tgt_open(struct vrb_ep *ep, uint32_t qpn)
{
	struct vrb_xrc *xrc = vrb_xrc_of(ep);
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn, .xrcd = xrc->xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};
	struct vrb_tgt *tgt;

	pthread_mutex_lock(&lock);
	tgt = tgt_known(xrc, qpn);
	if (!tgt)
		tgt = tgt_add(xrc, ibv_open_qp(vrb_domain_of(ep)->dev->verbs, &attr));
	pthread_mutex_unlock(&lock);
	if (!tgt)
		VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "%s: XRC target %#x, which the peer's initiator has, is not in "
			"this XRC domain: %s\n", vrb_domain_of(ep)->dev->name, qpn, strerror(errno));
	return tgt;
}

int vrb_tgt_connect(struct vrb_ep *ep, struct rdma_cm_id *id, struct vrb_tgt *tgt, uint32_t ini)
{
	int ret = qp_step(ep, id, tgt->qp, IBV_QPS_INIT, 0, 0);

	return ret ? ret : qp_step(ep, id, tgt->qp, IBV_QPS_RTR, ini, 0);
}

void vrb_tgt_put(struct vrb_ep *ep, struct vrb_tgt *tgt)
{
	(void) ep;
	pthread_mutex_lock(&lock);
	if (!--tgt->ref_cnt) {
		fab_list_remove(&tgt->link);
		ibv_destroy_qp(tgt->qp);
		free(tgt);
	}
	pthread_mutex_unlock(&lock);
}
