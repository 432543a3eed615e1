/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices: the port of an address, and its attributes. librdmacm finds the port (rdma_bind_addr(3)), since an address
 * may belong to IPoIB, RoCE or iWARP. The attributes of a port are read once and kept; librdmacm keeps the device open,
 * too.
 */
#include "verbs/kind.h"
#include "verbs/ud.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"

#define NO_GID	(-1)		/* the port's GID table is still empty */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vrb_device *devices;	/* usable devices */
static struct vrb_device *broken;	/* unusable devices, each logged once */

static void free_all(struct vrb_device **list)
{
	while (*list) {
		struct vrb_device *dev = *list;

		*list = dev->next;
		free(dev);
	}
}

void vrb_devices_fini(void)
{
	free_all(&devices);
	free_all(&broken);
}

bool vrb_devices_known(void)
{
	bool known;

	pthread_mutex_lock(&lock);
	known = devices || broken;
	pthread_mutex_unlock(&lock);
	return known;
}

bool vrb_device_atomics(const struct vrb_device *dev)
{
	return dev->attr.atomic_cap != IBV_ATOMIC_NONE;
}

static struct vrb_device *vrb_device_find(struct vrb_device *list, const struct ibv_context *verbs, uint8_t port_num)
{
	while (list && (list->verbs != verbs || list->port_num != port_num))
		list = list->next;
	return list;
}

/* ---- sizes of queue pairs: the only way to know them is to try ---- */

struct trial {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

/* Try to make a queue pair of these sizes, which become those that it got. */
static bool try_qp(const struct trial *trial, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = trial->cq, .recv_cq = trial->cq, .qp_type = IBV_QPT_RC, .cap = *cap,
	};
	struct ibv_qp *qp = ibv_create_qp(trial->pd, &attr);

	if (!qp)
		return false;
	*cap = attr.cap;
	ibv_destroy_qp(qp);
	return true;
}

/* The largest of some sizes that the device accepts for inline data, and no more than it then has room for: some
 * accept any size, and have no room. */
static uint32_t try_inline(const struct trial *trial)
{
	for (uint32_t size = (uint32_t) vrb_params.inline_size; size; size /= 2) {
		struct ibv_qp_cap cap = {
			.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = size,
		};

		if (try_qp(trial, &cap))
			return fab_min(size, cap.max_inline_data);
	}
	return 0;
}

/* The length of a send queue whose requests have the largest sizes: a device may have room for so many bytes. The first
 * of max_qp_wr, half of it ... that it accepts. */
static uint32_t try_requests(const struct trial *trial, const struct vrb_device *dev)
{
	uint32_t sge = (uint32_t) fab_min((size_t) dev->attr.max_sge, vrb_params.tx_iov_limit);
	uint32_t cnt = (uint32_t) dev->attr.max_qp_wr;

	for (; cnt > 1; cnt /= 2) {
		struct ibv_qp_cap cap = {
			.max_send_wr = cnt, .max_recv_wr = 1, .max_send_sge = sge, .max_recv_sge = 1,
			.max_inline_data = dev->inline_max,
		};

		if (try_qp(trial, &cap))
			break;
	}
	return cnt;
}

static void find_sizes(struct vrb_device *dev)
{
	struct trial trial = { .pd = ibv_alloc_pd(dev->verbs) };

	trial.cq = trial.pd ? ibv_create_cq(dev->verbs, 1, NULL, NULL, 0) : NULL;
	dev->sq_max = (uint32_t) dev->attr.max_qp_wr;
	if (trial.cq) {
		dev->inline_max = try_inline(&trial);
		dev->sq_max = try_requests(&trial, dev);
		ibv_destroy_cq(trial.cq);
	}
	if (trial.pd)
		ibv_dealloc_pd(trial.pd);
}

static bool note_gid(const struct vrb_gid *gid, void *any)
{
	(void) gid;
	*(bool *) any = true;
	return false;
}

static int name_fabric(struct vrb_device *dev)
{
	union ibv_gid gid = { 0 };
	bool any = !dev->quirks->gids;

	if (!any && ibv_query_gid(dev->verbs, dev->port_num, 0, &gid))
		return errno ? errno : EIO;
	if (!any)
		vrb_gids_see(dev->verbs, dev->port_num, note_gid, &any);
	if (!any)
		return NO_GID;
	vrb_fabric_of_gid(dev->fabric, sizeof(dev->fabric), dev, &gid);
	return 0;
}

