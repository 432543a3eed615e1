/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See av_shared.h. The file contains a struct header, and from offset FIRST on a struct fab_av_record for each index,
 * in the byte order of the machine. Locks are open file description locks of fcntl(2). Byte CHANGE has a write lock for
 * changes and read locks for reading. On byte ALIVE each process that has the file open holds a read lock.
 */
#include "common/av/av_shared.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "common/domain/domain.h"

#define DIR_NAME	"/dev/shm"
#define MAGIC		UINT64_C(0x3156412074666577)	/* "weft AV1" */
#define FIRST		64		/* offset of the first record */
#define CAPACITY_MIN	65536		/* records; the file is sparse */
#define WAIT_MS		1000
#define TRIES		100		/* to open or create, while other processes remove and create the file */

enum { CHANGE, ALIVE };			/* offsets of the bytes that are locked */

struct header {
	uint64_t magic;
	uint32_t family;
	uint32_t record_size;
	uint64_t capacity;		/* most records that fit */
	uint64_t cnt;			/* records used so far */
	uint64_t gen;			/* generation: counts changes */
};

struct fab_av_shared {
	const struct fi_provider *prov;
	char path[PATH_MAX];
	int fd;				/* owned */
	bool read_only;
	int family;
	uint64_t capacity;		/* as checked when it was opened */
	struct header header;		/* with the changes since fab_av_shared_lock() */
	fi_addr_t *map;			/* owned: a mapping, one element for each record */
};

/* ---- locks and bytes ---- */

static int lock_byte(int fd, int byte, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &lock) ? -errno : 0;
}

/* The same, but waits up to a second for other processes. -FI_EBUSY: they still hold the lock. */
static int await_byte(int fd, int byte, short type)
{
	uint64_t end_ms = fab_now_ms() + WAIT_MS;
	int ret;

	while ((ret = lock_byte(fd, byte, type)) == -EAGAIN || ret == -EACCES) {
		if (fab_now_ms() >= end_ms)
			return -FI_EBUSY;
		fab_sock->poll(NULL, 0, 1);
	}
	return ret;
}

static int read_at(int fd, void *buf, size_t len, uint64_t offset)
{
	ssize_t ret = pread(fd, buf, len, offset);

	return ret == (ssize_t) len ? 0 : ret < 0 ? -errno : -FI_EIO;
}

static int write_at(int fd, const void *buf, size_t len, uint64_t offset)
{
	ssize_t ret = pwrite(fd, buf, len, offset);

	return ret == (ssize_t) len ? 0 : ret < 0 ? -errno : -FI_EIO;
}

/* ---- the name ---- */

/* Make /dev/shm/weft-av.USER.DOMAIN.NAME. Characters that are not letters or digits become %XX. False: the name is too
 * long. */
static bool make_path(struct fab_av_shared *shared, const char *domain, const char *name)
{
	const char *const parts[] = { domain, name };
	size_t len = snprintf(shared->path, sizeof(shared->path), DIR_NAME "/weft-av.%u", (unsigned) geteuid());

	for (size_t i = 0; i < fab_countof(parts); i++) {
		shared->path[len++] = '.';
		for (const char *c = parts[i]; *c; c++) {
			if (len + 4 > NAME_MAX)
				return false;
			len += snprintf(shared->path + len, 4, isalnum((unsigned char) *c) ? "%c" : "%%%02X",
					(unsigned char) *c);
		}
	}
	shared->path[len] = '\0';
	return true;
}

/* Remove the name of fd's file, which only we have open and have locked, unless the name belongs to another file by
 * now. */
static void remove_name(const char *path, int fd)
{
	struct stat ours, named;

	if (!fstat(fd, &ours) && !lstat(path, &named) && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino)
		unlink(path);
}

/* ---- open ---- */

/* The reason why the file cannot be used (then *ret is the error), or NULL. */
static const char *check_file(const struct fab_av_shared *shared, int fd, struct header *header, int *ret)
{
	struct stat st;

	*ret = -FI_EACCES;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return "is not a file of this user's alone";
	*ret = -FI_EINVAL;
	if (read_at(fd, header, sizeof(*header), 0) || header->magic != MAGIC ||
	    header->record_size != sizeof(struct fab_av_record) || !header->capacity || header->capacity > FAB_AV_MAX ||
	    (uint64_t) st.st_size < FIRST + header->capacity * sizeof(struct fab_av_record))
		return "is not a shared address vector";
	if ((int) header->family != shared->family)
		return "has addresses of another family";
	*ret = 0;
	return NULL;
}

