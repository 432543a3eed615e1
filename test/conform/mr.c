/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions: registering in each way, keys, modes, and the end of a region. Source: fi_mr(3). */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ops.h"

#define ALL_ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CAPABILITIES (FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC)	/* none is a use of a region */
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

static bool own_keys(struct side *s)
{
	return !(s->info->domain_attr->mr_mode & (FI_MR_PROV_KEY | MR_BASIC));
}

/* @a writes 8 bytes to @addr by @key, and they are at @at. */
static void check_write(struct side *a, uint64_t addr, uint64_t key, const void *at)
{
	uint8_t *out = mem_pattern(a->t, 8, (unsigned int) a->t->key++);

	post(a, WRITEMSG, .buf = out, .len = 8, .raddr = addr, .key = key, .flags = level_delivered());
	expect_tx(a);
	CHECK_MEM(at, out, 8);
}

enum how { REG, REGV, REGATTR };

struct how_row {
	const char *name;
	enum how how;
};

static const struct how_row how_rows[] = {
	{ "reg", REG }, { "regv", REGV }, { "regattr", REGATTR },
};

/* Three calls, one effect: key, context, class, and a region that can be written. */
TEST_TABLE(register_call, how_rows, FI_RMA)
{
	struct pair p = pair_open(t);
	uint8_t *buf = mem(t, 64);
	struct iovec iov = { buf, 64 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = ALL_ACCESS, .requested_key = 42,
				   .context = p.b };
	struct fid_mr *mr = NULL;

	switch (ROW(how_rows)->how) {
	case REG:
		MUST(fi_mr_reg(p.b->domain, buf, 64, ALL_ACCESS, 0, 42, 0, &mr, p.b));
		break;
	case REGV:
		MUST(fi_mr_regv(p.b->domain, &iov, 1, ALL_ACCESS, 0, 42, 0, &mr, p.b));
		break;
	case REGATTR:
		MUST(fi_mr_regattr(p.b->domain, &attr, 0, &mr));
		break;
	}
	own_fid(t, &mr->fid);
	region_ready(p.b, mr);
	CHECK_EQ(mr->fid.fclass, FI_CLASS_MR);
	CHECK(mr->fid.context == p.b);
	if (own_keys(p.b))
		CHECK_EQ(fi_mr_key(mr), 42);
	check_write(p.a, own_keys(p.b) ? 8 : (uintptr_t) buf + 8, fi_mr_key(mr), buf + 8);
}

/* Offsets count from the start of the region with mr_mode 0, addresses with FI_MR_VIRT_ADDR and FI_MR_BASIC. */
TEST_PROV(offset_or_address, FI_RMA)
{
	static const int modes[] = { 0, MR_BASIC_BITS, MR_BASIC };
	size_t i;

	for (i = 0; i < COUNT(modes); i++) {
		struct fi_info *hints = hints_new(t, &(struct opts) { .mr_none = !modes[i], .mr_mode = modes[i] });
		struct region r;
		struct pair p;
		bool virt;

		note("mr_mode 0x%x", (unsigned int) modes[i]);
		if (!info_find(t, hints, NULL, NULL, 0))
			continue;
		p = pair_open(t, .mr_none = !modes[i], .mr_mode = modes[i]);
		r = region_open(p.b, NULL, 64, REMOTE);
		check_write(p.a, r.addr + 16, r.key, r.buf + 16);
		virt = p.b->info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | MR_BASIC);
		CHECK(r.addr == (virt ? (uintptr_t) r.buf : 0));
	}
}

/* Keys that the application chooses: any but FI_KEY_NOTAVAIL, each once; a second use is -FI_ENOKEY until the first
 * is closed. */
