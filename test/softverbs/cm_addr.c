/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ids, and the addresses that they are bound to. */
#include "cm.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT_TRIES	1000
#define FIRST_PORT	32768
#define PORTS		28000

static struct ibv_context *contexts[SV_DEVICES_MAX];
static struct ibv_pd *pds[SV_DEVICES_MAX];
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

struct ibv_context *sv_cm_context(struct sv_device *device)
{
	int cnt;
	long i = device - sv_devices(&cnt);

	pthread_mutex_lock(&open_lock);
	if (!contexts[i])
		contexts[i] = ibv_open_device(&device->dev);
	if (contexts[i] && !pds[i])
		pds[i] = ibv_alloc_pd(contexts[i]);
	pthread_mutex_unlock(&open_lock);
	return pds[i] ? contexts[i] : NULL;
}

static int give_device(struct sv_id *id, struct sv_device *device, const struct sockaddr *addr)
{
	union ibv_gid gid;
	int cnt;

	id->id.verbs = sv_cm_context(device);
	if (!id->id.verbs)
		return -1;
	id->id.pd = pds[device - sv_devices(&cnt)];
	id->id.port_num = sv_gid_of(addr, &gid) ? sv_gid_port(device, &gid) : 0;
	if (!id->id.port_num)
		id->id.port_num = 1;
	return 0;
}

static int fail(int cause)
{
	errno = cause;
	return -1;
}

struct sv_id *sv_id_alloc(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps)
{
	struct sv_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = sv_cm_is_stream(ps) ? IBV_QPT_RC : IBV_QPT_UD;
	id->src.fd = -1;
	fab_list_init(&id->incoming);
	sv_timer_init(&id->retry, NULL);
	sv_cm_init(id);
	return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
			     enum rdma_port_space ps)
{
	struct sv_id *id;

	if (sv_fault("rdma_create_id"))
		return -1;
	id = sv_id_alloc(channel, context, ps);
	if (!id)
		return -1;
	if (!channel) {
		id->sync = true;
		id->id.channel = rdma_create_event_channel();
		if (!id->id.channel) {
			free(id);
			return -1;
		}
	}
	sv_lock();
	sv_cm_enlist(id);
	sv_unlock();
	*out = &id->id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *cm_id)
{
	struct sv_id *id = sv_id(cm_id);

	sv_lock();
	sv_cm_stop(id);
	sv_cm_forget(id);
	sv_unlock();
	if (id->id.event)
		rdma_ack_cm_event(id->id.event);
	if (id->sync)
		rdma_destroy_event_channel(id->id.channel);
	free(id);
	return 0;
}

int sv_cm_wait(struct sv_id *id)
{
	struct rdma_cm_event *event;
	int status;

	if (!id->sync)
		return 0;
	if (rdma_get_cm_event(id->id.channel, &event))
		return -1;
	status = event->status;
	rdma_ack_cm_event(event);
	return status ? fail(status < 0 ? -status : ECONNREFUSED) : 0;
}

static struct sockaddr_ib *as_ib(const struct sockaddr *addr)
{
	return addr->sa_family == AF_IB ? (struct sockaddr_ib *) addr : NULL;
}

static in_port_t *ip_port(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? &((struct sockaddr_in6 *) addr)->sin6_port :
					     &((struct sockaddr_in *) addr)->sin_port;
}

/* A service of AF_IB is a port where the mask says so, in a space of ports. */
static in_port_t port_of(const struct sockaddr *addr)
{
	const struct sockaddr_ib *sib = as_ib(addr);

	return sib ? htons((uint16_t) be64toh(sib->sib_sid & sib->sib_sid_mask)) : *ip_port(addr);
}

static void set_port(struct sockaddr *addr, in_port_t port, enum rdma_port_space ps)
{
	struct sockaddr_ib *sib = as_ib(addr);

	if (!sib) {
		*ip_port(addr) = port;
		return;
	}
	sib->sib_sid = htobe64(((uint64_t) ps << 16) + ntohs(port));
	sib->sib_sid_mask = ~(__be64) 0;
}

