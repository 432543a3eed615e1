/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device whose memory the processor cannot touch: each allocation is a file in memory that is mapped twice, without
 * access at the address that programs get, and with access DEVICE_HOST bytes above it, for this library and for tests
 * that look at it. So every touch by the code under test is a fault. libcuda.so.1 and libhsa-runtime64.so.1 of this
 * folder are made of it; both are found by LD_LIBRARY_PATH=$builddir/test/hmem/.libs.
 *
 * Tests find these functions by dlsym() in either library. Any thread.
 */
#ifndef TEST_HMEM_DEVICE_H
#define TEST_HMEM_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The distance from an address of the device to the same byte for the processor. */
#define DEVICE_HOST	(UINT64_C(1) << 34)

/* Memory of len bytes, zeroed; NULL: none is left. Free it with device_free(). */
void *device_alloc(size_t len);
void device_free(void *addr);
/* True if the device has a byte at this address. */
bool device_has(const void *addr);
/* Copies and their bytes since the library was loaded, also those of forked processes; bytes may be NULL. */
uint64_t device_copies(uint64_t *bytes);
/* The n-th copy from now on, and all later ones, fail; 0: none does. */
void device_fail(uint64_t n);

/* For the libraries of this folder. A copy between addresses of the device and of the host. 0 or -1. */
int device_copy(void *to, const void *from, size_t len);
/* The allocation of an address. 0 or -1. */
int device_range(const void *addr, uintptr_t *base, size_t *len);
/* The same as a file; the caller closes it. -1: none. */
int device_file(const void *addr);

#endif
