/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_COMMIT_COMPLETE: what has completed keeps when the power fails. Source: fi_cq(3), fi_rma(3), fi_mr(3),
 * fi_getinfo(3). Persistent memory is a file here, mapped and shared; msync(), which makes it durable, is a stand-in
 * that counts, remembers, and fails if told to.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "atomic_call.h"

enum { FILE_LEN = 1 << 20 };

/* ---- the stand-in; it may be called by a thread of the library's */

static struct {
	_Atomic unsigned int calls;
	_Atomic uintptr_t start, end;	/* of all that was synced */
	_Atomic bool all_sync;		/* each call had MS_SYNC */
	_Atomic int err;		/* to fail with */
	const volatile uint8_t *_Atomic watch;	/* what is here when it is called ... */
	_Atomic uint8_t seen;		/* ... is put here */
} synced;

__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	const volatile uint8_t *watch = atomic_load(&synced.watch);
	int err = atomic_load(&synced.err);

	if (watch)
		atomic_store(&synced.seen, *watch);
	if ((uintptr_t) addr < atomic_load(&synced.start))
		atomic_store(&synced.start, (uintptr_t) addr);
	if ((uintptr_t) addr + len > atomic_load(&synced.end))
		atomic_store(&synced.end, (uintptr_t) addr + len);
	if (!(flags & MS_SYNC))
		atomic_store(&synced.all_sync, false);
	atomic_fetch_add(&synced.calls, 1);
	if (err) {
		errno = err;
		return -1;
	}
	return syscall(SYS_msync, addr, len, flags);
}

static void watch(const void *at)
{
	atomic_store(&synced.start, UINTPTR_MAX);
	atomic_store(&synced.end, 0);
	atomic_store(&synced.all_sync, true);
	atomic_store(&synced.watch, at);
	atomic_store(&synced.calls, 0);
}

/* len bytes at `at` have been synced, with what is in the first of them now. */
static void check_synced(const uint8_t *at, size_t len)
{
	CHECK(atomic_load(&synced.calls) > 0);
	CHECK(atomic_load(&synced.all_sync));
	CHECK(atomic_load(&synced.start) <= (uintptr_t) at && atomic_load(&synced.end) >= (uintptr_t) at + len);
	CHECK(atomic_load(&synced.end) - atomic_load(&synced.start) <= len + 2 * (size_t) sysconf(_SC_PAGESIZE));
	CHECK_EQ(atomic_load(&synced.seen), at[0]);
}

/* ---- persistent memory */

struct pmem {
	struct pair p;
	struct region r;
};

static void unmap(void *map)
{
	munmap(map, FILE_LEN);
}

/* A mapping of a file that has no name any more. */
static uint8_t *map_file(struct test *t)
{
	char path[] = "commit-XXXXXX";
	int fd = mkstemp(path);
	uint8_t *map;

	CHECK(fd >= 0);
	unlink(path);
	CHECK_EQ(ftruncate(fd, FILE_LEN), 0);
	map = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	CHECK(map != MAP_FAILED);
	own(t, unmap, map);
	return map;
}

/* Registered by p.b with these flags. */
static struct region register_file(struct pair *p, uint8_t *map, uint64_t flags)
{
	struct region r = { .buf = map, .len = FILE_LEN };

	MUST(fi_mr_reg(p->b->domain, map, FILE_LEN, ALL_REMOTE, 0, 11, flags, &r.mr, NULL));
	own_fid(p->b->t, &r.mr->fid);
	region_ready(p->b, r.mr);
	r.key = fi_mr_key(r.mr);
	r.addr = p->b->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) map : 0;
	return r;
}

static struct pmem pmem_open(struct test *t, uint64_t op_flags)
{
	struct pmem m = { .p = pair_open(t, .tx_op_flags = op_flags) };

	m.r = register_file(&m.p, map_file(t), FI_RMA_PMEM);
	watch(NULL);
	return m;
}