/* Is it of a family, and of AF_IB of the space of ports, that there is? */
static bool is_known(const struct sockaddr *addr, enum rdma_port_space ps)
{
	const struct sockaddr_ib *sib = as_ib(addr);
	uint64_t mask;

	if (!sib)
		return addr->sa_family == AF_INET || addr->sa_family == AF_INET6;
	mask = be64toh(sib->sib_sid_mask) & RDMA_IB_IP_PS_MASK;
	return (be64toh(sib->sib_sid) & mask) == ((uint64_t) ps << 16 & mask);
}

static bool is_any(const struct sockaddr *addr)
{
	const struct sockaddr_ib *sib = as_ib(addr);

	if (sib)
		return ib_addr_any(&sib->sib_addr);
	if (addr->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *) addr)->sin6_addr);
	return ((const struct sockaddr_in *) addr)->sin_addr.s_addr == INADDR_ANY;
}

static socklen_t addr_len(const struct sockaddr *addr)
{
	return as_ib(addr) ? sizeof(struct sockaddr_ib) : addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
											sizeof(struct sockaddr_in);
}

/* The j-th address of a device in the family, as one; false: there are no more. */
static bool addr_at(const struct sv_device *device, int family, int j, struct sockaddr_storage *addr)
{
	struct sockaddr_ib sib = { .sib_family = AF_IB, .sib_pkey = 0xffff };

	if (family == AF_IB && device->infiniband && !j) {
		memcpy(&sib.sib_addr, &device->gids[0], 16);
		memcpy(addr, &sib, sizeof(sib));
		return true;
	}
	for (int i = 0; i < device->addr_cnt && family != AF_IB; i++) {
		if (device->addrs[i].ss_family == family && !j--) {
			*addr = device->addrs[i];
			return true;
		}
	}
	return false;
}

/* Take the name of one address and port; it listens later. */
static int bind_name(struct sv_id *id, const struct sockaddr *addr, in_port_t port)
{
	struct sv_listener *listener = &id->listeners[id->listener_cnt];
	union ibv_gid gid;

	sv_gid_of(addr, &gid);
	listener->src.fd = sv_bind(SOCK_SEQPACKET, "softverbs/cm/%x/%016llx%016llx/%u", id->id.ps,
				   (unsigned long long) be64toh(gid.global.subnet_prefix),
				   (unsigned long long) be64toh(gid.global.interface_id), ntohs(port));
	if (listener->src.fd < 0)
		return errno;
	listener->src.ready = sv_cm_incoming;
	listener->id = id;
	id->listener_cnt++;
	return 0;
}

static void unbind_names(struct sv_id *id)
{
	while (id->listener_cnt)
		close(id->listeners[--id->listener_cnt].src.fd);
}

/* All addresses of the family on all devices, or the one given. */
static int bind_names(struct sv_id *id, const struct sockaddr *addr, in_port_t port)
{
	struct sockaddr_storage one;
	struct sv_device *all;
	int i, j, cnt, ret = 0;

	if (!is_any(addr))
		return bind_name(id, addr, port);
	all = sv_devices(&cnt);
	for (i = 0; i < cnt && !ret; i++)
		for (j = 0; !ret && addr_at(&all[i], addr->sa_family, j, &one); j++)
			ret = bind_name(id, (struct sockaddr *) &one, port);
	if (ret)
		unbind_names(id);
	return ret;
}

static int reserve(struct sv_id *id, const struct sockaddr *addr, in_port_t *port)
{
	int tries, ret;

	id->listeners = calloc(SV_LISTEN_MAX, sizeof(*id->listeners));
	if (!id->listeners)
		return ENOMEM;
	if (*port)
		return bind_names(id, addr, *port);
	for (tries = 0; tries < PORT_TRIES; tries++) {
		*port = htons(FIRST_PORT + ((uint32_t) sv_now_ns() ^ (uint32_t) rand()) % PORTS);
		ret = bind_names(id, addr, *port);
		if (ret != EADDRINUSE)
			return ret;
	}
	return EADDRINUSE;
}

