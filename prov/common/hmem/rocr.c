/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ROCr, the runtime below HIP. Its copy takes addresses of the host and of any device.
 */
#include "common/hmem/iface.h"

#include "base/bits.h"

static struct {
	int (*init)(void);
	int (*copy)(void *to, const void *from, size_t len);
	int (*export)(const void *addr, size_t len, int *fd, uint64_t *offset);
} hsa;

static const char *rocr_start(void *lib)
{
	const struct hmem_call calls[] = {
		{ "hsa_init", (void **) &hsa.init, false },
		{ "hsa_memory_copy", (void **) &hsa.copy, false },
		{ "hsa_amd_portable_export_dmabuf", (void **) &hsa.export, true },
	};
	const char *missing = hmem_find(lib, calls, fab_countof(calls));

	if (missing)
		return missing;
	return hsa.init() ? "device: hsa_init fails" : NULL;	/* counted: the program's own shut-down does not end
								 * it */
}

static int rocr_copy(uint64_t device, void *to, const void *from, size_t len)
{
	(void) device;
	return hsa.copy(to, from, len);
}

static int rocr_export(const void *addr, size_t len, struct fab_hmem_dmabuf *dmabuf)
{
	return hsa.export ? hsa.export(addr, len, &dmabuf->fd, &dmabuf->offset) : -1;
}

const struct hmem_iface hmem_rocr = {
	.name = "rocr", .lib = "libhsa-runtime64.so.1", .dmabuf_param = "hmem_rocr_use_dmabuf",
	.start = rocr_start, .copy = rocr_copy, .export = rocr_export,
};
