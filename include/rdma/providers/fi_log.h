/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Log messages, on stderr or to the program's own logger (fi_import_log) - fi_provider(3). The environment variables
 * FI_LOG_LEVEL, FI_LOG_PROV, FI_LOG_SUBSYS and FI_LOG_INTERVAL select the messages. Any thread. The macros evaluate
 * their arguments only if the message is selected, and do not change errno. A newline at the end is optional.
 */
#ifndef FI_LOG_H
#define FI_LOG_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The subject of a message. */
enum fi_log_subsys {
	FI_LOG_CORE,
	FI_LOG_FABRIC,
	FI_LOG_DOMAIN,
	FI_LOG_EP_CTRL,
	FI_LOG_EP_DATA,
	FI_LOG_AV,
	FI_LOG_CQ,
	FI_LOG_EQ,
	FI_LOG_MR,
	FI_LOG_CNTR,
};

/* Levels. A level includes those before it. */
enum fi_log_level {
	FI_LOG_WARN,			/* something does not work */
	FI_LOG_TRACE,			/* calls */
	FI_LOG_INFO,			/* decisions and their reasons */
	FI_LOG_DEBUG,			/* everything */
};

/* The last value of each enum plus 1. Names of 1.x, macros here so that they are not enumerators. */
#define FI_LOG_SUBSYS_MAX 10
#define FI_LOG_MAX 4

/* Not 0 if messages of this kind are selected. */
int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys);

/* The same for a message that may come often: not 0 at most once in FI_LOG_INTERVAL ms. The caller keeps *showtime,
 * which is 0 at first. Since 1.14. */
int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		 uint64_t *showtime);

/* Write a message, selected or not. The macros below check first. */
void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys, const char *func,
	    int line, const char *fmt, ...) FI_FORMAT_PRINTF(6, 7);

#define FI_LOG(prov, level, subsystem, ...)							\
	do {											\
		int fi_log_errno_ = errno;							\
												\
		if (fi_log_enabled(prov, level, subsystem))					\
			fi_log(prov, level, subsystem, __func__, __LINE__, __VA_ARGS__);	\
		errno = fi_log_errno_;								\
	} while (0)

/* At most once in FI_LOG_INTERVAL, for each place in the source. */
#define FI_LOG_SPARSE(prov, level, subsystem, ...)						\
	do {											\
		static uint64_t fi_log_showtime_;						\
		int fi_log_errno_ = errno;							\
												\
		if (fi_log_ready(prov, level, subsystem, &fi_log_showtime_))			\
			fi_log(prov, level, subsystem, __func__, __LINE__, __VA_ARGS__);	\
		errno = fi_log_errno_;								\
	} while (0)

/* Once, for each place in the source. */
#define FI_WARN_ONCE(prov, subsystem, ...)							\
	do {											\
		static int fi_log_said_;							\
												\
		if (!fi_log_said_ && fi_log_enabled(prov, FI_LOG_WARN, subsystem)) {		\
			FI_WARN(prov, subsystem, __VA_ARGS__);					\
			fi_log_said_ = 1;							\
		}										\
	} while (0)

#define FI_WARN(prov, subsystem, ...) FI_LOG(prov, FI_LOG_WARN, subsystem, __VA_ARGS__)
#define FI_WARN_SPARSE(prov, subsystem, ...) FI_LOG_SPARSE(prov, FI_LOG_WARN, subsystem, __VA_ARGS__)
#define FI_TRACE(prov, subsystem, ...) FI_LOG(prov, FI_LOG_TRACE, subsystem, __VA_ARGS__)
#define FI_INFO(prov, subsystem, ...) FI_LOG(prov, FI_LOG_INFO, subsystem, __VA_ARGS__)

/* Only in a source that is compiled with ENABLE_DEBUG defined as a number that is not 0. */
#if defined(ENABLE_DEBUG) && ENABLE_DEBUG
#define FI_DBG(prov_name, subsystem, ...) FI_LOG(prov_name, FI_LOG_DEBUG, subsystem, __VA_ARGS__)
#define FI_DBG_TRACE(prov, subsystem, ...) FI_LOG(prov, FI_LOG_TRACE, subsystem, __VA_ARGS__)
#else
#define FI_DBG(prov_name, subsystem, ...) do { } while (0)
#define FI_DBG_TRACE(prov, subsystem, ...) do { } while (0)
#endif

#ifdef __cplusplus
}
#endif

#endif /* FI_LOG_H */
