/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connections that the CM of a node knows, by the queue pair at the other end and its device. A message that names
 * one of these queue pairs is of a stale connection, whose peer was restarted: it is refused, and the old connection
 * ends, if it was established. So it is in a kernel (6.1), whatever the type of the queue pair.
 *
 * A known connection is a socket in the abstract name space, since the node's processes have one table; a datagram to
 * it says that a newer one has come. A connection is known from its request, or the answer to that, until both ends
 * have said that it is over. TIMEWAIT_EXIT follows later; the number can be used before.
 */
#include "cm.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define TIMEWAIT_MS	10

/* What stands for the GUID of the device that has this address. */
static union ibv_gid guid_of(const struct sockaddr_storage *addr)
{
	const struct sv_device *device = sv_device_of((const struct sockaddr *) addr);

	return device ? device->gids[device->addr_cnt ? 1 : 0] : (union ibv_gid) { .raw = { 0 } };
}

static void is_stale(struct sv_source *src, uint32_t events)
{
	struct sv_id *id = fab_container(src, struct sv_id, known);
	uint8_t byte;

	(void) events;
	if (recv(src->fd, &byte, sizeof(byte), MSG_DONTWAIT) > 0)
		sv_cm_stale(id);
}

static void timewait_exit(struct sv_timer *timer)
{
	sv_cm_tell(fab_container(timer, struct sv_id, timewait), RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL);
}

void sv_cm_known_init(struct sv_id *id)
{
	id->known.fd = -1;
	sv_timer_init(&id->timewait, timewait_exit);
}

void sv_cm_name(struct sv_cm_msg *msg, uint32_t qpn)
{
	msg->qpn = msg->known_qpn = qpn;
	msg->guid = guid_of(&msg->src);
	if (msg->type == SV_CM_REQ)
		msg->known_qpn = (uint32_t) sv_limit("cm_qpn", qpn);
}

/* The name of the peer's queue pair in the table of this node. */
static void name_of(const struct sv_id *id, char name[100])
{
	union ibv_gid own = guid_of(&id->id.route.addr.src_storage), peer = id->peer.guid;

	snprintf(name, 100, "softverbs/known/%016llx%016llx/%016llx%016llx/%06x",
		 (unsigned long long) be64toh(own.global.subnet_prefix),
		 (unsigned long long) be64toh(own.global.interface_id),
		 (unsigned long long) be64toh(peer.global.subnet_prefix),
		 (unsigned long long) be64toh(peer.global.interface_id), id->peer.known_qpn);
}

/* Tell the one that has this name. */
static void tell_old(const char *text)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	socklen_t len = sv_name(&name, "%s", text);

	if (fd < 0)
		return;
	(void) !sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *) &name, len);
	close(fd);
}

bool sv_cm_known_add(struct sv_id *id)
{
	char name[100];

	name_of(id, name);
	id->known.fd = sv_bind(SOCK_DGRAM, "%s", name);
	if (id->known.fd < 0 && errno == EADDRINUSE) {
		tell_old(name);
		return false;
	}
	id->known.ready = is_stale;
	if (id->known.fd < 0 || sv_source_add(&id->known, EPOLLIN))
		abort();
	return true;
}

void sv_cm_known_del(struct sv_id *id)
{
	if (id->known.fd < 0)
		return;
	sv_source_del(&id->known);
	close(id->known.fd);
	id->known.fd = -1;
}

void sv_cm_timewait(struct sv_id *id)
{
	if (id->known.fd >= 0)
		sv_timer_start(&id->timewait, sv_limit("timewait", TIMEWAIT_MS) * 1000000);
	sv_cm_known_del(id);
}
