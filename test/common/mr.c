/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions: keys, what a peer may touch, and what registration refuses. Many of them, and who looks for them
 * meanwhile: mr_map.c.
 */
#include "unit.h"

#include <rdma/fi_errno.h>
#include "offer.h"
#include "regions.h"
#include "common/memory/memory.h"

#define BASIC (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* ---- keys ---- */

static void requested_keys_are_given_once(void **state)
{
	struct fid_mr *a, *b = NULL;
	struct world world;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	assert_int_equal(reg(&world, memory, 64, RMA, 0, &a), 0);
	assert_int_equal(fi_mr_key(a), 0);
	assert_int_equal(reg(&world, memory, 64, RMA, 0, &b), -FI_ENOKEY);
	assert_int_equal(reg(&world, memory, 64, RMA, 1, &b), 0);
	assert_int_equal(fi_mr_key(b), 1);
	assert_int_equal(fi_close(&a->fid), 0);
	assert_int_equal(reg(&world, memory, 64, RMA, 0, &a), 0);
	assert_int_equal(fi_close(&a->fid), 0);
	assert_int_equal(fi_close(&b->fid), 0);
	assert_int_equal(reg(&world, memory, 64, RMA, FI_KEY_NOTAVAIL, &a), -FI_EKEYREJECTED);
	world_close(&world);
}

/* A client that never does RMA registers everything with key 0. */
static void without_rma_a_key_may_be_used_again(void **state)
{
	struct fid_mr *a, *b;
	struct world world;

	(void) state;
	world_open(&world, &(struct world_attr) { .caps = FI_MSG | FI_TAGGED });
	assert_int_equal(reg(&world, memory, 64, FI_SEND, 0, &a), 0);
	assert_int_equal(reg(&world, memory, 64, FI_RECV, 0, &b), 0);
	assert_int_equal(fi_close(&a->fid), 0);
	assert_int_equal(fi_close(&b->fid), 0);
	world_close(&world);
}

static void keys_of_ours_are_not_guessed_from_others(void **state)
{
	struct fid_mr *mr[64];
	struct world world;
	struct iovec iov;

	(void) state;
	world_open(&world, &(struct world_attr) { .mr_mode = BASIC });
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(reg(&world, memory, 64, RMA, 7, &mr[i]), 0);
	for (unsigned i = 2; i < 64; i++) {
		assert_true(fi_mr_key(mr[i]) - fi_mr_key(mr[i - 1]) != fi_mr_key(mr[i - 1]) - fi_mr_key(mr[i - 2]));
		assert_int_equal(verify(&world, fi_mr_key(mr[i]) + 1, (uintptr_t) memory, 1, FI_REMOTE_READ, &iov),
				 -FI_ENOKEY);
	}
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(fi_close(&mr[i]->fid), 0);
	world_close(&world);
}

static void raw_keys_go_round(void **state)
{
	uint8_t raw[16];
	size_t size = 4;
	uint64_t base, key;
	struct world world;
	struct fid_mr *mr;

	(void) state;
	world_open(&world, &(struct world_attr) { .mr_mode = BASIC });
	assert_int_equal(reg(&world, memory, 64, RMA, 0, &mr), 0);
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, &size, 0), -FI_ETOOSMALL);
	assert_int_equal(size, FAB_MR_KEY_SIZE);
	size = sizeof(raw);
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	assert_int_equal(size, FAB_MR_KEY_SIZE);
	assert_int_equal(base, (uintptr_t) memory);
	assert_int_equal(fi_mr_map_raw(&world.domain.domain_fid, base, raw, 7, &key, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_map_raw(&world.domain.domain_fid, base, raw, size, &key, 0), 0);
	assert_int_equal(key, fi_mr_key(mr));
	assert_int_equal(fi_mr_unmap_key(&world.domain.domain_fid, key), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	world_close(&world);
}

/* ---- what a peer may touch ---- */

/* Relative to a region of 100 bytes at memory + 1000. */
static const struct {
	int64_t offset;
	size_t len;
	uint64_t access;
	int ret;
} accesses[] = {
	{ 0, 100, FI_REMOTE_READ, 0 },
	{ 0, 0, FI_REMOTE_READ, 0 },
	{ 100, 0, FI_REMOTE_READ, 0 },
	{ 99, 1, FI_REMOTE_READ, 0 },
	{ 0, 101, FI_REMOTE_READ, -FI_EINVAL },
	{ 99, 2, FI_REMOTE_READ, -FI_EINVAL },
	{ 100, 1, FI_REMOTE_READ, -FI_EINVAL },
	{ 101, 0, FI_REMOTE_READ, -FI_EINVAL },
	{ -1, 1, FI_REMOTE_READ, -FI_EINVAL },
	{ 1, SIZE_MAX, FI_REMOTE_READ, -FI_EINVAL },
	{ -1, SIZE_MAX, FI_REMOTE_READ, -FI_EINVAL },
	{ 0, 1, FI_REMOTE_WRITE, -FI_EACCES },
	{ 0, 1, FI_REMOTE_READ | FI_REMOTE_WRITE, -FI_EACCES },
};

static void check_accesses(int mr_mode)
{
	uint64_t base = mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) memory + 1000 : 0;
	struct world world;
	struct iovec iov;
	struct fid_mr *mr;

	world_open(&world, &(struct world_attr) { .mr_mode = mr_mode });
	assert_int_equal(reg(&world, memory + 1000, 100, FI_REMOTE_READ | FI_SEND, 3, &mr), 0);
	for (size_t i = 0; i < fab_countof(accesses); i++) {
		assert_int_equal(verify(&world, fi_mr_key(mr), base + accesses[i].offset, accesses[i].len,
					accesses[i].access, &iov), accesses[i].ret);
		if (!accesses[i].ret && accesses[i].len) {
			assert_ptr_equal(iov.iov_base, memory + 1000 + accesses[i].offset);
			assert_int_equal(iov.iov_len, accesses[i].len);
		}
	}
	assert_int_equal(verify(&world, fi_mr_key(mr) ^ 1, base, 1, FI_REMOTE_READ, &iov), -FI_ENOKEY);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(verify(&world, 3, base, 1, FI_REMOTE_READ, &iov), -FI_ENOKEY);
	world_close(&world);
}

