/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events of a device: the device, a completion queue or a queue pair has failed, a port went down. The
 * device's descriptor for them is in the epoll set of each engine that polls the device, so they cost nothing per
 * message. The first engine that wakes reads the events and wakes the engines of the device by their eventfds. Each
 * then acts under its own lock.
 *
 * `lock` guards the list of alarms and the failures that they hold. It is taken inside of engines' locks.
 */
#include "verbs/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include "base/bits.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fab_list alarms = { &alarms, &alarms };
static struct fab_list lasts = { &lasts, &lasts };	/* struct vrb_last; `lock` */

/* Tell each engine of the device that this queue or queue pair has failed; NULL: the device has failed. Each engine
 * checks whether it owns the element, because other code in the process may use the device through librdmacm, too. */
static void ring(struct ibv_context *verbs, const void *element)
{
	struct fab_list *link;

	pthread_mutex_lock(&lock);
	fab_list_for_each(&alarms, link) {
		struct vrb_alarm *alarm = fab_container(link, struct vrb_alarm, link);

		if (alarm->dev->verbs != verbs)
			continue;
		if (element && alarm->bad_cnt < VRB_BAD_MAX)
			alarm->bad[alarm->bad_cnt++] = element;
		else
			alarm->dead = true;
		fab_bell_ring(&alarm->bell);
	}
	pthread_mutex_unlock(&lock);
}

static void on_last(const struct ibv_qp *qp)
{
	struct fab_list *link;

	pthread_mutex_lock(&lock);
	fab_list_for_each(&lasts, link) {
		struct vrb_last *last = fab_container(link, struct vrb_last, link);

		if (last->qp == qp)
			atomic_store(&last->reached, true);
	}
	pthread_mutex_unlock(&lock);
}

void vrb_last_watch(struct vrb_last *last, const struct ibv_qp *qp)
{
	last->qp = qp;
	atomic_store(&last->reached, false);
	pthread_mutex_lock(&lock);
	fab_list_add_tail(&lasts, &last->link);
	pthread_mutex_unlock(&lock);
}

void vrb_last_unwatch(struct vrb_last *last)
{
	pthread_mutex_lock(&lock);
	fab_list_remove(&last->link);
	pthread_mutex_unlock(&lock);
}

static void on_event(struct ibv_context *verbs, const struct ibv_async_event *event)
{
	const char *device = ibv_get_device_name(verbs->device);

	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		VRB_WARN(FI_LOG_DOMAIN, "device %s has failed: all its endpoints end\n", device);
		ring(verbs, NULL);
		break;
	case IBV_EVENT_CQ_ERR:
		VRB_WARN(FI_LOG_DOMAIN, "device %s: a completion queue is broken: the endpoints that use it end\n",
			 device);
		ring(verbs, event->element.cq);
		break;
	case IBV_EVENT_QP_FATAL:
		VRB_WARN(FI_LOG_DOMAIN, "device %s: a queue pair has failed: the endpoints that use it end\n", device);
		ring(verbs, event->element.qp);
		break;
	case IBV_EVENT_SRQ_ERR:
		VRB_WARN(FI_LOG_DOMAIN, "device %s: a shared receive queue has failed: the endpoints that use it end\n",
			 device);
		ring(verbs, event->element.srq);
		break;
	case IBV_EVENT_PORT_ERR:
		VRB_WARN(FI_LOG_DOMAIN,
			 "device %s, port %d is down: outstanding operations fail when their retries are over\n",
			 device, event->element.port_num);
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		on_last(event->element.qp);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		VRB_LOG(FI_LOG_INFO, FI_LOG_DOMAIN, "device %s, port %d is up\n", device, event->element.port_num);
		break;
	default:
		VRB_LOG(FI_LOG_INFO, FI_LOG_DOMAIN, "device %s: %s\n", device, ibv_event_type_str(event->event_type));
	}
}

static void events_ready(struct fab_source *src, uint32_t events)
{
	struct ibv_context *verbs = fab_container(src, struct vrb_alarm, events)->dev->verbs;
	struct ibv_async_event event;

	(void) events;
	while (!ibv_get_async_event(verbs, &event)) {
		on_event(verbs, &event);
		ibv_ack_async_event(&event);
	}
}

static void alarm_rung(struct fab_bell *bell)
{
	struct vrb_alarm *alarm = fab_container(bell, struct vrb_alarm, bell);
	const void *bad[VRB_BAD_MAX];
	int bad_cnt;
	bool dead;

	pthread_mutex_lock(&lock);
	dead = alarm->dead;
	bad_cnt = alarm->bad_cnt;
	memcpy(bad, alarm->bad, sizeof(bad));
	alarm->bad_cnt = 0;
	pthread_mutex_unlock(&lock);
	if (dead)
		alarm->lost(alarm, NULL);
	for (int i = 0; i < bad_cnt && !dead; i++)
		alarm->lost(alarm, bad[i]);
}

int vrb_alarm_start(struct vrb_alarm *alarm, const struct vrb_device *dev, struct fab_engine *engine)
{
	int fd = dev->verbs->async_fd, flags = fcntl(fd, F_GETFL), ret;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	alarm->dev = dev;
	alarm->events = (struct fab_source) { .fd = fd, .ready = events_ready };
	ret = fab_source_add(engine, &alarm->events, EPOLLIN);
	if (!ret)
		ret = fab_bell_open(&alarm->bell, engine, alarm_rung);
	if (ret) {
		fab_source_del(&alarm->events);
		return ret;
	}
	pthread_mutex_lock(&lock);
	fab_list_add_tail(&alarms, &alarm->link);
	pthread_mutex_unlock(&lock);
	return 0;
}

void vrb_alarm_stop(struct vrb_alarm *alarm)
{
	pthread_mutex_lock(&lock);
	fab_list_remove(&alarm->link);
	pthread_mutex_unlock(&lock);
	fab_source_del(&alarm->events);
	fab_bell_close(&alarm->bell);
}
