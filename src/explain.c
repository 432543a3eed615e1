/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Explanations of fi_getinfo(), for the user (stderr) and for explain objects. State: the list of open explain objects,
 * under one mutex. Each holds the reasons of the latest call of its thread. The number of objects is also an atomic, so
 * that a process without any pays for one load.
 */
#include "explain.h"

#include "base/list.h"
#include "base/strbuf.h"
#include "fid.h"
#include "log.h"
#include "names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_LEN = 512 };

struct explain {
	struct fid fid;
	struct fab_list link;
	pthread_t thread;		/* opened the object; its calls are recorded */
	char call[CALL_LEN];		/* the call and its result, one line; "" before the first */
	struct fab_reasons reasons;
};

static struct fab_list explains = FAB_LIST_INIT(explains);
static pthread_mutex_t explains_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned explain_cnt;
static int on_stderr;			/* FI_EXPLAIN; constant after fab_explain_init() */

void fab_explain_init(void)
{
	fi_param_define(NULL, "explain", FI_PARAM_BOOL,
			"Write to stderr, for each fi_getinfo(), why entries of providers do not match (default: no)");
	fi_param_get_bool(NULL, "explain", &on_stderr);
}

/* The calling thread's latest object; NULL if it has none. explains_lock held. */
static struct explain *explain_find(void)
{
	struct fab_list *link;

	fab_list_for_each(&explains, link) {
		struct explain *explain = fab_container(link, struct explain, link);

		if (pthread_equal(explain->thread, pthread_self()))
			return explain;
	}
	return NULL;
}

bool fab_explain_on_stderr(void)
{
	return on_stderr;
}

bool fab_explain_wanted(void)
{
	bool found;

	if (on_stderr)
		return true;
	if (!atomic_load_explicit(&explain_cnt, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&explains_lock);
	found = explain_find();
	pthread_mutex_unlock(&explains_lock);
	return found;
}

static void put_call(struct fab_strbuf *sb, uint32_t version, const char *node, const char *service,
		     uint64_t flags, int ret)
{
	fab_strbuf_printf(sb, "fi_getinfo(%u.%u, node %s, service %s, flags [ ", FI_MAJOR(version), FI_MINOR(version),
			  node ? node : "(null)", service ? service : "(null)");
	fab_names_put(sb, FAB_TYPE_GETINFO_FLAGS, flags);
	fab_strbuf_printf(sb, " ]): %s", ret ? fi_strerror(-ret) : "found entries; these do not match");
}

/* Append the call and its reasons. */
static void put_text(struct fab_strbuf *sb, const char *call, struct fab_reasons *reasons)
{
	fab_strbuf_printf(sb, "%s\n", call);
	fab_reasons_put(reasons, sb);
}

static void tell_stderr(const char *call, struct fab_reasons *reasons)
{
	struct fab_strbuf sb;
	char *text;

	fab_strbuf_init(&sb, NULL, 0);
	put_text(&sb, call, reasons);
	text = malloc(sb.len + 1);
	if (!text) {
		fprintf(stderr, "%s\n", call);
		return;
	}
	fab_strbuf_init(&sb, text, sb.len + 1);
	put_text(&sb, call, reasons);
	fwrite(text, 1, sb.len, stderr);
	free(text);
}

void fab_explain_tell(struct fab_reasons *reasons, uint32_t version, const char *node, const char *service,
		      uint64_t flags, int ret)
{
	struct explain *explain;
	struct fab_strbuf sb;
	char call[CALL_LEN];

	fab_strbuf_init(&sb, call, sizeof(call));
	put_call(&sb, version, node, service, flags, ret);
	if (on_stderr && (ret || reasons->cnt))
		tell_stderr(call, reasons);

	pthread_mutex_lock(&explains_lock);
	explain = explain_find();
	if (explain) {
		memcpy(explain->call, call, sizeof(call));
		fab_reasons_fini(&explain->reasons);
		explain->reasons = *reasons;
		fab_reasons_init(reasons);
	}
	pthread_mutex_unlock(&explains_lock);
}

static int explain_close(struct fid *fid)
{
	struct explain *explain = fab_container(fid, struct explain, fid);

	pthread_mutex_lock(&explains_lock);
	fab_list_remove(&explain->link);
	atomic_fetch_sub_explicit(&explain_cnt, 1, memory_order_relaxed);
	pthread_mutex_unlock(&explains_lock);
	fab_reasons_fini(&explain->reasons);
	free(explain);
	return 0;
}

static int explain_tostr(const struct fid *fid, char *buf, size_t len)
{
	struct explain *explain = fab_container(fid, struct explain, fid);
	struct fab_strbuf sb;

	fab_strbuf_init(&sb, buf, len);
	put_text(&sb, explain->call, &explain->reasons);
	return (int) sb.len;
}

static size_t explain_count(struct fid *fid)
{
	return fab_container(fid, struct explain, fid)->reasons.cnt;
}

static int explain_reason(struct fid *fid, size_t index, struct fi_explain_reason *out)
{
	const struct fab_reasons *reasons = &fab_container(fid, struct explain, fid)->reasons;

	if (!out || index >= reasons->cnt)
		return -FI_EINVAL;
	*out = (struct fi_explain_reason) {
		.prov_name = reasons->list[index].prov,
		.entry = reasons->list[index].entry,
		.attr = reasons->list[index].attr,
		.asked = reasons->list[index].asked,
		.offered = reasons->list[index].offered,
	};
	return 0;
}

static int explain_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	static struct fi_ops_explain explain_ops = {
		.size = sizeof(struct fi_ops_explain),
		.count = explain_count,
		.reason = explain_reason,
	};

	(void) fid;
	(void) context;
	if (flags)
		return -FI_EBADFLAGS;
	if (!ops || !name || strcmp(name, FI_EXPLAIN_REASONS))
		return -FI_EINVAL;
	*ops = &explain_ops;
	return 0;
}

int fab_explain_open(struct fid **fid, void *context)
{
	static struct fi_ops ops = {
		.size = sizeof(struct fi_ops),
		.close = explain_close,
		.bind = fab_fid_no_bind,
		.control = fab_fid_no_control,
		.ops_open = explain_ops_open,
		.tostr = explain_tostr,
	};
	struct explain *explain = calloc(1, sizeof(*explain));

	if (!explain)
		return -FI_ENOMEM;
	explain->fid = (struct fid) { .fclass = FI_CLASS_UNSPEC, .context = context, .ops = &ops };
	explain->thread = pthread_self();
	fab_reasons_init(&explain->reasons);
	pthread_mutex_lock(&explains_lock);
	fab_list_add_head(&explains, &explain->link);
	atomic_fetch_add_explicit(&explain_cnt, 1, memory_order_relaxed);
	pthread_mutex_unlock(&explains_lock);
	*fid = &explain->fid;
	return 0;
}
