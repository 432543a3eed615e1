/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See pagefile.h.
 */
#include "base/pagefile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include <linux/magic.h>
#include "base/forks.h"

#define SEEN_MAX	4096	/* entries of the folder that are looked at */
#define DEAD		".dead"	/* the end of the name of a file whose process is gone */
#define UNKNOWN_KEEP_S	86400	/* for which a file stays of which nobody knows whether its process lives */

uint64_t fab_process_start(uint32_t pid)
{
	char path[32], stat[1024], *pos;
	uint64_t start = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	stat[n] = 0;
	pos = strrchr(stat, ')');	/* the name of the program may contain anything */
	for (int field = 2; pos && field < 22; field++)
		pos = strchr(pos + 1, ' ');
	return pos && sscanf(pos, "%" SCNu64, &start) == 1 ? start : 0;
}

/* The inode of our pid namespace; 0: unknown. */
static uint64_t own_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

/* ---- folders ---- */

bool fab_pagefile_folder(unsigned n, const char *name, char path[PAGEFILE_PATH])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	int len;

	if (n == 0)
		len = runtime && *runtime == '/' ? snprintf(path, PAGEFILE_PATH, "%s/%s", runtime, name) : 0;
	else if (n == 1)
		len = snprintf(path, PAGEFILE_PATH, "%s/%s-%u", tmp && *tmp == '/' ? tmp : "/tmp", name, geteuid());
	else if (n == 2)
		len = snprintf(path, PAGEFILE_PATH, "/dev/shm/%s-%u", name, geteuid());
	else
		return false;
	if (len <= 0 || len >= PAGEFILE_PATH)
		*path = 0;
	return true;
}

/* Open a folder of the user, and of nobody else, on a tmpfs; make it if it does not exist. -1: it is none. */
static int folder_open(const char *path)
{
	struct statfs fs;
	struct stat st;
	int fd;

	if (!*path || (mkdir(path, 0700) && errno != EEXIST))
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 077) && !fstatfs(fd, &fs) &&
	    (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
		return fd;
	close(fd);
	return -1;
}

/* ---- files of others ---- */

/* True if the process that has made a file of another pid namespace is gone. The process has the file mapped for
 * writing, until it ends or calls exec(2), and the kernel grants nobody a lease to read such a file. */
static bool foreign_is_gone(int dir, const char *name, time_t since)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool gone, known;

	if (fd < 0)
		return false;
	gone = !fcntl(fd, F_SETLEASE, F_RDLCK);
	known = gone || errno == EAGAIN;
	close(fd);		/* gives the lease back */
	return known ? gone : time(NULL) - since > UNKNOWN_KEEP_S;
}

/* A file of the folder, as its name and its inode say. */
struct old_file {
	char name[64];
	time_t since;
	bool dead;
};

static bool old_read(int dir, const char *name, uint64_t ns, struct old_file *old)
{
	uint64_t start, of_ns;
	struct stat st;
	uint32_t pid;
	int end = 0;

	if (sscanf(name, "%" SCNu32 "-%" SCNu64 "-%" SCNu64 "%n", &pid, &start, &of_ns, &end) != 3 ||
	    strlen(name) >= sizeof(old->name) - sizeof(DEAD) || (name[end] && strcmp(name + end, DEAD)) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	strcpy(old->name, name);
	old->since = st.st_mtime;
	old->dead = name[end];
	if (old->dead)
		return true;
	return of_ns != ns ? foreign_is_gone(dir, name, st.st_mtime) : fab_process_start(pid) != start;
}

/* A process is gone: its file stays from now on for a while. */
static void old_mark(int dir, struct old_file *old)
{
	char was[sizeof(old->name)];

	strcpy(was, old->name);
	strcat(old->name, DEAD);	/* old_read() has left room */
	utimensat(dir, was, NULL, AT_SYMLINK_NOFOLLOW);
	if (renameat(dir, was, dir, old->name))
		strcpy(old->name, was);
	old->since = time(NULL);
}

static int old_cmp(const void *a, const void *b)
{
	const struct old_file *x = a, *y = b;

	return (x->since < y->since) - (x->since > y->since);
}

/* Remove what processes have left that were killed long ago, and the oldest if there are too many. */
static void folder_prune(int dir, uint64_t ns)
{
	struct old_file old[2 * PAGEFILE_DEAD_MAX];
	int fd = dup(dir), cnt = 0, seen = 0;
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!list) {
		if (fd >= 0)
			close(fd);
		return;
	}
	rewinddir(list);
	while ((entry = readdir(list)) && seen++ < SEEN_MAX && cnt < 2 * PAGEFILE_DEAD_MAX) {
		struct old_file *file = &old[cnt];

		if (!old_read(dir, entry->d_name, ns, file))
			continue;
		if (!file->dead)
			old_mark(dir, file);
		if (time(NULL) - file->since > PAGEFILE_KEEP_S)
			unlinkat(dir, file->name, 0);
		else
			cnt++;
	}
	closedir(list);
	qsort(old, cnt, sizeof(*old), old_cmp);
	while (cnt > PAGEFILE_DEAD_MAX)
		unlinkat(dir, old[--cnt].name, 0);
}

