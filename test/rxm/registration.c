/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations over verbs;ofi_rxm, which the device of test/softverbs counts. It keeps to the pages that a region had
 * when it was registered (SOFTVERBS_LIMITS=pin=1), so a registration that is used after its memory has become another
 * one moves wrong bytes. One process, endpoints a and b. The argument names a group of tests, which the environment
 * suits.
 */
#include "ends.h"
#include "monitor.h"
#include "../softverbs/stand_in.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_rma.h>

#define LONG		(256 << 10)	/* bytes of a message that is announced */
#define BUFS		16
#define ROUNDS		1000

static uint64_t (*reg_cnt)(void), (*pinned_pages)(void);
static unsigned (*rnr_cnt)(void);
static bool (*pins)(void);

static void open_both(int mr_mode)
{
	char bytes[2][8];

	ends_open(FI_MSG | FI_TAGGED | FI_RMA, mr_mode, 0);
	OK((int) fi_recv(b.ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, bytes[1], 8, NULL, a.peer, NULL));
	/* and back, so that both have packet buffers */
	OK((int) fi_recv(a.ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(b.ep, bytes[1], 8, NULL, b.peer, NULL));
	until(a.done == 2 && b.done == 2);
	a.done = b.done = 0;
}

static int setup(void **state)
{
	(void) state;
	open_both(0);
	return 0;
}

static int setup_local(void **state)
{
	(void) state;
	open_both(FI_MR_LOCAL);
	return 0;
}

static void *map(size_t len)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(mem != MAP_FAILED);
	return mem;
}

/* One message, from a to b. */
static void move(const void *from, void *to, size_t len, void *desc_from, void *desc_to)
{
	unsigned sent = a.done + 1, received = b.done + 1;

	OK((int) fi_trecv(b.ep, to, len, desc_to, b.peer, 1, 0, NULL));
	OK((int) fi_tsend(a.ep, from, len, desc_from, a.peer, 1, NULL));
	until(a.done == sent && b.done == received);
}

static void fill(uint8_t *mem, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i += 64)
		mem[i] = (uint8_t) (seed + i / 4096);
	memcpy(mem, &seed, sizeof(seed));
}

/* What b got is what a sent, which was this. */
static void check(const uint8_t *to, size_t len, unsigned seed)
{
	assert_memory_equal(to, &seed, sizeof(seed));
	for (size_t i = 64; i < len; i += 64) {
		if (to[i] != (uint8_t) (seed + i / 4096))
			fail_msg("byte %zu of message %u is %u, not %u", i, seed, to[i], (uint8_t) (seed + i / 4096));
	}
}

/* ---- the cache is on ---- */

static void a_buffer_is_registered_once(void **state)
{
	uint8_t *from[BUFS], *to[BUFS];
	uint64_t before;

	(void) state;
	for (int i = 0; i < BUFS; i++) {
		from[i] = map(LONG);
		to[i] = map(LONG);
	}
	before = reg_cnt();
	for (unsigned i = 0; i < ROUNDS; i++) {
		fill(from[i % BUFS], LONG, i);
		move(from[i % BUFS], to[i % BUFS], LONG, NULL, NULL);
		check(to[i % BUFS], LONG, i);
	}
	assert_int_equal(reg_cnt() - before, 2 * BUFS);
	for (int i = 0; i < BUFS; i++) {
		munmap(from[i], LONG);
		munmap(to[i], LONG);
	}
}

/* A part of a registered buffer needs no registration, nor does memory that a program writes to its peer again. */
static void parts_of_buffers_are_found(void **state)
{
	uint8_t *from = map(LONG), *to = map(LONG);
	struct fid_mr *mr;
	uint64_t before;

	(void) state;
	move(from, to, LONG, NULL, NULL);
	OK(fi_mr_reg(b.domain, to, LONG, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 0, 0, &mr, NULL));
	before = reg_cnt();
	for (unsigned i = 0; i < 10; i++) {
		fill(from + 4096 * i, LONG - 65536, i);
		move(from + 4096 * i, to + 4096 * i, LONG - 65536, NULL, NULL);
		check(to + 4096 * i, LONG - 65536, i);
		OK((int) fi_write(a.ep, from + i, 65536, NULL, a.peer, (uintptr_t) to, fi_mr_key(mr), NULL));
		until(a.done == 2 * i + 3);
	}
	assert_int_equal(reg_cnt() - before, 0);
	OK(fi_close(&mr->fid));
	munmap(from, LONG);
	munmap(to, LONG);
}

