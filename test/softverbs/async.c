/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events: a list for each context, and an eventfd that counts them. */
#include "sv.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct event {
	struct fab_list link;
	struct ibv_async_event event;
};

static struct fab_list contexts = { &contexts, &contexts };

void sv_context_add(struct sv_context *ctx)
{
	fab_list_init(&ctx->events);
	sv_lock();
	fab_list_add_tail(&contexts, &ctx->link);
	sv_unlock();
}

void sv_context_del(struct sv_context *ctx)
{
	struct fab_list *link, *tmp;

	sv_lock();
	fab_list_remove(&ctx->link);
	fab_list_for_each_safe(&ctx->events, link, tmp)
		free(fab_container(link, struct event, link));
	sv_unlock();
}

void sv_async(struct ibv_context *context, enum ibv_event_type type, void *element)
{
	struct event *event = calloc(1, sizeof(*event));

	if (!event)
		abort();
	event->event.event_type = type;
	if (element)
		event->event.element.cq = element;	/* or a queue pair: a union */
	else
		event->event.element.port_num = 1;
	fab_list_add_tail(&sv_context(context)->events, &event->link);
	(void) !write(context->async_fd, &(uint64_t) { 1 }, sizeof(uint64_t));
}

static bool is_of_qp(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_LAST_WQE_REACHED || type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_COMM_EST ||
	       type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_QP_REQ_ERR;
}

static bool has_element(enum ibv_event_type type)
{
	return type == IBV_EVENT_CQ_ERR || type == IBV_EVENT_SRQ_ERR || is_of_qp(type);
}

void sv_async_forget(struct ibv_context *context, void *element)
{
	struct sv_context *ctx = sv_context(context);
	struct fab_list *link, *tmp;
	uint64_t unit;

	fab_list_for_each_safe(&ctx->events, link, tmp) {
		struct event *event = fab_container(link, struct event, link);

		if (!has_element(event->event.event_type) || event->event.element.cq != element)
			continue;
		(void) !read(context->async_fd, &unit, sizeof(unit));
		fab_list_remove(link);
		free(event);
	}
}

void sv_test_event(enum ibv_event_type type)
{
	struct fab_list *link;

	sv_lock();
	fab_list_for_each(&contexts, link) {
		struct sv_context *ctx = fab_container(link, struct sv_context, link);

		ctx->dead |= type == IBV_EVENT_DEVICE_FATAL;
		if (type == IBV_EVENT_CQ_ERR)
			sv_cq_break_all(ctx);
		else if (type == IBV_EVENT_QP_FATAL)
			sv_qp_break_all(ctx);
		else if (type == IBV_EVENT_SRQ_ERR)
			sv_srq_break_all(ctx);
		else
			sv_async(&ctx->v.context, type, NULL);
	}
	sv_unlock();
}

void sv_test_event_of(enum ibv_event_type type, void *element)
{
	struct ibv_context *context = is_of_qp(type) ? ((struct ibv_qp *) element)->context :
				      type == IBV_EVENT_CQ_ERR ? ((struct ibv_cq *) element)->context :
								 ((struct ibv_srq *) element)->context;

	sv_lock();
	if (type == IBV_EVENT_QP_FATAL)
		sv_qp_error(sv_qp(element));
	sv_async(context, type, element);
	sv_unlock();
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *out)
{
	struct sv_context *ctx = sv_context(context);
	struct event *event;
	uint64_t unit;

	if (read(context->async_fd, &unit, sizeof(unit)) < 0)
		return -1;
	sv_lock();
	if (fab_list_empty(&ctx->events)) {	/* forgotten meanwhile */
		sv_unlock();
		errno = EAGAIN;
		return -1;
	}
	event = fab_container(ctx->events.next, struct event, link);
	fab_list_remove(&event->link);
	if (is_of_qp(event->event.event_type))
		sv_qp(event->event.element.qp)->unacked++;
	sv_unlock();
	*out = event->event;
	free(event);
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	if (!is_of_qp(event->event_type))
		return;
	sv_lock();
	sv_qp(event->element.qp)->unacked--;
	sv_wake_all();
	sv_unlock();
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error", [IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
		[IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
		[IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
		[IBV_EVENT_PORT_ACTIVE] = "port active", [IBV_EVENT_PORT_ERR] = "port error",
		[IBV_EVENT_LID_CHANGE] = "LID change", [IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached", [IBV_EVENT_GID_CHANGE] = "GID table change",
	};

	return (size_t) event < sizeof(names) / sizeof(names[0]) && names[event] ? names[event] : "event";
}