static void accesses_stay_inside_by_offset(void **state)
{
	(void) state;
	check_accesses(0);
}

static void accesses_stay_inside_by_virtual_address(void **state)
{
	(void) state;
	check_accesses(FI_MR_VIRT_ADDR);
	check_accesses(BASIC);
}

static void basic_and_scalable_are_what_they_were(void **state)
{
	struct world world;
	struct iovec iov;
	struct fid_mr *mr;

	(void) state;
	world_open(&world, &(struct world_attr) { .mr_mode = FI_MR_BASIC, .api_version = FI_VERSION(1, 4) });
	assert_int_equal(reg(&world, memory, 64, RMA, 9, &mr), 0);
	assert_int_not_equal(fi_mr_key(mr), 9);
	assert_int_equal(verify(&world, fi_mr_key(mr), (uintptr_t) memory, 64, FI_REMOTE_READ, &iov), 0);
	fi_close(&mr->fid);
	world_close(&world);
	world_open(&world, &(struct world_attr) { .mr_mode = FI_MR_SCALABLE, .api_version = FI_VERSION(1, 4) });
	assert_int_equal(reg(&world, memory, 64, RMA, 9, &mr), 0);
	assert_int_equal(verify(&world, 9, 0, 64, FI_REMOTE_READ, &iov), 0);
	fi_close(&mr->fid);
	world_close(&world);
}

static void the_whole_address_space_can_be_registered(void **state)
{
	struct world world;
	struct iovec iov;
	struct fid_mr *mr;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	assert_int_equal(reg(&world, NULL, UINT64_MAX, RMA, 1, &mr), 0);
	assert_int_equal(verify(&world, 1, (uintptr_t) memory, sizeof(memory), FI_REMOTE_WRITE, &iov), 0);
	assert_ptr_equal(iov.iov_base, memory);
	assert_int_equal(verify(&world, 1, 2, UINT64_MAX - 1, FI_REMOTE_WRITE, &iov), -FI_EINVAL);
	fi_close(&mr->fid);
	world_close(&world);
}