static const struct length_row length_rows[] = {
	{ "1", 1 }, { "8K", 8192 }, { "300K", 300 << 10 },
};

/* A write with the flag is on its device before it is complete; one without is left to the kernel. */
TEST_TABLE(a_write, length_rows, FI_RMA | FI_RMA_PMEM, RELIABLE)
{
	size_t len = ROW(length_rows)->len, at = 3 * 4096 + 17;
	struct pmem m = pmem_open(t, 0);
	uint8_t *out = mem_pattern(t, len, 3);

	out[0] = 0x5a;
	watch(m.r.buf + at);
	post(m.p.a, WRITEMSG, .buf = out, .len = len, .raddr = m.r.addr + at, .key = m.r.key,
	     .flags = FI_DELIVERY_COMPLETE);
	expect_tx(m.p.a);
	CHECK_EQ(atomic_load(&synced.calls), 0);
	out[0] = 0xa5;
	post(m.p.a, WRITEMSG, .buf = out, .len = len, .raddr = m.r.addr + at, .key = m.r.key,
	     .flags = FI_COMMIT_COMPLETE);
	expect_tx(m.p.a);
	check_synced(m.r.buf + at, len);
	CHECK_MEM(m.r.buf + at, out, len);
}

/* It can be the endpoint's own level, which fi_write() goes by. */
TEST_PROV(default_level, FI_RMA | FI_RMA_PMEM, RELIABLE)
{
	struct pmem m = pmem_open(t, FI_COMMIT_COMPLETE);

	watch(m.r.buf);
	post(m.p.a, WRITE, .buf = "default", .len = 8, .raddr = m.r.addr, .key = m.r.key);
	expect_tx(m.p.a);
	check_synced(m.r.buf, 8);
}

/* Whoever is told of it at the target is told then, too. */
TEST_PROV(data_comes_after, FI_RMA | FI_RMA_PMEM, RELIABLE)
{
	struct pmem m = pmem_open(t, 0);

	watch(m.r.buf + 100);
	post(m.p.a, WRITEMSG, .buf = "remote", .len = 7, .raddr = m.r.addr + 100, .key = m.r.key, .data = 9,
	     .flags = FI_COMMIT_COMPLETE | FI_REMOTE_CQ_DATA);
	expect_rx(m.p.b);
	check_synced(m.r.buf + 100, 7);
	expect_tx(m.p.a);
}

static const struct amo_row {
	const char *name;
	enum kind kind;
	enum fi_op op;
	bool writes;
} amo_rows[] = {
	{ "base", BASE, FI_SUM, true }, { "fetch", FETCH, FI_SUM, true }, { "compare", COMPARE, FI_CSWAP, true },
	{ "read", FETCH, FI_ATOMIC_READ, false },
};

/* Atomics as well, where they write. */
TEST_TABLE(an_atomic, amo_rows, FI_RMA | FI_ATOMIC | FI_RMA_PMEM, RELIABLE)
{
	const struct amo_row *row = ROW(amo_rows);
	struct pmem m = pmem_open(t, 0);
	uint64_t seven = 7, zero = 0, was = 99;

	watch(m.r.buf + 4096);
	amo_u64(m.p.a, row->kind, MSG, .op = row->op, .buf = &seven, .compare = &zero, .result = &was,
		.raddr = m.r.addr + 4096, .key = m.r.key, .flags = FI_COMPLETION | FI_COMMIT_COMPLETE);
	expect_tx(m.p.a);
	CHECK_EQ(was, row->kind == BASE ? 99 : 0);
	CHECK_EQ(*(uint64_t *) (m.r.buf + 4096), row->writes ? 7 : 0);
	if (row->writes)
		check_synced(m.r.buf + 4096, 8);
	else
		CHECK_EQ(atomic_load(&synced.calls), 0);
	watch(m.r.buf + 4096);
	amo_u64(m.p.a, row->kind, MSG, .op = row->op, .buf = &zero, .compare = &seven, .result = &was,
		.raddr = m.r.addr + 4096, .key = m.r.key, .flags = FI_COMPLETION);
	expect_tx(m.p.a);
	CHECK_EQ(atomic_load(&synced.calls), 0);
}

