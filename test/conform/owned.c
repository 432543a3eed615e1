/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a test owns until it ends, its memory with the patterns in it, and whether it left anything behind in the
 * process.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hmem.h"
#include "runner.h"

struct undo {
	struct undo *next;
	void (*fn)(void *arg);		/* NULL: arg is a struct fid */
	void *arg;
};

/* ---- ownership */

void own(struct test *t, void (*fn)(void *arg), void *arg)
{
	struct undo *u = malloc(sizeof(*u));

	if (!u)
		abort();
	*u = (struct undo) { .next = t->undo, .fn = fn, .arg = arg };
	t->undo = u;
}

void own_fid(struct test *t, struct fid *fid)
{
	own(t, NULL, fid);
}

void disown(struct test *t, void *arg)
{
	struct undo **at, *u;

	for (at = &t->undo; (u = *at); at = &u->next) {
		if (u->arg == arg) {
			*at = u->next;
			free(u);
			return;
		}
	}
	FAIL("the test does not own %p", arg);
}

void close_now(struct test *t, struct fid *fid)
{
	disown(t, fid);
	MUST(fi_close(fid));
}

bool undo_all(struct test *t, char *why, size_t size)
{
	struct undo *u;
	bool ok = true;
	size_t class;
	int ret;

	while ((u = t->undo)) {
		t->undo = u->next;
		if (u->fn) {
			u->fn(u->arg);
		} else {
			class = ((struct fid *) u->arg)->fclass;
			ret = fi_close(u->arg);
			if (ret && ok) {
				ok = false;
				snprintf(why, size, "at the end fi_close() of a fid of class %zu returned %d (%s)",
					 class, ret, ret_name(ret));
			}
		}
		free(u);
	}
	return ok;
}

void *mem(struct test *t, size_t len)
{
	void *p = hmem_mem(t, len);

	if (p)
		return p;
	p = calloc(1, len ? len : 1);
	if (!p)
		FAIL("no memory for %zu bytes", len);
	own(t, free, p);
	return p;
}

/*
 * A pattern is a ring of random bytes, from a place that the seed says. The length of the ring is a prime, so bytes
 * that are a packet, a page or a buffer off differ.
 */
enum { RING = 65537 };

static unsigned char ring[RING];

__attribute__((constructor)) static void ring_init(void)
{
	uint32_t x = 1;

	for (size_t i = 0; i < RING; i++, x = x * 1664525u + 1013904223u)
		ring[i] = (unsigned char) (x >> 23);
}

/* The pattern's bytes from its @i-th on. At most @len follow in one piece; @len becomes their number. */
static const unsigned char *pattern_at(unsigned int seed, size_t i, size_t *len)
{
	size_t at = (seed * 40503u + i) % RING;

	*len = MIN(*len, RING - at);
	return ring + at;
}

void fill(void *buf, size_t len, unsigned int seed)
{
	const unsigned char *piece;

	for (size_t i = 0, n; i < len; i += n) {
		n = len - i;
		piece = pattern_at(seed, i, &n);
		memcpy((char *) buf + i, piece, n);
	}
}

void *mem_pattern(struct test *t, size_t len, unsigned int seed)
{
	void *p = mem(t, len);

	fill(p, len, seed);
	return p;
}

void check_fill(const void *buf, size_t len, unsigned int seed)
{
	const unsigned char *p = buf, *piece;

	for (size_t i = 0, n; i < len; i += n) {
		n = len - i;
		piece = pattern_at(seed, i, &n);
		if (!memcmp(p + i, piece, n))
			continue;
		for (; p[i] == *piece; i++, piece++)
			;
		FAIL("byte %zu of %zu is 0x%02x, not 0x%02x", i, len, p[i], *piece);
	}
}

/* ---- what may not be left over */

/* Not inline: gcc would take its local for one of the function that calls setjmp(). */
__attribute__((noinline)) static unsigned int dir_count(const char *path)
{
	DIR *dir = opendir(path);
	unsigned int n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

struct left left_now(void)
{
	return (struct left) { .fds = dir_count("/proc/self/fd"), .threads = dir_count("/proc/self/task") };
}

/* A joined thread may stay in /proc for a moment. */
bool nothing_left(struct left before, char *why, size_t size)
{
	double until = now_ms() + 10000.0 * run.slow;
	struct left now;

	do {
		now = left_now();
		/* a sanitizer starts a thread of its own when it likes */
		if (now.fds <= before.fds && (SANITIZED || now.threads <= before.threads))
			return true;
	} while (now_ms() < until);
	snprintf(why, size, "left behind: %d file descriptors, %d threads", (int) (now.fds - before.fds),
		 (int) (now.threads - before.threads));
	return false;
}