static void pieces_follow_each_other(void **state)
{
	struct iovec parts[3] = { { memory, 10 }, { memory + 100, 20 }, { memory + 200, 30 } }, iov[3];
	struct world world;
	struct fab_mr *found;
	struct fid_mr *mr;
	uint32_t cnt = 3;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	assert_int_equal(fi_mr_regv(&world.domain.domain_fid, parts, 3, RMA, 0, 5, 0, &mr, NULL), 0);
	assert_int_equal(fab_mr_verify(&world.domain.mr_map, NULL, 5, 5, 50, FI_REMOTE_READ, iov, &cnt, &found), 0);
	assert_ptr_equal(&found->mr_fid, mr);
	assert_int_equal(cnt, 3);
	assert_ptr_equal(iov[0].iov_base, memory + 5);
	assert_int_equal(iov[0].iov_len, 5);
	assert_ptr_equal(iov[1].iov_base, memory + 100);
	assert_int_equal(iov[1].iov_len, 20);
	assert_int_equal(iov[2].iov_len, 25);
	cnt = 2;
	assert_int_equal(fab_mr_verify(&world.domain.mr_map, NULL, 5, 5, 50, FI_REMOTE_READ, iov, &cnt, &found),
			 -FI_ETOOSMALL);
	assert_int_equal(fab_mr_verify(&world.domain.mr_map, NULL, 5, 0, 61, FI_REMOTE_READ, iov, &cnt, &found),
			 -FI_EINVAL);
	assert_int_equal(fab_mr_verify(&world.domain.mr_map, NULL, 5, 10, 20, FI_REMOTE_READ, iov, &cnt, &found), 0);
	assert_int_equal(cnt, 1);
	fi_close(&mr->fid);
	world_close(&world);
}

/* ---- enable, bind ---- */

/* No provider answers a mr_mode that wants fi_mr_enable(); a program may call it, and set the bits by itself. */
static void a_region_waits_for_no_enable(void **state)
{
	struct world world;
	struct iovec iov;
	struct fid_mr *mr;

	(void) state;
	world_open(&world, &(struct world_attr) { .mr_mode = FI_MR_ENDPOINT | FI_MR_RMA_EVENT });
	assert_int_equal(fi_mr_reg(&world.domain.domain_fid, memory, 64, RMA, 0, 1, FI_RMA_EVENT, &mr, NULL), 0);
	assert_int_equal(verify(&world, 1, 0, 1, FI_REMOTE_READ, &iov), 0);
	assert_int_equal(fi_mr_enable(mr), 0);
	assert_int_equal(verify(&world, 1, 0, 1, FI_REMOTE_READ, &iov), 0);
	fi_close(&mr->fid);
	world_close(&world);
}

