/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Extensions - fi_provider(3), fi_mr(3): a program's logger or memory monitor in place of the library's, and the
 * numbers reserved for providers' own options. These are not guaranteed to be the same in all releases, but nothing
 * here will be removed.
 */
#ifndef FI_EXT_H
#define FI_EXT_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>	/* part of this header until 1.17 */

#ifdef __cplusplus
extern "C" {
#endif

/* A provider's own numbers are negative, and count up from minus one of these. */
#define FI_PROV_SPECIFIC_EFA (0xefa << 16)
#define FI_PROV_SPECIFIC_TCP (0x7cb << 16)

/* Options of endpoints (fi_setopt) of the efa provider: fi_efa(7). */
enum {
	FI_OPT_EFA_RNR_RETRY = -FI_PROV_SPECIFIC_EFA,	/* size_t: retries when the peer has no buffer posted */
	FI_OPT_EFA_EMULATED_READ,			/* bool, read-only: done in software, as the next two */
	FI_OPT_EFA_EMULATED_WRITE,
	FI_OPT_EFA_EMULATED_ATOMICS,
	FI_OPT_EFA_USE_DEVICE_RDMA,			/* bool, as the following options */
	FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES,
	FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES,
	FI_OPT_EFA_HOMOGENEOUS_PEERS,
	FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV,
};


/*
 * Exchange of objects between libraries
 */

/* The argument of FI_EXPORT_FID. */
struct fi_fid_export {
	struct fid **fid;		/* out */
	uint64_t flags;
	void *context;
};

/* Get the form of an object into which other providers can write their results: a struct fid_peer_* of fi_peer.h. */
static inline int fi_export_fid(struct fid *fid, uint64_t flags, struct fid **expfid, void *context)
{
	struct fi_fid_export exp;

	exp.fid = expfid;
	exp.flags = flags;
	exp.context = context;
	return fi_control(fid, FI_EXPORT_FID, &exp);
}

/* Bind expfid, an object of the program, to an object of the library, which borrows it until it is closed. */
static inline int fi_import_fid(struct fid *fid, struct fid *expfid, uint64_t flags)
{
	return fid->ops->bind(fid, expfid, flags);
}

/* Open an object of the library by name, bind fid to it, and close it. The library keeps using fid. */
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
 * Memory monitor: tells the registration cache when memory is unmapped or remapped. A program imports its monitor into
 * the object "mr_cache". The program fills in fid.fclass and export_ops, and the library fid.ops and import_ops. With
 * fi_close() of its fid the program takes the monitor back; no registration is cached then.
 */
struct fid_mem_monitor;

/* Functions of the program that the library calls, for len bytes from addr on. */
struct fi_ops_mem_monitor {
	size_t size;
	int (*start)(struct fid_mem_monitor *monitor);
	void (*stop)(struct fid_mem_monitor *monitor);
	/* Start watching; stop watching; true if the memory has not changed since. */
	int (*subscribe)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
	void (*unsubscribe)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
	bool (*valid)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
};

/* Called by the program before watched memory is unmapped or remapped. Any thread. */
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
 * Logger: gets the messages of the library in place of its own logger. Import it with fi_import_log(). The functions
 * are called from any thread, also from inside of library calls, and must not call the library.
 */

/* In the flags of enabled and ready: the environment (FI_LOG_PROV) leaves this provider out. */
#define FI_LOG_PROV_FILTERED (1ULL << 0)

struct fi_ops_log {
	size_t size;
	/* Not 0 if messages of this kind are wanted. */
	int (*enabled)(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		       uint64_t flags);
	/* The same for a message that may come often. *showtime, kept by the caller, is the time at which it may be
	 * logged again. */
	int (*ready)(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		     uint64_t flags, uint64_t *showtime);
	/* Log a formatted message. func and line are its place in the library. */
	void (*log)(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		    const char *func, int line, const char *msg);
};

struct fid_logging {
	struct fid fid;
	struct fi_ops_log *ops;
};

/* Use this logger from now on. The program fills in ops, and keeps both until the process ends or another logger is
 * imported. */
static inline int fi_import_log(uint32_t version, uint64_t flags, struct fid_logging *log_fid)
{
	log_fid->fid.fclass = FI_CLASS_LOG;
	log_fid->ops->size = sizeof(struct fi_ops_log);
	return fi_import(version, "logging", NULL, 0, flags, &log_fid->fid, log_fid);
}


/*
 * Reasons why fi_getinfo() left entries out. Only this library has them; others return -FI_ENOSYS. The object of
 * fi_open(version, "explain", NULL, 0, 0, &fid, context) keeps the reasons of the latest fi_getinfo() call that its
 * thread has made since, nearest miss first. Only the thread that opened it may read and close it. fi_tostr_r(buf, len,
 * fid, FI_TYPE_FID) returns the reasons as text, and fi_open_ops(fid, FI_EXPLAIN_REASONS, 0, (void **) &ops, NULL) one
 * by one.
 */
#define FI_EXPLAIN_REASONS "reasons"

/* The strings are valid until the thread's next fi_getinfo(), or until the object is closed. */
struct fi_explain_reason {
	const char *prov_name;
	const char *entry;		/* the entry that did not match; NULL: the whole provider */
	const char *attr;		/* the mismatch: member of struct fi_info, parameter, or environment variable */
	const char *asked;
	const char *offered;
};

struct fi_ops_explain {
	size_t size;
	size_t (*count)(struct fid *fid);
	/* Get the reason with this index, from 0. 0, or -FI_EINVAL after the last one. */
	int (*reason)(struct fid *fid, size_t index, struct fi_explain_reason *reason);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_H */
