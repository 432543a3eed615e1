/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libibverbs and librdmacm are loaded only if there may be a device: a machine without one only reads a directory. Each
 * of their functions has a function of the same name here that calls it, so that the rest of the provider and the
 * inline functions of the libraries' headers call them as if linked. None may be called before vrb_lib_ready() has
 * returned true; fi_getinfo() and fi_fabric() check that.
 *
 * A device may be present if the kernel has one. SYSFS_PATH, a variable of libibverbs, names the kernel's folder.
 * Tests, which have a stand-in for the libraries, set it to a folder of their own.
 */
#include "verbs/verbs.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"

#undef ibv_reg_mr
#undef ibv_query_port

enum { VERBS, RDMACM, LIB_CNT };

static const char *const lib_name[LIB_CNT] = { "libibverbs.so.1", "librdmacm.so.1" };

#define CALLS(X) \
	X(VERBS, struct ibv_device **, ibv_get_device_list, (int *num_devices), (num_devices)) \
	X(VERBS, void, ibv_free_device_list, (struct ibv_device **list), (list)) \
	X(VERBS, const char *, ibv_get_device_name, (struct ibv_device *device), (device)) \
	X(VERBS, struct ibv_context *, ibv_open_device, (struct ibv_device *device), (device)) \
	X(VERBS, int, ibv_close_device, (struct ibv_context *context), (context)) \
	X(VERBS, int, ibv_query_device, \
	  (struct ibv_context *context, struct ibv_device_attr *attr), (context, attr)) \
	X(VERBS, int, ibv_query_port, \
	  (struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr), \
	  (context, port_num, attr)) \
	X(VERBS, int, ibv_query_gid, \
	  (struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid), \
	  (context, port_num, index, gid)) \
	X(VERBS, ssize_t, _ibv_query_gid_table, \
	  (struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags, size_t size), \
	  (context, entries, max, flags, size)) \
	X(VERBS, int, ibv_query_pkey, \
	  (struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey), (context, port_num, index, pkey)) \
	X(VERBS, int, ibv_get_async_event, \
	  (struct ibv_context *context, struct ibv_async_event *event), (context, event)) \
	X(VERBS, void, ibv_ack_async_event, (struct ibv_async_event *event), (event)) \
	X(VERBS, const char *, ibv_event_type_str, (enum ibv_event_type type), (type)) \
	X(VERBS, struct ibv_pd *, ibv_alloc_pd, (struct ibv_context *context), (context)) \
	X(VERBS, int, ibv_dealloc_pd, (struct ibv_pd *pd), (pd)) \
	X(VERBS, struct ibv_mr *, ibv_reg_mr, \
	  (struct ibv_pd *pd, void *addr, size_t len, int access), (pd, addr, len, access)) \
	X(VERBS, struct ibv_mr *, ibv_reg_mr_iova2, \
	  (struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access), (pd, addr, len, iova, access)) \
	X(VERBS, struct ibv_mr *, ibv_reg_dmabuf_mr, \
	  (struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access), \
	  (pd, offset, len, iova, fd, access)) \
	X(VERBS, int, ibv_dereg_mr, (struct ibv_mr *mr), (mr)) \
	X(VERBS, struct ibv_cq *, ibv_create_cq, \
	  (struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector), \
	  (context, cqe, cq_context, channel, vector)) \
	X(VERBS, int, ibv_resize_cq, (struct ibv_cq *cq, int cqe), (cq, cqe)) \
	X(VERBS, int, ibv_destroy_cq, (struct ibv_cq *cq), (cq)) \
	X(VERBS, int, ibv_get_cq_event, \
	  (struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context), (channel, cq, context)) \
	X(VERBS, void, ibv_ack_cq_events, (struct ibv_cq *cq, unsigned cnt), (cq, cnt)) \
	X(VERBS, const char *, ibv_wc_status_str, (enum ibv_wc_status status), (status)) \
	X(VERBS, struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context *context), (context)) \
	X(VERBS, int, ibv_destroy_comp_channel, (struct ibv_comp_channel *channel), (channel)) \
	X(VERBS, struct ibv_qp *, ibv_create_qp, (struct ibv_pd *pd, struct ibv_qp_init_attr *attr), (pd, attr)) \
	X(VERBS, int, ibv_modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask)) \
	X(VERBS, int, ibv_query_qp, \
	  (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init), \
	  (qp, attr, mask, init)) \
	X(VERBS, int, ibv_destroy_qp, (struct ibv_qp *qp), (qp)) \
	X(VERBS, struct ibv_srq *, ibv_create_srq, (struct ibv_pd *pd, struct ibv_srq_init_attr *attr), (pd, attr)) \
	X(VERBS, int, ibv_destroy_srq, (struct ibv_srq *srq), (srq)) \
	X(VERBS, struct ibv_ah *, ibv_create_ah, (struct ibv_pd *pd, struct ibv_ah_attr *attr), (pd, attr)) \
	X(VERBS, int, ibv_destroy_ah, (struct ibv_ah *ah), (ah)) \
	X(RDMACM, struct rdma_event_channel *, rdma_create_event_channel, (void), ()) \
	X(RDMACM, void, rdma_destroy_event_channel, (struct rdma_event_channel *channel), (channel)) \
	X(RDMACM, int, rdma_get_cm_event, \
	  (struct rdma_event_channel *channel, struct rdma_cm_event **event), (channel, event)) \
	X(RDMACM, int, rdma_ack_cm_event, (struct rdma_cm_event *event), (event)) \
	X(RDMACM, const char *, rdma_event_str, (enum rdma_cm_event_type type), (type)) \
	X(RDMACM, int, rdma_create_id, \
	  (struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space space), \
	  (channel, id, context, space)) \
	X(RDMACM, int, rdma_destroy_id, (struct rdma_cm_id *id), (id)) \
	X(RDMACM, int, rdma_migrate_id, (struct rdma_cm_id *id, struct rdma_event_channel *channel), (id, channel)) \
	X(RDMACM, int, rdma_bind_addr, (struct rdma_cm_id *id, struct sockaddr *addr), (id, addr)) \
	X(RDMACM, __be16, rdma_get_src_port, (struct rdma_cm_id *id), (id)) \
	X(RDMACM, int, rdma_resolve_addr, \
	  (struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms), \
	  (id, src, dst, timeout_ms)) \
	X(RDMACM, int, rdma_set_option, \
	  (struct rdma_cm_id *id, int level, int name, void *value, size_t len), (id, level, name, value, len)) \
	X(RDMACM, int, rdma_resolve_route, (struct rdma_cm_id *id, int timeout_ms), (id, timeout_ms)) \
	X(RDMACM, struct ibv_context **, rdma_get_devices, (int *cnt), (cnt)) \
	X(RDMACM, void, rdma_free_devices, (struct ibv_context **list), (list)) \
	X(RDMACM, int, rdma_listen, (struct rdma_cm_id *id, int backlog), (id, backlog)) \
	X(RDMACM, int, rdma_connect, (struct rdma_cm_id *id, struct rdma_conn_param *param), (id, param)) \
	X(RDMACM, int, rdma_accept, (struct rdma_cm_id *id, struct rdma_conn_param *param), (id, param)) \
	X(RDMACM, int, rdma_reject, (struct rdma_cm_id *id, const void *data, uint8_t len), (id, data, len)) \
	X(RDMACM, int, rdma_notify, (struct rdma_cm_id *id, enum ibv_event_type event), (id, event)) \
	X(RDMACM, int, rdma_disconnect, (struct rdma_cm_id *id), (id)) \
	X(RDMACM, int, rdma_establish, (struct rdma_cm_id *id), (id)) \
	X(RDMACM, int, rdma_create_qp, \
	  (struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr), (id, pd, attr)) \
	X(RDMACM, int, rdma_create_qp_ex, (struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr), (id, attr)) \
	X(RDMACM, void, rdma_destroy_qp, (struct rdma_cm_id *id), (id)) \
	X(RDMACM, int, rdma_init_qp_attr, \
	  (struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask), (id, attr, mask))