static void remote_writes_are_counted(void **state)
{
	struct world world;
	struct fid_cntr *cntr, *other;
	struct fid_mr *mr;
	struct fab_mr *region;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	cntr = open_cntr(&world);
	other = open_cntr(&world);
	assert_int_equal(fi_mr_reg(&world.domain.domain_fid, memory, 64, RMA, 0, 1, FI_RMA_EVENT, &mr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_READ), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_mr_bind(mr, &other->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	assert_int_equal(fi_mr_enable(mr), 0);
	assert_int_equal(fi_close(&other->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), -FI_EBUSY);

	fab_engine_lock(&world.domain.engine);
	region = fab_mr_lookup(&world.domain.mr_map, 1);
	fab_mr_count(region, &world.domain.engine, 64);
	fab_engine_unlock(&world.domain.engine);
	assert_int_equal(fi_cntr_read(cntr), 1);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	world_close(&world);
}

/* Each CQ has an engine of its own there, and any of them may carry a write to the region. */
static void a_counter_of_regions_is_reached_from_every_engine(void **state)
{
	struct world world;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_mr *mr;
	struct fab_engine *engine;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	cntr = open_cntr(&world);
	cq = open_cq(&world);
	engine = settle_cq(&world, cq);
	assert_ptr_not_equal(engine, &world.domain.engine);
	assert_int_equal(reg(&world, memory, 64, RMA, 1, &mr), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	assert_ptr_equal(fab_container(cntr, struct fab_cntr, cntr_fid)->wait.engine, &world.domain.engine);
	fab_engine_lock(engine);
	fab_mr_count(fab_mr_lookup(&world.domain.mr_map, 1), engine, 64);
	fab_engine_unlock(engine);
	assert_int_equal(fi_cntr_read(cntr), 1);
	fi_close(&mr->fid);
	fi_close(&cntr->fid);
	fi_close(&cq->fid);
	world_close(&world);
}

/* A counter that has another engine already. */
static void a_counter_in_use_becomes_one_of_regions(void **state)
{
	struct world world;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_mr *mr;
	struct fab_cntr *base;
	struct fab_engine *engines[3];

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	cntr = open_cntr(&world);
	cq = open_cq(&world);
	base = fab_container(cntr, struct fab_cntr, cntr_fid);
	pthread_mutex_lock(&world.domain.engines.join_lock);
	assert_int_equal(fab_queue_settle_alone(&world.domain, &base->wait), 0);
	pthread_mutex_unlock(&world.domain.engines.join_lock);
	assert_int_equal(reg(&world, memory, 64, RMA, 1, &mr), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	assert_ptr_equal(base->wait.engine->lead, &world.domain.engine);
	engines[0] = base->wait.engine;
	engines[1] = settle_cq(&world, cq);
	engines[2] = &world.domain.engine;
	for (unsigned i = 0; i < 3; i++) {
		fab_engine_lock(engines[i]);
		fab_mr_count(fab_mr_lookup(&world.domain.mr_map, 1), engines[i], 64);
		fab_engine_unlock(engines[i]);
		assert_int_equal(fi_cntr_read(cntr), i + 1);
	}
	fi_close(&mr->fid);
	fi_close(&cntr->fid);
	fi_close(&cq->fid);
	world_close(&world);
}

static void without_rma_event_nothing_is_counted(void **state)
{
	struct world world;
	struct fid_cntr *cntr;
	struct fid_mr *mr;

	(void) state;
	world_open(&world, &(struct world_attr) { .caps = FI_RMA });
	cntr = open_cntr(&world);
	assert_int_equal(reg(&world, memory, 64, RMA, 1, &mr), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
	assert_int_equal(fi_mr_bind(mr, &world.fabric.fabric_fid.fid, 0), -FI_EINVAL);
	fi_close(&mr->fid);
	fi_close(&cntr->fid);
	world_close(&world);
}

static void refresh_wants_ranges_inside(void **state)
{
	struct iovec inside = { memory + 8, 56 }, outside = { memory + 8, 57 };
	struct world world;
	struct fid_mr *mr;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	assert_int_equal(reg(&world, memory, 64, RMA, 1, &mr), 0);
	assert_int_equal(fi_mr_refresh(mr, NULL, 0, 0), 0);
	assert_int_equal(fi_mr_refresh(mr, &inside, 1, 0), 0);
	assert_int_equal(fi_mr_refresh(mr, &outside, 1, 0), -FI_EINVAL);
	fi_close(&mr->fid);
	world_close(&world);
}

/* ---- registration ---- */

static void what_cannot_be_had_is_refused(void **state)
{
	struct iovec iov[FAB_MR_IOV_LIMIT + 1] = { { memory, 64 } };
	struct fi_mr_dmabuf dmabuf = { .fd = 0, .len = 64 };
	struct fi_mr_attr attr, good = { .mr_iov = iov, .iov_count = 1, .access = RMA, .requested_key = 1 };
	struct world world;
	struct fid_domain *domain;
	struct fid_mr *mr = NULL;

	(void) state;
	world_open(&world, &(struct world_attr) { .caps = FI_MSG | FI_RMA | FI_HMEM });
	domain = &world.domain.domain_fid;
	attr = good;
	attr.offset = 1;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_EINVAL);
	attr = good;
	attr.iov_count = 0;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_EINVAL);
	attr.iov_count = SIZE_MAX;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_EINVAL);
	attr.iov_count = FAB_MR_IOV_LIMIT + 1;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_EINVAL);
	attr = good;
	attr.mr_iov = NULL;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_EINVAL);
	attr = good;
	attr.auth_key_size = 8;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_EINVAL);
	attr = good;
	attr.iface = FI_HMEM_NEURON;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_ENOSYS);
	attr.iface = FI_HMEM_SYNAPSEAI + 1;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_EINVAL);
	attr = good;
	attr.sub_mr_cnt = 2;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_EINVAL);
	attr = good;
	attr.dmabuf = &dmabuf;
	assert_int_equal(fi_mr_regattr(domain, &attr, FI_MR_DMABUF, &mr), -FI_EOPNOTSUPP);
	assert_int_equal(fi_mr_regattr(domain, &good, FI_MR_SINGLE_USE, &mr), -FI_EBADFLAGS);
	iov[0] = (struct iovec) { (void *) UINTPTR_MAX, 2 };
	assert_int_equal(fi_mr_regattr(domain, &good, 0, &mr), -FI_EINVAL);
	iov[0] = (struct iovec) { memory, SIZE_MAX - (uintptr_t) memory };
	iov[1] = iov[0];
	attr = good;
	attr.iov_count = 2;
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), -FI_EINVAL);
	assert_null(mr);
	world_close(&world);
}

/* fi_mr_attr as programs of that time had it, in a buffer that ends where theirs does. */
static const struct {
	uint32_t version;
	size_t size;
} generations[] = {
	{ FI_VERSION(1, 0), 48 }, { FI_VERSION(1, 4), 48 }, { FI_VERSION(1, 5), 64 }, { FI_VERSION(1, 18), 64 },
	{ FI_VERSION(1, 19), 88 }, { FI_VERSION(1, 22), 96 }, { FI_VERSION(2, 0), 112 }, { FI_VERSION(2, 6), 112 },
};