static const struct fail_row {
	const char *name;
	bool atomic;
} fail_rows[] = { { "write", false }, { "atomic", true } };

/* One operation that asks for durability; *one is its operand until it has completed. */
static void change(struct pmem *m, const struct fail_row *row, uint64_t *one)
{
	if (row->atomic)
		amo_u64(m->p.a, BASE, MSG, .op = FI_SUM, .buf = one, .raddr = m->r.addr, .key = m->r.key,
			.flags = FI_COMPLETION | FI_COMMIT_COMPLETE);
	else
		post(m->p.a, WRITEMSG, .buf = one, .len = 8, .raddr = m->r.addr, .key = m->r.key,
		     .flags = FI_COMMIT_COMPLETE);
}

/* What the device could not take is not complete; and what follows is none the worse for it. */
TEST_TABLE(device_fails, fail_rows, FI_RMA | FI_ATOMIC | FI_RMA_PMEM, RELIABLE)
{
	struct pmem m = pmem_open(t, 0);
	uint64_t one = 1;

	for (int i = 0; i < 2; i++) {
		atomic_store(&synced.err, i ? 0 : EIO);
		change(&m, ROW(fail_rows), &one);
		if (i)
			expect_tx(m.p.a);
		else
			expect_tx_err(m.p.a, FI_EIO);
	}
}

/* A region that nobody calls persistent takes none of it, and stays as it is. */
TEST_TABLE(ordinary_memory, fail_rows, FI_RMA | FI_ATOMIC | FI_RMA_PMEM, RELIABLE)
{
	struct pmem m = { .p = pair_open(t) };
	uint64_t one = 1;

	m.r = register_file(&m.p, map_file(t), 0);
	change(&m, ROW(fail_rows), &one);
	expect_tx_err(m.p.a, FI_EOPNOTSUPP);
	CHECK_EQ(m.r.buf[0], 0);
	post(m.p.a, WRITE, .buf = &one, .len = 8, .raddr = m.r.addr, .key = m.r.key);
	expect_tx(m.p.a);
}

/* Messages have no persistent target: asking for it by name is refused, as a default it is delivery. */
TEST_PROV(messages, FI_MSG | FI_RMA | FI_RMA_PMEM, RELIABLE)
{
	struct pair p = pair_open(t, .tx_op_flags = FI_COMMIT_COMPLETE);
	char in[8];

	CHECK_RET(try_op(p.a, SENDMSG, .buf = "message", .len = 8, .flags = FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	CHECK_RET(try_op(p.a, READMSG, .buf = in, .len = 8, .flags = FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	post_recv(p.b, in, 8);
	send_bytes(p.a, "message", 8);
	expect_tx(p.a);
	CHECK_MEM(in, "message", 8);
	expect_recv(p.b, "message", 8);
}

/* Who does not offer it offers nothing of it. */
TEST_PROV(not_offered, FI_MSG)
{
	struct side *s;
	uint64_t flags = FI_TRANSMIT | FI_COMMIT_COMPLETE;
	struct fid_mr *mr;
	char buf[8];

	if (offered(FI_RMA | FI_RMA_PMEM))
		ABSENT("%s offers it", run.prov);
	s = side_open(t);
	CHECK(!(s->info->tx_attr->op_flags & FI_COMMIT_COMPLETE));
	CHECK_RET(fi_mr_reg(s->domain, buf, sizeof(buf), FI_SEND, 0, 1, FI_RMA_PMEM, &mr, NULL), -FI_EBADFLAGS);
	CHECK_RET(fi_control(&s->ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	CHECK_RET(try_op(s, SENDMSG, .buf = buf, .len = 8, .addr = &(fi_addr_t) { 0 }, .flags = FI_COMMIT_COMPLETE),
		  -FI_EBADFLAGS);
}
