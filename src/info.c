/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deep copy and release of struct fi_info and of struct fid_nic.
 *
 * A structure is copied byte by byte first. Then each of its pointers is replaced by a pointer to a copy, or by NULL if
 * there is no memory, and copying goes on. So a copy that ran out of memory half way is freed like a complete one.
 */
#include "info.h"

#include "base/bits.h"
#include "fid.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A copy of len bytes. NULL if bytes is NULL, or if there is no memory; then *failed is set. */
static void *dup_bytes(const void *bytes, size_t len, bool *failed)
{
	void *copy;

	if (!bytes)
		return NULL;
	copy = malloc(fab_max(len, (size_t) 1));
	if (copy)
		memcpy(copy, bytes, len);
	else
		*failed = true;
	return copy;
}

static char *dup_string(const char *string, bool *failed)
{
	return string ? dup_bytes(string, strlen(string) + 1, failed) : NULL;
}

/* The length FI_AV_AUTH_KEY says that the keys are in the AV: there are no bytes to copy. */
static uint8_t *dup_key(const uint8_t *key, size_t len, bool *failed)
{
	return len && len != FI_AV_AUTH_KEY ? dup_bytes(key, len, failed) : NULL;
}

static void free_device(struct fi_device_attr *attr)
{
	if (!attr)
		return;
	free(attr->name);
	free(attr->device_id);
	free(attr->device_version);
	free(attr->vendor_id);
	free(attr->driver);
	free(attr->firmware);
	free(attr);
}

static struct fi_device_attr *dup_device(const struct fi_device_attr *attr, bool *failed)
{
	struct fi_device_attr *copy = dup_bytes(attr, sizeof(*attr), failed);

	if (!copy)
		return NULL;
	copy->name = dup_string(attr->name, failed);
	copy->device_id = dup_string(attr->device_id, failed);
	copy->device_version = dup_string(attr->device_version, failed);
	copy->vendor_id = dup_string(attr->vendor_id, failed);
	copy->driver = dup_string(attr->driver, failed);
	copy->firmware = dup_string(attr->firmware, failed);
	return copy;
}

static void free_link(struct fi_link_attr *attr)
{
	if (!attr)
		return;
	free(attr->address);
	free(attr->network_type);
	free(attr);
}

static struct fi_link_attr *dup_link(const struct fi_link_attr *attr, bool *failed)
{
	struct fi_link_attr *copy = dup_bytes(attr, sizeof(*attr), failed);

	if (!copy)
		return NULL;
	copy->address = dup_string(attr->address, failed);
	copy->network_type = dup_string(attr->network_type, failed);
	return copy;
}

static struct fid_nic *dup_nic(const struct fid_nic *nic, bool *failed);

static int nic_close(struct fid *fid)
{
	struct fid_nic *nic = (struct fid_nic *) fid;

	free_device(nic->device_attr);
	free(nic->bus_attr);
	free_link(nic->link_attr);
	free(nic);
	return 0;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	bool failed = false;

	if (command != FI_DUP)
		return -FI_ENOSYS;
	*(struct fid_nic **) arg = dup_nic((struct fid_nic *) fid, &failed);
	return failed ? -FI_ENOMEM : 0;
}

static struct fi_ops nic_ops = {
	.size = sizeof(struct fi_ops),
	.close = nic_close,
	.bind = fab_fid_no_bind,
	.control = nic_control,
	.ops_open = fab_fid_no_ops_open,
};

/* Copy the public part of a nic. prov_attr is left out: only its provider knows the layout. */
static struct fid_nic *dup_nic(const struct fid_nic *nic, bool *failed)
{
	struct fid_nic *copy = dup_bytes(nic, sizeof(*nic), failed);

	if (!copy)
		return NULL;
	copy->fid.ops = &nic_ops;
	copy->prov_attr = NULL;
	copy->device_attr = dup_device(nic->device_attr, failed);
	copy->bus_attr = dup_bytes(nic->bus_attr, sizeof(*nic->bus_attr), failed);
	copy->link_attr = dup_link(nic->link_attr, failed);
	if (!*failed)
		return copy;
	nic_close(&copy->fid);
	return NULL;
}

/* Copy by the nic's own FI_DUP, where it has one. The core copies those of applications, which have no operations, and
 * those of our providers. */
static struct fid_nic *dup_info_nic(struct fid_nic *nic, bool *failed)
{
	struct fid_nic *copy = NULL;
	int ret = -FI_ENOSYS;

