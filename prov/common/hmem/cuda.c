/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CUDA, through the driver's library: each program with memory of such a device has it, also one that links the runtime
 * statically. Addresses are unified, so one copy function serves all directions.
 *
 * A copy needs a context. The thread may have none, such as a progress thread: then that of the memory is pushed for
 * the time of the copy, or else the device's primary one. Copies are on the thread's own stream, so they do not wait
 * for kernels that the program has started on streams of its own. Such a kernel may be waiting for the message.
 */
#include "common/hmem/iface.h"

#include <unistd.h>
#include "base/bits.h"

/* From the driver's interface; the names are its own. */
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
#define STREAM_PER_THREAD		((CUstream) 2)
#define CU_POINTER_ATTRIBUTE_CONTEXT	1
#define CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD	1

static struct {
	int (*init)(unsigned flags);
	int (*current)(CUcontext *ctx);
	int (*push)(CUcontext ctx);
	int (*pop)(CUcontext *ctx);
	int (*retain)(CUcontext *ctx, int device);
	int (*attribute)(void *data, int attribute, uintptr_t addr);
	int (*copy)(uintptr_t to, uintptr_t from, size_t len, CUstream stream);
	int (*synchronize)(CUstream stream);
	int (*range)(uintptr_t *base, size_t *len, uintptr_t addr);
	int (*handle)(void *handle, uintptr_t addr, size_t len, int type, unsigned long long flags);
} cu;

static const char *cuda_start(void *lib)
{
	const struct hmem_call calls[] = {
		{ "cuInit", (void **) &cu.init, false },
		{ "cuCtxGetCurrent", (void **) &cu.current, false },
		{ "cuCtxPushCurrent_v2", (void **) &cu.push, false },
		{ "cuCtxPopCurrent_v2", (void **) &cu.pop, false },
		{ "cuDevicePrimaryCtxRetain", (void **) &cu.retain, false },
		{ "cuPointerGetAttribute", (void **) &cu.attribute, false },
		{ "cuMemcpyAsync", (void **) &cu.copy, false },
		{ "cuStreamSynchronize", (void **) &cu.synchronize, false },
		{ "cuMemGetAddressRange_v2", (void **) &cu.range, false },
		{ "cuMemGetHandleForAddressRange", (void **) &cu.handle, true },
	};
	const char *missing = hmem_find(lib, calls, fab_countof(calls));

	if (missing)
		return missing;
	return cu.init(0) ? "device: cuInit fails" : NULL;
}

/* The context for a copy, where the thread has none. */
static int cuda_context(uint64_t device, const void *to, const void *from, CUcontext *ctx)
{
	if (!cu.attribute(ctx, CU_POINTER_ATTRIBUTE_CONTEXT, (uintptr_t) to) && *ctx)
		return 0;
	if (!cu.attribute(ctx, CU_POINTER_ATTRIBUTE_CONTEXT, (uintptr_t) from) && *ctx)
		return 0;
	return cu.retain(ctx, (int) device);	/* once for each copy of such memory; it lives as long as the process */
}

static int cuda_copy(uint64_t device, void *to, const void *from, size_t len)
{
	CUcontext ctx = NULL, pushed = NULL;
	int ret = cu.current(&ctx);

	if (!ret && !ctx) {
		ret = cuda_context(device, to, from, &pushed);
		if (!ret)
			ret = cu.push(pushed);
	}
	if (ret)
		return ret;
	ret = cu.copy((uintptr_t) to, (uintptr_t) from, len, STREAM_PER_THREAD);
	if (!ret)
		ret = cu.synchronize(STREAM_PER_THREAD);
	if (pushed)
		cu.pop(&ctx);
	return ret;
}

/* The driver exports whole pages: those of the allocation. */
static int cuda_export(const void *addr, size_t len, struct fab_hmem_dmabuf *dmabuf)
{
	const size_t in_page = sysconf(_SC_PAGESIZE) - 1;
	uintptr_t base;
	size_t all;
	int ret;

	if (!cu.handle)
		return -1;
	ret = cu.range(&base, &all, (uintptr_t) addr);
	if (ret)
		return ret;
	if (len > all - ((uintptr_t) addr - base))
		return -1;
	dmabuf->offset = (uintptr_t) addr - base;
	return cu.handle(&dmabuf->fd, base, (all + in_page) & ~in_page,
			 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}

const struct hmem_iface hmem_cuda = {
	.name = "cuda", .lib = "libcuda.so.1", .dmabuf_param = "hmem_cuda_use_dmabuf",
	.start = cuda_start, .copy = cuda_copy, .export = cuda_export,
};
