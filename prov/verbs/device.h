/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices: the ports that endpoints use, and what is known of each. Any thread, no lock held.
 */
#ifndef VRB_DEVICE_H
#define VRB_DEVICE_H

#include <rdma/fabric.h>
#include <rdma/rdma_cma.h>
#include "base/addr.h"
#include "verbs/quirks.h"

/* A port of a device, which librdmacm opened. Made once, kept until vrb_devices_fini(). */
struct vrb_device {
	struct vrb_device *next;
	struct ibv_context *verbs;
	const struct vrb_quirks *quirks;
	uint8_t port_num;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	uint32_t inline_max;		/* bytes that a queue pair takes inline */
	uint32_t sq_max;		/* requests of a send queue, each with inline_max bytes or all buffers */
	char name[IBV_SYSFS_NAME_MAX];	/* the domain's name */
	char fabric[FI_NAME_MAX];	/* the fabric of GID 0; an entry of fi_getinfo() has the fabric of its
					 * address */
};

/* The port space of a CM id with this address. InfiniBand addresses have a port space of their own. */
static inline enum rdma_port_space vrb_port_space(const struct sockaddr *addr)
{
	return addr->sa_family == FAB_AF_IB ? RDMA_PS_IB : RDMA_PS_TCP;
}

/* The port that has this address. NULL: no device has it, or the device is not used (FI_VERBS_DEVICE_NAME leaves it
 * out, or it failed; logged once), or its port is down. */
const struct vrb_device *vrb_device_of(const struct sockaddr *addr);
/* The lowest port of a known device, by the name of a domain: the name of the device and the suffix of a kind. NULL:
 * there is none. */
const struct vrb_device *vrb_device_named(const char *domain);
/* The port that an entry of fi_getinfo() is for: the port of its domain that has its source address, else the lowest
 * port of its domain. NULL: there is none. */
const struct vrb_device *vrb_device_meant(const struct fi_info *info);
/* True if this port has the source address of an entry, in any format. */
bool vrb_device_has(const struct vrb_device *dev, const struct fi_info *info);
/* The number of buffers that one read request of the device can have (info.c). */
uint32_t vrb_read_iov_limit(const struct vrb_device *dev);
/* The number of requests that a read into up to iov_limit buffers may need (info.c, read.c). */
uint32_t vrb_requests(const struct vrb_device *dev, uint32_t iov_limit);
/* The struct vrb_device of this port of an open device. NULL as vrb_device_of(). */
const struct vrb_device *vrb_device_at(struct ibv_context *verbs, uint8_t port_num);
/* True if any device has been examined, whether it works or not. */
bool vrb_devices_known(void);
/* Report a reason why the port has no entry, if reasons are wanted (common/explain/explain.h). */
void vrb_say_lacks(const struct vrb_device *dev, const char *what, const char *wanted, const char *found);
/* Free all devices. No object of the provider is open. */
void vrb_devices_fini(void);

/* ---- fabric.c: any thread ---- */

/* Write the name of the fabric of an endpoint with this GID of the port to name[size]. */
void vrb_fabric_of_gid(char *name, size_t size, const struct vrb_device *dev, const union ibv_gid *gid);
/* The same for a RoCE port whose address is in this network ("10.1.0.0/16"). */
void vrb_fabric_of_network(char *name, size_t size, const char *network);
/* True if the port's link layer is Ethernet and its transport InfiniBand. */
bool vrb_device_roce(const struct vrb_device *dev);

/* ---- nic.c: any thread ---- */

/* Make the fid_nic of a device, which the caller closes; an fi_info does so when it is freed. 0, or -FI_ENOMEM. */
int vrb_nic_open(const struct vrb_device *dev, struct fid_nic **nic);

#endif