int rdma_bind_addr(struct rdma_cm_id *cm_id, struct sockaddr *addr)
{
	struct sv_id *id = sv_id(cm_id);
	struct sv_device *device = NULL;
	in_port_t port;
	int ret, cnt;

	if (sv_fault("rdma_bind_addr"))
		return -1;
	if (id->state != SV_ID_IDLE || !is_known(addr, cm_id->ps))
		return fail(EINVAL);
	sv_devices(&cnt);
	if (!cnt)
		return fail(ENODEV);
	if (!is_any(addr)) {
		device = sv_device_of(addr);
		if (!device)
			return fail(ENODEV);
		if (give_device(id, device, addr))
			return -1;
	}
	port = port_of(addr);
	ret = reserve(id, addr, &port);
	if (ret)
		return fail(ret);
	memcpy(&id->id.route.addr.src_addr, addr, addr_len(addr));
	set_port(&id->id.route.addr.src_addr, port, cm_id->ps);
	id->state = SV_ID_BOUND;
	return 0;
}

/* The device that a connection to dst leaves from: that of the source, of dst itself, or the first of the family. */
static struct sv_device *route_to(const struct sockaddr *src, const struct sockaddr *dst, enum rdma_port_space ps,
				  struct sockaddr_storage *from)
{
	struct sv_device *all, *device = src && !is_any(src) ? sv_device_of(src) : sv_device_of(dst);
	int i, cnt;

	if (device) {
		memcpy(from, src && !is_any(src) ? src : dst, addr_len(dst));
		set_port((struct sockaddr *) from, 0, ps);
		return device;
	}
	all = sv_devices(&cnt);
	for (i = 0; i < cnt && (!src || is_any(src)); i++)
		if (addr_at(&all[i], dst->sa_family, 0, from))
			return &all[i];
	return NULL;
}

int rdma_resolve_addr(struct rdma_cm_id *cm_id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	struct sv_id *id = sv_id(cm_id);
	struct sockaddr_storage from = { 0 };
	struct sv_device *device;

	(void) timeout_ms;
	if (sv_fault("rdma_resolve_addr"))
		return -1;
	if ((id->state != SV_ID_IDLE && id->state != SV_ID_BOUND) || !is_known(dst, cm_id->ps))
		return fail(EINVAL);
	if (id->state == SV_ID_BOUND)
		src = &id->id.route.addr.src_addr;
	if (sv_fault("cm_addr")) {
		int err = errno;

		sv_lock();
		sv_cm_tell(id, RDMA_CM_EVENT_ADDR_ERROR, -err, NULL);
		sv_unlock();
		return sv_cm_wait(id);
	}
	device = route_to(src, dst, cm_id->ps, &from);
	if (!device || give_device(id, device, (struct sockaddr *) &from)) {
		sv_lock();
		sv_cm_tell(id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, NULL);
		sv_unlock();
		return sv_cm_wait(id);
	}
	if (id->state == SV_ID_BOUND)
		set_port((struct sockaddr *) &from, port_of(src), cm_id->ps);
	memcpy(&id->id.route.addr.src_addr, &from, addr_len(dst));
	memcpy(&id->id.route.addr.dst_addr, dst, addr_len(dst));
	sv_lock();
	id->state = SV_ID_RESOLVED;
	sv_cm_tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL);
	sv_unlock();
	return sv_cm_wait(id);
}

int rdma_resolve_route(struct rdma_cm_id *cm_id, int timeout_ms)
{
	struct sv_id *id = sv_id(cm_id);
	int lost;

	(void) timeout_ms;
	if (sv_fault("rdma_resolve_route"))
		return -1;
	if (id->state != SV_ID_RESOLVED)
		return fail(EINVAL);
	lost = sv_fault("cm_route") ? errno : 0;
	sv_lock();
	if (!lost)
		id->state = SV_ID_ROUTED;
	sv_cm_tell(id, lost ? RDMA_CM_EVENT_ROUTE_ERROR : RDMA_CM_EVENT_ROUTE_RESOLVED, -lost, NULL);
	sv_unlock();
	return sv_cm_wait(id);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}