TEST_PROV(requested_keys, FI_RMA)
{
	static const uint64_t keys[] = { 0, 1, 0xffffffff, 0x123456789abcdef0, UINT64_MAX - 1 };
	struct pair p = pair_open(t, .mr_none = true);
	struct fid_mr *mr[COUNT(keys)], *second;
	uint8_t *buf = mem(t, 64);
	size_t i;

	CHECK(own_keys(p.b));
	for (i = 0; i < COUNT(keys); i++) {
		note("key 0x%llx", (unsigned long long) keys[i]);
		MUST(fi_mr_reg(p.b->domain, buf, 64, REMOTE, 0, keys[i], 0, &mr[i], NULL));
		CHECK_EQ(fi_mr_key(mr[i]), keys[i]);
		CHECK_RET(fi_mr_reg(p.b->domain, buf, 64, REMOTE, 0, keys[i], 0, &second, NULL), -FI_ENOKEY);
		check_write(p.a, 0, keys[i], buf);
	}
	MUST(fi_close(&mr[1]->fid));
	MUST(fi_mr_reg(p.b->domain, buf, 64, REMOTE, 0, keys[1], 0, &mr[1], NULL));
	for (i = 0; i < COUNT(keys); i++)
		MUST(fi_close(&mr[i]->fid));
}

/* Keys of the provider: all different, whatever was requested. */
TEST_PROV(provider_keys, FI_RMA)
{
	enum { N = 100 };
	struct fid_mr *mr[N];
	struct side *s;
	unsigned int i, j;

	if (!info_find(t, hints_new(t, &(struct opts) { .mr_mode = MR_BASIC }), NULL, NULL, 0))
		ABSENT("not offered");
	s = side_open(t, .mr_mode = MR_BASIC);
	if (own_keys(s))
		ABSENT("%s needs no keys of its own", run.prov);
	for (i = 0; i < N; i++)
		MUST(fi_mr_reg(s->domain, mem(t, 8), 8, REMOTE, 0, 0, 0, &mr[i], NULL));
	for (i = 0; i < N; i++) {
		for (j = 0; j < i; j++)
			CHECK(fi_mr_key(mr[i]) != fi_mr_key(mr[j]));
	}
	for (i = 0; i < N; i++)
		MUST(fi_close(&mr[i]->fid));
}