/* Open an existing file. 0; -FI_ENOENT: there is none; -FI_EAGAIN: try again; another error: it cannot be used
 * (logged). */
static int attach(struct fab_av_shared *shared)
{
	struct header header;
	struct stat st;
	const char *why;
	int fd, ret;

	fd = open(shared->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!lock_byte(fd, ALIVE, F_WRLCK)) {		/* no other process has it open */
		remove_name(shared->path, fd);
		close(fd);
		return -FI_EAGAIN;
	}
	if (lock_byte(fd, ALIVE, F_RDLCK) || fstat(fd, &st) || !st.st_nlink) {
		close(fd);
		return -FI_EAGAIN;
	}
	why = check_file(shared, fd, &header, &ret);
	if (why) {
		FI_WARN(shared->prov, FI_LOG_AV, "fi_av_open: %s %s\n", shared->path, why);
		close(fd);
		return ret;
	}
	shared->fd = fd;
	shared->capacity = header.capacity;
	return 0;
}

/* Create a file, and give it its name when it is complete. 0; -FI_EAGAIN: another process was faster; -errno. */
static int create(struct fab_av_shared *shared, size_t count)
{
	uint64_t capacity = fab_max(fab_pow2_up(count), (uint64_t) CAPACITY_MIN);
	struct header header = { .magic = MAGIC, .family = shared->family, .record_size = sizeof(struct fab_av_record),
				 .capacity = fab_min(capacity, FAB_AV_MAX) };
	char made[PATH_MAX + 32];
	int fd, ret;

	snprintf(made, sizeof(made), DIR_NAME "/weft-av.%016" PRIx64, fab_random64());
	fd = open(made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return -errno;
	ret = ftruncate(fd, FIRST + header.capacity * sizeof(struct fab_av_record)) ? -errno :
	      write_at(fd, &header, sizeof(header), 0);
	if (!ret)
		ret = lock_byte(fd, ALIVE, F_RDLCK);
	if (!ret && link(made, shared->path))
		ret = errno == EEXIST ? -FI_EAGAIN : -errno;
	unlink(made);
	if (ret) {
		close(fd);
		return ret;
	}
	shared->fd = fd;
	shared->capacity = header.capacity;
	return 0;
}

static int open_any(struct fab_av_shared *shared, const struct fi_av_attr *attr)
{
	int ret = -FI_EAGAIN;

	for (int i = 0; i < TRIES && ret == -FI_EAGAIN; i++) {
		ret = attach(shared);
		if (ret == -FI_ENOENT && !shared->read_only)
			ret = create(shared, attr->count);
	}
	return ret == -FI_EAGAIN ? -FI_EBUSY : ret == -ELOOP ? -FI_EACCES : ret;
}

/* Make the array for map_addr. An fi_addr_t is an index, so every process fills in its own. */
static int make_map(struct fab_av_shared *shared, void *wish)
{
	size_t len = shared->capacity * sizeof(*shared->map);
	fi_addr_t *map = mmap(wish, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return -FI_ENOMEM;
	for (uint64_t i = 0; i < shared->capacity; i++)
		map[i] = i;
	mprotect(map, len, PROT_READ);
	shared->map = map;
	return 0;
}

void *fab_av_shared_map(const struct fab_av_shared *shared)
{
	return shared->map;
}

static void close_file(struct fab_av_shared *shared)
{
	if (!lock_byte(shared->fd, ALIVE, F_WRLCK))
		remove_name(shared->path, shared->fd);
	close(shared->fd);
}

int fab_av_shared_open(const struct fab_av *av, const struct fi_av_attr *attr, struct fab_av_shared **shared_out)
{
	const struct fi_provider *prov = av->domain->fabric->prov;
	struct fab_av_shared *shared = calloc(1, sizeof(*shared));
	int ret = -FI_EINVAL;

	if (!shared)
		return -FI_ENOMEM;
	shared->prov = prov;
	shared->family = av->family;
	shared->read_only = attr->flags & FI_READ;
	if (*attr->name && make_path(shared, av->domain->name, attr->name))
		ret = open_any(shared, attr);
	if (!ret) {
		ret = make_map(shared, attr->map_addr);
		if (ret)
			close_file(shared);
	}
	if (ret) {
		/* Programs may try FI_READ first and create the vector if that fails, so -FI_ENOENT is no warning. */
		FI_LOG(prov, ret == -FI_ENOENT ? FI_LOG_INFO : FI_LOG_WARN, FI_LOG_AV,
		       "fi_av_open: the shared address vector \"%.64s\" cannot be opened%s: %s\n",
		       attr->name, shared->read_only ? " to be read" : "", fi_strerror(-ret));
		free(shared);
		return ret;
	}
	*shared_out = shared;
	return 0;
}

void fab_av_shared_close(struct fab_av_shared *shared)
{
	if (!shared)
		return;
	munmap(shared->map, shared->capacity * sizeof(*shared->map));
	close_file(shared);
	free(shared);
}

/* ---- reading ---- */

uint64_t fab_av_shared_gen(const struct fab_av_shared *shared)
{
	uint64_t gen = 0;

	read_at(shared->fd, &gen, sizeof(gen), offsetof(struct header, gen));
	return gen;
}

static uint64_t offset_of(uint64_t index)
{
	return FIRST + index * sizeof(struct fab_av_record);
}

/* Mark an invalid record as free. */
static void check_record(const struct fab_av_shared *shared, struct fab_av_record *record)
{
	if (record->ref && record->addr.sa.sa_family != shared->family)
		record->ref = 0;
}

static int load_locked(const struct fab_av_shared *shared, struct fab_av_record **records, uint64_t *cnt)
{
	uint64_t used;
	int ret = read_at(shared->fd, &used, sizeof(used), offsetof(struct header, cnt));

	if (ret)
		return ret;
	used = fab_min(used, shared->capacity);
	*records = malloc(fab_max(used, UINT64_C(1)) * sizeof(**records));
	if (!*records)
		return -FI_ENOMEM;
	ret = read_at(shared->fd, *records, used * sizeof(**records), FIRST);
	if (ret) {
		free(*records);
		return ret;
	}
	for (uint64_t i = 0; i < used; i++)
		check_record(shared, &(*records)[i]);
	*cnt = used;
	return 0;
}

int fab_av_shared_load(struct fab_av_shared *shared, struct fab_av_record **records, uint64_t *cnt)
{
	bool changing = shared->header.magic;	/* this process holds the lock for changes */
	int ret = changing ? 0 : await_byte(shared->fd, CHANGE, F_RDLCK);

	if (ret)
		return ret;
	ret = load_locked(shared, records, cnt);
	if (!changing)
		lock_byte(shared->fd, CHANGE, F_UNLCK);
	return ret;
}

/* ---- changes ---- */

int fab_av_shared_lock(struct fab_av_shared *shared)
{
	int ret;

	if (shared->read_only) {
		FI_WARN(shared->prov, FI_LOG_AV, "the shared address vector was opened with FI_READ, and can only be "
			"read; change it where it was opened without\n");
		return -FI_EACCES;
	}
	ret = await_byte(shared->fd, CHANGE, F_WRLCK);
	if (ret)
		return ret;
	ret = read_at(shared->fd, &shared->header, sizeof(shared->header), 0);
	if (!ret && shared->header.magic == MAGIC && shared->header.cnt <= shared->capacity)
		return 0;
	shared->header.magic = 0;
	lock_byte(shared->fd, CHANGE, F_UNLCK);
	return ret ? ret : -FI_EINVAL;
}

uint64_t fab_av_shared_unlock(struct fab_av_shared *shared)
{
	uint64_t gen = ++shared->header.gen;

	write_at(shared->fd, &shared->header, sizeof(shared->header), 0);
	shared->header.magic = 0;
	lock_byte(shared->fd, CHANGE, F_UNLCK);
	return gen;
}

int fab_av_shared_get(const struct fab_av_shared *shared, uint64_t index, struct fab_av_record *record)
{
	int ret = -FI_EINVAL;

	if (index < shared->capacity)
		ret = read_at(shared->fd, record, sizeof(*record), offset_of(index));
	if (!ret)
		check_record(shared, record);
	return ret;
}

int fab_av_shared_put(struct fab_av_shared *shared, uint64_t index, const struct fab_av_record *record)
{
	int ret;

	if (index >= shared->capacity) {
		FI_WARN(shared->prov, FI_LOG_AV, "the shared address vector is full with %" PRIu64 " addresses: create "
			"it with a larger fi_av_attr.count\n", shared->capacity);
		return -FI_ENOSPC;
	}
	ret = write_at(shared->fd, record, sizeof(*record), offset_of(index));
	if (!ret)
		shared->header.cnt = fab_max(shared->header.cnt, index + 1);
	return ret;
}
