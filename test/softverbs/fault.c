/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Failures and small limits on request, told by the environment, read at each call (a test may change it). */
#include "sv.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX	64

static const struct { const char *name; int value; } errnos[] = {
	{ "ENOMEM", ENOMEM }, { "EINVAL", EINVAL }, { "ENODEV", ENODEV }, { "EIO", EIO }, { "EAGAIN", EAGAIN },
	{ "ENOSYS", ENOSYS }, { "EOPNOTSUPP", EOPNOTSUPP }, { "EMFILE", EMFILE }, { "EPERM", EPERM },
	{ "EBUSY", EBUSY }, { "EADDRINUSE", EADDRINUSE }, { "ETIMEDOUT", ETIMEDOUT },
};

/* How often `call` has been made, this time included. */
static unsigned count_call(const char *call)
{
	static struct { const char *name; unsigned cnt; } calls[CALLS_MAX];
	static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
	unsigned cnt = 0;
	int i;

	pthread_mutex_lock(&guard);
	for (i = 0; i < CALLS_MAX; i++) {
		if (!calls[i].name)
			calls[i].name = call;
		if (!strcmp(calls[i].name, call)) {
			cnt = ++calls[i].cnt;
			break;
		}
	}
	pthread_mutex_unlock(&guard);
	return cnt;
}

static int errno_of(const char *name)
{
	size_t i;

	if (*name == '-')
		return -errno_of(name + 1);
	for (i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++)
		if (!strncmp(name, errnos[i].name, strlen(errnos[i].name)))
			return errnos[i].value;
	return EIO;
}

bool sv_fault(const char *call)
{
	const char *plan = getenv("SOFTVERBS_FAIL"), *at;
	size_t len = strlen(call);
	unsigned long from;
	unsigned now;
	bool onward;
	char *end;

	if (!plan)
		return false;
	now = count_call(call);
	for (at = plan; (at = strstr(at, call)); at += len) {
		if (at[len] != ':' || (at != plan && at[-1] != ','))
			continue;
		from = strtoul(at + len + 1, &end, 10);
		onward = *end == '+';
		end += onward;
		if (*end == '=' && (now == from || (onward && now > from))) {
			errno = errno_of(end + 1);
			return true;
		}
	}
	return false;
}

/* Look for "name=value" in a list of them. */
static bool find_limit(const char *list, const char *name, uint64_t *value)
{
	size_t len = strlen(name);

	for (const char *at = list; at && (at = strstr(at, name)); at += len) {
		if (at[len] != '=' || (at != list && at[-1] != ','))
			continue;
		*value = strtoull(at + len + 1, NULL, 0);
		return true;
	}
	return false;
}

uint64_t sv_limit(const char *name, uint64_t standard)
{
	uint64_t value = standard;

	if (!find_limit(getenv("SOFTVERBS_LIMITS"), name, &value))
		find_limit(sv_model_facts(), name, &value);
	return value;
}

bool sv_flush_due(void)
{
	static _Atomic unsigned long posted;
	const char *after = getenv("SOFTVERBS_FLUSH_AFTER");

	return after && ++posted == strtoul(after, NULL, 0);
}