/* NCCL registers everything with key 0 when it did not ask for RMA: that must not be a conflict. */
TEST_PROV(nccl_key_zero_without_rma, FI_MSG | FI_TAGGED)
{
	struct side *s = domain_side(t, .mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | MR_BASIC_BITS);
	struct fid_mr *mr[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		MUST(fi_mr_reg(s->domain, mem(t, 64), 64, FI_SEND | FI_RECV, 0, 0, 0, &mr[i], NULL));
	for (i = 0; i < 3; i++)
		MUST(fi_close(&mr[i]->fid));
}

/* Binding a region to its endpoint and enabling it is accepted also where it is not needed. */
TEST_PROV(bind_to_endpoint_is_accepted, FI_RMA)
{
	struct pair p = pair_open(t);
	uint8_t *buf = mem(t, 64);
	struct fid_mr *mr;
	int ret;

	MUST(fi_mr_reg(p.b->domain, buf, 64, REMOTE, 0, 9, 0, &mr, NULL));
	own_fid(t, &mr->fid);
	ret = fi_mr_bind(mr, &p.b->ep->fid, 0);
	if (ret == -FI_ENOSYS && !run.ours)
		ABSENT("%s has no fi_mr_bind()", run.prov);
	MUST(ret);
	MUST(fi_mr_enable(mr));
	check_write(p.a, own_keys(p.b) ? 0 : (uintptr_t) buf, fi_mr_key(mr), buf);
}

/* A counter of a region counts each remote write that touches it, once, and nothing else. */
TEST_PROV(region_counter, FI_RMA | FI_RMA_EVENT, RELIABLE)
{
	static const enum fi_cntr_events events[] = { FI_CNTR_EVENTS_COMP, FI_CNTR_EVENTS_BYTES };
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	size_t i, bytes = run.ours ? 2 : 1;

	for (i = 0; i < bytes; i++) {
		struct fi_cntr_attr attr = { .events = events[i] };
		uint64_t unit = events[i] == FI_CNTR_EVENTS_BYTES ? 8 : 1;
		struct region other = region_open(p.b, NULL, 64, REMOTE);
		uint8_t *buf = mem(t, 64), *out = mem(t, 24);
		struct fi_rma_iov rma[3];
		struct fid_cntr *cntr;
		struct fid_mr *mr;
		uint64_t key, at;
		int ret;

		MUST(fi_cntr_open(p.b->domain, &attr, &cntr, NULL));
		own_fid(t, &cntr->fid);
		MUST(fi_mr_reg(p.b->domain, buf, 64, REMOTE, 0, 900 + i, FI_RMA_EVENT, &mr, NULL));
		own_fid(t, &mr->fid);
		ret = fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE);
		if (ret && !run.ours)
			ABSENT("%s has no counters of regions", run.prov);
		MUST(ret);
		if (run.ours)
			MUST(fi_mr_enable(mr));
		CHECK_RET(fi_close(&cntr->fid), -FI_EBUSY);
		key = fi_mr_key(mr);
		at = own_keys(p.b) ? 0 : (uintptr_t) buf;

		post(p.a, WRITE, .buf = out, .len = 8, .raddr = at, .key = key);
		post(p.a, WRITE, .buf = out, .len = 8, .raddr = other.addr, .key = other.key);
		post(p.a, READ, .buf = out, .len = 8, .raddr = at, .key = key);
		expect_tx_cnt(p.a, 3);
		CHECK_EQ(fi_cntr_read(cntr), unit);
		rma[0] = (struct fi_rma_iov) { .addr = at, .len = 4, .key = key };
		rma[1] = (struct fi_rma_iov) { .addr = other.addr, .len = 16, .key = other.key };
		rma[2] = (struct fi_rma_iov) { .addr = at + 32, .len = 4, .key = key };
		post(p.a, WRITEMSG, .buf = out, .len = 24, .rma_iov = rma, .rma_cnt = 3, .flags = FI_DELIVERY_COMPLETE);
		expect_tx(p.a);
		CHECK_EQ(fi_cntr_read(cntr), 2 * unit);
		CHECK_EQ(fi_cntr_readerr(cntr), 0);
	}
}

/* A raw key travels as bytes, and what it is mapped to works at the peer, whether the mode asks for it or not. */
TEST_PROV(raw_key, FI_RMA)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 64, REMOTE);
	uint64_t key, base;
	uint8_t raw[64];
	size_t len = 0;

	if (!run.ours)
		ABSENT("upstream's answers differ by provider");
	CHECK_RET(fi_mr_raw_attr(r.mr, &base, raw, &len, 0), -FI_ETOOSMALL);
	CHECK(len && len <= sizeof(raw));
	MUST(fi_mr_raw_attr(r.mr, &base, raw, &len, 0));
	CHECK_EQ(base, r.addr);
	MUST(fi_mr_map_raw(p.a->domain, base, raw, len, &key, 0));
	check_write(p.a, base + 8, key, r.buf + 8);
	MUST(fi_mr_unmap_key(p.a->domain, key));
	CHECK_RET(fi_mr_map_raw(p.a->domain, base, raw, len - 1, &key, 0), -FI_EINVAL);
}

/* The whole address space as one region: an address is an offset. */
TEST_PROV(whole_address_space, FI_RMA)
{
	struct pair p = pair_open(t, .mr_none = true);
	uint8_t *buf = mem(t, 64);
	struct fid_mr *mr;
	int ret;

	ret = fi_mr_reg(p.b->domain, NULL, UINT64_MAX, REMOTE, 0, 3, 0, &mr, NULL);
	if (ret && !run.ours)
		ABSENT("%s does not register all", run.prov);
	MUST(ret);
	own_fid(t, &mr->fid);
	check_write(p.a, (uintptr_t) buf + 8, 3, buf + 8);
}

