/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Logging inside of the core, over the public fi_log*(). All calls from any thread.
 *
 * Settings are read when the first line is asked for: FI_LOG_LEVEL (silent, error, warn, trace, info, debug; default
 * warn), FI_LOG_PROV and FI_LOG_SUBSYS (lists as in filter.h), FI_LOG_INTERVAL (ms). A line is written by one call, as
 *
 *	libfabric:PID:TIME::PROVIDER:SUBSYSTEM:FUNCTION():LINE<LEVEL> text
 *
 * with PID/TID for PID when the level is debug, and TIME in seconds since 1970. An imported logger (fi_import_log())
 * takes the place of all that: it is asked before each line, and gets the text.
 */
#ifndef FAB_LOG_H
#define FAB_LOG_H

#include <rdma/fi_ext.h>
#include <rdma/providers/fi_log.h>

/* The name under which the core logs and has its parameters. */
extern struct fi_provider fab_core_prov;

/* More severe than a warning, and than what the ABI has a value for: a call was refused for what the caller asked.
 * FI_LOG_LEVEL=error shows these alone; an imported logger sees them as warnings. */
#define FAB_LOG_ERROR ((enum fi_log_level) -1)

/* Log for the core itself. */
#define FAB_ERROR(...) FI_LOG(&fab_core_prov, FAB_LOG_ERROR, FI_LOG_CORE, __VA_ARGS__)
#define FAB_WARN(...) FI_WARN(&fab_core_prov, FI_LOG_CORE, __VA_ARGS__)
#define FAB_INFO(...) FI_INFO(&fab_core_prov, FI_LOG_CORE, __VA_ARGS__)

/* fi_open("logging"): an object to import a logger by. 0, or -FI_EALREADY while one is open. */
int fab_log_open(struct fid **fid, void *context);

/* Forget an imported logger: at unload, when its code may be gone. */
void fab_log_fini(void);

#endif
