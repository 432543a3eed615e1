/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that is not just a buffer: of a dma-buf, of a device (FI_HMEM, test/hmem), and paged in on demand. A file in
 * memory stands for the dma-buf.
 */
#include "link.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../hmem/device.h"

#define FILE_LEN	16384
#define AT		4096		/* where in the file the region is */
#define REGION_LEN	4096

struct foreign {
	int fd;
	char *base;			/* the whole file, as the processor has it */
	struct fid_mr *mr;
};

static int foreign_reg(struct end *end, struct foreign *foreign, uint64_t flags)
{
	struct fi_mr_dmabuf dmabuf = { .offset = AT, .len = REGION_LEN };
	struct fi_mr_attr attr = {
		.dmabuf = &dmabuf, .iov_count = 1, .access = FI_SEND | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE,
	};

	foreign->fd = memfd_create("dma-buf", MFD_CLOEXEC);
	MUST_BE(foreign->fd >= 0 && !ftruncate(foreign->fd, FILE_LEN));
	foreign->base = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, foreign->fd, 0);
	MUST_BE(foreign->base != MAP_FAILED);
	for (int i = 0; i < FILE_LEN; i++)
		foreign->base[i] = (char) (i % 251);
	dmabuf.fd = foreign->fd;
	dmabuf.base_addr = foreign->base;
	return fi_mr_regattr(end->domain, &attr, flags, &foreign->mr);
}

/* Whatever its size, the processor does not read it: it is out of its reach meanwhile. */
static void dmabuf_travels(void)
{
	static const size_t sizes[] = { 1, 32, 200, 4000 };
	struct foreign foreign;
	struct iovec iov;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct link link = { 0 };
	void *desc;

	link_open(&link);
	MUST(foreign_reg(&link.a, &foreign, FI_MR_DMABUF));
	desc = fi_mr_desc(foreign.mr);
	MUST(mprotect(foreign.base, FILE_LEN, PROT_NONE));
	for (size_t i = 0; i < 4; i++) {
		link_send(&link, foreign.base + AT + i, desc, sizes[i]);
		for (size_t k = 0; k < sizes[i]; k++)
			MUST_BE(link.b.room[k] == (char) ((AT + i + k) % 251));
	}
	iov = (struct iovec) { foreign.base + AT, 8 };
	msg.desc = &desc;
	MUST_FAIL(fi_sendmsg(link.a.ep, &msg, FI_INJECT), FI_EINVAL);
	MUST(fi_close(&foreign.mr->fid));
	link_close(&link);
}

/* A peer writes to it and reads from it by key and virtual address. */
static void dmabuf_is_a_target(void)
{
	struct foreign foreign;
	struct link link = { 0 };
	uint64_t at, key;

	link_open(&link);
	MUST(foreign_reg(&link.b, &foreign, FI_MR_DMABUF));
	at = (uintptr_t) foreign.base + AT + 10;
	key = fi_mr_key(foreign.mr);
	memset(link.a.room, 'w', 1000);
	MUST(fi_write(link.a.ep, link.a.room, 1000, fi_mr_desc(link.a.mr), 0, at, key, NULL));
	MUST_BE(!await_comp(&link, &link.a, NULL));
	MUST_BE(foreign.base[AT + 9] == (char) ((AT + 9) % 251));
	MUST_BE(foreign.base[AT + 10] == 'w' && foreign.base[AT + 1009] == 'w');
	MUST_BE(foreign.base[AT + 1010] == (char) ((AT + 1010) % 251));
	MUST(fi_read(link.a.ep, link.a.room, 2, fi_mr_desc(link.a.mr), 0, at + 999, key, NULL));
	MUST_BE(!await_comp(&link, &link.a, NULL));
	MUST_BE(link.a.room[0] == 'w' && link.a.room[1] == (char) ((AT + 1010) % 251));
	MUST(fi_close(&foreign.mr->fid));
	link_close(&link);
}

static void dmabuf_refused(void)
{
	struct foreign foreign;
	struct link link = { 0 };

	link_listen(&link);
	MUST_FAIL(foreign_reg(&link.a, &foreign, FI_MR_DMABUF), FI_EOPNOTSUPP);
	link_close(&link);
}

static void flag_unknown(void)
{
	struct foreign foreign;
	struct link link = { 0 };

	link_listen(&link);
	MUST_FAIL(foreign_reg(&link.a, &foreign, FI_MR_DMABUF | FI_RMA_EVENT), FI_EBADFLAGS);
	link_close(&link);
}

/* ---- memory of a device ---- */

/* A region in the middle of an allocation of the device, at *base for programs, registered at this end. */
static int device_reg(struct end *end, char **base, struct fid_mr **mr)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	void *(*alloc)(size_t len) = lib ? (void *(*)(size_t)) dlsym(lib, "device_alloc") : NULL;
	struct iovec iov = { .iov_len = REGION_LEN };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_SEND | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE,
		.iface = FI_HMEM_CUDA,
	};

	MUST_BE(alloc);
	*base = alloc(AT + REGION_LEN);
	MUST_BE(*base);
	*base += AT / 2;
	iov.iov_base = *base;
	for (int i = 0; i < REGION_LEN; i++)
		(*base + DEVICE_HOST)[i] = (char) (i % 251);
	return fi_mr_regattr(end->domain, &attr, 0, mr);
}

