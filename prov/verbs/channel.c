/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "verbs/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include "verbs/verbs.h"

int vrb_channel_make(struct rdma_event_channel **out)
{
	struct rdma_event_channel *cm = rdma_create_event_channel();
	int flags = cm ? fcntl(cm->fd, F_GETFL) : -1, ret;

	if (flags >= 0 && !fcntl(cm->fd, F_SETFL, flags | O_NONBLOCK)) {
		*out = cm;
		return 0;
	}
	ret = -errno;
	VRB_WARN(FI_LOG_EP_CTRL, "rdma_create_event_channel: %s%s\n", strerror(errno),
		 errno == EMFILE ? ": the process has no descriptor left; raise the limit (ulimit -n)" :
		 errno == ENFILE ? ": the machine has no descriptor left (fs.file-max)" :
				   ": is the kernel module rdma_ucm loaded?");
	if (cm)
		rdma_destroy_event_channel(cm);
	return ret;
}

static void channel_ready(struct fab_source *src, uint32_t events)
{
	struct vrb_channel *channel = fab_container(src, struct vrb_channel, src);
	struct rdma_cm_event *event;

	(void) events;
	while (!rdma_get_cm_event(channel->cm, &event)) {
		struct vrb_cm_sink *sink = event->id->context;

		if (sink)
			sink->event(sink, event);
		rdma_ack_cm_event(event);
		if (sink && sink->acknowledged)
			sink->acknowledged(sink);
	}
}

int vrb_channel_open(struct vrb_channel *channel, struct fab_engine *engine)
{
	int ret = vrb_channel_make(&channel->cm);

	if (ret)
		return ret;
	channel->src = (struct fab_source) { .fd = channel->cm->fd, .ready = channel_ready };
	ret = fab_source_add(engine, &channel->src, EPOLLIN);
	if (ret) {
		rdma_destroy_event_channel(channel->cm);
		channel->cm = NULL;
	}
	return ret;
}

void vrb_channel_close(struct vrb_channel *channel)
{
	if (!channel->cm)
		return;
	fab_source_del(&channel->src);
	rdma_destroy_event_channel(channel->cm);
	channel->cm = NULL;
}
