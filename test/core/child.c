/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Children for tests of what is read once a process.
 */
#include "core/child.h"

#include "base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_environment(const char *const env[])
{
	extern char **environ;
	char name[256];
	char **now = environ;

	while (*now) {
		if (!strncmp(*now, "FI_", 3)) {
			snprintf(name, sizeof(name), "%.*s", (int) strcspn(*now, "="), *now);
			unsetenv(name);
			now = environ;
		} else {
			now++;
		}
	}
	for (; env && *env; env++)
		putenv((char *) *env);
}

static char *read_all(int fd)
{
	size_t len = 0, size = 0;
	char *text = NULL;
	ssize_t got;

	do {
		if (size - len < 4096) {
			size += 65536;
			text = realloc(text, size);
			assert_non_null(text);
		}
		got = read(fd, text + len, size - len - 1);
		if (got > 0)
			len += (size_t) got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	text[len] = '\0';
	return text;
}

char *child_run(const char *const env[], void (*body)(void))
{
	int fds[2], status;
	char *text;
	pid_t pid;

	fflush(NULL);
	assert_return_code(pipe(fds), errno);
	pid = fork();
	assert_return_code(pid, errno);
	if (!pid) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		set_environment(env);
		body();
		fflush(NULL);
		_exit(0);
	}
	close(fds[1]);
	text = read_all(fds[0]);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("the child ended with status 0x%x after:\n%s", (unsigned) status, text);
	return text;
}

int count_lines(const char *text, const char *words)
{
	int cnt = 0;

	while ((text = strstr(text, words))) {
		cnt++;
		text += strcspn(text, "\n");
		if (*text)
			text++;
	}
	return cnt;
}

void child_check_at(int ok, const char *condition, const char *file, int line)
{
	if (ok)
		return;
	printf("%s:%d: not so: %s\n", file, line, condition);
	fflush(NULL);
	_exit(1);
}
