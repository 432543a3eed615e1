/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Public API of libfabric, version 2.6: rdma/fi_ext.h. */
#ifndef FI_EXT_H
#define FI_EXT_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_PROV_SPECIFIC_EFA 0xefa0000
#define FI_PROV_SPECIFIC_TCP 0x7cb0000
#define FI_LOG_PROV_FILTERED (1ULL << 0)

enum {
	FI_OPT_EFA_RNR_RETRY = -251265024,
	FI_OPT_EFA_EMULATED_READ = -251265023,
	FI_OPT_EFA_EMULATED_WRITE = -251265022,
	FI_OPT_EFA_EMULATED_ATOMICS = -251265021,
	FI_OPT_EFA_USE_DEVICE_RDMA = -251265020,
	FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES = -251265019,
	FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES = -251265018,
	FI_OPT_EFA_HOMOGENEOUS_PEERS = -251265017,
	FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV = -251265016,
};

struct fi_fid_export {
	struct fid **fid;
	uint64_t flags;
	void *context;
};

struct fi_ops_mem_monitor {
	size_t size;
	int (*start)(struct fid_mem_monitor *);
	void (*stop)(struct fid_mem_monitor *);
	int (*subscribe)(struct fid_mem_monitor *, const void *, size_t);
	void (*unsubscribe)(struct fid_mem_monitor *, const void *, size_t);
	bool (*valid)(struct fid_mem_monitor *, const void *, size_t);
};

struct fi_ops_mem_notify {
	size_t size;
	void (*notify)(struct fid_mem_monitor *, const void *, size_t);
};

struct fid_mem_monitor {
	struct fid fid;
	struct fi_ops_mem_monitor *export_ops;
	struct fi_ops_mem_notify *import_ops;
};

struct fi_ops_log {
	size_t size;
	int (*enabled)(const struct fi_provider *, enum fi_log_level, enum fi_log_subsys, uint64_t);
	int (*ready)(const struct fi_provider *, enum fi_log_level, enum fi_log_subsys, uint64_t, uint64_t *);
	void (*log)(const struct fi_provider *, enum fi_log_level, enum fi_log_subsys, const char *, int, const char *);
};

struct fid_logging {
	struct fid fid;
	struct fi_ops_log *ops;
};

/*
 * The library's own, not in other libfabrics: why fi_getinfo() left entries out. An object of fi_open(version, "explain",
 * NULL, 0, 0, &fid, context) keeps the reasons of the latest fi_getinfo() that the thread which opened it has made since,
 * nearest miss first; that thread also reads and closes it. fi_tostr_r(buf, len, fid, FI_TYPE_FID) gives them as text,
 * fi_open_ops(fid, FI_EXPLAIN_REASONS, 0, (void **) &ops, NULL) one by one. Other libraries answer -FI_ENOSYS to fi_open().
 */
#define FI_EXPLAIN_REASONS "reasons"

/* Strings last until the thread's next fi_getinfo(), or until the object is closed. */
struct fi_explain_reason {
	const char *prov_name;
	const char *entry;	/* which entry did not fit; NULL: the provider as a whole */
	const char *attr;	/* what about it: a member of struct fi_info, a parameter, or an environment variable */
	const char *asked;
	const char *offered;
};

struct fi_ops_explain {
	size_t size;
	size_t (*count)(struct fid *fid);
	/* 0, or -FI_EINVAL beyond the last one */
	int (*reason)(struct fid *fid, size_t index, struct fi_explain_reason *reason);
};

static inline int fi_export_fid(struct fid *fid, uint64_t flags, struct fid **expfid, void *context)
{
	struct fi_fid_export arg;

	arg.fid = expfid;
	arg.flags = flags;
	arg.context = context;
	return fid->ops->control(fid, FI_EXPORT_FID, &arg);
}

static inline int fi_import_fid(struct fid *fid, struct fid *expfid, uint64_t flags)
{
	return fid->ops->bind(fid, expfid, flags);
}

static inline int fi_import(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags, struct fid *fid, void *context)
{
	struct fid *open_fid;
	int ret = fi_open(version, name, attr, attr_len, flags, &open_fid, context);

	if (ret)
		return ret;
	ret = fi_import_fid(open_fid, fid, flags);
	fi_close(open_fid);
	return ret;
}

static inline int fi_import_log(uint32_t version, uint64_t flags, struct fid_logging *log_fid)
{
	log_fid->fid.fclass = FI_CLASS_LOG;
	log_fid->ops->size = sizeof(struct fi_ops_log);
	return fi_import(version, "logging", NULL, 0, flags, &log_fid->fid, log_fid);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_H */
