/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See pages.h. Files are copied with read(2): a page may be cut off while it is read.
 */
#include "pages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define PAGE_MAX	(4U << 20)	/* bytes; a longer file is no page */
#define PAGES_MAX	4096

/* More records than this in a table are rubbish. */
#define RECORDS_MAX	4096

/* The user of a process, or (uid_t) -1: there is no such process. */
static uid_t process_user(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int) pid);
	return stat(path, &st) ? (uid_t) -1 : st.st_uid;
}

/* The state of a process and the time of its start, as /proc/PID/stat says; 0: there is no such process. */
static char process_state(pid_t pid, uint64_t *start)
{
	char path[32], stat[1024], *pos, state;
	ssize_t n;
	int fd;

	*start = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	stat[n] = 0;
	pos = strrchr(stat, ')');
	if (!pos || !pos[1])
		return 0;
	state = pos[2];
	for (int field = 2; pos && field < 22; field++)
		pos = strchr(pos + 1, ' ');
	if (pos)
		sscanf(pos, "%" SCNu64, start);
	return state;
}

/* True unless it is known that a process does not map the file. */
static bool is_mapped(pid_t pid, const struct stat *st)
{
	char line[1024];
	bool found = false;
	FILE *maps;

	snprintf(line, sizeof(line), "/proc/%d/maps", (int) pid);
	maps = fopen(line, "re");
	if (!maps)
		return true;
	while (!found && fgets(line, sizeof(line), maps)) {
		uint64_t inode;

		found = sscanf(line, "%*s %*s %*s %*s %" SCNu64, &inode) == 1 && inode == st->st_ino;
	}
	fclose(maps);
	return found;
}

/* True unless it is known that no process, of whatever pid namespace, maps the file: the kernel grants no lease to read
 * a file that somebody may write to. */
static bool is_written(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_RDLCK))
		return true;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

/* Copy a file into memory. */
static bool copy_file(int fd, size_t len, struct fi_stats_source *source)
{
	char *copy = malloc(len ? len : 1);
	size_t have = 0;
	ssize_t n = 1;

	if (!copy)
		return false;
	source->now_ticks = fi_stats_tsc();
	source->now_ns = now_ns();
	while (have < len && n > 0) {
		n = read(fd, copy + have, len - have);
		have += n > 0 ? (size_t) n : 0;
	}
	source->page = copy;
	source->len = have;
	return true;
}

bool page_read(struct page *page, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool done = false;
	int err;

	if (fd < 0)
		return false;
	if (fstat(fd, &st))
		err = errno;
	else if (!S_ISREG(st.st_mode) || st.st_size > PAGE_MAX)
		err = EINVAL;
	else if (st.st_uid != geteuid() && geteuid())
		err = EACCES;
	else
		err = (done = copy_file(fd, (size_t) st.st_size, &page->source)) ? 0 : ENOMEM;
	if (done && page->source.proc_state && page->ours)
		page->left = !is_mapped(page->pid, &st);
	else if (done && page->source.proc_state && page->pid && !is_written(fd))
		page->source.proc_state = 0;
	close(fd);
	errno = err;
	return done;
}

/* Fill in what the name of a file says. False: it is none of a page. */
static bool read_name(struct page *page, const char *folder, const char *name, uint64_t ns)
{
	uint64_t start, now, of_ns;
	uint32_t pid;

	if (sscanf(name, "%" SCNu32 "-%" SCNu64 "-%" SCNu64, &pid, &start, &of_ns) != 3)
		return false;
	page->pid = (pid_t) pid;
	page->ours = of_ns == ns;
	page->left = false;
	page->source = (struct fi_stats_source) { .page = NULL };
	snprintf(page->path, sizeof(page->path), "%s/%s", folder, name);
	/* a process of another namespace cannot be seen: page_read() finds out whether it lives */
	page->source.proc_state = page->ours ? process_state(page->pid, &now) : 'S';
	if (page->ours && now != start)
		page->source.proc_state = 0;
	return true;
}

static bool add_page(struct pages *pages, const struct page *page)
{
	struct page *list = realloc(pages->list, (pages->cnt + 1) * sizeof(*list));

	if (!list)
		return false;
	list[pages->cnt++] = *page;
	pages->list = list;
	return true;
}

