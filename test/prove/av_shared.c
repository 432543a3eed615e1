/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file of a shared address vector: its header, and the records of vectors that have room for up to four, where the
 * file says any number of records. Other processes may write anything between two reads.
 *
 * eva: -eva-slevel 60 -eva-alloc-builtin fresh -eva-split-return-function pread:full,read_at:full
 */
#include "prove.h"
#include <fcntl.h>

static int any_fcntl(void);
#define fcntl(...)	any_fcntl()
#include "common/av/av_shared.c"

static struct fab_av_shared shared;
static uint64_t said;			/* the number of records, as the file says */

/* ---- below ---- */

static int any_errno;
int *__errno_location(void)
{
	return &any_errno;
}

ssize_t pread(int fd, void *buf, size_t len, off_t offset)
{
	(void) fd;
	any_errno = any_of(1, 133);
	if (any_of(0, 1))
		return -1;
	if (any_of(0, 1))
		return 0;		/* for all that are shorter */
	any_bytes(buf, len);
	if (offset == offsetof(struct header, cnt) && len == sizeof(said))
		*(uint64_t *) buf = said;
	return len;
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t offset)
{
	(void) fd;
	(void) offset;
	any_errno = any_of(1, 133);
	prove_readable(buf, len);
	return (ssize_t) any_of(0, len + 1) - 1;
}

static int any_fcntl(void)
{
	any_errno = any_of(1, 133);
	return (int) any_of(0, 1) - 1;
}

/*@ requires \valid(st);
  @ assigns *st, \result \from fd;
  @ ensures \initialized((char *) st + (0 .. sizeof(struct stat) - 1));
  @*/
extern int fstat(int fd, struct stat *st);
/*@ assigns \result \from \nothing; */
extern uid_t geteuid(void);
static uint64_t any_now(void)
{
	return any_of(0, UINT64_MAX);
}

static const struct fab_clock_ops clock_ops = { .now_ns = any_now };
const struct fab_clock_ops *fab_clock = &clock_ops;
/*@ assigns \result \from cnt; */
static int any_poll(struct pollfd *fds, nfds_t cnt, int timeout_ms);
static const struct fab_sock_ops ops = { .poll = any_poll };
const struct fab_sock_ops *fab_sock = &ops;

/* ---- the file ---- */

static void prove_header(void)
{
	struct header header;
	int ret;

	if (!check_file(&shared, 3, &header, &ret)) {
		prove(header.capacity > 0 && header.capacity <= FAB_AV_MAX);
		prove(header.record_size == sizeof(struct fab_av_record));
	}
}

static void prove_records(uint64_t capacity, uint64_t cnt)
{
	struct fab_av_record *records, one;
	uint64_t used;

	shared.capacity = capacity;
	said = cnt;
	if (!load_locked(&shared, &records, &used)) {
		prove(used <= capacity);
		prove_readable(records, used * sizeof(*records));
		free(records);
	}
	any_bytes(&one, sizeof(one));
	fab_av_shared_get(&shared, any_of(0, UINT64_MAX), &one);
}

static void prove_change(void)
{
	struct fab_av_record one;

	shared.capacity = any_of(1, FAB_AV_MAX);
	shared.read_only = any_of(0, 1);
	any_bytes(&one, sizeof(one));
	if (!fab_av_shared_lock(&shared)) {
		prove(shared.header.magic == MAGIC);
		fab_av_shared_put(&shared, any_of(0, UINT64_MAX), &one);
		fab_av_shared_unlock(&shared);
	}
}

int main(void)
{
	shared.family = any_of(0, 1) ? AF_INET : AF_INET6;
	prove_header();
	//@ loop unroll 5;
	for (uint64_t capacity = 1; capacity <= 4; capacity++) {
		//@ loop unroll 8;
		for (uint64_t cnt = 0; cnt <= 5; cnt++)
			prove_records(capacity, cnt);
		prove_records(capacity, any_of(6, UINT64_MAX));
	}
	prove_change();
	reached();
	return 0;
}
