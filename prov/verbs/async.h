/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events of a device: alarms of engines, and watches of objects.
 */
#ifndef VRB_ASYNC_H
#define VRB_ASYNC_H

#include <stdatomic.h>
#include <infiniband/verbs.h>
#include "common/engine/engine.h"

struct vrb_device;			/* device.h */

/* How an engine learns of asynchronous events of a device. */
struct vrb_alarm {
	struct fab_list link;
	const struct vrb_device *dev;
	struct fab_source events;	/* the device's descriptor; the first engine that wakes reads the events */
	struct fab_bell bell;		/* wakes this engine */
	_Atomic bool dead;		/* the whole device has failed */
	/* Called when the device is dead, or a watch of this alarm was told something that cannot wait. Engine's lock
	 * held. Set before vrb_alarm_start(). */
	void (*rung)(struct vrb_alarm *alarm);
};

/* What a watch can be told. */
enum {
	VRB_TOLD_FAILED = 1,
	VRB_TOLD_ESTABLISHED = 2,	/* a queue pair got a message before its connection was established */
	VRB_TOLD_LAST = 4,		/* a queue pair in error has given back the last shared receive that it took */
	VRB_TOLD_AT_ONCE = VRB_TOLD_FAILED | VRB_TOLD_ESTABLISHED,	/* the alarm is rung */
};

/* Waits for events of an object: a queue pair, a completion queue or a shared receive queue. Zeroed before it is
 * started for the first time. */
struct vrb_watch {
	struct fab_list link;
	const void *object;		/* NULL: not started */
	struct vrb_alarm *alarm;	/* borrowed */
	_Atomic unsigned told;		/* the reader takes out what it has acted on */
};
/* Start to watch an object of which no event has come yet. The alarm outlives the watch. Any thread. */
void vrb_watch_start(struct vrb_watch *watch, struct vrb_alarm *alarm, const void *object);
/* Stop watching, before the object is destroyed. Idempotent. Any thread. */
void vrb_watch_stop(struct vrb_watch *watch);
/* Take out and return those of `what` that the watch has been told. Any thread. */
static inline unsigned vrb_watch_take(struct vrb_watch *watch, unsigned what)
{
	return atomic_load_explicit(&watch->told, memory_order_relaxed) & what ?
	       atomic_fetch_and(&watch->told, ~what) & what : 0;
}

/* Start to handle events of dev on engine. The caller has zeroed *alarm and set rung. 0: the caller calls
 * vrb_alarm_stop() later; or -errno. Engine's lock held. */
int vrb_alarm_start(struct vrb_alarm *alarm, const struct vrb_device *dev, struct fab_engine *engine);
/* Stop handling events. Engine's lock held. */
void vrb_alarm_stop(struct vrb_alarm *alarm);

#endif