/* A message of several chunks. */
static void a_long_message_arrives_whole(void **state)
{
	size_t len = (10 << 20) + 12345;
	uint8_t *from = map(len), *to = map(len);
	uint64_t before;

	(void) state;
	fill(from, len, 7);
	move(from, to, len, NULL, NULL);
	check(to, len, 7);
	before = reg_cnt();
	fill(from, len, 8);
	move(from, to, len, NULL, NULL);
	check(to, len, 8);
	assert_int_equal(reg_cnt() - before, 0);
	munmap(from, len);
	munmap(to, len);
}

/* The ways in which addresses come to mean another memory. */
static uint8_t *anew_by_munmap(uint8_t *mem)
{
	munmap(mem, LONG);
	mem = mmap(mem, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_true(mem != MAP_FAILED);
	return mem;
}

static uint8_t *anew_by_map_fixed(uint8_t *mem)
{
	mem = mmap(mem, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_true(mem != MAP_FAILED);
	return mem;
}

static uint8_t *anew_by_madvise(uint8_t *mem)
{
	OK(madvise(mem, LONG, MADV_DONTNEED));
	return mem;
}

static uint8_t *anew_by_mremap(uint8_t *mem)
{
	uint8_t *other = mremap(mem, LONG, LONG, MREMAP_MAYMOVE | MREMAP_FIXED, map(LONG));

	assert_true(other != MAP_FAILED);
	assert_true(mmap(mem, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mem);
	munmap(other, LONG);
	return mem;
}

/* In the middle, so that the two ends stay. */
static uint8_t *anew_in_part(uint8_t *mem)
{
	OK(madvise(mem + LONG / 2, 4096, MADV_DONTNEED));
	return mem;
}

static uint8_t *anew_by_fork(uint8_t *mem)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		memset(mem, 0xee, LONG);
		munmap(mem, LONG);
		_exit(0);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	return mem;
}

static uint8_t *(*const anew[])(uint8_t *) = {
	anew_by_munmap, anew_by_map_fixed, anew_by_madvise, anew_by_mremap, anew_in_part, anew_by_fork,
};

static void memory_that_changes_moves_no_wrong_byte(void **state)
{
	uint8_t *from = map(LONG), *to = map(LONG);

	(void) state;
	if (!pins())
		unit_skip("the kernel has no io_uring, or it is forbidden");
	for (unsigned i = 0; i < 20 * sizeof(anew) / sizeof(anew[0]); i++) {
		from = anew[i % (sizeof(anew) / sizeof(anew[0]))](from);
		to = anew[(i / 3) % (sizeof(anew) / sizeof(anew[0]))](to);
		fill(from, LONG, i);
		memset(to, 0, LONG);
		move(from, to, LONG, NULL, NULL);
		check(to, LONG, i);
	}
	munmap(from, LONG);
	munmap(to, LONG);
}

/* Threads that allocate, use and free memory of the sizes that are sent, so that addresses go from one to another. */
static _Atomic bool stop;

static void *churn(void *arg)
{
	uint8_t *mem[8] = { NULL };

	(void) arg;
	for (unsigned i = 0; !stop; i++) {
		free(mem[i % 8]);
		mem[i % 8] = malloc(LONG);
		memset(mem[i % 8], (int) i, LONG);
		if (!(i % 16))
			malloc_trim(0);
	}
	for (int i = 0; i < 8; i++)
		free(mem[i]);
	return NULL;
}

static void churning_memory_moves_no_wrong_byte(void **state)
{
	pthread_t thread[2];

	(void) state;
	if (!pins())
		unit_skip("the kernel has no io_uring, or it is forbidden");
	stop = false;
	for (int i = 0; i < 2; i++)
		OK(pthread_create(&thread[i], NULL, churn, NULL));
	for (unsigned i = 0; i < 500; i++) {
		uint8_t *from = malloc(LONG), *to = malloc(LONG);

		fill(from, LONG, i);
		memset(to, 0, LONG);
		move(from, to, LONG, NULL, NULL);
		check(to, LONG, i);
		free(from);
		if (i % 3)
			malloc_trim(0);
		free(to);
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		OK(pthread_join(thread[i], NULL));
}

/* Shared memory can lose its pages without an event, so it is registered for each message. */
static void shared_memory_is_not_cached(void **state)
{
	int fd = memfd_create("registration", 0);
	uint8_t *from, *to = map(LONG);
	uint64_t before;

	(void) state;
	OK(ftruncate(fd, LONG));
	from = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(from != MAP_FAILED);
	move(to, from, LONG, NULL, NULL);
	before = reg_cnt();
	for (unsigned i = 0; i < 10; i++) {
		OK(ftruncate(fd, 0));
		OK(ftruncate(fd, LONG));
		fill(from, LONG, i);
		move(from, to, LONG, NULL, NULL);
		check(to, LONG, i);
	}
	assert_true(reg_cnt() - before >= 10);
	munmap(from, LONG);
	munmap(to, LONG);
	close(fd);
}

/* ---- the cache is small: FI_MR_CACHE_MAX_COUNT=8, FI_MR_CACHE_MAX_SIZE=1m ---- */

static void the_cache_is_bounded(void **state)
{
	uint8_t *mem = map(64 * LONG), *to = map(LONG);
	uint64_t before = 4096 * pinned_pages();
	uint64_t cnt;

	(void) state;
	for (unsigned i = 0; i < 64; i++) {
		fill(mem + i * LONG, LONG, i);
		move(mem + i * LONG, to, LONG, NULL, NULL);
		check(to, LONG, i);
	}
	/* a's cache, one message in b's, and what ended last */
	assert_true(4096 * pinned_pages() - before <= (1 << 20) + 3 * LONG);
	/* the last ones are still there */
	cnt = reg_cnt();
	move(mem + 63 * LONG, to, LONG, NULL, NULL);
	move(mem + 62 * LONG, to, LONG, NULL, NULL);
	assert_int_equal(reg_cnt() - cnt, 0);
	munmap(mem, 64 * LONG);
	munmap(to, LONG);
}

/* ---- the cache is off: FI_MR_CACHE_MONITOR=disabled or FI_MR_CACHE_MAX_COUNT=0 ---- */

static void without_a_cache_each_message_registers(void **state)
{
	uint8_t *from = map(LONG), *to = map(LONG);
	uint64_t len = 4096 * pinned_pages(), before = reg_cnt();

	(void) state;
	for (unsigned i = 0; i < 10; i++) {
		fill(from, LONG, i);
		move(from, to, LONG, NULL, NULL);
		check(to, LONG, i);
	}
	assert_int_equal(reg_cnt() - before, 20);
	assert_int_equal(4096 * pinned_pages(), len);
	munmap(from, LONG);
	munmap(to, LONG);
}

/* ---- the cache does not matter ---- */

static void the_registrations_of_the_program_are_used(void **state)
{
	uint8_t *from = map(LONG), *to = map(LONG);
	struct fid_mr *mr[2];
	uint64_t before;

	(void) state;
	assert_true(info->domain_attr->mr_mode & FI_MR_LOCAL);
	OK(fi_mr_reg(a.domain, from, LONG, FI_SEND | FI_WRITE, 0, 0, 0, &mr[0], NULL));
	OK(fi_mr_reg(b.domain, to, LONG, FI_RECV | FI_REMOTE_WRITE, 0, 0, 0, &mr[1], NULL));
	before = reg_cnt();
	move(from, to, LONG, fi_mr_desc(mr[0]), fi_mr_desc(mr[1]));
	/* a peer may read the message, but nobody who has the key of the program's region */
	assert_int_equal(reg_cnt() - before, 1);
	for (unsigned i = 0; i < 10; i++) {
		fill(from, LONG, i);
		move(from, to, LONG, fi_mr_desc(mr[0]), fi_mr_desc(mr[1]));
		check(to, LONG, i);
		OK((int) fi_write(a.ep, from, LONG, fi_mr_desc(mr[0]), a.peer, (uintptr_t) to, fi_mr_key(mr[1]), NULL));
		until(a.done == 2 * i + 3);
	}
	assert_int_equal(reg_cnt() - before, 1);
	OK(fi_close(&mr[0]->fid));
	OK(fi_close(&mr[1]->fid));
	munmap(from, LONG);
	munmap(to, LONG);
}

static void short_rma_registers_nothing(void **state)
{
	uint64_t word[2] = { 0 }, there[2] = { 1, 2 };
	struct fid_mr *mr;
	uint64_t before;
	unsigned done;

	(void) state;
	OK(fi_mr_reg(b.domain, there, sizeof(there), FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 0, 0, &mr, NULL));
	OK((int) fi_read(a.ep, word, 8, NULL, a.peer, (uintptr_t) there, fi_mr_key(mr), NULL));
	until(a.done == 1);
	assert_int_equal(word[0], 1);
	before = reg_cnt();
	for (uint64_t i = 0; i < 100; i++) {
		done = a.done;
		word[0] = i;
		OK((int) fi_write(a.ep, word, 8, NULL, a.peer, (uintptr_t) there, fi_mr_key(mr), NULL));
		until(a.done == done + 1);
		OK((int) fi_read(a.ep, &word[1], 8, NULL, a.peer, (uintptr_t) there, fi_mr_key(mr), NULL));
		until(a.done == done + 2);
		assert_int_equal(word[1], i);
	}
	assert_int_equal(reg_cnt() - before, 0);
	OK(fi_close(&mr->fid));
}

/* A file in memory stands for a dma-buf, and its address in operations is one that the processor cannot touch:
 * whoever tries to copy ends the test. */
static void a_dma_buf_is_never_touched(void **state)
{
	int fd = memfd_create("dma-buf", 0);
	uint8_t *device = mmap(NULL, LONG, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *to = map(LONG), *host;
	struct fi_mr_dmabuf dmabuf = { .fd = fd, .len = LONG, .base_addr = device };
	struct fi_mr_attr attr = {
		.dmabuf = &dmabuf, .iov_count = 1, .access = FI_SEND | FI_RECV | FI_WRITE | FI_READ,
	};
	struct fid_mr *mr, *there, *target;

	(void) state;
	OK(ftruncate(fd, LONG));
	host = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(device != MAP_FAILED && host != MAP_FAILED);
	OK(fi_mr_regattr(a.domain, &attr, FI_MR_DMABUF, &mr));
	/* the region keeps the memory */
	close(fd);
	OK(fi_mr_reg(b.domain, to, LONG, FI_RECV | FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 0, 0, &there, NULL));
	fill(host, LONG, 5);
	move(device, to, LONG, fi_mr_desc(mr), fi_mr_desc(there));
	check(to, LONG, 5);
	fill(host, LONG, 6);
	move(device, to, 1024, fi_mr_desc(mr), fi_mr_desc(there));
	check(to, 1024, 6);
	OK((int) fi_write(a.ep, device, LONG, fi_mr_desc(mr), a.peer, (uintptr_t) to, fi_mr_key(there), NULL));
	until(a.done == 3);
	check(to, LONG, 6);
	fill(to, LONG, 7);
	OK((int) fi_read(a.ep, device, LONG, fi_mr_desc(mr), a.peer, (uintptr_t) to, fi_mr_key(there), NULL));
	until(a.done == 4);
	check(host, LONG, 7);
	/* what would need a copy */
	assert_int_equal((int) fi_recv(a.ep, device, 64, fi_mr_desc(mr), FI_ADDR_UNSPEC, NULL), -FI_EOPNOTSUPP);
	OK(fi_close(&mr->fid));
	/* a peer's write */
	attr.access = FI_REMOTE_WRITE;
	dmabuf.fd = fd = memfd_create("dma-buf", 0);
	OK(ftruncate(fd, LONG));
	munmap(host, LONG);
	host = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	OK(fi_mr_regattr(b.domain, &attr, FI_MR_DMABUF, &target));
	fill(to, LONG, 8);
	OK((int) fi_write(a.ep, to, 64, NULL, a.peer, (uintptr_t) device, fi_mr_key(target), NULL));
	until(a.done == 5);
	check(host, 64, 8);
	OK(fi_close(&target->fid));
	OK(fi_close(&there->fid));
	close(fd);
	munmap(host, LONG);
	munmap(device, LONG);
	munmap(to, LONG);
}

/* FI_MR_LOCAL is returned to those alone who ask for it. */
static void local_registration_is_not_asked_for(void **state)
{
	(void) state;
	assert_false(info->domain_attr->mr_mode & FI_MR_LOCAL);
}

/* ---- memory for packets ---- */

#define PEERS	512
#define SETTINGS 3			/* of 8, 64 and 512 peers */

/* Descriptors of this process that are not sockets. The stand-in's queue pairs and its connections of the CM are
 * sockets, and it has no others. */
static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char to[64] = { 0 };
	int cnt = 0;

	while ((entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, to, sizeof(to) - 1);

		cnt += len > 0 && strncmp(to, "socket:", strlen("socket:"));
	}
	closedir(dir);
	return cnt;
}

/* The other process of the next test: it has many endpoints on a queue, and writes their names. */
static void many(int out)
{
	struct fid_ep *ep;
	char name[64], to[8];
	size_t len;

	fabric_open(FI_MSG, 0, 0);
	end_open(&b);
	for (int i = 0; i < PEERS; i++) {
		ep = endpoint_open(&b);
		len = sizeof(name);
		memset(name, 0, len);
		OK(fi_getname(&ep->fid, name, &len));
		OK((int) fi_recv(ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL));
		assert_int_equal(write(out, name, sizeof(name)), sizeof(name));
	}
	for (;;)
		drive(&b);
}

/* All connections of an engine share what is registered for packets, and its descriptors. */
static void peers_cost_queue_pairs_alone(void **state)
{
	static const int settings[SETTINGS] = { 8, 64, PEERS };
	uint64_t pages[SETTINGS];
	int fds[SETTINGS], names[2], cnt = 0;
	char name[64], from[8] = { 0 };
	fi_addr_t addr;
	pid_t pid;

	(void) state;
	OK(pipe(names));
	pid = fork();
	if (!pid) {
		many(names[1]);
		_exit(1);
	}
	fabric_open(FI_MSG, 0, PEERS);
	end_open(&a);
	for (int s = 0; s < SETTINGS; s++) {
		for (; cnt < settings[s]; cnt++) {
			assert_int_equal(read(names[0], name, sizeof(name)), sizeof(name));
			assert_int_equal(fi_av_insert(a.av, name, 1, &addr, 0, NULL), 1);
			OK((int) fi_send(a.ep, from, 8, NULL, addr, NULL));
			/* a few at a time, as a crowd gets more buffers */
			while (a.done + 8 <= (unsigned) cnt)
				drive(&a);
		}
		while (a.done < (unsigned) cnt)
			drive(&a);
		pages[s] = pinned_pages();
		fds[s] = descriptors();
		assert_int_equal(pages[s], pages[0]);
		assert_int_equal(fds[s], fds[0]);
	}
	OK(kill(pid, SIGKILL));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	OK(close(names[0]));
	OK(close(names[1]));
	end_close(&a);
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

#define CROWD		8
#define PACKETS		30		/* of a peer that are under way at a time */

/* Each of the crowd sends as much as it may at a time, and a looks when nothing more comes: all has arrived, or some
 * finds no buffer. */
static void burst(struct fid_ep **ep)
{
	unsigned sent = b.done, received = a.done, before = rnr_cnt();
	char to[CROWD * PACKETS][8], from[8] = { 0 };

	for (int i = 0; i < CROWD * PACKETS; i++)
		OK((int) fi_recv(a.ep, to[i], 8, NULL, FI_ADDR_UNSPEC, NULL));
	for (int i = 0; i < CROWD * PACKETS; i++)
		OK((int) fi_send(ep[i % CROWD], from, 8, NULL, b.peer, NULL));
	while (b.done < sent + CROWD * PACKETS && rnr_cnt() == before)
		drive(&b);
	until(a.done == received + CROWD * PACKETS && b.done == sent + CROWD * PACKETS);
}

/* Many peers at a time: packets find no buffer, once. There are more buffers then. */
static void a_crowd_gets_more_buffers(void **state)
{
	struct fid_ep *ep[CROWD];
	unsigned before;

	(void) state;
	for (int i = 0; i < CROWD; i++)
		ep[i] = peer_add();
	before = rnr_cnt();
	burst(ep);
	assert_true(rnr_cnt() > before);
	before = rnr_cnt();
	burst(ep);
	assert_int_equal(rnr_cnt(), before);
	for (int i = 0; i < CROWD; i++)
		OK(fi_close(&ep[i]->fid));
}

/* ---- a device of iWARP: SOFTVERBS_DEVICE=cxgb4, SOFTVERBS_LIMITS=no_rnr=1 ---- */

/* A message that finds no receive ends the connection, so no connection shares receives. */
static void a_crowd_finds_receives_over_iwarp(void **state)
{
	struct fid_ep *ep[CROWD];

	(void) state;
	for (int i = 0; i < CROWD; i++)
		ep[i] = peer_add();
	burst(ep);
	assert_int_equal(rnr_cnt(), 0);
	for (int i = 0; i < CROWD; i++)
		OK(fi_close(&ep[i]->fid));
}

/* ---- an imported monitor ---- */

static void an_imported_monitor_is_used(void **state)
{
	uint8_t *from, *to;
	uint64_t before;

	(void) state;
	OK(mon_import());
	assert_non_null(mon.import_ops);
	open_both(0);
	from = map(LONG);
	to = map(LONG);
	move(from, to, LONG, NULL, NULL);
	assert_int_equal(started, 1);
	assert_int_equal(subscribed, 2);
	before = reg_cnt();
	move(from, to, LONG, NULL, NULL);
	assert_int_equal(reg_cnt() - before, 0);
	mon.import_ops->notify(&mon, from + 5, 1);
	from = anew_by_munmap(from);
	fill(from, LONG, 3);
	move(from, to, LONG, NULL, NULL);
	check(to, LONG, 3);
	assert_int_equal(reg_cnt() - before, 1);
	/* one monitor at a time */
	assert_int_equal(mon_import(), -FI_EBUSY);
	/* the program takes its monitor back under an open domain: nothing is cached any more */
	OK(fi_close(&mon.fid));
	assert_int_equal(started, 0);
	before = reg_cnt();
	move(from, to, LONG, NULL, NULL);
	move(from, to, LONG, NULL, NULL);
	assert_int_equal(subscribed, 3);
	assert_true(reg_cnt() - before >= 4);
	ends_close(NULL);
	assert_int_equal(started, 0);
	munmap(from, LONG);
	munmap(to, LONG);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, ends_close)

int main(int argc, char **argv)
{
	const struct CMUnitTest cached[] = {
		CASE(a_buffer_is_registered_once),
		CASE(parts_of_buffers_are_found),
		CASE(a_long_message_arrives_whole),
		CASE(memory_that_changes_moves_no_wrong_byte),
		CASE(churning_memory_moves_no_wrong_byte),
		CASE(shared_memory_is_not_cached),
		CASE(local_registration_is_not_asked_for),
		cmocka_unit_test(peers_cost_queue_pairs_alone),
		CASE(a_crowd_gets_more_buffers),
	};
	const struct CMUnitTest iwarp[] = { CASE(a_crowd_finds_receives_over_iwarp) };
	const struct CMUnitTest bounded[] = { CASE(the_cache_is_bounded) };
	const struct CMUnitTest off[] = {
		CASE(without_a_cache_each_message_registers),
		CASE(short_rma_registers_nothing),
		cmocka_unit_test_setup_teardown(the_registrations_of_the_program_are_used, setup_local, ends_close),
		cmocka_unit_test_setup_teardown(a_dma_buf_is_never_touched, setup_local, ends_close),
	};
	const struct CMUnitTest imported[] = { cmocka_unit_test(an_imported_monitor_is_used) };
	const char *group = argc > 1 ? argv[1] : "";

	reg_cnt = stand_in("sv_test_reg_cnt");
	pinned_pages = stand_in("sv_test_pinned_pages");
	rnr_cnt = stand_in("sv_test_rnr_cnt");
	pins = stand_in("sv_test_pins");
	if (!strcmp(group, "bounded"))
		return cmocka_run_group_tests_name("rxm/registration, bounded", bounded, NULL, NULL);
	if (!strcmp(group, "iwarp"))
		return cmocka_run_group_tests_name("rxm/registration, iwarp", iwarp, NULL, NULL);
	if (!strcmp(group, "off"))
		return cmocka_run_group_tests_name("rxm/registration, off", off, NULL, NULL);
	if (!strcmp(group, "imported"))
		return cmocka_run_group_tests_name("rxm/registration, imported", imported, NULL, NULL);
	return cmocka_run_group_tests_name("rxm/registration", cached, NULL, NULL);
}