/* Without FI_MR_ALLOCATED memory may be registered before it is there. */
TEST_PROV(registered_before_allocated, FI_RMA)
{
	enum { LEN = 1 << 20 };
	struct pair p = pair_open(t, .mr_none = true);
	uint8_t *buf = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct fid_mr *mr;

	CHECK(buf != MAP_FAILED);
	MUST(fi_mr_reg(p.b->domain, buf, LEN, REMOTE, 0, 3, 0, &mr, NULL));
	CHECK(!mprotect(buf, LEN, PROT_READ | PROT_WRITE));
	check_write(p.a, 4096, 3, buf + 4096);
	MUST(fi_close(&mr->fid));
	munmap(buf, LEN);
}

struct access_row {
	const char *name;
	uint64_t access;
	bool write, read;
};

static const struct access_row access_rows[] = {
	{ "both", FI_REMOTE_READ | FI_REMOTE_WRITE, true, true }, { "write_only", FI_REMOTE_WRITE, true, false },
	{ "read_only", FI_REMOTE_READ, false, true },
	{ "local_only", FI_SEND | FI_RECV | FI_READ | FI_WRITE, false, false },
	{ "write_and_capabilities", FI_REMOTE_WRITE | CAPABILITIES, true, false },
	{ "capabilities_only", CAPABILITIES, false, false },
};

/* What may be done to a region is what it was registered for. */
TEST_TABLE(access_is_checked, access_rows, FI_RMA, RELIABLE)
{
	const struct access_row *row = ROW(access_rows);
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	struct region r = region_open(p.b, NULL, 64, row->access);
	uint8_t buf[8] = { 1 };

	post(p.a, READ, .buf = buf, .len = 8, .raddr = r.addr, .key = r.key);
	if (!row->read)
		expect_tx_failed(p.a);
	else
		expect_tx(p.a);
	if (run.type == FI_EP_MSG && !row->read)
		return;		/* the connection may be gone */
	post(p.a, WRITE, .buf = "8 bytes.", .len = 8, .raddr = r.addr, .key = r.key);
	if (row->write)
		expect_tx(p.a);
	else
		expect_tx_failed(p.a);
	CHECK_EQ(!memcmp(r.buf, "8 bytes.", 8), row->write);
}

struct more_access_row {
	const char *name;
	uint64_t more;
};

static const struct more_access_row more_access_rows[] = {
	{ "rma", FI_RMA }, { "msg", FI_MSG }, { "tagged", FI_TAGGED }, { "atomic", FI_ATOMIC },
	{ "capabilities", CAPABILITIES }, { "multi_recv", FI_MULTI_RECV }, { "source", FI_SOURCE },
};

/* Access bits that mean nothing for a region are ignored, by each of the three calls. */
TEST_TABLE(access_without_meaning_is_taken, more_access_rows, FI_MSG)
{
	struct side *s = side_open(t, .caps = FI_MSG);
	uint64_t access = FI_SEND | FI_RECV | ROW(more_access_rows)->more;
	uint8_t *buf = mem(t, 64);
	struct iovec iov = { buf, 64 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = access, .requested_key = 1 };
	struct fid_mr *mr;

	MUST(fi_mr_reg(s->domain, buf, 64, access, 0, 1, 0, &mr, NULL));
	MUST(fi_close(&mr->fid));
	MUST(fi_mr_regv(s->domain, &iov, 1, access, 0, 1, 0, &mr, NULL));
	MUST(fi_close(&mr->fid));
	MUST(fi_mr_regattr(s->domain, &attr, 0, &mr));
	MUST(fi_close(&mr->fid));
}

struct idle_flag_row {
	const char *name;
	uint64_t flags;
};

