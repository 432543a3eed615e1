/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways into the library for those who extend it - fi_provider(3), fi_mr(3): a logger or a memory monitor of the program
 * in place of its own, and numbers that providers have reserved for options of theirs. No contract across releases,
 * except that what is here stays.
 */
#ifndef FI_EXT_H
#define FI_EXT_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>	/* which was a part of this header until 1.17 */

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of a provider's own are negative, counted from minus one of these. */
#define FI_PROV_SPECIFIC_EFA (0xefa << 16)
#define FI_PROV_SPECIFIC_TCP (0x7cb << 16)

/* Options of endpoints (fi_setopt) of the efa provider: fi_efa(7). */
enum {
	FI_OPT_EFA_RNR_RETRY = -FI_PROV_SPECIFIC_EFA,	/* size_t: how often, when the peer has no buffer */
	FI_OPT_EFA_EMULATED_READ,			/* bool, to read: done in software, as the next two */
	FI_OPT_EFA_EMULATED_WRITE,
	FI_OPT_EFA_EMULATED_ATOMICS,
	FI_OPT_EFA_USE_DEVICE_RDMA,			/* bool, as all that follow */
	FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES,
	FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES,
	FI_OPT_EFA_HOMOGENEOUS_PEERS,
	FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV,
};


/*
 * Objects that go from one library to another
 */

/* FI_EXPORT_FID's argument. */
struct fi_fid_export {
	struct fid **fid;		/* out */
	uint64_t flags;
	void *context;
};

/* A form of an object that other providers can put their results into: a struct fid_peer_* of fi_peer.h. */
static inline int fi_export_fid(struct fid *fid, uint64_t flags, struct fid **expfid, void *context)
{
	struct fi_fid_export exp;

	exp.fid = expfid;
	exp.flags = flags;
	exp.context = context;
	return fi_control(fid, FI_EXPORT_FID, &exp);
}

/* Give an object to one of the library, which borrows it until its own end. */
static inline int fi_import_fid(struct fid *fid, struct fid *expfid, uint64_t flags)
{
	return fid->ops->bind(fid, expfid, flags);
}

/* Open an object of the library by name, give it fid, and close it: the object lives on in the library. */
static inline int fi_import(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags,
			    struct fid *fid, void *context)
{
	struct fid *open_fid;
	int ret;

	ret = fi_open(version, name, attr, attr_len, flags, &open_fid, context);
	if (ret)
		return ret;
	ret = fi_import_fid(open_fid, fid, flags);
	fi_close(open_fid);
	return ret;
}


/*
 * Memory monitor: tells the registration cache which memory has changed owner. Import one of the program's into the
 * object "mr_cache". The program fills fid and export_ops, the library import_ops.
 */
struct fid_mem_monitor;

/* What the library asks of the program, about len bytes from addr on. */
struct fi_ops_mem_monitor {
	size_t size;
	int (*start)(struct fid_mem_monitor *monitor);
	void (*stop)(struct fid_mem_monitor *monitor);
	/* Watch it from now on; no longer; has it been unchanged since? */
	int (*subscribe)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
	void (*unsubscribe)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
	bool (*valid)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
};

/* What the program calls when watched memory is unmapped or remapped, before it is. Any thread. */
struct fi_ops_mem_notify {
	size_t size;
	void (*notify)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
};

struct fid_mem_monitor {
	struct fid fid;
	struct fi_ops_mem_monitor *export_ops;
	struct fi_ops_mem_notify *import_ops;
};


/*
 * Logger: takes the messages of the library in place of its own. Import it with fi_import_log(). The functions are
 * called from any thread, also while the caller is inside the library, and must not call back into it.
 */

/* In the flags of enabled and ready: the environment (FI_LOG_PROV) leaves this provider out. */
#define FI_LOG_PROV_FILTERED (1ULL << 0)

struct fi_ops_log {
	size_t size;
	/* Is a message of this kind wanted? Not 0: yes. */
	int (*enabled)(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		       uint64_t flags);
	/* The same of a message that comes often: *showtime is the caller's memory of when it may come again. */
	int (*ready)(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		     uint64_t flags, uint64_t *showtime);
	/* A message, formatted. func and line: where in the library it comes from. */
	void (*log)(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		    const char *func, int line, const char *msg);
};

struct fid_logging {
	struct fid fid;
	struct fi_ops_log *ops;
};

/* Use this logger from now on; the program fills ops, and keeps both until the process ends or another one is
 * imported. */
static inline int fi_import_log(uint32_t version, uint64_t flags, struct fid_logging *log_fid)
{
	log_fid->fid.fclass = FI_CLASS_LOG;
	log_fid->ops->size = sizeof(struct fi_ops_log);
	return fi_import(version, "logging", NULL, 0, flags, &log_fid->fid, log_fid);
}


/*
 * Why fi_getinfo() left entries out; this library's own, others answer -FI_ENOSYS. The object of fi_open(version,
 * "explain", NULL, 0, 0, &fid, context) keeps the reasons of the latest fi_getinfo() that the thread which opened it
 * has made since, nearest miss first; that thread also reads and closes it. fi_tostr_r(buf, len, fid, FI_TYPE_FID)
 * gives them as text, fi_open_ops(fid, FI_EXPLAIN_REASONS, 0, (void **) &ops, NULL) one by one.
 */
#define FI_EXPLAIN_REASONS "reasons"

/* The strings last until the thread's next fi_getinfo(), or until the object is closed. */
struct fi_explain_reason {
	const char *prov_name;
	const char *entry;		/* which entry did not fit; NULL: the provider as a whole */
	const char *attr;		/* what about it: member of struct fi_info, parameter, environment variable */
	const char *asked;
	const char *offered;
};

struct fi_ops_explain {
	size_t size;
	size_t (*count)(struct fid *fid);
	/* Reason number index, from 0 on: 0, or -FI_EINVAL beyond the last one. */
	int (*reason)(struct fid *fid, size_t index, struct fi_explain_reason *reason);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_H */