#define STAND_IN(lib, type, name, params, args) \
	static type (*to_##name) params; \
	type name params; \
	type name params { return to_##name args; }

CALLS(STAND_IN)

#define ENTRY(lib, type, name, params, args) { lib, #name, (void **) (void *) &to_##name },

static const struct {
	int lib;
	const char *name;
	void **to;
} calls[] = { CALLS(ENTRY) };

/* The header's ibv_reg_mr() calls ibv_reg_mr_iova2() where the compiler does not know the access. Libraries before
 * rdma-core 28 do not have it, and know no access that is optional. */
static struct ibv_mr *reg_mr_without_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access)
{
	if (iova == (uintptr_t) addr)
		return to_ibv_reg_mr(pd, addr, len, (int) (access & ~IBV_ACCESS_OPTIONAL_RANGE));
	errno = EOPNOTSUPP;
	return NULL;
}

/* Functions that older libraries lack. They are not called there, nor on devices without the feature. */
static bool is_young(const char *name)
{
	return !strcmp(name, "ibv_reg_mr_iova2") || !strcmp(name, "ibv_reg_dmabuf_mr") ||
	       !strcmp(name, "_ibv_query_gid_table");
}

bool vrb_lib_dmabuf(void)
{
	return to_ibv_reg_dmabuf_mr;
}

bool vrb_lib_gid_table(void)
{
	return to__ibv_query_gid_table;
}

static bool kernel_has_one(void)
{
	const char *sys = getenv("SYSFS_PATH");		/* as in libibverbs */
	char path[300];
	struct dirent *entry = NULL;
	DIR *dir;

	snprintf(path, sizeof(path), "%.200s/class/infiniband", sys ? sys : "/sys");
	dir = opendir(path);
	if (!dir)
		return false;
	do
		entry = readdir(dir);
	while (entry && entry->d_name[0] == '.');
	closedir(dir);
	return entry;
}

/* Load the libraries. Returns NULL, or the name of a missing library or function. */
static const char *load(void)
{
	void *lib[LIB_CNT];

	for (int i = 0; i < LIB_CNT; i++) {
		lib[i] = dlopen(lib_name[i], RTLD_NOW | RTLD_LOCAL);
		if (!lib[i])
			return lib_name[i];
	}
	for (size_t i = 0; i < fab_countof(calls); i++) {
		*calls[i].to = dlsym(lib[calls[i].lib], calls[i].name);
		if (!*calls[i].to && !is_young(calls[i].name))
			return calls[i].name;
	}
	if (!to_ibv_reg_mr_iova2)
		to_ibv_reg_mr_iova2 = reg_mr_without_iova2;
	return NULL;
}

bool vrb_lib_ready(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static enum { UNKNOWN, LOADED, BROKEN } state;
	const char *missing;
	bool ready;

	pthread_mutex_lock(&lock);
	if (state == UNKNOWN && kernel_has_one()) {
		missing = load();
		state = missing ? BROKEN : LOADED;
		if (missing)
			VRB_WARN(FI_LOG_FABRIC,
				 "there is an RDMA device, but no %s: install libibverbs and librdmacm\n", missing);
	}
	ready = state == LOADED;
	pthread_mutex_unlock(&lock);
	return ready;
}
