/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stand-in for the driver's library of CUDA, libcuda.so.1: the calls that weft makes, by the names and types of the
 * driver's interface. As with the driver, a copy needs a context of its thread, and the memory has one.
 */
#include "device.h"

#include <stdlib.h>

enum { OK, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NOT_SUPPORTED = 801 };

#define DEPTH	8
#define ATTRIBUTE_CONTEXT	1
#define DMA_BUF_FD	1

int cuInit(unsigned flags);
int cuMemAlloc_v2(uintptr_t *addr, size_t len);
int cuMemFree_v2(uintptr_t addr);
int cuCtxGetCurrent(void **ctx);
int cuCtxPushCurrent_v2(void *ctx);
int cuCtxPopCurrent_v2(void **ctx);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuPointerGetAttribute(void *data, int attribute, uintptr_t addr);
int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t len, void *stream);
int cuStreamSynchronize(void *stream);
int cuMemGetAddressRange_v2(uintptr_t *base, size_t *len, uintptr_t addr);
int cuMemGetHandleForAddressRange(void *handle, uintptr_t addr, size_t len, int type, unsigned long long flags);

static int primary;
static __thread void *stack[DEPTH];
static __thread int depth;

int cuInit(unsigned flags)
{
	return flags ? INVALID_VALUE : OK;
}

int cuMemAlloc_v2(uintptr_t *addr, size_t len)
{
	*addr = (uintptr_t) device_alloc(len);
	return *addr ? OK : OUT_OF_MEMORY;
}

int cuMemFree_v2(uintptr_t addr)
{
	device_free((void *) addr);
	return OK;
}

int cuCtxGetCurrent(void **ctx)
{
	*ctx = depth ? stack[depth - 1] : NULL;
	return OK;
}

int cuCtxPushCurrent_v2(void *ctx)
{
	if (!ctx || depth == DEPTH)
		return INVALID_CONTEXT;
	stack[depth++] = ctx;
	return OK;
}

int cuCtxPopCurrent_v2(void **ctx)
{
	if (!depth)
		return INVALID_CONTEXT;
	*ctx = stack[--depth];
	return OK;
}

int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
	if (device)
		return INVALID_VALUE;
	*ctx = &primary;
	return OK;
}

int cuPointerGetAttribute(void *data, int attribute, uintptr_t addr)
{
	if (attribute != ATTRIBUTE_CONTEXT || !device_has((void *) addr))
		return INVALID_VALUE;
	*(void **) data = &primary;
	return OK;
}

int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t len, void *stream)
{
	(void) stream;
	if (!depth)
		return INVALID_CONTEXT;
	return device_copy((void *) to, (void *) from, len) ? INVALID_VALUE : OK;
}

int cuStreamSynchronize(void *stream)
{
	(void) stream;
	return depth ? OK : INVALID_CONTEXT;
}

int cuMemGetAddressRange_v2(uintptr_t *base, size_t *len, uintptr_t addr)
{
	return device_range((void *) addr, base, len) ? INVALID_VALUE : OK;
}

int cuMemGetHandleForAddressRange(void *handle, uintptr_t addr, size_t len, int type, unsigned long long flags)
{
	if (type != DMA_BUF_FD || flags || len % 4096 || addr % 4096)
		return INVALID_VALUE;
	if (getenv("DEVICE_NO_DMABUF"))		/* a driver without */
		return NOT_SUPPORTED;
	*(int *) handle = device_file((void *) addr);
	return *(int *) handle < 0 ? INVALID_VALUE : OK;
}