/* Read the attributes of the device and port. 0, NO_GID, or the errno of the failed call, whose name is in *call. */
static int query(struct vrb_device *dev, const char **call)
{
	int ret;

	*call = "ibv_query_device";
	ret = ibv_query_device(dev->verbs, &dev->attr);
	if (ret)
		return ret;
	*call = "ibv_query_port";
	ret = ibv_query_port(dev->verbs, dev->port_num, &dev->port);
	if (ret)
		return ret;
	*call = "ibv_query_gid";
	return name_fabric(dev);
}

/* The smallest endpoint needs a request and the provider's own request (vrb_post_marker), a receive, and a completion
 * for each. True, and logged, if the device has less of something. */
static bool is_too_small(const struct vrb_device *dev)
{
	const struct {
		const char *name;
		uint32_t have, need;
	} limits[] = {
		{ "max_qp", (uint32_t) dev->attr.max_qp, 1 }, { "max_qp_wr", (uint32_t) dev->attr.max_qp_wr, 2 },
		{ "max_sge", (uint32_t) dev->attr.max_sge, 1 }, { "max_cq", (uint32_t) dev->attr.max_cq, 1 },
		{ "max_cqe", (uint32_t) dev->attr.max_cqe, 3 }, { "max_mr", (uint32_t) dev->attr.max_mr, 1 },
		{ "max_pd", (uint32_t) dev->attr.max_pd, 1 }, { "max_msg_sz", dev->port.max_msg_sz, 1 },
	};

	for (size_t i = 0; i < fab_countof(limits); i++) {
		if (limits[i].have >= limits[i].need)
			continue;
		VRB_WARN(FI_LOG_FABRIC, "device %s, port %u is not used: its %s is %u, and an endpoint needs %u\n",
			 dev->name, dev->port_num, limits[i].name, limits[i].have, limits[i].need);
		return true;
	}
	return false;
}

static bool is_left_out(const char *name)
{
	const char *list = vrb_params.device_name;

	while (list) {
		size_t len = strcspn(list, ",");

		if (len && !strncmp(name, list, len))
			return false;
		list = list[len] ? list + len + 1 : NULL;
	}
	return vrb_params.device_name;
}

/* True if the device has a port with this number. False also if the device does not answer, which is logged. */
static bool has_port(struct ibv_context *verbs, uint8_t port_num)
{
	struct ibv_device_attr attr;

	return port_num == 1 || (!ibv_query_device(verbs, &attr) && port_num <= attr.phys_port_cnt);
}

void vrb_say_lacks(const struct vrb_device *dev, const char *what, const char *wanted, const char *found)
{
	char entry[IBV_SYSFS_NAME_MAX + 16];

	if (!fab_why_wanted(&vrb_prov))
		return;
	snprintf(entry, sizeof(entry), "%s, port %u", dev->name, dev->port_num);
	fab_why_report(&vrb_prov, FAB_WHY_WHICH, entry, what, wanted, found);
}

/* True if the port is up now. If it was down when its attributes were first read, they are replaced, since it may have
 * got its addresses since. Nobody uses the attributes of a port before it is up. */
static bool is_up(struct vrb_device *dev)
{
	struct ibv_port_attr port;

	if (ibv_query_port(dev->verbs, dev->port_num, &port) || port.state != IBV_PORT_ACTIVE) {
		vrb_say_lacks(dev, "link", "up", "down");
		return false;
	}
	if (dev->port.state != IBV_PORT_ACTIVE)
		dev->port = port;
	return true;
}

/* Add a device to `devices`, and return it; or add it to `broken`, and return NULL. NULL without an entry: no memory,
 * or the device has no GID yet, and is tried again at the next call. */
static struct vrb_device *device_add(struct ibv_context *verbs, uint8_t port_num)
{
	struct vrb_device *dev = calloc(1, sizeof(*dev)), **list = &devices;
	const char *call;
	int ret;

	if (!dev)
		return NULL;
	dev->verbs = verbs;
	dev->quirks = vrb_quirks_of(verbs);
	dev->port_num = port_num;
	snprintf(dev->name, sizeof(dev->name), "%s", ibv_get_device_name(verbs->device));
	ret = query(dev, &call);
	if (ret == NO_GID) {
		vrb_say_lacks(dev, "GID", "one", "none: its table is empty");
		free(dev);
		return NULL;
	}
	if (ret) {
		VRB_WARN(FI_LOG_FABRIC, "device %s, port %u is not used: %s: %s\n",
			 dev->name, port_num, call, strerror(ret));
		list = &broken;
	} else if (is_left_out(dev->name)) {
		VRB_LOG(FI_LOG_INFO, FI_LOG_FABRIC, "device %s is left out: FI_VERBS_DEVICE_NAME=%s\n", dev->name,
			vrb_params.device_name);
		list = &broken;
	} else if (is_too_small(dev)) {
		list = &broken;
	} else {
		if (port_num == 1)
			vrb_quirks_prepare(verbs, &dev->attr);
		find_sizes(dev);
	}
	dev->next = *list;
	*list = dev;
	return list == &devices ? dev : NULL;
}

