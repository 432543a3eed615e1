/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Logging inside of the core, over the public fi_log*(). All calls from any thread.
 *
 * Settings are read by the first call of an fi_log*(): FI_LOG_LEVEL (silent, error, warn, trace,
 * info, debug; default warn), FI_LOG_PROV and FI_LOG_SUBSYS (lists as in filter.h), FI_LOG_INTERVAL (ms),
 * FI_LOG_LOCATION (stderr, stdout, a new file, or a folder for a new ofi_PID.log), FI_LOG_LOCATION_MODE (of the file).
 * While the level is warn or less, no line is written twice, and a place in the source writes few lines (log_repeat.h).
 * Each line is written by one fwrite() or write(), as
 *
 *	libfabric:PID:TIME::PROVIDER:SUBSYSTEM:FUNCTION():LINE<LEVEL> text
 *
 * PID is PID/TID when the level is debug. TIME is in seconds since 1970. An imported logger (fi_import_log()) replaces
 * all this: it decides whether a line is logged, and is given the text.
 */
#ifndef FAB_LOG_H
#define FAB_LOG_H

#include <stdbool.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_log.h>

/* The name under which the core logs and has its parameters. */
extern struct fi_provider fab_core_prov;

/* A call was refused because of its arguments. More severe than FI_LOG_WARN, which is the most severe level that the
 * ABI has a value for. FI_LOG_LEVEL=error shows only lines of this level. An imported logger gets them as warnings. */
#define FAB_LOG_ERROR ((enum fi_log_level) -1)

/* Log for the core itself. */
#define FAB_ERROR(...) FI_LOG(&fab_core_prov, FAB_LOG_ERROR, FI_LOG_CORE, __VA_ARGS__)
#define FAB_WARN(...) FI_WARN(&fab_core_prov, FI_LOG_CORE, __VA_ARGS__)
#define FAB_INFO(...) FI_INFO(&fab_core_prov, FI_LOG_CORE, __VA_ARGS__)

/* fi_open("logging"): open the object to which an application binds its logger. 0, or -FI_EALREADY while one is
 * open. */
int fab_log_open(struct fid **fid, void *context);

/* Warnings that matter only if nothing better comes: lines about a fi_getinfo() that has found nothing, which a program
 * may do on purpose until it finds something. Log them at the end of the process, or at once for an imported logger and
 * at level info. @text is allocated, belongs to the log from here on, and replaces the text kept before. NULL means
 * that there was no memory; nothing is kept. */
void fab_log_keep(char *text);
/* False if fab_log_keep() would have no effect. */
bool fab_log_keeps(void);
/* Keep nothing from now on, and drop the text that is kept. */
void fab_log_keep_none(void);

/* Log the text that is kept, stop using an imported logger, and close the file of FI_LOG_LOCATION. Called at unload,
 * when the logger's code may have been unloaded. */
void fab_log_fini(void);

#endif
