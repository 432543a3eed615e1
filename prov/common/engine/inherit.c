/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engines in a child of fork(2), see engine.h.
 */
#include "common/engine/engine.h"

#include <sys/epoll.h>
#include "base/forks.h"
#include "base/sock.h"

bool fab_engine_is_inherited(const struct fab_engine *engine)
{
	return engine->inherited || engine->forks != fab_fork_cnt;
}

static void inherit_forget(struct fab_list *list)
{
	while (fab_list_pop_front(list))
		;
}

/* The epoll set is shared with the parent: a change in it would be one for the parent. So is the timer. */
static void inherit_replace_fds(struct fab_engine *engine)
{
	fab_sock_close(&engine->epfd);
	fab_sock_close(&engine->alarm.source.fd);
	engine->epfd = fab_sock->epoll_create1(EPOLL_CLOEXEC);
	engine->epoll.events = NULL;
	engine->epoll.event_cnt = engine->epoll.cnt = 0;
}

bool fab_engine_disown(struct fab_engine *engine)
{
	struct fab_lock *lead = engine->lock.lead;

	if (engine->forks == fab_fork_cnt)
		return engine->inherited;
	engine->forks = fab_fork_cnt;
	engine->inherited = true;
	if (engine->lead)
		fab_engine_disown(engine->lead);
	/* the thread is not in the child, and may have held the lock */
	if (engine->thread.run) {
		fab_lock_init(&engine->lock, FAB_LOCK_MUTEX);
		engine->lock.lead = lead;
		engine->thread.run = engine->in_pass = false;
	}
	fab_engine_no_glance(engine);
	engine->glance.fn = NULL;
	engine->glance.src = NULL;
	inherit_replace_fds(engine);
	inherit_forget(&engine->sources.hot);
	engine->sources.hot_cnt = 0;
	inherit_forget(&engine->outsiders.line);
	inherit_forget(&engine->polls);
	inherit_forget(&engine->flush);
	inherit_forget(&engine->timers);
	return true;
}