const struct vrb_device *vrb_device_at(struct ibv_context *verbs, uint8_t port_num)
{
	struct vrb_device *dev;

	pthread_mutex_lock(&lock);
	dev = vrb_device_find(devices, verbs, port_num);
	if (!dev && !vrb_device_find(broken, verbs, port_num) && has_port(verbs, port_num))
		dev = device_add(verbs, port_num);
	if (dev && !is_up(dev))
		dev = NULL;
	pthread_mutex_unlock(&lock);
	return dev;
}

struct search {
	union ibv_gid want;
	bool found;
};

static bool device_compare(const struct vrb_gid *gid, void *arg)
{
	struct search *search = arg;

	search->found = !memcmp(&gid->gid, &search->want, sizeof(gid->gid));
	return !search->found;
}

/* librdmacm assigns the loopback address to the first device. It counts only for a device with this address as a
 * GID. */
static bool owns_loopback(struct rdma_cm_id *id, const union fab_any_addr *addr)
{
	struct search search = { .want = { .raw = { [10] = 0xff, 0xff } } };

	if (addr->sa.sa_family == AF_INET6)
		memcpy(search.want.raw, &addr->sin6.sin6_addr, 16);
	else
		memcpy(search.want.raw + 12, &addr->sin.sin_addr, 4);
	vrb_gids_see(id->verbs, id->port_num, device_compare, &search);
	return search.found;
}

/* Log once that the kernel module of librdmacm is missing. */
static void no_cm(int err)
{
	static atomic_bool told;

	VRB_LOG(atomic_exchange(&told, true) ? FI_LOG_INFO : FI_LOG_WARN, FI_LOG_FABRIC,
		"there is an RDMA device, but rdma_create_id: %s: is the kernel module rdma_ucm loaded?\n",
		strerror(err));
}

const struct vrb_device *vrb_device_of(const struct sockaddr *addr)
{
	const struct vrb_device *dev = NULL;
	union fab_any_addr host = { 0 };
	struct rdma_cm_id *id;

	if (rdma_create_id(NULL, &id, NULL, vrb_port_space(addr))) {
		no_cm(errno);
		return NULL;
	}
	memcpy(&host, addr, fab_any_addr_len(addr));
	fab_addr_set_port(&host.sa, 0);
	if (!rdma_bind_addr(id, &host.sa) && id->verbs &&
	    (!fab_addr_is_loopback(&host.sa) || owns_loopback(id, &host)))
		dev = vrb_device_at(id->verbs, id->port_num);
	rdma_destroy_id(id);
	return dev;
}

/* Get the head of the list. New devices are added before it, and the rest does not change, so the caller needs no lock
 * to walk the list. */
static const struct vrb_device *first(void)
{
	const struct vrb_device *dev;

	pthread_mutex_lock(&lock);
	dev = devices;
	pthread_mutex_unlock(&lock);
	return dev;
}

const struct vrb_device *vrb_device_named(const char *domain)
{
	const struct vrb_device *found = NULL;

	for (const struct vrb_device *dev = first(); dev; dev = dev->next) {
		if (vrb_kind_of(domain, dev->name) && (!found || dev->port_num < found->port_num))
			found = dev;
	}
	return found;
}

bool vrb_device_has(const struct vrb_device *dev, const struct fi_info *info)
{
	struct search search;

	if (!info->src_addr)
		return false;
	if (info->addr_format != FI_ADDR_IB_UD)
		return vrb_device_of(info->src_addr) == dev;
	if (info->src_addrlen < sizeof(struct vrb_ud_name))
		return false;
	search.want = ((const struct vrb_ud_name *) info->src_addr)->gid;
	search.found = false;
	vrb_gids_see(dev->verbs, dev->port_num, device_compare, &search);
	return search.found;
}

const struct vrb_device *vrb_device_meant(const struct fi_info *info)
{
	const struct vrb_device *lowest = vrb_device_named(info->domain_attr->name);

	for (const struct vrb_device *dev = first(); dev && lowest; dev = dev->next) {
		if (dev != lowest && vrb_kind_of(info->domain_attr->name, dev->name) && vrb_device_has(dev, info))
			return dev;
	}
	return lowest;
}
