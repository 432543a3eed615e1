/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Protection domains and memory regions. A key is an index into a table of this process and eight random bits, so
 * that a wrong key, or that of a region that is gone, is found out.
 */
#include "sv.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/bits.h"
#include "../hmem/device.h"

#define PAGE	4096

struct sv_mr {
	struct ibv_mr mr;
	uint64_t iova;			/* what the first byte is called */
	int access, asked;		/* without and with what is optional */
	uint64_t pages;			/* kept in memory */
	size_t mapped;			/* bytes of a dma-buf, from the page that mr.addr is on */
	uint8_t *seen;			/* what the device has read last of pinned pages, each byte in its place */
	bool pinned;
};

static struct sv_mr **regions;
static uint32_t region_cnt;
static uint64_t reg_cnt, pinned_pages;

/* Pages that a region keeps in memory. */
static uint64_t pages_of(const void *addr, size_t length, int access)
{
	uint64_t first = (uintptr_t) addr / PAGE, end = ((uintptr_t) addr + length + PAGE - 1) / PAGE;

	return access & IBV_ACCESS_ON_DEMAND ? 0 : end - first;
}

uint64_t sv_test_reg_cnt(void)
{
	uint64_t cnt;

	sv_lock();
	cnt = reg_cnt;
	sv_unlock();
	return cnt;
}

int sv_test_access_of(const struct ibv_mr *mr)
{
	return fab_container(mr, const struct sv_mr, mr)->asked;
}

uint64_t sv_test_pinned_pages(void)
{
	uint64_t cnt;

	sv_lock();
	cnt = pinned_pages;
	sv_unlock();
	return cnt;
}

static struct sv_mr *mr_find(uint32_t key)
{
	uint32_t i = key >> 8;

	return i < region_cnt && regions[i] && regions[i]->mr.lkey == key ? regions[i] : NULL;
}

void *sv_mem(struct ibv_pd *pd, uint32_t key, uint64_t addr, uint64_t len, int access)
{
	struct sv_mr *mr = mr_find(key);

	if (!mr || mr->mr.pd != pd || (access & ~mr->access))
		return NULL;
	if (addr < mr->iova || addr - mr->iova > mr->mr.length || len > mr->mr.length - (addr - mr->iova))
		return NULL;
	return (uint8_t *) mr->mr.addr + (addr - mr->iova);
}

const void *sv_mem_read(struct ibv_pd *pd, uint32_t key, uint64_t addr, uint64_t len, int access)
{
	uint8_t *at = sv_mem(pd, key, addr, len, access);
	struct sv_mr *mr = at ? mr_find(key) : NULL;

	if (!mr || !mr->pinned || !len)
		return at;
	if (!mr->seen)
		mr->seen = malloc(mr->mr.length);
	if (!mr->seen)
		return NULL;
	sv_pin_read(mr->mr.handle, at, len, mr->seen + (addr - mr->iova));
	return mr->seen + (addr - mr->iova);
}

bool sv_mem_write(struct ibv_pd *pd, uint32_t key, uint64_t addr, const void *from, uint64_t len, int access)
{
	uint8_t *at = sv_mem(pd, key, addr, len, access);
	struct sv_mr *mr = at ? mr_find(key) : NULL;

	if (!mr)
		return false;
	if (mr->pinned && len)
		sv_pin_write(mr->mr.handle, at, len, from);
	else
		memcpy(at, from, len);
	return true;
}

/* A free place in the table; region_cnt if there is none and no memory for more. */
static uint32_t free_place(void)
{
	struct sv_mr **more;
	uint32_t i, cnt;

	for (i = 1; i < region_cnt; i++)
		if (!regions[i])
			return i;
	cnt = region_cnt ? 2 * region_cnt : 64;
	more = realloc(regions, cnt * sizeof(*more));
	if (!more)
		return region_cnt;
	regions = more;
	for (i = region_cnt; i < cnt; i++)
		regions[i] = NULL;
	i = region_cnt ? region_cnt : 1;
	region_cnt = cnt;
	return i;
}

#define REMOTE	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static bool access_ok(int access)
{
	int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	return !(access & writes) || (access & IBV_ACCESS_LOCAL_WRITE);
}

