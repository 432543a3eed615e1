/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stand-in for the runtime of ROCm, libhsa-runtime64.so.1: the calls that weft makes.
 */
#include "device.h"

int hsa_init(void);
int hsa_memory_copy(void *to, const void *from, size_t len);
int hsa_amd_portable_export_dmabuf(const void *addr, size_t len, int *fd, uint64_t *offset);

int hsa_init(void)
{
	return 0;
}

int hsa_memory_copy(void *to, const void *from, size_t len)
{
	return device_copy(to, from, len);
}

int hsa_amd_portable_export_dmabuf(const void *addr, size_t len, int *fd, uint64_t *offset)
{
	uintptr_t base;
	size_t all;

	if (device_range(addr, &base, &all) || len > all - ((uintptr_t) addr - base))
		return -1;
	*offset = (uintptr_t) addr - base;
	*fd = device_file(addr);
	return *fd < 0 ? -1 : 0;
}
