/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See world.h.
 */
#include "fuzz/calls/world.h"

#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "seeds/seeds.h"

#define OBJS	400
#define OPS	2000
#define MEMS	4000
#define INFOS	400
#define GUARD	16
#define GUARDED	0xa5

static struct {
	const char *prov;
	bool told;
	uint64_t random;
	struct obj objs[OBJS];
	unsigned obj_cnt;
	struct op ops[OPS];
	unsigned op_cnt;
	uint8_t *mems[MEMS];
	size_t lens[MEMS];
	unsigned mem_cnt;
	struct fi_info *infos[INFOS];
	unsigned info_cnt;
	char call[300], step[40];
	unsigned fds, threads;
} w;

static jmp_buf failed;
static char why[600];

/* Not those of a header, since gcc and clang have different ones. */
__attribute__((weak)) void __asan_poison_memory_region(void const volatile *addr, size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile *addr, size_t size);

_Noreturn void world_wrong(const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(why, sizeof(why) / 2, format, args);
	va_end(args);
	snprintf(why + len, sizeof(why) - (size_t) len, " (%s: %s)", w.step, w.call);
	longjmp(failed, 1);
}

const char *world_play(void (*program)(void))
{
	if (setjmp(failed))
		return why;
	program();
	return NULL;
}

const char *world_prov(void)
{
	return w.prov;
}

/* ---- random numbers, words */

uint32_t draw(uint32_t n)
{
	return seeds_draw(&w.random, n);
}

uint64_t draw64(void)
{
	return (uint64_t) draw(UINT32_MAX) << 32 | draw(UINT32_MAX);
}

bool one_in(uint32_t n)
{
	return !draw(n);
}

uint64_t draw_bits(uint64_t bits)
{
	uint64_t some = 0;

	for (uint32_t i = draw(4); i; i--) {
		uint64_t left = bits;

		for (uint32_t skip = draw((uint32_t) __builtin_popcountll(bits) + 1); left && skip; skip--)
			left &= left - 1;
		some |= left & -left;
	}
	return some;
}

size_t draw_len(void)
{
	static const size_t lens[] = { 0, 1, 3, 4, 8, 16, 17, 64, 100, 255, 256, 1000, 4095, 4096, 4097, 10000, 16384,
				       65536, 65537, 200000, 1 << 20 };

	return lens[draw(one_in(4) ? COUNT(lens) : 14)];
}

uint64_t draw_any(void)
{
	switch (draw(6)) {
	case 0:
		return draw64();
	case 1:
		return UINT64_MAX - draw(3);
	case 2:
		return 1ULL << draw(64);
	default:
		return draw(20);
	}
}

void world_step(const char *name, uint64_t seed)
{
	snprintf(w.step, sizeof(w.step), "%s", name);
	w.random = seed;
}

void doing(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w.call, sizeof(w.call), format, args);
	va_end(args);
	seeds_doing(w.call);
	if (w.told) {
		printf("#   %s", w.call);
		fflush(stdout);
	}
}

long long did(long long ret)
{
	if (w.told)
		printf(" = %lld %s\n", ret, ret < 0 && ret > -512 ? fi_strerror((int) -ret) : "");
	return ret;
}

/* ---- memory */

static void guard(uint8_t *mem, size_t len, bool on)
{
	void (*act)(void const volatile *, size_t) = on ? __asan_poison_memory_region : __asan_unpoison_memory_region;

	if (!act)
		return;
	act(mem - GUARD, GUARD);
	act(mem + len, GUARD);
}

static uint8_t *guarded_new(size_t len)
{
	uint8_t *whole = malloc(len + 2 * GUARD);

	memset(whole, GUARDED, len + 2 * GUARD);
	guard(whole + GUARD, len, true);
	return whole + GUARD;
}

static void guarded_check(uint8_t *mem, size_t len)
{
	guard(mem, len, false);
	for (size_t i = 0; i < GUARD; i++) {
		if (mem[-1 - (ptrdiff_t) i] != GUARDED || mem[len + i] != GUARDED)
			world_wrong("written outside of a buffer of %zu bytes", len);
	}
}

static void guarded_free(uint8_t *mem, size_t len)
{
	guarded_check(mem, len);
	free(mem - GUARD);
}

uint8_t *mem_new(size_t len)
{
	uint8_t *mem;

	if (w.mem_cnt == MEMS)
		world_wrong("too few memories");
	mem = guarded_new(len);
	w.mems[w.mem_cnt] = mem;
	w.lens[w.mem_cnt++] = len;
	return mem;
}

uint8_t *mem_registered(size_t len)
{
	return guarded_new(len);
}

void mem_unregistered(uint8_t *mem, size_t len)
{
	guarded_free(mem, len);
}

struct fi_info *keep_info(struct fi_info *info)
{
	if (w.info_cnt == INFOS)
		world_wrong("too few infos");
	w.infos[w.info_cnt++] = info;
	return info;
}

/* ---- operations */

struct op *op_new(struct obj *obj)
{
	struct op *op = &w.ops[w.op_cnt];

