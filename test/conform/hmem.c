/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See hmem.h. */
#define CONFORM_INSIDE
#include "hmem.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../hmem/device.h"

static struct {
	enum fi_hmem_iface iface;	/* SYSTEM: off */
	void *(*alloc)(size_t len);
	void (*free)(void *addr);
	bool (*has)(const void *addr);
	uint64_t (*copies)(uint64_t *bytes);
	void (*fail)(uint64_t n);
	int (*range)(const void *addr, uintptr_t *base, size_t *len);
} device;

__attribute__((constructor)) static void hmem_open(void)
{
	const char *name = getenv("CONFORM_HMEM");
	bool rocr = name && !strcmp(name, "rocr");
	void *lib;

	if (!name || !*name)
		return;
	lib = dlopen(rocr ? "libhsa-runtime64.so.1" : "libcuda.so.1", RTLD_NOW);
	device.alloc = lib ? (void *(*)(size_t)) dlsym(lib, "device_alloc") : NULL;
	if (!device.alloc) {
		printf("Bail out! CONFORM_HMEM needs the libraries of test/hmem in LD_LIBRARY_PATH\n");
		exit(1);
	}
	device.free = (void (*)(void *)) dlsym(lib, "device_free");
	device.has = (bool (*)(const void *)) dlsym(lib, "device_has");
	device.copies = (uint64_t (*)(uint64_t *)) dlsym(lib, "device_copies");
	device.fail = (void (*)(uint64_t)) dlsym(lib, "device_fail");
	device.range = (int (*)(const void *, uintptr_t *, size_t *)) dlsym(lib, "device_range");
	device.iface = rocr ? FI_HMEM_ROCR : FI_HMEM_CUDA;
}

bool hmem_on(void)
{
	return device.iface;
}

void hmem_ask(struct fi_info *hints)
{
	if (!hmem_on() || !hints->caps)
		return;
	hints->caps |= FI_HMEM;
	hints->domain_attr->mr_mode |= FI_MR_HMEM;
}

void *hmem_mem(struct test *t, size_t len)
{
	void *addr = hmem_on() ? device.alloc(len) : NULL;

	if (!addr)
		return NULL;
	own(t, device.free, addr);
	return (uint8_t *) addr + DEVICE_HOST;
}

void *hmem_addr(const void *buf)
{
	uint8_t *addr = (uint8_t *) (uintptr_t) buf - DEVICE_HOST;

	return hmem_on() && (uintptr_t) buf > DEVICE_HOST && device.has(addr) ? addr : NULL;
}

void *hmem_host(void *addr)
{
	return hmem_on() && device.has(addr) ? (uint8_t *) addr + DEVICE_HOST : addr;
}

struct iovec hmem_whole(const void *buf)
{
	uintptr_t base = 0;
	size_t len = 0;

	device.range(hmem_addr(buf), &base, &len);
	return (struct iovec) { (void *) (base + DEVICE_HOST), len };
}

int hmem_reg(struct fid_domain *domain, const void *buf, size_t len, uint64_t access, uint64_t key, struct fid_mr **mr)
{
	struct iovec iov = { hmem_addr(buf), len };
	const struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = access, .requested_key = key, .iface = device.iface,
	};

	return fi_mr_regattr(domain, &attr, 0, mr);
}

uint64_t hmem_copies(void)
{
	return hmem_on() ? device.copies(NULL) : 0;
}

static void fail_no_more(void *arg)
{
	(void) arg;
	device.fail(0);
}

void hmem_fail(struct test *t, uint64_t n)
{
	if (!hmem_on())
		return;
	device.fail(n);
	if (n)
		own(t, fail_no_more, NULL);
}

bool hmem_provider_copies(void)
{
	return strncmp(run.prov, "verbs", 5);
}

void hmem_report(void)
{
	uint64_t bytes, cnt;

	if (!hmem_on())
		return;
	cnt = device.copies(&bytes);
	printf("# memory of a device: %llu copies, %llu bytes\n", (unsigned long long) cnt, (unsigned long long) bytes);
}
