/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pinned pages, with SOFTVERBS_LIMITS=pin=1: as a real device does, this one reads and writes the pages that a region
 * had when it was registered, whatever is at its addresses by now. The kernel pins them for io_uring(7) as it does for
 * a device (FOLL_LONGTERM), and copies between them and a file in memory.
 */
#include "sv.h"
#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SLOTS	16384			/* regions at a time */

/* One request at a time; sv_lock() held. */
static struct {
	int fd, file;			/* the ring; the file in memory */
	struct io_uring_params params;
	uint8_t *sq, *cq;		/* the two rings */
	struct io_uring_sqe *sqe;
	bool used[SLOTS];
} ring = { .fd = -1 };

static bool ring_map(void)
{
	const struct io_uring_params *p = &ring.params;
	int rw = PROT_READ | PROT_WRITE;

	ring.sq = mmap(NULL, p->sq_off.array + p->sq_entries * sizeof(uint32_t), rw, MAP_SHARED, ring.fd,
		       IORING_OFF_SQ_RING);
	ring.cq = mmap(NULL, p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe), rw, MAP_SHARED, ring.fd,
		       IORING_OFF_CQ_RING);
	ring.sqe = mmap(NULL, p->sq_entries * sizeof(struct io_uring_sqe), rw, MAP_SHARED, ring.fd, IORING_OFF_SQES);
	return ring.sq != MAP_FAILED && ring.cq != MAP_FAILED && ring.sqe != MAP_FAILED;
}

static bool ring_open(void)
{
	struct io_uring_rsrc_register none = { .nr = SLOTS, .flags = IORING_RSRC_REGISTER_SPARSE };

	ring.fd = (int) syscall(SYS_io_uring_setup, 4, &ring.params);
	ring.file = memfd_create("softverbs", MFD_CLOEXEC);
	return ring.fd >= 0 && ring.file >= 0 && ring_map() &&
	       !syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS2, &none, sizeof(none));
}

bool sv_pins(void)
{
	static int pins = -1;

	if (pins < 0)
		pins = sv_limit("pin", 0) && ring_open();
	return pins;
}

bool sv_test_pins(void)
{
	bool pins;

	sv_lock();
	pins = sv_pins();
	sv_unlock();
	return pins;
}

static int set_slot(uint32_t slot, void *addr, size_t len)
{
	struct iovec iov = { addr, len };
	uint64_t tag = 0;
	struct io_uring_rsrc_update2 update = {
		.offset = slot, .data = (uintptr_t) &iov, .tags = (uintptr_t) &tag, .nr = 1,
	};

	return syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof(update)) == 1 ?
	       0 : errno;
}

int sv_pin(uint32_t slot, void *addr, size_t len)
{
	int ret;

	if (slot >= SLOTS)
		return ENOMEM;
	ret = len ? set_slot(slot, addr, len) : 0;
	ring.used[slot] = len && !ret;
	return ret;
}

void sv_unpin(uint32_t slot)
{
	if (slot < SLOTS && ring.used[slot])
		set_slot(slot, NULL, 0);
	if (slot < SLOTS)
		ring.used[slot] = false;
}

/* Copy between the file and pinned pages. */
static void transfer(uint8_t opcode, uint32_t slot, void *addr, size_t len)
{
	const struct io_uring_params *p = &ring.params;
	_Atomic uint32_t *tail = (_Atomic uint32_t *) (ring.sq + p->sq_off.tail);
	_Atomic uint32_t *head = (_Atomic uint32_t *) (ring.cq + p->cq_off.head);
	uint32_t at = *tail & (p->sq_entries - 1);
	struct io_uring_cqe *cqe;

	ring.sqe[at] = (struct io_uring_sqe) {
		.opcode = opcode, .fd = ring.file, .addr = (uintptr_t) addr, .len = (uint32_t) len,
		.buf_index = (uint16_t) slot,
	};
	((uint32_t *) (ring.sq + p->sq_off.array))[at] = at;
	atomic_fetch_add(tail, 1);
	if (syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		abort();
	cqe = (struct io_uring_cqe *) (ring.cq + p->cq_off.cqes) + (*head & (p->cq_entries - 1));
	if (cqe->res != (int) len)
		abort();
	atomic_fetch_add(head, 1);
}

void sv_pin_read(uint32_t slot, void *addr, size_t len, void *to)
{
	transfer(IORING_OP_WRITE_FIXED, slot, addr, len);
	if (pread(ring.file, to, len, 0) != (ssize_t) len)
		abort();
}

void sv_pin_write(uint32_t slot, void *addr, size_t len, const void *from)
{
	if (pwrite(ring.file, from, len, 0) != (ssize_t) len)
		abort();
	transfer(IORING_OP_READ_FIXED, slot, addr, len);
}
