/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Public API of libfabric, version 2.6: rdma/providers/fi_log.h. */
#ifndef FI_LOG_H
#define FI_LOG_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_LOG(prov, level, subsystem, ...) do { \
	int fi_saved_errno_ = errno; \
	if (fi_log_enabled(prov, level, subsystem)) \
		fi_log(prov, level, subsystem, __func__, __LINE__, __VA_ARGS__); \
	errno = fi_saved_errno_; \
} while (0)
#define FI_LOG_SPARSE(prov, level, subsystem, ...) do { \
	static uint64_t fi_showtime_; \
	int fi_saved_errno_ = errno; \
	if (fi_log_ready(prov, level, subsystem, &fi_showtime_)) \
		fi_log(prov, level, subsystem, __func__, __LINE__, __VA_ARGS__); \
	errno = fi_saved_errno_; \
} while (0)
#define FI_WARN(prov, subsystem, ...) FI_LOG(prov, FI_LOG_WARN, subsystem, __VA_ARGS__)
#define FI_WARN_SPARSE(prov, subsystem, ...) FI_LOG_SPARSE(prov, FI_LOG_WARN, subsystem, __VA_ARGS__)
#define FI_TRACE(prov, subsystem, ...) FI_LOG(prov, FI_LOG_TRACE, subsystem, __VA_ARGS__)
#define FI_INFO(prov, subsystem, ...) FI_LOG(prov, FI_LOG_INFO, subsystem, __VA_ARGS__)
#if defined(ENABLE_DEBUG) && ENABLE_DEBUG
#define FI_DBG(prov, subsystem, ...) FI_LOG(prov, FI_LOG_DEBUG, subsystem, __VA_ARGS__)
#define FI_DBG_TRACE(prov, subsystem, ...) FI_LOG(prov, FI_LOG_TRACE, subsystem, __VA_ARGS__)
#else
#define FI_DBG(prov, subsystem, ...) do { } while (0)
#define FI_DBG_TRACE(prov, subsystem, ...) do { } while (0)
#endif

#define FI_WARN_ONCE(prov, subsystem, ...) do { \
	static int fi_warned_; \
	if (!fi_warned_ && fi_log_enabled(prov, FI_LOG_WARN, subsystem)) { \
		FI_WARN(prov, subsystem, __VA_ARGS__); \
		fi_warned_ = 1; \
	} \
} while (0)

#define FI_LOG_SUBSYS_MAX 10
#define FI_LOG_MAX 4

enum fi_log_subsys {
	FI_LOG_CORE = 0,
	FI_LOG_FABRIC = 1,
	FI_LOG_DOMAIN = 2,
	FI_LOG_EP_CTRL = 3,
	FI_LOG_EP_DATA = 4,
	FI_LOG_AV = 5,
	FI_LOG_CQ = 6,
	FI_LOG_EQ = 7,
	FI_LOG_MR = 8,
	FI_LOG_CNTR = 9,
};

enum fi_log_level {
	FI_LOG_WARN = 0,
	FI_LOG_TRACE = 1,
	FI_LOG_INFO = 2,
	FI_LOG_DEBUG = 3,
};

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys);

int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys, uint64_t *showtime);

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys, const char *func, int line, const char *fmt, ...) FI_FORMAT_PRINTF(6, 7);

#ifdef __cplusplus
}
#endif

#endif /* FI_LOG_H */
