/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A memory monitor of the program (fi_mr(3)), which it gives the library by fi_import(). It counts, and lets a test act
 * before memory is registered. It reports nothing by itself.
 */
#ifndef TEST_RXM_MONITOR_H
#define TEST_RXM_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>

static unsigned started, subscribed;
static void (*before_registration)(const void *addr);	/* called without a lock of the library; or NULL */

static int mon_start(struct fid_mem_monitor *monitor)
{
	(void) monitor;
	started++;
	return 0;
}

static void mon_stop(struct fid_mem_monitor *monitor)
{
	(void) monitor;
	started--;
}

static int mon_subscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void) monitor;
	(void) len;
	subscribed++;
	if (before_registration)
		before_registration(addr);
	return 0;
}

static void mon_unsubscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void) monitor;
	(void) addr;
	(void) len;
}

static bool mon_valid(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void) monitor;
	(void) addr;
	(void) len;
	return true;
}

static struct fi_ops_mem_monitor mon_ops = {
	.size = sizeof(mon_ops), .start = mon_start, .stop = mon_stop, .subscribe = mon_subscribe,
	.unsubscribe = mon_unsubscribe, .valid = mon_valid,
};
static struct fid_mem_monitor mon = { .fid.fclass = FI_CLASS_MEM_MONITOR, .export_ops = &mon_ops };

/* 0 or -FI_E*, as fi_import(). */
static inline int mon_import(void)
{
	return fi_import(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &mon.fid, NULL);
}

#endif