/* Messages leave it and a peer writes to it, however it was registered; any touch by the processor is a fault. */
static void device_travels(void)
{
	struct link link = { 0 };
	struct fid_mr *mr[2];
	char *base[2];
	struct iovec iov;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	void *desc;

	link_hmem = true;
	link_open(&link);
	MUST_BE(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));	/* regions of the host do not load it */
	MUST(device_reg(&link.a, &base[0], &mr[0]));
	MUST(device_reg(&link.b, &base[1], &mr[1]));
	desc = fi_mr_desc(mr[0]);
	link_send(&link, base[0] + 5, desc, 20);
	MUST_BE(link.b.room[0] == 5 && link.b.room[19] == 24);
	MUST(fi_write(link.a.ep, base[0], 1000, desc, 0, (uintptr_t) base[1] + 100, fi_mr_key(mr[1]), NULL));
	MUST_BE(!await_comp(&link, &link.a, NULL));
	MUST_BE(!memcmp(base[1] + DEVICE_HOST + 100, base[0] + DEVICE_HOST, 1000));
	iov = (struct iovec) { base[0], 8 };
	msg.desc = &desc;
	MUST_FAIL(fi_sendmsg(link.a.ep, &msg, FI_INJECT), FI_EINVAL);
	MUST(fi_close(&mr[0]->fid));
	MUST(fi_close(&mr[1]->fid));
	link_close(&link);
}

static void device_refused(int err)
{
	struct link link = { 0 };
	struct fid_mr *mr;
	char *base;

	link_hmem = true;
	link_listen(&link);
	MUST_FAIL(device_reg(&link.a, &base, &mr), err);
	link_close(&link);
}

static void device_unknown(void)
{
	device_refused(FI_EFAULT);
}

static void device_not_wanted(void)
{
	device_refused(FI_ENOSYS);
}

/* ---- paging on demand ---- */

#define LARGE	(1 << 20)

/* The device says that so much cannot be pinned: what is paged on demand is registered, and used. */
static void odp_pins_nothing(void)
{
	char *large = calloc(1, LARGE);
	struct link link = { 0 };
	struct fid_mr *mr;

	link_open(&link);
	MUST(fi_mr_reg(link.a.domain, large, LARGE, FI_SEND, 0, 0, 0, &mr, NULL));
	memset(large + LARGE - 3000, 'o', 3000);
	link_send(&link, large + LARGE - 3000, fi_mr_desc(mr), 3000);
	MUST_BE(link.b.room[0] == 'o' && link.b.room[2999] == 'o');
	MUST(fi_close(&mr->fid));
	link_close(&link);
	free(large);
}

static void large_is_not_pinned(void)
{
	char *large = calloc(1, LARGE);
	struct link link = { 0 };
	struct fid_mr *mr;

	link_listen(&link);
	MUST_FAIL(fi_mr_reg(link.a.domain, large, LARGE, FI_SEND, 0, 0, 0, &mr, NULL), FI_ENOMEM);
	link_close(&link);
	free(large);
}

static const struct vcase cases[] = {
	{ "messages leave a dma-buf that the processor cannot read", NULL, dmabuf_travels,
	  "FI_INJECT of memory of a dma-buf" },
	{ "peers write to a dma-buf and read from it", NULL, dmabuf_is_a_target, NULL },
	{ "a device without", "SOFTVERBS_LIMITS=dmabuf=0", dmabuf_refused,
	  "ibv_reg_dmabuf_mr of 4096 bytes on soft0: .*the device" },
	{ "FI_VERBS_USE_DMABUF=0", "FI_VERBS_USE_DMABUF=0", dmabuf_refused, "soft0: .*FI_VERBS_USE_DMABUF is off" },
	{ "a dma-buf has no other flag", NULL, flag_unknown, "the only flag is FI_MR_DMABUF" },
	{ "memory of a device, as a dma-buf", NULL, device_travels, "FI_INJECT of memory of a" },
	{ "of one whose driver exports none, by its address", "DEVICE_NO_DMABUF=1 SOFTVERBS_LIMITS=peermem=1",
	  device_travels, NULL },
	{ "for an RDMA device without dma-bufs, by its address", "SOFTVERBS_LIMITS=dmabuf=0,peermem=1", device_travels,
	  NULL },
	{ "with FI_VERBS_USE_DMABUF=0, by its address", "FI_VERBS_USE_DMABUF=0 SOFTVERBS_LIMITS=peermem=1",
	  device_travels, NULL },
	{ "with neither, it is refused", "DEVICE_NO_DMABUF=1", device_unknown,
	  "ibv_reg_mr of 4096 bytes on soft0: Bad address" },
	{ "FI_HMEM=rocr: that of CUDA is refused", "FI_HMEM=rocr", device_not_wanted, "FI_HMEM does not list cuda" },
	{ "FI_VERBS_USE_ODP=1: nothing is pinned", "FI_VERBS_USE_ODP=1 SOFTVERBS_LIMITS=odp=63,max_pinned=16384",
	  odp_pins_nothing, NULL },
	{ "without, all of it is", "SOFTVERBS_LIMITS=odp=63,max_pinned=16384", large_is_not_pinned,
	  "ibv_reg_mr of 1048576 bytes on soft0: .*ulimit -l" },
	{ "a device that pages for sends alone pins", "FI_VERBS_USE_ODP=1 SOFTVERBS_LIMITS=odp=1,max_pinned=16384",
	  large_is_not_pinned, "FI_VERBS_USE_ODP has no effect: soft0 does not support on-demand paging" },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
