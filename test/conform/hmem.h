/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Buffers in memory of a device: with CONFORM_HMEM=cuda or rocr in the environment, the memory of tests (mem()) is that
 * of the stand-in (test/hmem), and the run asks for FI_HMEM. Tests use the host's addresses of it. The calls of ops.h
 * and atomic_call.h, and regions, have the device's addresses of the same bytes, where any touch is a fault. Buffers
 * that tests have elsewhere (the stack) stay the host's, so both are mixed.
 */
#ifndef CONFORM_HMEM_H
#define CONFORM_HMEM_H

#include <sys/uio.h>

#include <rdma/fabric.h>

#include "conform.h"

/* True in such a run. */
bool hmem_on(void);
/* Ask for it in hints. */
void hmem_ask(struct fi_info *hints);
/* Memory of the device, by its address for the host. It belongs to the test. NULL: this is no such run. */
void *hmem_mem(struct test *t, size_t len);
/* The device's address of this memory; NULL: it is the host's. */
void *hmem_addr(const void *buf);
/* The address for the host of what may be memory of the device. */
void *hmem_host(void *addr);
/* The whole allocation of such memory, by the host's addresses. */
struct iovec hmem_whole(const void *buf);
/* Register memory of the device, given by the host's address; as fi_mr_reg(). */
int hmem_reg(struct fid_domain *domain, const void *buf, size_t len, uint64_t access, uint64_t key, struct fid_mr **mr);
/* Copies so far. */
uint64_t hmem_copies(void);
/* The n-th copy from now on, and all later ones, fail; 0: none. It ends with the test. */
void hmem_fail(struct test *t, uint64_t n);
/* True if the provider copies; otherwise its device reaches the memory by itself, or copies only short messages. */
bool hmem_provider_copies(void);
/* A comment with the number of copies, at the end of the run. */
void hmem_report(void);

#endif
