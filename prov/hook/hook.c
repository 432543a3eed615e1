/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See hook.h. calls.def has a line for each slot; it is included three times: for the functions, for the list of slots
 * of each table, and for the names.
 *
 * State: the mode, written once; the tables that were made, under `lock`, never freed, as objects of any age use them
 * (there is one for each different table of a provider, some dozens); counts of calls, atomics.
 */
#include "hook/hook.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "base/bits.h"
#include "base/clock.h"

static struct fi_provider trace_prov = {
	.name = "ofi_hook_trace", .version = FI_VERSION(206, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
};
static struct fi_provider perf_prov = {
	.name = "ofi_hook_perf", .version = FI_VERSION(206, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
};

static bool traces, measures;
static uint64_t perf_config = PERF_COUNT_HW_INSTRUCTIONS;
static atomic_bool perf_is_time;	/* the counter cannot be used: nanoseconds in its place */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void hook_made(struct fid *fid);

/* ---- measuring ---- */

/* A slot whose calls are measured. */
struct site {
	const char *name;
	_Atomic uint64_t calls, sum;
};

/* Of this thread; closed by the kernel when the process ends. The model needs no library beyond libc. */
static __thread __attribute__((tls_model("initial-exec"))) int perf_fd = -1;

static void perf_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .size = sizeof(attr), .config = perf_config, .exclude_kernel = 1,
		.exclude_hv = 1,
	};

	perf_fd = (int) syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (perf_fd < 0 && !atomic_exchange(&perf_is_time, true))
		FI_WARN(&perf_prov, FI_LOG_CORE, "FI_HOOK=perf: the processor's counter cannot be read here "
			"(perf_event_open(2): %s); nanoseconds are counted in its place\n", strerror(errno));
}

static uint64_t perf_now(void)
{
	uint64_t now = 0;

	if (perf_fd < 0 && !atomic_load_explicit(&perf_is_time, memory_order_relaxed))
		perf_open();
	if (perf_fd < 0 || read(perf_fd, &now, sizeof(now)) != sizeof(now))
		return fab_now_ns();
	return now;
}

static void site_add(struct site *site, uint64_t value)
{
	atomic_fetch_add_explicit(&site->calls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&site->sum, value, memory_order_relaxed);
}

/* True for the tables whose calls are measured: fi_msg, fi_rma, fi_tagged, fi_cq, fi_cntr. A constant for the
 * compiler. */
static inline bool is_fast(const char *table)
{
	return !strcmp(table, "fi_ops_msg") || !strcmp(table, "fi_ops_rma") || !strcmp(table, "fi_ops_tagged") ||
	       !strcmp(table, "fi_ops_cq") || !strcmp(table, "fi_ops_cntr");
}

/* ---- the calls ---- */

/* Calls that return a text are shown by its address. */
#define SHOW(value)	((long long) (intptr_t) (value))
#define FAILED(value)	(SHOW(value) < 0)