static const struct idle_flag_row idle_flag_rows[] = {
	{ "device_only", FI_HMEM_DEVICE_ONLY }, { "host_alloc", FI_HMEM_HOST_ALLOC }, { "collective", FI_COLLECTIVE },
};

/* Flags for memory of devices, and for buffers of collectives, are ignored for plain memory. */
TEST_TABLE(flags_without_meaning_are_taken, idle_flag_rows, FI_MSG)
{
	struct side *s = side_open(t, .caps = FI_MSG);
	uint8_t *buf = mem(t, 64);
	struct fid_mr *mr;

	MUST(fi_mr_reg(s->domain, buf, 64, FI_SEND | FI_RECV, 0, 1, ROW(idle_flag_rows)->flags, &mr, NULL));
	MUST(fi_close(&mr->fid));
}

/* A region of several pieces, where the provider has such. */
TEST_PROV(region_of_pieces, FI_RMA)
{
	struct pair p = pair_open(t, .mr_none = true);
	uint8_t *buf = mem(t, 200), *out = mem_pattern(t, 24, 6);
	struct iovec iov[2] = { { buf, 16 }, { buf + 100, 16 } };
	struct fid_mr *mr;

	if (p.b->info->domain_attr->mr_iov_limit < 2) {
		if (run.ours)
			CHECK_RET(fi_mr_regv(p.b->domain, iov, 2, REMOTE, 0, 3, 0, &mr, NULL), -FI_EINVAL);
		ABSENT("mr_iov_limit is 1");
	}
	MUST(fi_mr_regv(p.b->domain, iov, 2, REMOTE, 0, 3, 0, &mr, NULL));
	own_fid(t, &mr->fid);
	post(p.a, WRITEMSG, .buf = out, .len = 24, .raddr = 4, .key = 3, .flags = FI_DELIVERY_COMPLETE);
	expect_tx(p.a);
	CHECK_MEM(buf + 4, out, 12);
	CHECK_MEM(buf + 100, out + 12, 12);
}

/* Arguments that cannot be. */
TEST_PROV(bad_registrations, FI_RMA)
{
	struct side *s = side_open(t, .caps = FI_RMA, .mr_none = true);
	uint8_t buf[64];
	struct fid_mr *mr = NULL;

	if (!run.ours)
		ABSENT("upstream does not look");
	note("unknown flags");
	CHECK_RET(fi_mr_reg(s->domain, buf, 64, REMOTE, 0, 1, 1ULL << 3, &mr, NULL), -FI_EBADFLAGS);
	note("offset");
	CHECK_RET(fi_mr_reg(s->domain, buf, 64, REMOTE, 8, 1, 0, &mr, NULL), -FI_EINVAL);
	note("no pieces");
	CHECK_RET(fi_mr_regv(s->domain, NULL, 0, REMOTE, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	note("wraps around");
	CHECK(fi_mr_reg(s->domain, buf, SIZE_MAX - 16, REMOTE, 0, 1, 0, &mr, NULL) < 0);
	CHECK(mr == NULL);
	/* None of them used up the key. */
	MUST(fi_mr_reg(s->domain, buf, 64, REMOTE, 0, 1, 0, &mr, NULL));
	MUST(fi_close(&mr->fid));
}

/* Many regions, found by their keys. */
TEST_PROV(many_regions, FI_RMA)
{
	enum { N = 500 };
	struct pair p = pair_open(t);
	uint8_t *buf = mem(t, N * 8);
	struct region r[N];
	unsigned int i;

	for (i = 0; i < N; i++)
		r[i] = region_open(p.b, buf + 8 * i, 8, REMOTE);
	for (i = 0; i < N; i += 7) {
		check_write(p.a, r[i].addr, r[i].key, buf + 8 * i);
		close_now(t, &r[i].mr->fid);
	}
	check_write(p.a, r[N - 1].addr, r[N - 1].key, buf + 8 * (N - 1));
}
