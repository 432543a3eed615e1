/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Steps with what the library itself has, and with objects that providers share: fi_open(3), a logger, parameters;
 * exported queues and counters, and queues and counters of a peer that write into them.
 */
#include "fuzz/calls/steps.h"

#include <string.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_tagged.h>

/* ---- the library */

static int log_enabled(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		       uint64_t flags)
{
	(void) prov, (void) flags;
	return level == FI_LOG_WARN && subsys != FI_LOG_MR;
}

static int log_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		     uint64_t flags, uint64_t *showtime)
{
	(*showtime)++;
	return log_enabled(prov, level, subsys, flags);
}

static void log_line(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		     const char *func, int line, const char *msg)
{
	(void) level, (void) subsys, (void) line;
	if (!prov || strlen(func) + strlen(msg) == 0)
		world_wrong("a message without a provider or without words");
}

static void import_log(void)
{
	static struct fi_ops_log ops = { .enabled = log_enabled, .ready = log_ready, .log = log_line };
	static struct fid_logging log = { .ops = &ops };

	CALL(fi_import_log(FI_VERSION(2, draw(7)), one_in(8) ? draw_any() : 0, &log), "fi_import_log()");
}

/* Not what the program itself opened last: the reasons of fi_getinfo() are the thread's. */
static void open_by_name(void)
{
	static const char *const names[] = { "explain", "logging", "mr_cache", "no such name", "" };
	const char *name = names[draw(COUNT(names))];
	struct fid *fid = NULL, other = { .fclass = draw(40) };
	char text[400];
	void *ops;

	if (CALL(fi_open(one_in(4) ? (uint32_t) draw_any() : FI_VERSION(2, 0), name, NULL, 0,
			 one_in(8) ? draw_any() : 0, &fid, NULL), "fi_open(%s)", name))
		return;
	if (!fid)
		world_wrong("opened, and there is no object");
	if (!strcmp(name, "explain") && one_in(2))
		step_getinfo();
	fi_tostr_r(text, draw(sizeof(text)), fid, FI_TYPE_FID);
	if (other.fclass != FI_CLASS_LOG && other.fclass != FI_CLASS_MEM_MONITOR)
		CALL(fi_import_fid(fid, &other, 0), "fi_import_fid(%s, class %zu)", name, other.fclass);
	CALL(fi_open_ops(fid, one_in(2) ? FI_EXPLAIN_REASONS : "no such ops", 0, &ops, NULL), "fi_open_ops(%s)", name);
	if (CALL(fi_close(fid), "fi_close(%s)", name))
		world_wrong("%s cannot be closed", name);
}

static void parameters(void)
{
	static struct fi_provider prov = { .version = 1, .fi_version = FI_VERSION(2, 0), .name = "calls" };
	static const char *const names[] = { "one", "two", "three" };
	const char *name = names[draw(COUNT(names))];
	enum fi_param_type type = one_in(8) ? (enum fi_param_type) draw(9) : FI_PARAM_INT;
	union {
		char *text;
		int number;
		size_t size;
	} value;

	CALL(fi_param_define(&prov, name, type, "a number of %s", "this program"), "fi_param_define(%s, %d)", name,
	     type);
	CALL(fi_param_get(&prov, one_in(8) ? "four" : name, &value), "fi_param_get(%s)", name);
}

static void open_somehow(void)
{
	struct fid_mem_monitor monitor = { .fid.fclass = FI_CLASS_MEM_MONITOR };

	CALL(fi_import(FI_VERSION(2, 0), one_in(2) ? "mr_cache" : "explain", NULL, 0, 0, &monitor.fid, &monitor),
	     "fi_import()");
}

/* What has no object of a provider. */
void step_library(void)
{
	uint32_t tclass = fi_tc_dscp_set((uint8_t) draw(64));
	uint64_t time = 0;

	switch (draw(6)) {
	case 0:
		import_log();
		break;
	case 1:
	case 2:
		open_by_name();
		break;
	case 3:
		parameters();
		break;
	case 4:
		open_somehow();
		break;
	default:
		if (fi_tc_dscp_get(tclass) != (tclass & 0xff) || fi_version() < FI_VERSION(2, 6))
			world_wrong("a traffic class or a version that cannot be");
		if (fi_tag_mpi(-1, 7) != (7ULL << 32 | UINT32_MAX))
			world_wrong("a tag of MPI that cannot be");
		CALL(fi_log_enabled(NULL, FI_LOG_INFO, FI_LOG_CORE) + fi_log_ready(NULL, FI_LOG_INFO, FI_LOG_CORE,
			&time), "fi_log_enabled(), fi_log_ready()");
	}
}

/* ---- shared objects */

static void lend(struct obj *of)
{
	struct obj *obj = of ? obj_new(LENT, of) : NULL;
	struct fid *fid = NULL;

	if (!obj)
		return;
	obj_opened(obj, CALL(fi_export_fid(of->fid, one_in(12) ? draw_any() : 0, &fid, NULL),
			     "fi_export_fid(%u of kind %u) -> %u", of->id, of->kind, obj->id), fid);
}

/* What a peer opens refers to the exported form, which therefore closes after it. */
static void borrow(struct obj *lent)
{
	struct obj *domain = pick(DOMAIN), *obj = domain ? obj_new(lent->up->kind, domain) : NULL;
	struct fi_peer_cq_context cq_context = { sizeof(cq_context), (struct fid_peer_cq *) (void *) lent->fid };
	struct fi_peer_cntr_context cntr_context = { sizeof(cntr_context),
						     (struct fid_peer_cntr *) (void *) lent->fid };
	struct fi_cq_attr cq_attr = { .flags = FI_PEER, .format = lent->up->format };
	struct fi_cntr_attr cntr_attr = { .flags = FI_PEER };
	struct fid_cq *cq = NULL;
	struct fid_cntr *cntr = NULL;

	if (!obj)
		return;
	if (obj->kind == CQ)
		obj = obj_opened(obj, CALL(fi_cq_open(AS(fid_domain, domain), &cq_attr, &cq, &cq_context),
					   "fi_cq_open(domain %u, FI_PEER of %u) -> %u", domain->id, lent->id,
					   obj->id), cq ? &cq->fid : NULL);
	else
		obj = obj_opened(obj, CALL(fi_cntr_open(AS(fid_domain, domain), &cntr_attr, &cntr, &cntr_context),
					   "fi_cntr_open(domain %u, FI_PEER of %u) -> %u", domain->id, lent->id,
					   obj->id), cntr ? &cntr->fid : NULL);
	if (!obj)
		return;
	obj->format = lent->up->format;
	obj->owner = lent;
	lent->pins++;
}

void step_lend(void)
{
	struct obj *lent = pick(LENT);

	if (lent && one_in(2) && (lent->up->kind == CQ || lent->up->kind == CNTR))
		borrow(lent);
	else
		lend(pick_of(one_in(16) ? UINT32_MAX & ~(1U << LENT) : 1U << CQ | 1U << CNTR | 1U << AV | 1U << SET));
}