int rdma_migrate_id(struct rdma_cm_id *cm_id, struct rdma_event_channel *channel)
{
	struct sv_cm_channel *from = fab_container(cm_id->channel, struct sv_cm_channel, channel);
	struct sv_cm_channel *to = fab_container(channel, struct sv_cm_channel, channel);
	struct fab_list *link, *tmp;
	uint64_t unit;

	if (!channel)
		return fail(EINVAL);
	sv_lock();
	fab_list_for_each_safe(&from->events, link, tmp) {
		struct sv_cm_event *ev = fab_container(link, struct sv_cm_event, link);
		struct pollfd pfd = { from->channel.fd, POLLIN, 0 };

		if (ev->event.id != cm_id)
			continue;
		if (poll(&pfd, 1, 0) == 1)
			(void) !read(from->channel.fd, &unit, sizeof(unit));
		fab_list_remove(link);
		fab_list_add_tail(&to->events, link);
		(void) !write(to->channel.fd, &(uint64_t) { 1 }, sizeof(uint64_t));
	}
	cm_id->channel = channel;
	sv_unlock();
	if (sv_id(cm_id)->sync)
		rdma_destroy_event_channel(&from->channel);
	sv_id(cm_id)->sync = false;
	return 0;
}

struct ibv_context **rdma_get_devices(int *num)
{
	struct ibv_context **list;
	struct sv_device *all;
	int i, cnt, found = 0;

	if (sv_fault("rdma_get_devices"))
		return NULL;
	all = sv_devices(&cnt);
	list = calloc(cnt + 1, sizeof(*list));
	for (i = 0; list && i < cnt; i++) {
		list[found] = sv_cm_context(&all[i]);
		found += list[found] != NULL;
	}
	if (num)
		*num = found;
	if (list && !found) {
		free(list);
		list = NULL;
		errno = ENODEV;
	}
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}

static struct sockaddr *dup_addr(const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr *copy = malloc(len);

	if (copy)
		memcpy(copy, addr, len);
	return copy;
}

/* The addresses of the hints, where no name is given. */
static int copy_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *info)
{
	if (!hints)
		return fail(EINVAL);
	if (hints->ai_dst_len)
		info->ai_dst_addr = dup_addr(hints->ai_dst_addr, hints->ai_dst_len);
	info->ai_dst_len = hints->ai_dst_len;
	info->ai_family = hints->ai_dst_len ? hints->ai_dst_addr->sa_family :
			  hints->ai_src_len ? hints->ai_src_addr->sa_family : hints->ai_family;
	return 0;
}

static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo *info)
{
	struct addrinfo ask = { .ai_socktype = SOCK_STREAM }, *found;
	int ret;

	if (hints) {
		ask.ai_flags = (hints->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
			       (hints->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0);
		ask.ai_family = hints->ai_family;
	}
	ret = getaddrinfo(node, service, &ask, &found);
	if (ret)
		return ret;
	info->ai_family = found->ai_family;
	if (ask.ai_flags & AI_PASSIVE) {
		info->ai_src_addr = dup_addr(found->ai_addr, found->ai_addrlen);
		info->ai_src_len = found->ai_addrlen;
	} else {
		info->ai_dst_addr = dup_addr(found->ai_addr, found->ai_addrlen);
		info->ai_dst_len = found->ai_addrlen;
	}
	freeaddrinfo(found);
	return 0;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *info;
	int ret;

	if (sv_fault("rdma_getaddrinfo"))
		return -1;
	info = calloc(1, sizeof(*info));
	if (!info)
		return -1;
	ret = node || service ? look_up(node, service, hints, info) : copy_hints(hints, info);
	if (ret) {
		free(info);
		return ret;
	}
	if (hints && hints->ai_src_len && !info->ai_src_len) {
		info->ai_src_addr = dup_addr(hints->ai_src_addr, hints->ai_src_len);
		info->ai_src_len = hints->ai_src_len;
	}
	info->ai_flags = hints ? hints->ai_flags : 0;
	info->ai_port_space = hints && hints->ai_port_space ? hints->ai_port_space : RDMA_PS_TCP;
	info->ai_qp_type = hints && hints->ai_qp_type ? hints->ai_qp_type : IBV_QPT_RC;
	*res = info;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *info)
{
	while (info) {
		struct rdma_addrinfo *next = info->ai_next;

		free(info->ai_src_addr);
		free(info->ai_dst_addr);
		free(info);
		info = next;
	}
}