static struct ibv_mr *mr_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	struct sv_mr *mr;
	uint32_t place;

	if (!access_ok(access) || (uintptr_t) addr + length < (uintptr_t) addr) {
		errno = EINVAL;
		return NULL;
	}
	if ((access & IBV_ACCESS_ON_DEMAND) ? !sv_limit("odp", 0) : length > sv_limit("max_pinned", UINT64_MAX)) {
		errno = access & IBV_ACCESS_ON_DEMAND ? EOPNOTSUPP : ENOMEM;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	sv_lock();
	place = free_place();
	mr->pages = pages_of(addr, length, access);
	if (place == region_cnt || place > sv_limit("max_mr", 1 << 20) ||
	    (pinned_pages + mr->pages) * PAGE > sv_limit("memlock", UINT64_MAX)) {
		sv_unlock();
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	if (sv_pins() && !(access & IBV_ACCESS_ON_DEMAND)) {
		errno = sv_pin(place, addr, length);
		if (errno) {
			sv_unlock();
			free(mr);
			return NULL;
		}
		mr->pinned = true;
	}
	regions[place] = mr;
	mr->mr.context = pd->context;
	mr->mr.pd = pd;
	mr->mr.addr = addr;
	mr->mr.length = length;
	mr->mr.handle = place;
	mr->mr.lkey = place << 8 | (rand() & 0xff);
	mr->mr.rkey = access & REMOTE ? mr->mr.lkey : 0;	/* as of rxe and bnxt_re */
	mr->iova = iova;
	mr->access = access;
	reg_cnt++;
	pinned_pages += mr->pages;
	fab_container(pd, struct sv_pd, pd)->ref_cnt++;
	sv_unlock();
	return &mr->mr;
}

/* True if the bytes are memory of a device of test/hmem, whose library this process has loaded. */
static bool is_foreign(const void *addr)
{
	static const char *const names[] = { "libcuda.so.1", "libhsa-runtime64.so.1" };
	bool found = false;

	for (size_t i = 0; i < fab_countof(names) && !found; i++) {
		void *lib = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
		bool (*has)(const void *addr) = lib ? (bool (*)(const void *)) dlsym(lib, "device_has") : NULL;

		found = has && has(addr);
		if (lib)
			dlclose(lib);
	}
	return found;
}

/* The kernel finds no pages at addresses of another device, unless a module such as nvidia-peermem knows them. */
static struct ibv_mr *reg_pages(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	if (!is_foreign(addr))
		return mr_reg(pd, addr, length, iova, access);
	if (sv_limit("peermem", 0))
		return mr_reg(pd, (uint8_t *) addr + DEVICE_HOST, length, iova, access);
	errno = EFAULT;
	return NULL;
}

/* The header has macros of these names that choose between them. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return sv_fault("ibv_reg_mr") ? NULL : reg_pages(pd, addr, length, (uintptr_t) addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return sv_fault("ibv_reg_mr") ? NULL : reg_pages(pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct ibv_mr *mr = sv_fault("ibv_reg_mr") ? NULL :
			    reg_pages(pd, addr, length, iova, (int) (access & ~IBV_ACCESS_OPTIONAL_RANGE));

	if (mr)
		fab_container(mr, struct sv_mr, mr)->asked = (int) access;
	return mr;
}

/* Any file that can be mapped stands for a dma-buf. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
					   int access)
{
	uint64_t page = offset & ~4095ull;
	struct ibv_mr *mr;
	uint8_t *at;

	if (sv_fault("ibv_reg_dmabuf_mr"))
		return NULL;
	if (!sv_limit("dmabuf", 1)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	at = mmap(NULL, length + (offset - page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t) page);
	if (at == MAP_FAILED)
		return NULL;
	mr = mr_reg(pd, at + (offset - page), length, iova, access);
	if (mr)
		fab_container(mr, struct sv_mr, mr)->mapped = length + (offset - page);
	else
		munmap(at, length + (offset - page));
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *ibv_mr)
{
	struct sv_mr *mr = fab_container(ibv_mr, struct sv_mr, mr);

	sv_lock();
	regions[mr->mr.handle] = NULL;
	pinned_pages -= mr->pages;
	if (mr->pinned)
		sv_unpin(mr->mr.handle);
	fab_container(mr->mr.pd, struct sv_pd, pd)->ref_cnt--;
	sv_unlock();
	if (mr->mapped)
		munmap((void *) ((uintptr_t) mr->mr.addr & ~4095ull), mr->mapped);
	free(mr->seen);
	free(mr);
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct sv_pd *pd = sv_fault("ibv_alloc_pd") ? NULL : calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->pd.context = context;
	sv_lock();
	sv_context(context)->ref_cnt++;
	sv_unlock();
	return &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *ibv_pd)
{
	struct sv_pd *pd = fab_container(ibv_pd, struct sv_pd, pd);
	bool busy;

	sv_lock();
	busy = pd->ref_cnt;
	if (!busy)
		sv_context(ibv_pd->context)->ref_cnt--;
	sv_unlock();
	if (busy)
		return EBUSY;
	free(pd);
	return 0;
}