/* ---- our file ---- */

/* True if a file is mapped in this process: another copy of the library has made it. */
static bool is_mapped(int dir, const char *name)
{
	char line[1024];
	struct stat st;
	bool found = false;
	FILE *maps;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	maps = fopen("/proc/self/maps", "re");
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		unsigned major, minor;
		uint64_t inode;

		found = sscanf(line, "%*s %*s %*s %x:%x %" SCNu64, &major, &minor, &inode) == 3 &&
			inode == st.st_ino && makedev(major, minor) == st.st_dev;
	}
	if (maps)
		fclose(maps);
	return found;
}

/* True if the process may make a file of this length. Beyond its limit it would get SIGXFSZ. */
static bool within_limit(size_t len)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= len;
}

/* Make the file, with all its memory. -1: that is not possible; *ours: another copy of the library has one. The process
 * may have left one of this name before it called exec(2). */
static int file_make(int dir, const char *name, size_t len, bool *ours)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);

	*ours = fd < 0 && errno == EEXIST && is_mapped(dir, name);
	if (fd < 0 && errno == EEXIST && !*ours && !unlinkat(dir, name, 0))
		fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd < 0)
		return -1;
	if (!fallocate(fd, 0, 0, (off_t) len))
		return fd;
	close(fd);
	unlinkat(dir, name, 0);
	return -1;
}

/* Map a file of ours at file->mem, or anywhere if that is NULL. False: there is none, and nothing was changed. */
static bool file_map(struct fab_pagefile *file, const char *name)
{
	uint64_t ns = own_namespace();
	char base[PAGEFILE_PATH], own[64];
	bool ours = false;
	void *mem;
	int dir, fd;

	for (unsigned n = 0; !ours && fab_pagefile_folder(n, name, base); n++) {
		dir = folder_open(base);
		if (dir < 0)
			continue;
		snprintf(own, sizeof(own), "%" PRIu32 "-%" PRIu64 "-%" PRIu64, (uint32_t) getpid(),
			 fab_process_start((uint32_t) getpid()), ns);
		folder_prune(dir, ns);
		fd = file_make(dir, own, file->len, &ours);
		if (fd < 0) {
			close(dir);
			continue;
		}
		mem = mmap(file->mem, file->len, PROT_READ | PROT_WRITE, MAP_SHARED | (file->mem ? MAP_FIXED : 0), fd,
			   0);
		close(fd);
		if (mem != MAP_FAILED &&
		    snprintf(file->path, sizeof(file->path), "%s/%s", base, own) < (int) sizeof(file->path)) {
			file->mem = mem;
			close(dir);
			return true;
		}
		unlinkat(dir, own, 0);
		close(dir);
	}
	*file->path = 0;
	return false;
}

int fab_pagefile_open(struct fab_pagefile *file, const char *name, size_t len, bool wanted)
{
	void *mem = file->mem;

	if (mem && file->forks == fab_fork_cnt)
		return 0;
	file->len = len;
	/* a program with other rights than its user: the folders are named by the user's environment */
	file->has_file = wanted && !getauxval(AT_SECURE) && within_limit(len) && file_map(file, name);
	if (!file->has_file && !mem) {
		mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (mem == MAP_FAILED)
			return -errno;
		file->mem = mem;
	}
	file->forks = fab_fork_cnt;
	return 0;
}

void fab_pagefile_remove(struct fab_pagefile *file)
{
	if (!file->has_file || file->forks != fab_fork_cnt)
		return;
	unlink(file->path);
	file->has_file = false;
	*file->path = 0;
}

void fab_pagefile_inherit(struct fab_pagefile *file)
{
	if (!file->mem)
		return;
	/* cannot fail where the address is mapped, unless there is no memory at all */
	mmap(file->mem, file->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	file->has_file = false;
	*file->path = 0;
}
