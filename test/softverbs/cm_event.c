/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event channels: a counting eventfd, and a list that says what. */
#include "cm.h"
#include <errno.h>
#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define IP_HEADER	36		/* of a request's private data, where the addresses are of IP */

uint8_t sv_cm_priv_len(const struct sv_cm_msg *msg)
{
	uint8_t header = msg->src.ss_family == AF_IB ? 0 : IP_HEADER;

	switch (msg->type) {
	case SV_CM_REQ:
		return 92 - header;
	case SV_CM_REP:
		return 196;
	case SV_CM_REJ:
		return 148;
	case SV_CM_SIDR_REQ:
		return 216 - header;
	case SV_CM_SIDR_REP:
		return 136;
	default:
		return 0;
	}
}

uint8_t sv_cm_gid_index(const struct sv_id *id)
{
	return id->id.route.addr.src_addr.sa_family == AF_IB ? 0 : 1;
}

static void fill_param(struct sv_cm_event *ev, struct sv_id *id, const struct sv_cm_msg *msg)
{
	uint8_t len = sv_cm_priv_len(msg);

	memcpy(ev->priv, msg->priv, len);
	if (msg->type == SV_CM_SIDR_REQ || msg->type == SV_CM_SIDR_REP) {
		ev->event.param.ud = (struct rdma_ud_param) {
			.private_data = len ? ev->priv : NULL, .private_data_len = len,
			.qp_num = msg->qpn, .qkey = msg->qkey,
			.ah_attr = { .is_global = 1, .port_num = id->id.port_num,
				     .grh = { .sgid_index = sv_cm_gid_index(id), .hop_limit = 1 } },
		};
		memcpy(ev->event.param.ud.ah_attr.grh.dgid.raw, msg->gid, 16);
		return;
	}
	ev->event.param.conn = (struct rdma_conn_param) {
		.private_data = len ? ev->priv : NULL, .private_data_len = len, .qp_num = msg->qpn,
		.responder_resources = msg->initiator_depth, .initiator_depth = msg->responder_resources,
		.rnr_retry_count = msg->rnr_retry_count, .srq = id->id.srq != NULL,
	};
}

void sv_cm_tell(struct sv_id *id, enum rdma_cm_event_type type, int status, const struct sv_cm_msg *msg)
{
	struct sv_id *to = type == RDMA_CM_EVENT_CONNECT_REQUEST ? id->listener : id;
	struct sv_cm_channel *channel = fab_container(to->id.channel, struct sv_cm_channel, channel);
	struct sv_cm_event *ev = calloc(1, sizeof(*ev));

	if (!ev)
		abort();
	ev->event.id = &id->id;
	ev->event.listen_id = to == id ? NULL : &to->id;
	ev->event.event = type;
	ev->event.status = status;
	if (msg)
		fill_param(ev, id, msg);
	to->waiting += to != id;
	fab_list_add_tail(&channel->events, &ev->link);
	(void) !write(channel->channel.fd, &(uint64_t) { 1 }, sizeof(uint64_t));
	sv_wake_all();
}

/* Whose acknowledgements count. */
static struct sv_id *counted(const struct rdma_cm_event *event)
{
	return sv_id(event->listen_id ? event->listen_id : event->id);
}

void sv_cm_forget(struct sv_id *id)
{
	struct sv_cm_channel *channel = fab_container(id->id.channel, struct sv_cm_channel, channel);
	struct fab_list *link, *tmp;

	fab_list_for_each_safe(&channel->events, link, tmp) {
		struct sv_cm_event *ev = fab_container(link, struct sv_cm_event, link);

		if (ev->event.id != &id->id && ev->event.listen_id != &id->id)
			continue;
		fab_list_remove(link);
		if (ev->event.listen_id == &id->id) {	/* a request that nobody will ever see */
			sv_cm_stop(sv_id(ev->event.id));
			free(sv_id(ev->event.id));
		}
		free(ev);
	}
	while (id->unacked)
		sv_wait();
}

static _Atomic unsigned channel_cnt, event_cnts[RDMA_CM_EVENT_TIMEWAIT_EXIT + 1];

unsigned sv_test_event_cnt(enum rdma_cm_event_type type)
{
	return event_cnts[type];
}

unsigned sv_test_channel_cnt(void)
{
	return channel_cnt;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct sv_cm_channel *channel = sv_fault("rdma_create_event_channel") ? NULL : calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	fab_list_init(&channel->events);
	channel->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (channel->channel.fd >= 0) {
		channel_cnt++;
		return &channel->channel;
	}
	free(channel);
	return NULL;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	channel_cnt--;
	close(channel->fd);
	free(fab_container(channel, struct sv_cm_channel, channel));
}

int rdma_get_cm_event(struct rdma_event_channel *cm_channel, struct rdma_cm_event **event)
{
	struct sv_cm_channel *channel = fab_container(cm_channel, struct sv_cm_channel, channel);
	struct sv_cm_event *ev = NULL;
	uint64_t unit;

	/* The unit of an event that was taken back has no event: look for the next. */
	do {
		if (read(cm_channel->fd, &unit, sizeof(unit)) != sizeof(unit))
			return -1;
		sv_lock();
		if (!fab_list_empty(&channel->events)) {
			ev = fab_container(fab_list_pop_front(&channel->events), struct sv_cm_event, link);
			counted(&ev->event)->unacked++;
			if (ev->event.listen_id)
				sv_id(ev->event.listen_id)->waiting--;
			event_cnts[ev->event.event]++;
		}
		sv_unlock();
	} while (!ev);
	*event = &ev->event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event) {
		errno = EINVAL;
		return -1;
	}
	sv_lock();
	counted(event)->unacked--;
	sv_wake_all();
	sv_unlock();
	free(fab_container(event, struct sv_cm_event, event));
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "address resolved", [RDMA_CM_EVENT_ADDR_ERROR] = "address error",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "route resolved", [RDMA_CM_EVENT_ROUTE_ERROR] = "route error",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "connect request",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "connect response",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "connect error", [RDMA_CM_EVENT_UNREACHABLE] = "unreachable",
		[RDMA_CM_EVENT_REJECTED] = "rejected", [RDMA_CM_EVENT_ESTABLISHED] = "established",
		[RDMA_CM_EVENT_DISCONNECTED] = "disconnected",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "address change", [RDMA_CM_EVENT_TIMEWAIT_EXIT] = "timewait exit",
	};

	return (size_t) event < sizeof(names) / sizeof(names[0]) && names[event] ? names[event] : "unknown";
}