#define HOOK_TABLE(table)
#define HOOK_END(table)
#define HOOK_BY_HAND(table, slot)
#define HOOK(table, slot, result, params, args, place, then, ...) \
	static struct site site_##table##_##slot = { .name = #table "." #slot }; \
	static result hook_##table##_##slot params \
	{ \
		const struct table *theirs = (const struct table *) (place) + 1; \
		uint64_t begin = is_fast(#table) && measures ? perf_now() : 0; \
		result ret = theirs->slot args; \
		if (is_fast(#table) && measures) \
			site_add(&site_##table##_##slot, perf_now() - begin); \
		if (traces) \
			HOOK_TRACE(table, slot, ret, __VA_ARGS__); \
		if (!FAILED(ret)) \
			then; \
		return ret; \
	}
#define HOOK_TRACE(table, slot, ret, form, ...) \
	FI_TRACE(&trace_prov, FI_LOG_CORE, #table "." #slot "(" form ") = %lld\n", __VA_ARGS__, SHOW(ret))
#include "hook/calls.def"
#undef HOOK
#undef HOOK_TABLE
#undef HOOK_END
#undef HOOK_BY_HAND

/* ---- the end of an object, and of a fabric ---- */

static struct site *const sites[] = {
#define HOOK_TABLE(table)
#define HOOK_END(table)
#define HOOK_BY_HAND(table, slot)
#define HOOK(table, slot, ...)	&site_##table##_##slot,
#include "hook/calls.def"
#undef HOOK
#undef HOOK_TABLE
#undef HOOK_END
#undef HOOK_BY_HAND
};

/* Log what was measured since the last fabric was closed. */
static void perf_report(void)
{
	for (size_t i = 0; i < fab_countof(sites); i++) {
		uint64_t calls = atomic_exchange(&sites[i]->calls, 0), sum = atomic_exchange(&sites[i]->sum, 0);

		if (calls)
			FI_TRACE(&perf_prov, FI_LOG_CORE, "%s: %llu calls, %llu %s on average\n", sites[i]->name,
				 (unsigned long long) calls, (unsigned long long) (sum / calls),
				 atomic_load(&perf_is_time) ? "nanoseconds" :
				 perf_config == PERF_COUNT_HW_CPU_CYCLES ? "cycles" : "instructions");
	}
}

/* Nothing of the object is there after the call. */
static int hook_fi_ops_close(struct fid *fid)
{
	const bool fabric = fid->fclass == FI_CLASS_FABRIC;
	int ret = fid->ops[1].close(fid);

	if (traces)
		FI_TRACE(&trace_prov, FI_LOG_CORE, "fi_ops.close(fid %p) = %d\n", (void *) fid, ret);
	if (fabric && measures && !ret)
		perf_report();
	return ret;
}

static void hook_alias(struct fid *alias, const struct fi_ops *theirs);

/* FI_ENABLE may give an endpoint other tables. */
static int hook_fi_ops_control(struct fid *fid, int command, void *arg)
{
	const struct fi_ops *theirs = fid->ops + 1;
	int ret = theirs->control(fid, command, arg);

	if (traces)
		FI_TRACE(&trace_prov, FI_LOG_CORE, "fi_ops.control(fid %p, command %d, arg %p) = %d\n", (void *) fid,
			 command, arg, ret);
	if (!ret && command == FI_ALIAS)
		hook_alias(*((struct fi_alias *) arg)->fid, theirs);
	if (!ret)
		hook_made(fid);
	return ret;
}

/* ---- tables ---- */

typedef void (*any_fn)(void);

struct slot {
	size_t offset;
	any_fn fn;
};

#define HOOK_TABLE(table)	static const struct slot slots_##table[] = {
#define HOOK(table, slot, ...)	{ offsetof(struct table, slot), (any_fn) hook_##table##_##slot },
#define HOOK_BY_HAND(table, slot)	{ offsetof(struct table, slot), (any_fn) hook_##table##_##slot },
#define HOOK_END(table)		};
#include "hook/calls.def"
#undef HOOK
#undef HOOK_TABLE
#undef HOOK_END
#undef HOOK_BY_HAND

/* A table that was made: ours, and behind it the copy of the provider's. */
struct made {
	struct made *next;
	const struct slot *slots;	/* tells its type */
	size_t size;			/* of the struct */
	_Alignas(16) uint8_t tables[];
};

static struct made *made_list;

/* Find or make the table for that of a provider. Returns theirs if it is one of ours, or there is no memory. */
static void *table_for(void *theirs, size_t size, const struct slot *slots, size_t cnt)
{
	size_t known = *(const size_t *) theirs < size ? *(const size_t *) theirs : size;
	struct made *made;

	for (made = made_list; made; made = made->next) {
		if (made->slots == slots && (theirs == made->tables || !memcmp(made->tables + size, theirs, known)))
			return made->tables;
	}
	made = calloc(1, sizeof(*made) + 2 * size);
	if (!made)
		return theirs;
	made->slots = slots;
	made->size = size;
	memcpy(made->tables, theirs, known);
	memcpy(made->tables + size, theirs, known);
	for (size_t i = 0; i < cnt; i++) {
		any_fn *slot = (any_fn *) (made->tables + slots[i].offset);

		if (slots[i].offset < known && *slot)
			*slot = slots[i].fn;
	}
	made->next = made_list;
	made_list = made;
	return made->tables;
}

#define REPLACE(type, place) \
	do { \
		if (place) \
			(place) = table_for((place), sizeof(struct type), slots_##type, fab_countof(slots_##type)); \
	} while (0)

static void hook_endpoint(struct fid_ep *ep)
{
	REPLACE(fi_ops_ep, ep->ops);
	REPLACE(fi_ops_cm, ep->cm);
	REPLACE(fi_ops_msg, ep->msg);
	REPLACE(fi_ops_rma, ep->rma);
	REPLACE(fi_ops_tagged, ep->tagged);
	REPLACE(fi_ops_atomic, ep->atomic);
	REPLACE(fi_ops_collective, ep->collective);
}

static void hook_domain(struct fid_domain *domain)
{
	REPLACE(fi_ops_domain, domain->ops);
	REPLACE(fi_ops_mr, domain->mr);
}

/* Replace the tables of an object, those that are not replaced yet. */
static void hook_made(struct fid *fid)
{
	pthread_mutex_lock(&lock);
	REPLACE(fi_ops, fid->ops);
	switch (fid->fclass) {
	case FI_CLASS_FABRIC:
		REPLACE(fi_ops_fabric, ((struct fid_fabric *) fid)->ops);
		break;
	case FI_CLASS_DOMAIN:
		hook_domain((struct fid_domain *) fid);
		break;
	case FI_CLASS_EP:
	case FI_CLASS_SEP:
	case FI_CLASS_RX_CTX:
	case FI_CLASS_SRX_CTX:
	case FI_CLASS_TX_CTX:
		hook_endpoint((struct fid_ep *) fid);
		break;
	case FI_CLASS_PEP:
		REPLACE(fi_ops_ep, ((struct fid_pep *) fid)->ops);
		REPLACE(fi_ops_cm, ((struct fid_pep *) fid)->cm);
		break;
	case FI_CLASS_STX_CTX:
		REPLACE(fi_ops_ep, ((struct fid_stx *) fid)->ops);
		break;
	case FI_CLASS_AV:
		REPLACE(fi_ops_av, ((struct fid_av *) fid)->ops);
		break;
	case FI_CLASS_AV_SET:
		REPLACE(fi_ops_av_set, ((struct fid_av_set *) fid)->ops);
		break;
	case FI_CLASS_EQ:
		REPLACE(fi_ops_eq, ((struct fid_eq *) fid)->ops);
		break;
	case FI_CLASS_CQ:
		REPLACE(fi_ops_cq, ((struct fid_cq *) fid)->ops);
		break;
	case FI_CLASS_CNTR:
		REPLACE(fi_ops_cntr, ((struct fid_cntr *) fid)->ops);
		break;
	case FI_CLASS_WAIT:
		REPLACE(fi_ops_wait, ((struct fid_wait *) fid)->ops);
		break;
	case FI_CLASS_POLL:
		REPLACE(fi_ops_poll, ((struct fid_poll *) fid)->ops);
		break;
	default:	/* memory regions, multicast groups: they have fid->ops alone */
		break;
	}
	pthread_mutex_unlock(&lock);
}

static bool is_made(const void *table)
{
	const struct made *made;

	for (made = made_list; made && table != made->tables; made = made->next)
		;
	return made;
}

/* An alias of an object was made, whose table of the provider is `theirs`. The alias may have a table of its own that
 * was copied from ours: put the provider's functions back into that, and hook it like any other. */
static void hook_alias(struct fid *alias, const struct fi_ops *theirs)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; !is_made(alias->ops) && i < fab_countof(slots_fi_ops); i++) {
		any_fn *slot = (any_fn *) ((uint8_t *) alias->ops + slots_fi_ops[i].offset);

		if (slots_fi_ops[i].offset < alias->ops->size && *slot == slots_fi_ops[i].fn)
			*slot = *(const any_fn *) ((const uint8_t *) theirs + slots_fi_ops[i].offset);
	}
	pthread_mutex_unlock(&lock);
	hook_made(alias);
}

/* ---- begin and end ---- */

/* True if the list has a hook of this name, with or without "ofi_hook_" in front. */
static bool list_has(const char *list, const char *name)
{
	static const char prefix[] = "ofi_hook_";
	size_t len = strlen(name);

	while (*list) {
		size_t item = strcspn(list, ";");
		const char *at = list;

		if (!strncmp(at, prefix, sizeof(prefix) - 1))
			at += sizeof(prefix) - 1;
		if ((size_t) (list + item - at) == len && !strncmp(at, name, len))
			return true;
		list += item + (list[item] == ';');
	}
	return false;
}

void fab_hook_init(void)
{
	char *list = NULL, *counter = NULL;

	fi_param_define(NULL, "hook", FI_PARAM_STRING,
			"Hooks, separated by semicolons: trace (ofi_hook_trace) logs each call, perf (ofi_hook_perf) "
			"measures the calls that move data; both log at level trace. See fi_hook(7) (default: none)");
	fi_param_define(NULL, "perf_cntr", FI_PARAM_STRING,
			"The counter of FI_HOOK=perf: cpu_instr or cpu_cycles (default: cpu_instr)");
	if (fi_param_get_str(NULL, "hook", &list) || !list || !*list)
		return;
	traces = list_has(list, "trace");
	measures = list_has(list, "perf");
	if (!traces && !measures)
		FI_WARN(&trace_prov, FI_LOG_CORE, "FI_HOOK=%.100s: there is no such hook; there are trace and perf\n",
			list);
	if (!fi_param_get_str(NULL, "perf_cntr", &counter) && counter && !strcmp(counter, "cpu_cycles"))
		perf_config = PERF_COUNT_HW_CPU_CYCLES;
}

void fab_hook_fabric(struct fid_fabric *fabric)
{
	if (traces || measures)
		hook_made(&fabric->fid);
}
