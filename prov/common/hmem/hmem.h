/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of devices (FI_HMEM, fi_mr(3)): what the processor cannot load and store is copied by the library of the
 * device. doc/decisions/hmem.md.
 *
 * Registration opens the memory of a device (fab_hmem_open()), which loads the device's library. From then on a number
 * stands for it: in the region, in operations on buffers in the region (FAB_OP_HMEM, common/op/op.h) and in what the
 * provider keeps of them. FAB_HMEM_HOST is memory that the processor reaches. A number stays valid until the process
 * ends; programs use few.
 *
 * An address says by itself whether it is the host's or a device's, so a vector may have both. All devices of a vector
 * are then of one interface (fab_hmem_join()). Any thread; the copies block until they are done.
 */
#ifndef FAB_HMEM_H
#define FAB_HMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <rdma/fi_domain.h>
#include <rdma/providers/fi_prov.h>

#define FAB_HMEM_HOST	0

/* Find the number of a device's memory, `device` as in fi_mr_attr. own: the program's copy functions
 * (FI_SET_OPS_HMEM_OVERRIDE), which replace the library, or NULL; they are copied. 0: *hmem, which is FAB_HMEM_HOST for
 * FI_HMEM_SYSTEM. -FI_ENOSYS: the library of the interface is missing, or FI_HMEM leaves the interface out; -FI_EINVAL:
 * no such interface; -FI_ENOSPC: too many devices. Errors are logged. */
int fab_hmem_open(const struct fi_provider *prov, enum fi_hmem_iface iface, uint64_t device,
		  const struct fi_hmem_override_ops *own, uint8_t *hmem);

/* Make *hmem the number for a vector that has memory of `more`, too. 0; -FI_EINVAL: their interfaces differ. */
int fab_hmem_join(uint8_t *hmem, uint8_t more);

/* Copy bytes [at, at + len) of iov, which has at least so many, to host memory `to`; or from host memory to them. 0;
 * -FI_EIO, or the error of the program's copy function: the device has failed, or the memory is not valid; what was
 * copied is undefined. The first failure of a process is logged. */
int fab_hmem_from(uint8_t hmem, void *to, const struct iovec *iov, size_t at, size_t len);
int fab_hmem_to(uint8_t hmem, const struct iovec *iov, size_t at, const void *from, size_t len);

/* Memory of a device as a dma-buf, which other devices may reach. */
struct fab_hmem_dmabuf {
	int fd;				/* the caller closes it */
	uint64_t offset;		/* of the first byte */
};

/* Export len bytes at addr. 0. -FI_EOPNOTSUPP: the interface, its library or the driver cannot, the memory is no memory
 * of a device, or a parameter (FI_HMEM_CUDA_USE_DMABUF, FI_HMEM_ROCR_USE_DMABUF) forbids it. */
int fab_hmem_export(uint8_t hmem, const void *addr, size_t len, struct fab_hmem_dmabuf *dmabuf);

/* False: FI_HMEM_DISABLE_P2P is set, so no other device may access memory of a device. */
bool fab_hmem_p2p(void);

#endif