	if (!obj || w.op_cnt == OPS)
		return NULL;
	memset(op, 0, sizeof(*op));
	op->obj = obj->base ? obj->base : obj;
	w.op_cnt++;
	return op;
}

uint8_t *op_mem(struct op *op, size_t len, void **desc)
{
	struct obj *domain = (struct obj *) obj_domain(op->obj);
	uint8_t *mem;

	*desc = NULL;
	if (op->buf_cnt == COUNT(op->bufs))
		return NULL;
	if (domain && domain->mem) {
		if (len + 2 * GUARD > domain->len - domain->used)
			return NULL;
		mem = domain->mem + domain->used + GUARD;
		domain->used += (len + 2 * GUARD + 63) & ~63ULL;
		memset(mem - GUARD, GUARDED, len + 2 * GUARD);
		guard(mem, len, true);
		*desc = domain->desc;
		op->registered = true;
	} else {
		mem = guarded_new(len);
	}
	op->bufs[op->buf_cnt] = mem;
	op->lens[op->buf_cnt++] = len;
	return mem;
}

static void op_free(struct op *op)
{
	for (unsigned i = 0; i < op->buf_cnt; i++) {
		if (op->registered)
			guarded_check(op->bufs[i], op->lens[i]);
		else
			guarded_free(op->bufs[i], op->lens[i]);
	}
	op->buf_cnt = 0;
}

static void op_unpin(struct op *op)
{
	if (op->pinned)
		op->pinned->pins--;
	op->pinned = NULL;
}

void op_pin(struct op *op, struct obj *obj)
{
	op->pinned = obj;
	obj->pins++;
}

void op_called(struct op *op, long long ret, bool at_once)
{
	op->state = ret ? OP_ENDED : OP_POSTED;
	if (ret || at_once)
		op_free(op);
	if (ret)
		op_unpin(op);
}

struct op *op_any(void)
{
	return w.op_cnt ? &w.ops[draw(w.op_cnt)] : NULL;
}

struct op *op_claimed(void)
{
	for (unsigned i = 0; i < w.op_cnt; i++) {
		if (w.ops[i].claimed && w.ops[i].obj)
			return &w.ops[i];
	}
	return NULL;
}

void op_completes(void *context, uint64_t flags, int err, bool has_flags)
{
	struct op *op = context;

	if (!context)
		return;
	if (op < w.ops || op >= w.ops + w.op_cnt || ((uintptr_t) op - (uintptr_t) w.ops) % sizeof(*op))
		world_wrong("a completion with a context that nobody has given: %p", context);
	if (op->state == OP_NEW)
		world_wrong("operation %td completes during its call", op - w.ops);
	if (op->state == OP_ENDED)
		world_wrong("operation %td completes, and has ended before: %s", op - w.ops, fi_strerror(err));
	if (op->many && !err && (!has_flags || !(flags & FI_MULTI_RECV)))
		return;
	op->state = OP_ENDED;
	op->claimed = op->claims && !err;
	op->claims = false;
	if (op->obj)
		op_free(op);
	op_unpin(op);
}

/* The endpoint is closed: its operations may still have a completion in a queue, but their memory is the program's. */
static void ops_leave(const struct obj *obj)
{
	for (unsigned i = 0; i < w.op_cnt; i++) {
		struct op *op = &w.ops[i];

		if (op->obj != obj)
			continue;
		op_free(op);
		op_unpin(op);
		op->obj = NULL;
	}
}

/* ---- objects */

struct obj *obj_new(enum kind kind, struct obj *up)
{
	struct obj *obj = &w.objs[w.obj_cnt];

	if (w.obj_cnt == OBJS)
		return NULL;
	memset(obj, 0, sizeof(*obj));
	*obj = (struct obj) { .kind = kind, .id = w.obj_cnt++, .up = up };
	if (up)
		obj->info = up->info;
	return obj;
}

struct obj *obj_keep(struct obj *obj, long long ret, struct fid *fid)
{
	if (ret)
		return NULL;
	if (!fid)
		world_wrong("opened, and there is no object");
	obj->fid = fid;
	return obj;
}

struct fid *fid_of(struct obj *obj)
{
	return obj ? obj->fid : NULL;
}

unsigned id_of(const struct obj *obj)
{
	return obj ? obj->id : 9999;
}

bool is_open(const struct fid *fid)
{
	for (unsigned i = 0; i < w.obj_cnt; i++) {
		if (fid && w.objs[i].fid == fid)
			return true;
	}
	return false;
}

static struct obj *pick_if(unsigned kinds, const struct obj *domain)
{
	unsigned cnt = 0, which;

	for (int round = 0; round < 2; round++) {
		which = round && cnt ? draw(cnt) : 0;
		for (unsigned i = 0; i < w.obj_cnt; i++) {
			struct obj *obj = &w.objs[i];

			if (!obj->fid || !(kinds & 1U << obj->kind) || (domain && obj_domain(obj) != domain))
				continue;
			if (!round)
				cnt++;
			else if (!which--)
				return obj;
		}
	}
	return NULL;
}

struct obj *pick_of(unsigned kinds)
{
	return pick_if(kinds, NULL);
}