	if (!nic)
		return NULL;
	if (nic->fid.ops && nic->fid.ops->control)
		ret = nic->fid.ops->control(&nic->fid, FI_DUP, &copy);
	if (ret == -FI_ENOSYS)
		return dup_nic(nic, failed);
	*failed |= ret != 0;
	return ret ? NULL : copy;
}

static struct fi_ep_attr *dup_ep_attr(const struct fi_ep_attr *attr, bool *failed)
{
	struct fi_ep_attr *copy = dup_bytes(attr, sizeof(*attr), failed);

	if (copy)
		copy->auth_key = dup_key(attr->auth_key, attr->auth_key_size, failed);
	return copy;
}

static struct fi_domain_attr *dup_domain_attr(const struct fi_domain_attr *attr, bool *failed)
{
	struct fi_domain_attr *copy = dup_bytes(attr, sizeof(*attr), failed);

	if (copy) {
		copy->name = dup_string(attr->name, failed);
		copy->auth_key = dup_key(attr->auth_key, attr->auth_key_size, failed);
	}
	return copy;
}

static struct fi_fabric_attr *dup_fabric_attr(const struct fi_fabric_attr *attr, bool *failed)
{
	struct fi_fabric_attr *copy = dup_bytes(attr, sizeof(*attr), failed);

	if (copy) {
		copy->name = dup_string(attr->name, failed);
		copy->prov_name = dup_string(attr->prov_name, failed);
	}
	return copy;
}

struct fi_info *fab_info_dup(const struct fi_info *info)
{
	static struct fi_tx_attr tx_attr;
	static struct fi_rx_attr rx_attr;
	static struct fi_ep_attr ep_attr;
	static struct fi_domain_attr domain_attr;
	static struct fi_fabric_attr fabric_attr;
	static const struct fi_info blank = {
		.tx_attr = &tx_attr,
		.rx_attr = &rx_attr,
		.ep_attr = &ep_attr,
		.domain_attr = &domain_attr,
		.fabric_attr = &fabric_attr,
	};
	bool failed = false;
	struct fi_info *copy;

	if (!info)
		info = &blank;
	copy = dup_bytes(info, sizeof(*info), &failed);
	if (!copy)
		return NULL;
	copy->next = NULL;
	copy->src_addr = dup_bytes(info->src_addr, info->src_addrlen, &failed);
	copy->dest_addr = dup_bytes(info->dest_addr, info->dest_addrlen, &failed);
	copy->tx_attr = dup_bytes(info->tx_attr, sizeof(*info->tx_attr), &failed);
	copy->rx_attr = dup_bytes(info->rx_attr, sizeof(*info->rx_attr), &failed);
	copy->ep_attr = dup_ep_attr(info->ep_attr, &failed);
	copy->domain_attr = dup_domain_attr(info->domain_attr, &failed);
	copy->fabric_attr = dup_fabric_attr(info->fabric_attr, &failed);
	copy->nic = dup_info_nic(info->nic, &failed);
	if (!failed)
		return copy;
	fab_info_free(copy, FAB_INFO_ALL);
	return NULL;
}

/* Free an authorization key. The memory is cleared first, since malloc() will give it to others. */
static void drop_key(uint8_t **key, size_t *size)
{
	if (*key && *size != FI_AV_AUTH_KEY)
		explicit_bzero(*key, fab_min(*size, malloc_usable_size(*key)));
	free(*key);
	*key = NULL;
	*size = 0;
}

void fab_info_drop(struct fi_info *info, unsigned parts)
{
	if (parts & FAB_INFO_NIC) {
		if (info->nic && info->nic->fid.ops)
			fi_close(&info->nic->fid);
		info->nic = NULL;
	}
	if (parts & FAB_INFO_KEYS && info->ep_attr)
		drop_key(&info->ep_attr->auth_key, &info->ep_attr->auth_key_size);
	if (parts & FAB_INFO_KEYS && info->domain_attr)
		drop_key(&info->domain_attr->auth_key, &info->domain_attr->auth_key_size);
}

void fab_info_free(struct fi_info *info, unsigned parts)
{
	struct fi_info *next;

	for (; info; info = next) {
		next = info->next;
		fab_info_drop(info, parts);
		if (info->domain_attr)
			free(info->domain_attr->name);
		if (info->fabric_attr) {
			free(info->fabric_attr->name);
			free(info->fabric_attr->prov_name);
		}
		free(info->src_addr);
		free(info->dest_addr);
		free(info->tx_attr);
		free(info->rx_attr);
		free(info->ep_attr);
		free(info->domain_attr);
		free(info->fabric_attr);
		free(info);
	}
}
