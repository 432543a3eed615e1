/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See device.h. The arena is reserved once: DEVICE_HOST bytes for the device's addresses, and as many for the host's.
 * Addresses are not used twice, so what touches freed memory is found as well.
 */
#define _GNU_SOURCE
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE	4096u
#define MAX	65536			/* allocations, in all */

static struct {
	uint8_t *base;
	size_t len;			/* 0: freed */
	size_t asked;
	int fd;
} part[MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *arena;
static size_t used, part_cnt;
static uint64_t fail_at;

/* Of this process and those that it has forked. */
static struct counts {
	_Atomic uint64_t copies, bytes;
} *count;

__attribute__((constructor)) static void counts_make(void)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	count = at;
}

/* The allocation of a byte, or -1. lock held. Those made last are looked at first. */
static long find(const void *addr)
{
	const uint8_t *at = addr;

	if (!arena || at < arena || at >= arena + DEVICE_HOST)
		return -1;
	for (long i = (long) part_cnt - 1; i >= 0; i--) {
		if (at >= part[i].base && at < part[i].base + part[i].len)
			return i;
	}
	return -1;
}

static bool arena_open(void)
{
	struct rlimit files;
	void *at;

	if (arena)
		return true;
	if (!getrlimit(RLIMIT_NOFILE, &files)) {	/* each allocation is one */
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	at = mmap(NULL, 2 * DEVICE_HOST, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	arena = at == MAP_FAILED ? NULL : at;
	return arena;
}

/* lock held. */
static void *alloc(size_t asked)
{
	size_t len = (asked + PAGE) & ~(size_t) (PAGE - 1);	/* at least a byte behind it is there */
	uint8_t *at;
	int fd;

	if (!arena_open() || part_cnt == MAX || len > DEVICE_HOST - used)
		return NULL;
	fd = memfd_create("device memory", MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	at = arena + used;
	if (ftruncate(fd, (off_t) len) ||
	    mmap(at, len, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(at + DEVICE_HOST, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		close(fd);
		return NULL;
	}
	part[part_cnt].base = at;
	part[part_cnt].len = len;
	part[part_cnt].asked = asked;
	part[part_cnt++].fd = fd;
	used += len;
	return at;
}

void *device_alloc(size_t len)
{
	void *at;

	pthread_mutex_lock(&lock);
	at = alloc(len);
	pthread_mutex_unlock(&lock);
	return at;
}

void device_free(void *addr)
{
	long i;

	pthread_mutex_lock(&lock);
	i = find(addr);
	if (i >= 0) {
		mmap(part[i].base, part[i].len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
		     0);
		mmap(part[i].base + DEVICE_HOST, part[i].len, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		close(part[i].fd);
		part[i].len = 0;
	}
	pthread_mutex_unlock(&lock);
}

bool device_has(const void *addr)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = find(addr) >= 0;
	pthread_mutex_unlock(&lock);
	return has;
}

uint64_t device_copies(uint64_t *bytes)
{
	if (bytes)
		*bytes = count->bytes;
	return count->copies;
}

void device_fail(uint64_t n)
{
	pthread_mutex_lock(&lock);
	fail_at = n ? count->copies + n : 0;
	pthread_mutex_unlock(&lock);
}

/* Make *addr one that the processor can use for len bytes. False: it leaves its allocation. lock held. */
static bool translate(uint8_t **addr, size_t len)
{
	long i = find(*addr);

	if (i < 0)
		return !arena || *addr < arena || *addr >= arena + DEVICE_HOST;
	if (len > part[i].asked - (size_t) (*addr - part[i].base))
		return false;
	*addr += DEVICE_HOST;
	return true;
}

int device_copy(void *to, const void *from, size_t len)
{
	uint8_t *dest = to, *source = (uint8_t *) (uintptr_t) from;
	int ret = -1;

	pthread_mutex_lock(&lock);
	count->copies++;
	if (!(fail_at && count->copies >= fail_at) && translate(&dest, len) && translate(&source, len)) {
		memmove(dest, source, len);
		count->bytes += len;
		ret = 0;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

int device_range(const void *addr, uintptr_t *base, size_t *len)
{
	long i;

	pthread_mutex_lock(&lock);
	i = find(addr);
	if (i >= 0) {
		*base = (uintptr_t) part[i].base;
		*len = part[i].asked;
	}
	pthread_mutex_unlock(&lock);
	return i < 0 ? -1 : 0;
}

int device_file(const void *addr)
{
	int fd = -1;
	long i;

	pthread_mutex_lock(&lock);
	i = find(addr);
	if (i >= 0)
		fd = fcntl(part[i].fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&lock);
	return fd;
}
