/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait sets, fi_poll(3).
 */
#include "common/wait/wait_set.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/sock.h"
#include "common/domain/domain.h"
#include "common/ops/ops.h"
#include "common/wait/wait.h"

static struct fab_wait_set *wait_set_of(struct fid *fid)
{
	return fab_container(fid, struct fab_wait_set, wait_fid.fid);
}

/* ---- members ---- */

int fab_wait_set_join(struct fab_wait_set *set, struct fab_wait *wait, int fd)
{
	int ret;

	pthread_mutex_lock(&set->lock);
	ret = fab_wait_nest(set->epfd, fd);
	if (!ret)
		fab_list_add_tail(&set->waits, &wait->set_link);
	pthread_mutex_unlock(&set->lock);
	return ret;
}

void fab_wait_set_leave(struct fab_wait_set *set, struct fab_wait *wait, int fd)
{
	pthread_mutex_lock(&set->lock);
	fab_list_remove(&wait->set_link);
	if (!wait->engine || !fab_engine_is_inherited(wait->engine))
		fab_wait_unnest(set->epfd, fd);
	pthread_mutex_unlock(&set->lock);
}

/* Ask the members, one after the other. -FI_EAGAIN if one has something to read, else 0. */
static int set_ask(struct fab_wait_set *set, int (*ask)(struct fab_wait *wait))
{
	struct fab_list *link;
	int ret = 0;

	pthread_mutex_lock(&set->lock);
	fab_list_for_each(&set->waits, link) {
		ret = ask(fab_container(link, struct fab_wait, set_link));
		if (ret)
			break;
	}
	pthread_mutex_unlock(&set->lock);
	return ret;
}

/* For the set's teller. */
static int set_look(void *arg)
{
	return set_ask(arg, fab_wait_look);
}

static int set_try(struct fab_wait_set *set)
{
	return set_ask(set, fab_wait_try);
}

/* ---- calls ---- */

static int set_wait(struct fid_wait *fid, int timeout_ms)
{
	struct fab_wait_set *set = wait_set_of(&fid->fid);
	struct pollfd pollfd = { .fd = set->epfd, .events = POLLIN };
	struct fab_sleep sleep = { .timeout_ms = timeout_ms };
	int left_ms;

	for (;;) {
		if (set_try(set))
			return 0;
		left_ms = fab_sleep_left_ms(&sleep);
		if (!left_ms)
			return -FI_ETIMEDOUT;
		if (set->obj == FI_WAIT_YIELD)
			sched_yield();
		else if (fab_sock->poll(&pollfd, 1, left_ms) < 0)
			return -errno;
	}
}

static int wait_set_give_mutex_cond(struct fab_wait_set *set, struct fi_mutex_cond *out)
{
	struct fab_teller *teller;
	int ret = 0;

	pthread_mutex_lock(&set->lock);
	teller = set->teller;
	if (!teller)
		ret = fab_teller_start(&teller, set->epfd, set_look, set);
	if (!ret) {
		set->teller = teller;
		fab_teller_give(teller, out);
	}
	pthread_mutex_unlock(&set->lock);
	return ret;
}

int fab_wait_set_give(struct fab_wait_set *set, void *arg)
{
	switch (set->obj) {
	case FI_WAIT_YIELD:
		return -FI_ENODATA;
	case FI_WAIT_MUTEX_COND:
		return wait_set_give_mutex_cond(set, arg);
	default:
		return fab_wait_give_fd(set->obj, set->epfd, arg);
	}
}

static int wait_set_control(struct fid *fid, int command, void *arg)
{
	struct fab_wait_set *set = wait_set_of(fid);

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	return command == FI_GETWAIT ? fab_wait_set_give(set, arg) : fab_wait_give_obj(set->obj, arg);
}

static int wait_set_close(struct fid *fid)
{
	struct fab_wait_set *set = wait_set_of(fid);
	bool busy;

	pthread_mutex_lock(&set->lock);
	busy = !fab_list_empty(&set->waits);
	pthread_mutex_unlock(&set->lock);
	if (busy) {
		FI_WARN(set->fabric->prov, FI_LOG_EQ, "fi_close of a wait set: queues that use it are still open; "
			"close them first\n");
		return -FI_EBUSY;
	}
	fab_teller_stop(set->teller);
	fab_sock_close(&set->epfd);
	pthread_mutex_destroy(&set->lock);
	atomic_fetch_sub(&set->fabric->ref, 1);
	free(set);
	return 0;
}

static struct fi_ops set_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = wait_set_close,
	.control = wait_set_control,
};

static struct fi_ops_wait set_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = set_wait,
};

static bool can_be(enum fi_wait_obj obj)
{
	return (unsigned) obj <= FI_WAIT_POLLFD && obj != FI_WAIT_NONE && obj != FI_WAIT_SET;
}

int fab_wait_open(struct fid_fabric *fabric_fid, struct fi_wait_attr *attr, struct fid_wait **waitset)
{
	struct fab_fabric *fabric = fab_container(fabric_fid, struct fab_fabric, fabric_fid);
	struct fi_wait_attr defaults = { .wait_obj = FI_WAIT_UNSPEC };
	struct fab_wait_set *set;
	int ret;

	if (!attr)
		attr = &defaults;
	if (!can_be(attr->wait_obj) || attr->flags) {
		FI_WARN(fabric->prov, FI_LOG_EQ, "fi_wait_open: wait_obj %d, flags 0x%llx; a set can be UNSPEC, FD, "
			"POLLFD, MUTEX_COND or YIELD, without flags\n", attr->wait_obj,
			(unsigned long long) attr->flags);
		return -FI_EINVAL;
	}
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->epfd = fab_sock->epoll_create1(EPOLL_CLOEXEC);
	if (set->epfd < 0) {
		ret = -errno;
		free(set);
		return ret;
	}
	FAB_OPS_FILL(&set_fid_ops);
	set->fabric = fabric;
	set->obj = attr->wait_obj;
	set->wait_fid.fid = (struct fid) { .fclass = FI_CLASS_WAIT, .ops = &set_fid_ops };
	set->wait_fid.ops = &set_ops;
	pthread_mutex_init(&set->lock, NULL);
	fab_list_init(&set->waits);
	atomic_fetch_add(&fabric->ref, 1);
	*waitset = &set->wait_fid;
	return 0;
}

int fab_wait_set_try(struct fid *fid)
{
	return set_try(wait_set_of(fid));
}
