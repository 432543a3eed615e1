/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events of a device: the device, a completion queue or a queue pair has failed, a port went down. The
 * device's descriptor for them is in the epoll set of each engine that polls the device, so they cost nothing per
 * message. The first engine that wakes reads the events. An event of an object (a queue pair, a completion queue, a
 * shared receive queue) is noted in the watches of that object; others may use the device through librdmacm, too, and
 * their objects have no watch. The engines of these watches, or all engines of a device that has failed, are woken by
 * their eventfds. Each then acts under its own lock.
 *
 * `lock` guards the lists of alarms and of watches. It is taken inside of engines' locks.
 */
#include "verbs/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include "base/bits.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fab_list alarms = { &alarms, &alarms };
static struct fab_list watches = { &watches, &watches };

void vrb_watch_start(struct vrb_watch *watch, struct vrb_alarm *alarm, const void *object)
{
	watch->object = object;
	watch->alarm = alarm;
	atomic_store(&watch->told, 0);
	pthread_mutex_lock(&lock);
	fab_list_add_tail(&watches, &watch->link);
	pthread_mutex_unlock(&lock);
}

void vrb_watch_stop(struct vrb_watch *watch)
{
	if (!watch->object)
		return;
	pthread_mutex_lock(&lock);
	fab_list_remove(&watch->link);
	pthread_mutex_unlock(&lock);
	watch->object = NULL;
}

static void device_failed(const struct ibv_context *verbs)
{
	struct fab_list *link;

	pthread_mutex_lock(&lock);
	fab_list_for_each(&alarms, link) {
		struct vrb_alarm *alarm = fab_container(link, struct vrb_alarm, link);

		if (alarm->dev->verbs != verbs)
			continue;
		atomic_store(&alarm->dead, true);
		fab_bell_ring(&alarm->bell);
	}
	pthread_mutex_unlock(&lock);
}

/* True if the object is ours. */
static bool note(const void *object, unsigned what)
{
	struct fab_list *link;
	bool found = false;

	pthread_mutex_lock(&lock);
	fab_list_for_each(&watches, link) {
		struct vrb_watch *watch = fab_container(link, struct vrb_watch, link);

		if (watch->object != object)
			continue;
		found = true;
		atomic_fetch_or(&watch->told, what);
		if (what & VRB_TOLD_AT_ONCE)
			fab_bell_ring(&watch->alarm->bell);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void failed(const char *device, const void *object, const char *what)
{
	if (note(object, VRB_TOLD_FAILED))
		VRB_WARN(FI_LOG_DOMAIN, "device %s: %s; the endpoints that use it fail\n", device, what);
}

static void on_event(struct ibv_context *verbs, const struct ibv_async_event *event)
{
	const char *device = ibv_get_device_name(verbs->device);

	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		VRB_WARN(FI_LOG_DOMAIN, "device %s has failed, and all its endpoints with it\n", device);
		device_failed(verbs);
		break;
	case IBV_EVENT_CQ_ERR:
		failed(device, event->element.cq, "a completion queue is broken");
		break;
	case IBV_EVENT_QP_FATAL:
		failed(device, event->element.qp, "a queue pair has failed");
		break;
	case IBV_EVENT_QP_REQ_ERR:
		failed(device, event->element.qp, "a queue pair got a request that is not valid");
		break;
	case IBV_EVENT_QP_ACCESS_ERR:
		failed(device, event->element.qp, "a queue pair got a request that its memory regions do not allow");
		break;
	case IBV_EVENT_SRQ_ERR:
		failed(device, event->element.srq, "a shared receive queue has failed");
		break;
	case IBV_EVENT_PORT_ERR:
		VRB_WARN(FI_LOG_DOMAIN,
			 "device %s, port %d is down: outstanding operations fail when their retries are over\n",
			 device, event->element.port_num);
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		note(event->element.qp, VRB_TOLD_LAST);
		break;
	case IBV_EVENT_COMM_EST:
		note(event->element.qp, VRB_TOLD_ESTABLISHED);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		VRB_LOG(FI_LOG_INFO, FI_LOG_DOMAIN, "device %s, port %d is up\n", device, event->element.port_num);
		break;
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_GID_CHANGE:
		VRB_WARN(FI_LOG_DOMAIN,
			 "device %s, port %d: %s: peers cannot reach datagram endpoints by the names that they have; "
			 "fi_getname returns the new ones\n",
			 device, event->element.port_num, ibv_event_type_str(event->event_type));
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

	alarm->rung(alarm);
}

/* Read the events of the context from now on. Whoever else reads them loses those, and no read blocks any more, since
 * the context is librdmacm's and the process has one. 0 or -errno. */
static int read_events(struct vrb_alarm *alarm, struct fab_engine *engine)
{
	int fd = alarm->dev->verbs->async_fd, flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	alarm->events = (struct fab_source) { .fd = fd, .ready = events_ready };
	return fab_source_add(engine, &alarm->events, EPOLLIN);
}

int vrb_alarm_start(struct vrb_alarm *alarm, const struct vrb_device *dev, struct fab_engine *engine)
{
	int ret;

	alarm->dev = dev;
	ret = vrb_params.async_events ? read_events(alarm, engine) : 0;
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
