/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that is a file, in a folder of the test's own on /dev/shm. What concerns other processes is played by
 * children.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/forks.h"
#include "base/pagefile.h"

#define LEN	8192
#define CALLED	"pagefile-test"

static char top[64];			/* the runtime folder */
static char folder[96];			/* the folder of the files */

static int setup(void **state)
{
	(void) state;
	strcpy(top, "/dev/shm/pagefile.XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(folder, sizeof(folder), "%s/%s", top, CALLED);
	setenv("XDG_RUNTIME_DIR", top, 1);
	setenv("TMPDIR", top, 1);
	return 0;
}

/* The number of files; all of them are removed with `empty`. */
static int files(bool empty)
{
	DIR *list = opendir(folder);
	struct dirent *entry;
	int cnt = 0;

	while (list && (entry = readdir(list))) {
		if (*entry->d_name == '.')
			continue;
		cnt++;
		if (empty)
			unlinkat(dirfd(list), entry->d_name, 0);
	}
	if (list)
		closedir(list);
	return cnt;
}

static int teardown(void **state)
{
	char other[128];

	(void) state;
	files(true);
	rmdir(folder);
	unlink(folder);
	snprintf(other, sizeof(other), "%s/%s-%u", top, CALLED, geteuid());
	rmdir(other);
	snprintf(other, sizeof(other), "/dev/shm/%s-%u", CALLED, geteuid());
	rmdir(other);
	return rmdir(top);
}

static uint8_t first_byte_of(const char *path)
{
	int fd = open(path, O_RDONLY);
	uint8_t byte = 0;

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
	return byte;
}

/* Run fn in a child, which reports by its exit status. */
static int in_child(int (*fn)(struct fab_pagefile *file), struct fab_pagefile *file)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(fn(file));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void file_shows_memory_and_goes_with_its_process(void **state)
{
	struct fab_pagefile file = { 0 };
	struct stat st;

	(void) state;
	assert_int_equal(fab_pagefile_open(&file, CALLED, LEN, true), 0);
	assert_true(file.has_file);
	assert_int_equal(stat(file.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0400);
	assert_int_equal(st.st_size, LEN);
	assert_true(st.st_blocks * 512 >= LEN);		/* a full tmpfs later is no SIGBUS */
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	*(uint8_t *) file.mem = 7;
	assert_int_equal(first_byte_of(file.path), 7);
	fab_pagefile_remove(&file);
	assert_int_equal(files(false), 0);
	*(uint8_t *) file.mem = 8;		/* the memory stays */
}

static void memory_without_a_file(void **state)
{
	struct fab_pagefile file = { 0 };

	(void) state;
	assert_int_equal(fab_pagefile_open(&file, CALLED, LEN, false), 0);
	assert_false(file.has_file);
	*(uint8_t *) file.mem = 1;
	assert_int_equal(files(false), 0);
}

/* A folder that others may enter, or that is a link, is not used; nor are those after it touched. */
static void folder_of_others_is_not_used(void **state)
{
	struct fab_pagefile file = { 0 };

	(void) state;
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(fab_pagefile_open(&file, CALLED, LEN, true), 0);
	assert_true(!file.has_file || file.path[strlen(folder)] != '/');
	assert_int_equal(files(false), 0);
	fab_pagefile_remove(&file);

	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(symlink("/dev/shm", folder), 0);
	file = (struct fab_pagefile) { 0 };
	assert_int_equal(fab_pagefile_open(&file, CALLED, LEN, true), 0);
	assert_true(!file.has_file || file.path[strlen(folder)] != '/');
	fab_pagefile_remove(&file);
}

static int with_small_limit(struct fab_pagefile *file)
{
	const struct rlimit limit = { 1024, 1024 };

	if (setrlimit(RLIMIT_FSIZE, &limit) || fab_pagefile_open(file, CALLED, LEN, true) || file->has_file)
		return 1;
	*(uint8_t *) file->mem = 1;
	return 0;
}

static void limit_on_files_is_no_signal(void **state)
{
	struct fab_pagefile file = { 0 };

	(void) state;
	assert_int_equal(in_child(with_small_limit, &file), 0);
	assert_int_equal(files(false), 0);
}

static int child_writes(struct fab_pagefile *file)
{
	uint8_t *mem = file->mem;

	fab_pagefile_inherit(file);
	if (*mem || file->has_file)
		return 1;
	*mem = 9;
	if (fab_pagefile_open(file, CALLED, LEN, true) || !file->has_file || file->mem != mem || *mem)
		return 2;
	*mem = 10;
	if (first_byte_of(file->path) != 10)
		return 3;
	fab_pagefile_remove(file);
	return 0;
}

static void child_has_its_own(void **state)
{
	struct fab_pagefile file = { 0 };

	(void) state;
	if (getenv("CROSS_ARCH"))
		unit_skip("qemu makes up a process's own /proc/PID/stat: for its child it has begun at another time");
	assert_int_equal(fab_pagefile_open(&file, CALLED, LEN, true), 0);
	*(uint8_t *) file.mem = 7;
	assert_int_equal(in_child(child_writes, &file), 0);
	assert_int_equal(first_byte_of(file.path), 7);
	fab_pagefile_remove(&file);
}

/* Another copy of the library in the process has memory and no file; what was left before exec() is replaced. */
static void one_file_a_process(void **state)
{
	struct fab_pagefile first = { 0 }, second = { 0 }, third = { 0 };
	char path[PAGEFILE_PATH];
	int fd;

	(void) state;
	assert_int_equal(fab_pagefile_open(&first, CALLED, LEN, true), 0);
	assert_int_equal(fab_pagefile_open(&second, CALLED, LEN, true), 0);
	assert_true(first.has_file);
	assert_false(second.has_file);
	*(uint8_t *) second.mem = 1;
	assert_int_equal(first_byte_of(first.path), 0);
	strcpy(path, first.path);
	fab_pagefile_remove(&first);
	fd = open(path, O_CREAT | O_WRONLY, 0400);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(fab_pagefile_open(&third, CALLED, LEN, true), 0);
	assert_string_equal(third.path, path);
	fab_pagefile_remove(&third);
}

static int leaves_its_file(struct fab_pagefile *file)
{
	return fab_pagefile_open(file, CALLED, LEN, true) || !file->has_file;
}

static void killed_processes_leave_some(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct fab_pagefile file = { 0 };
	DIR *list;
	struct dirent *entry;

	(void) state;
	for (int i = 0; i < PAGEFILE_DEAD_MAX + 5; i++) {
		file = (struct fab_pagefile) { 0 };
		assert_int_equal(in_child(leaves_its_file, &file), 0);
	}
	file = (struct fab_pagefile) { 0 };
	assert_int_equal(fab_pagefile_open(&file, CALLED, LEN, true), 0);
	assert_int_equal(files(false), PAGEFILE_DEAD_MAX + 1);
	fab_pagefile_remove(&file);

	list = opendir(folder);
	while ((entry = readdir(list)))
		if (*entry->d_name != '.')
			utimensat(dirfd(list), entry->d_name, old, 0);
	closedir(list);
	file = (struct fab_pagefile) { 0 };
	assert_int_equal(fab_pagefile_open(&file, CALLED, LEN, true), 0);
	assert_int_equal(files(false), 1);
	fab_pagefile_remove(&file);
}

/* Give the only file of the folder the name that it has in another pid namespace. */
static void make_foreign(void)
{
	DIR *list = opendir(folder);
	struct dirent *entry;

	assert_non_null(list);
	while ((entry = readdir(list)))
		if (*entry->d_name != '.')
			assert_int_equal(renameat(dirfd(list), entry->d_name, dirfd(list), "1-1-1"), 0);
	closedir(list);
}

/* A file of another pid namespace stays as long as a process maps it, and is then one of those that were left. */
static void files_of_other_namespaces(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct fab_pagefile living = { 0 }, file = { 0 };
	char foreign[128];

	(void) state;
	snprintf(foreign, sizeof(foreign), "%s/1-1-1", folder);
	assert_int_equal(fab_pagefile_open(&living, CALLED, LEN, true), 0);
	make_foreign();
	utimensat(AT_FDCWD, foreign, old, 0);
	assert_int_equal(fab_pagefile_open(&file, CALLED, LEN, true), 0);
	assert_int_equal(access(foreign, F_OK), 0);
	fab_pagefile_remove(&file);
	munmap(living.mem, LEN);
	file = (struct fab_pagefile) { 0 };
	assert_int_equal(fab_pagefile_open(&file, CALLED, LEN, true), 0);
	assert_int_equal(access(foreign, F_OK), -1);
	strcat(foreign, ".dead");
	assert_int_equal(access(foreign, F_OK), 0);
	fab_pagefile_remove(&file);
}

static void start_of_a_process(void **state)
{
	(void) state;
	assert_true(fab_process_start((uint32_t) getpid()) >= fab_process_start((uint32_t) getppid()));
	assert_int_equal(fab_process_start(0x7fffffff), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(file_shows_memory_and_goes_with_its_process, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_without_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(folder_of_others_is_not_used, setup, teardown),
		cmocka_unit_test_setup_teardown(limit_on_files_is_no_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(child_has_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(one_file_a_process, setup, teardown),
		cmocka_unit_test_setup_teardown(killed_processes_leave_some, setup, teardown),
		cmocka_unit_test_setup_teardown(files_of_other_namespaces, setup, teardown),
		cmocka_unit_test(start_of_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