struct obj *pick(enum kind kind)
{
	return pick_of(1U << kind);
}

const struct obj *obj_domain(const struct obj *obj)
{
	while (obj && obj->kind != DOMAIN)
		obj = obj->up;
	return obj;
}

struct obj *pick_of_domain(enum kind kind, const struct obj *domain)
{
	return pick_if(1U << kind, domain);
}

struct obj *pick_beside(enum kind kind, const struct obj *of)
{
	struct obj *obj = one_in(16) ? NULL : pick_if(1U << kind, obj_domain(of));

	return obj || !one_in(8) ? obj : pick(kind);
}

struct obj *obj_next(enum kind kind, unsigned *at)
{
	while (*at < w.obj_cnt) {
		struct obj *obj = &w.objs[(*at)++];

		if (obj->fid && obj->kind == kind)
			return obj;
	}
	return NULL;
}

/* Memory in which buffers are registered goes last of what is in the domain. */
static void close_memory(struct obj *domain)
{
	for (unsigned i = 0; i < w.obj_cnt; i++) {
		if (w.objs[i].fid && w.objs[i].up == domain)
			return;
	}
	for (unsigned i = 0; i < w.op_cnt; i++) {
		if (w.ops[i].registered && w.ops[i].buf_cnt && w.ops[i].obj && obj_domain(w.ops[i].obj) == domain)
			return;
	}
	if (CALL(fi_close(domain->mem_mr), "fi_close(the memory of domain %u)", domain->id))
		world_wrong("the memory of domain %u cannot be closed", domain->id);
	guarded_free(domain->mem, domain->len);
	domain->mem = NULL;
	domain->mem_mr = NULL;
}

void obj_close(struct obj *obj)
{
	static const char *const names[KINDS] = { "fabric", "domain", "eq", "cq", "cntr", "av", "av_set", "ep", "sep",
						 "pep",
						  "srx", "stx", "mr", "wait", "poll", "mc", "lent" };

	if (!obj || !obj->fid || obj->pins)
		return;
	if (obj->mem_mr)
		close_memory(obj);
	if (CALL(fi_close(obj->fid), "fi_close(%s %u)", names[obj->kind], obj->id))
		return;
	obj->fid = NULL;
	if (obj->owner)
		obj->owner->pins--;
	if (obj->kind == MR && obj->mem)
		guarded_free(obj->mem, obj->len);
	obj->mem = NULL;
	ops_leave(obj);
}

/* ---- begin and end */

static unsigned entries(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned cnt = 0;

	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

void world_begin(const char *prov, bool told)
{
	w.prov = prov;
	w.told = told;
	w.obj_cnt = w.op_cnt = w.mem_cnt = w.info_cnt = 0;
	w.fds = entries("/proc/self/fd");
	w.threads = entries("/proc/self/task");
}

/* As programs do: what depends on others first. Then once more, as long as something gives way. */
static void close_all(void)
{
	static const unsigned order[] = {
		1U << MC, 1U << EP, 1U << SEP, 1U << SRX | 1U << STX, 1U << PEP, 1U << SET | 1U << POLL, 1U << MR,
			1U << AV,
		1U << CQ | 1U << CNTR, 1U << LENT, 1U << EQ, 1U << WAIT, 1U << DOMAIN, 1U << EQ, 1U << FABRIC,
	};
	unsigned left = 0, at = 0;
	struct obj *domain;

	while ((domain = obj_next(DOMAIN, &at)))
		CALL(fi_control(domain->fid, FI_FLUSH_WORK, NULL), "fi_control(domain %u, FI_FLUSH_WORK)", domain->id);
	for (unsigned round = 0; round < 3; round++) {
		left = 0;
		for (size_t i = 0; i < COUNT(order); i++) {
			for (unsigned j = w.obj_cnt; j-- > 0;) {
				if (order[i] & 1U << w.objs[j].kind)
					obj_close(&w.objs[j]);
			}
		}
		for (unsigned j = 0; j < w.obj_cnt; j++)
			left += w.objs[j].fid != NULL;
		if (!left)
			return;
	}
	world_wrong("%u objects cannot be closed", left);
}

void world_end(void)
{
	unsigned fds, threads;

	world_step("end", 1);
	close_all();
	for (unsigned i = 0; i < w.op_cnt; i++)
		op_free(&w.ops[i]);
	for (unsigned i = 0; i < w.mem_cnt; i++)
		guarded_free(w.mems[i], w.lens[i]);
	for (unsigned i = 0; i < w.info_cnt; i++)
		fi_freeinfo(w.infos[i]);
	fds = entries("/proc/self/fd");
	/* The kernel lists a thread a moment longer than pthread_join() waits for it. */
	for (int i = 0; i < 1000 && entries("/proc/self/task") > w.threads; i++)
		poll(NULL, 0, 1);
	threads = entries("/proc/self/task");
	if (fds > w.fds)
		world_wrong("%u descriptors are left", fds - w.fds);
	if (threads > w.threads)
		world_wrong("%u threads are left", threads - w.threads);
}