static bool read_folder(struct pages *pages, const char *folder, pid_t pid, uint64_t ns)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool ok = true;
	struct stat st;

	if (!list) {
		if (fd >= 0)
			close(fd);
		else if (errno == EACCES)
			snprintf(pages->denied, sizeof(pages->denied), "%s", folder);
		return true;
	}
	if (fstat(fd, &st) || (st.st_uid != geteuid() && geteuid())) {
		snprintf(pages->denied, sizeof(pages->denied), "%s", folder);
		closedir(list);
		return true;
	}
	while (ok && pages->cnt < PAGES_MAX && (entry = readdir(list))) {
		struct page page;

		if (!read_name(&page, folder, entry->d_name, ns) || (pid > 0 && page.pid != pid))
			continue;
		page_read(&page, page.path);
		ok = add_page(pages, &page);
	}
	closedir(list);
	return ok;
}

bool pages_read(struct pages *pages, pid_t pid)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	char folder[256];
	uint64_t ns;
	struct stat st;
	bool ok = true;

	*pages = (struct pages) { .list = NULL };
	ns = stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
	if (runtime && *runtime == '/') {
		snprintf(folder, sizeof(folder), "%s/weft", runtime);
		ok = read_folder(pages, folder, pid, ns);
	}
	snprintf(folder, sizeof(folder), "%s/weft-%u", tmp && *tmp == '/' ? tmp : "/tmp", geteuid());
	ok = ok && read_folder(pages, folder, pid, ns);
	snprintf(folder, sizeof(folder), "/dev/shm/weft-%u", geteuid());
	return ok && read_folder(pages, folder, pid, ns);
}

void pages_free(struct pages *pages)
{
	for (size_t i = 0; i < pages->cnt; i++)
		free((void *) pages->list[i].source.page);
	free(pages->list);
	*pages = (struct pages) { .list = NULL };
}

void pages_tell_missing(const struct pages *pages, pid_t pid)
{
	uid_t user = process_user(pid);

	if (user == (uid_t) -1)
		util_err("pid %d: there is no such process, and it has left no page", (int) pid);
	else if (user != geteuid() && geteuid())
		util_err("pid %d belongs to another user (uid %u), whose pages cannot be read; read them as that "
			 "user, or as root with XDG_RUNTIME_DIR or TMPDIR of that user", (int) pid, user);
	else if (*pages->denied)
		util_err("pid %d: no page was found; %s belongs to another user and was not read", (int) pid,
			 pages->denied);
	else
		util_err("pid %d has no page: it has opened no fabric, runs another libfabric or with FI_STATS=0, or "
			 "has another XDG_RUNTIME_DIR or TMPDIR", (int) pid);
}

bool page_header(const struct page *page, struct fi_stats_header *header)
{
	if (!page->source.page || page->source.len < sizeof(*header))
		return false;
	memcpy(header, page->source.page, sizeof(*header));
	return header->magic == FI_STATS_MAGIC && header->version == FI_STATS_VERSION;
}

const void *page_bytes(const struct page *page, const struct fi_stats_header *header, uint32_t table, uint32_t index,
		       uint64_t offset, size_t len)
{
	struct fi_stats_table of;
	uint64_t at;

	if (table >= FI_STATS_TABLES)
		return NULL;
	of = header->table[table];
	if (index >= of.cnt || index >= RECORDS_MAX || of.size < len || offset > of.size - len ||
	    of.offset > page->source.len)
		return NULL;
	at = of.offset + (uint64_t) index * of.size + offset;
	return at + len <= page->source.len ? (const char *) page->source.page + at : NULL;
}

/* The table of engines of a page, if all of it is there. */
static struct fi_stats_engine *engines_of(const struct page *page)
{
	struct fi_stats_page *raw = (struct fi_stats_page *) page->source.page;

	return raw && page->source.len >= offsetof(struct fi_stats_page, ep) && raw->header.magic == FI_STATS_MAGIC &&
	       raw->header.version == FI_STATS_VERSION &&
	       raw->header.table[FI_STATS_ENGINES].offset == offsetof(struct fi_stats_page, engine) &&
	       raw->header.table[FI_STATS_ENGINES].size == sizeof(struct fi_stats_engine) ? raw->engine : NULL;
}

void pages_note_progress(struct pages *now, const struct pages *before)
{
	for (size_t i = 0; i < now->cnt; i++) {
		struct fi_stats_engine *engine = engines_of(&now->list[i]), *old = NULL;

		for (size_t j = 0; j < before->cnt && !old; j++)
			if (!strcmp(before->list[j].path, now->list[i].path))
				old = engines_of(&before->list[j]);
		for (int k = 0; engine && old && k < FI_STATS_ENGINE_CNT; k++)
			if (engine[k].glances != old[k].glances && engine[k].last_pass == old[k].last_pass)
				engine[k].last_pass = now->list[i].source.now_ticks;
	}
}