static void older_callers_attr_is_read_as_far_as_it_goes(void **state)
{
	struct iovec iov = { memory, 64 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = RMA, .requested_key = 1 }, *old;
	struct world world;
	struct fid_mr *mr;
	uint8_t *page;

	(void) state;
	assert_int_equal(sizeof(attr), 112);
	for (size_t i = 0; i < fab_countof(generations); i++) {
		world_open(&world, &(struct world_attr) { .api_version = generations[i].version });
		/* what lies behind it is no zero, and under AddressSanitizer may not even be looked at */
		page = malloc(generations[i].size);
		memcpy(page, &attr, generations[i].size);
		old = (struct fi_mr_attr *) page;
		assert_int_equal(fi_mr_regattr(&world.domain.domain_fid, old, 0, &mr), 0);
		fi_close(&mr->fid);
		free(page);
		world_close(&world);
	}
}

static void with_fi_reg_mr_the_result_is_an_event(void **state)
{
	struct fi_eq_entry entry;
	struct fid_mr *mr, *other;
	struct world world;
	struct fid_eq *eq;
	uint32_t event;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	eq = open_eq(&world);
	assert_int_equal(fi_domain_bind(&world.domain.domain_fid, &eq->fid, FI_SEND), -FI_EBADFLAGS);
	assert_int_equal(fi_domain_bind(&world.domain.domain_fid, &eq->fid, FI_REG_MR), 0);
	assert_int_equal(fi_domain_bind(&world.domain.domain_fid, &eq->fid, 0), -FI_EBUSY);
	assert_int_equal(fi_mr_reg(&world.domain.domain_fid, memory, 64, RMA, 0, 1, 0, &mr, &world), 0);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(event, FI_MR_COMPLETE);
	assert_ptr_equal(entry.fid, &mr->fid);
	assert_ptr_equal(entry.context, &world);
	fi_close(&mr->fid);
	/* what nobody has read goes with the region, and only that */
	assert_int_equal(fi_mr_reg(&world.domain.domain_fid, memory, 64, RMA, 0, 1, 0, &mr, &world), 0);
	assert_int_equal(fi_mr_reg(&world.domain.domain_fid, memory, 64, RMA, 0, 2, 0, &other, &world), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_ptr_equal(entry.fid, &other->fid);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	assert_int_equal(fi_close(&other->fid), 0);
	assert_int_equal(fab_domain_fini(&world.domain), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fab_fabric_fini(&world.fabric), 0);
	fi_freeinfo(world.info);
}

static void no_memory_leaves_nothing_registered(void **state)
{
	struct fid_mr *mr[32];
	struct world world;
	unsigned cnt = 0;
	int ret;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	while (cnt < fab_countof(mr)) {
		/* the region, then a larger table */
		for (long n = 0; ; n++) {
			fail_alloc(n);
			ret = reg(&world, memory, 64, RMA, cnt, &mr[cnt]);
			fail_alloc(-1);
			if (!ret)
				break;
			assert_int_equal(ret, -FI_ENOMEM);
			assert_int_equal(world.domain.mr_map.cnt, cnt);
		}
		cnt++;
	}
	while (cnt)
		fi_close(&mr[--cnt]->fid);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requested_keys_are_given_once),
		cmocka_unit_test(without_rma_a_key_may_be_used_again),
		cmocka_unit_test(keys_of_ours_are_not_guessed_from_others),
		cmocka_unit_test(raw_keys_go_round),
		cmocka_unit_test(accesses_stay_inside_by_offset),
		cmocka_unit_test(accesses_stay_inside_by_virtual_address),
		cmocka_unit_test(basic_and_scalable_are_what_they_were),
		cmocka_unit_test(the_whole_address_space_can_be_registered),
		cmocka_unit_test(pieces_follow_each_other),
		cmocka_unit_test(a_region_waits_for_no_enable),
		cmocka_unit_test(remote_writes_are_counted),
		cmocka_unit_test(a_counter_of_regions_is_reached_from_every_engine),
		cmocka_unit_test(a_counter_in_use_becomes_one_of_regions),
		cmocka_unit_test(without_rma_event_nothing_is_counted),
		cmocka_unit_test(refresh_wants_ranges_inside),
		cmocka_unit_test(what_cannot_be_had_is_refused),
		cmocka_unit_test(older_callers_attr_is_read_as_far_as_it_goes),
		cmocka_unit_test(with_fi_reg_mr_the_result_is_an_event),
		cmocka_unit_test(no_memory_leaves_nothing_registered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
