/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors with a name: between processes, when one of them is killed, and with rubbish in the file.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/addr.h"
#include "base/clock.h"
#include "base/sock.h"
#include "common/av/vector.h"
#include "offer.h"
#include "world.h"

static char name[64];			/* of each test's vector */
static struct world world;

static int setup(void **state)
{
	static int cnt;

	(void) state;
	snprintf(name, sizeof(name), "unit/%dx%d", (int) getpid(), cnt++);
	world_open(&world, &(struct world_attr) { 0 });
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	world_close(&world);
	return 0;
}

/* As av_shared.c makes it of a name like ours. */
static const char *file_path(void)
{
	static char path[256];

	snprintf(path, sizeof(path), "/dev/shm/weft-av.%u.%s.unit%%2F%s", (unsigned) geteuid(),
		 world.domain.name, name + 5);
	return path;
}

static int try_open(uint64_t flags, struct fid_av **av)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .name = name, .flags = flags };

	return fi_av_open(&world.domain.domain_fid, &attr, av, NULL);
}

static struct fid_av *open_av(uint64_t flags)
{
	struct fid_av *av;

	assert_int_equal(try_open(flags, &av), 0);
	return av;
}

static struct sockaddr_in ip(uint32_t host)
{
	return (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(host), .sin_port = htons(7) };
}

static fi_addr_t insert(struct fid_av *av, uint32_t host)
{
	struct sockaddr_in addr = ip(host);
	fi_addr_t fi_addr = FI_ADDR_NOTAVAIL;

	assert_int_equal(fi_av_insert(av, &addr, 1, &fi_addr, 0, NULL), 1);
	return fi_addr;
}

/* The host at fi_addr, as the data path finds it; 0: nothing. */
static uint32_t host_at(struct fid_av *av, fi_addr_t fi_addr)
{
	const union fab_sockaddr *addr = fab_av_addr(fab_container(av, struct fab_av, av_fid), fi_addr);

	return addr ? ntohl(addr->sin.sin_addr.s_addr) : 0;
}

static fi_addr_t find(struct fid_av *av, uint32_t host)
{
	union fab_sockaddr addr = { .sin = ip(host) };

	return fab_av_find(fab_container(av, struct fab_av, av_fid), &addr);
}

/* The host at fi_addr by a control call. */
static uint32_t lookup(struct fid_av *av, fi_addr_t fi_addr)
{
	struct sockaddr_in addr;
	size_t len = sizeof(addr);

	return fi_av_lookup(av, fi_addr, &addr, &len) ? 0 : ntohl(addr.sin_addr.s_addr);
}

/* A process that runs fn, says one byte, and ends, or waits to be killed. */
struct process {
	pid_t pid;
	int said;
};

static struct process start(bool (*fn)(void), bool stay)
{
	struct process p;
	int fd[2];
	char byte;

	assert_int_equal(pipe(fd), 0);
	p.pid = fork();
	assert_true(p.pid >= 0);
	if (!p.pid) {
		byte = fn();
		if (write(fd[1], &byte, 1) != 1 || !stay)
			_exit(!byte);
		for (;;)
			pause();
	}
	close(fd[1]);
	p.said = fd[0];
	assert_int_equal(read(p.said, &byte, 1), 1);
	assert_int_equal(byte, 1);
	return p;
}

static void end(struct process *p, int sig)
{
	if (sig)
		assert_int_equal(kill(p->pid, sig), 0);
	assert_int_equal(waitpid(p->pid, NULL, 0), p->pid);
	close(p->said);
}

/* ---- sharing ---- */

static bool reader(void)
{
	struct fid_av *av;

	return !try_open(FI_READ, &av) && host_at(av, 0) == 10 && host_at(av, 1) == 20 && find(av, 20) == 1;
}

static void others_find_the_same_addresses(void **state)
{
	struct fid_av *av = open_av(0);
	struct process p;

	(void) state;
	assert_int_equal(insert(av, 10), 0);
	assert_int_equal(insert(av, 20), 1);
	p = start(reader, false);
	end(&p, 0);
	fi_close(&av->fid);
	assert_int_equal(access(file_path(), F_OK), -1);
}

/* Told to a watcher: insertions as they are, removals negative. */
struct watcher {
	struct fab_av_watch watch;
	int told[8], cnt;
};

static void on_inserted(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct watcher *w = fab_container(watch, struct watcher, watch);

	(void) fi_addr;
	w->told[w->cnt++] = ntohl(addr->sin.sin_addr.s_addr);
}

static void on_removed(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct watcher *w = fab_container(watch, struct watcher, watch);

	(void) fi_addr;
	w->told[w->cnt++] = -(int) ntohl(addr->sin.sin_addr.s_addr);
}

static void changes_come_over_with_the_next_look(void **state)
{
	struct watcher w = { .watch = { .inserted = on_inserted, .removed = on_removed } };
	struct fid_av *writer = open_av(0), *av = open_av(FI_READ);
	struct fab_av *fab = fab_container(av, struct fab_av, av_fid);
	struct sockaddr_in addr = ip(5);
	fi_addr_t gone = 0;

	(void) state;
	fab_av_watch(fab, &w.watch);
	insert(writer, 10);
	insert(writer, 20);
	assert_int_equal(host_at(av, 1), 20);		/* the data path, which tells nobody */
	assert_int_equal(w.cnt, 0);
	assert_int_equal(lookup(av, 0), 10);
	assert_int_equal(w.cnt, 2);
	assert_int_equal(w.told[0] + w.told[1], 30);
	/* an index that means somebody else now */
	assert_int_equal(fi_av_remove(writer, &gone, 1, 0), 0);
	assert_int_equal(insert(writer, 30), 0);
	assert_int_equal(lookup(av, 0), 30);
	assert_int_equal(w.cnt, 4);
	assert_int_equal(w.told[2], -10);
	assert_int_equal(w.told[3], 30);
	assert_int_equal(find(av, 10), FI_ADDR_NOTAVAIL);
	/* who only reads changes nothing */
	assert_int_equal(fi_av_insert(av, &addr, 1, NULL, 0, NULL), -FI_EACCES);
	assert_int_equal(fi_av_remove(av, &gone, 1, 0), -FI_EACCES);
	fab_av_unwatch(fab, &w.watch);
	fi_close(&av->fid);
	fi_close(&writer->fid);
}

static void references_are_counted_together(void **state)
{
	struct fid_av *a = open_av(0), *b = open_av(0);
	fi_addr_t fi_addr = insert(a, 10);

	(void) state;
	assert_int_equal(insert(b, 10), fi_addr);
	assert_int_equal(fi_av_remove(a, &fi_addr, 1, 0), 0);
	assert_int_equal(lookup(a, fi_addr), 10);
	assert_int_equal(lookup(b, fi_addr), 10);
	assert_int_equal(fi_av_remove(a, &fi_addr, 1, 0), 0);
	assert_int_equal(lookup(b, fi_addr), 0);
	assert_int_equal(fi_av_remove(b, &fi_addr, 1, 0), -FI_EINVAL);
	fi_close(&a->fid);
	fi_close(&b->fid);
}

static void many_addresses_come_over(void **state)
{
	enum { CNT = 3000 };
	struct sockaddr_in *addrs = calloc(CNT, sizeof(*addrs));
	struct fid_av *a = open_av(0), *b = open_av(FI_READ);

	(void) state;
	for (uint32_t i = 0; i < CNT; i++)
		addrs[i] = ip(i + 1);
	assert_int_equal(fi_av_insert(a, addrs, CNT, NULL, 0, NULL), CNT);
	for (uint32_t i = CNT; i--;) {
		assert_int_equal(host_at(b, i), i + 1);
		assert_int_equal(find(b, i + 1), i);
	}
	free(addrs);
	fi_close(&a->fid);
	fi_close(&b->fid);
}

/* ---- lives ---- */

static bool writer_that_stays(void)
{
	struct fid_av *av;

	return !try_open(0, &av) && !insert(av, 10);
}

/* The name is that of all who have it open: it survives any of them, and goes with the last. */
static void a_killed_owner_leaves_the_name_to_the_others(void **state)
{
	struct process p = start(writer_that_stays, true);
	struct fid_av *av = open_av(FI_READ), *second;

	(void) state;
	end(&p, SIGKILL);
	assert_int_equal(host_at(av, 0), 10);
	second = open_av(0);
	assert_int_equal(insert(second, 20), 1);
	assert_int_equal(host_at(av, 1), 20);
	fi_close(&av->fid);
	fi_close(&second->fid);
	assert_int_equal(access(file_path(), F_OK), -1);
}

static void what_the_dead_leave_is_swept_away(void **state)
{
	struct process p = start(writer_that_stays, true);
	struct fid_av *av;

	(void) state;
	end(&p, SIGKILL);
	assert_int_equal(access(file_path(), F_OK), 0);
	assert_int_equal(try_open(FI_READ, &av), -FI_ENOENT);
	assert_int_equal(access(file_path(), F_OK), -1);

	p = start(writer_that_stays, true);
	end(&p, SIGKILL);
	av = open_av(0);
	assert_int_equal(host_at(av, 0), 0);
	assert_int_equal(insert(av, 30), 0);
	fi_close(&av->fid);
}

/* ---- rubbish ---- */

struct header {
	uint64_t magic;
	uint32_t family, record_size;
	uint64_t capacity, cnt, gen;
};

static struct header read_header(void)
{
	int fd = open(file_path(), O_RDWR);
	struct header header;

	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	close(fd);
	return header;
}

static void write_at(const void *buf, size_t len, off_t at)
{
	int fd = open(file_path(), O_RDWR);

	assert_int_equal(pwrite(fd, buf, len, at), len);
	close(fd);
}

static void a_file_that_is_none_of_ours_is_refused(void **state)
{
	struct fid_av *av = open_av(0), *other;
	struct header header = read_header(), wrong;
	struct world ipv6;

	(void) state;
	for (int i = 0; i < 4; i++) {
		wrong = header;
		wrong.magic ^= i == 0;
		wrong.record_size += i == 1;
		wrong.capacity = i == 2 ? UINT64_MAX / 32 : i == 3 ? header.capacity + 1 : header.capacity;
		write_at(&wrong, sizeof(wrong), 0);
		assert_int_equal(try_open(FI_READ, &other), -FI_EINVAL);
	}
	write_at(&header, sizeof(header), 0);
	for (int i = 0; i < 2; i++) {		/* its group, and everyone, may write to it */
		assert_int_equal(chmod(file_path(), i ? 0602 : 0620), 0);
		assert_int_equal(try_open(0, &other), -FI_EACCES);
	}
	assert_int_equal(chmod(file_path(), 0600), 0);
	world_open(&ipv6, &(struct world_attr) { .addr_format = FI_SOCKADDR_IN6 });
	assert_int_equal(fi_av_open(&ipv6.domain.domain_fid, &(struct fi_av_attr) { .name = name }, &other, NULL),
			 -FI_EINVAL);
	world_close(&ipv6);
	fi_close(&av->fid);

	assert_int_equal(symlink("/dev/null", file_path()), 0);
	assert_int_equal(try_open(0, &other), -FI_EACCES);
	unlink(file_path());
}

static void rubbish_in_the_records_is_nothing(void **state)
{
	struct fid_av *av = open_av(0), *b = open_av(FI_READ);
	struct { struct sockaddr_in6 addr; uint32_t ref; } record = { .addr = { .sin6_family = AF_INET6 }, .ref = 1 };
	struct header header;

	(void) state;
	assert_int_equal(sizeof(record), 32);
	insert(av, 10);
	insert(av, 20);
	header = read_header();
	write_at(&record, sizeof(record), 64 + 32);	/* another family where 20 was */
	memset(&record, 0, sizeof(record));
	memcpy(&record.addr, &(struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(7),
						     .sin_addr.s_addr = htonl(10) }, sizeof(struct sockaddr_in));
	record.ref = UINT32_MAX;
	write_at(&record, sizeof(record), 64 + 2 * 32);	/* 10 once more */
	header.cnt = UINT64_MAX;
	header.gen = 77;
	write_at(&header, sizeof(header), 0);
	assert_int_equal(lookup(b, 0), 10);
	assert_int_equal(lookup(b, 1), 0);
	assert_int_equal(lookup(b, 2), 0);
	assert_int_equal(find(b, 10), 0);
	assert_int_equal(fi_av_insert(av, &(struct sockaddr_in) { .sin_family = AF_INET }, 1, NULL, 0, NULL),
			 -FI_EINVAL);
	assert_int_equal(truncate(file_path(), 10), 0);
	assert_int_equal(host_at(b, 5), 0);
	assert_int_equal(lookup(b, 0), 10);
	fi_close(&av->fid);
	fi_close(&b->fid);
}

/* Time passes when somebody waits. */
static uint64_t waited_ns;

static uint64_t waiting_now_ns(void)
{
	return waited_ns;
}

static int waiting_poll(struct pollfd *fds, nfds_t cnt, int timeout_ms)
{
	(void) fds, (void) cnt;
	waited_ns += timeout_ms * UINT64_C(1000000);
	return 0;
}

static void who_never_lets_go_is_not_waited_for(void **state)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
	const struct fab_clock_ops *real = fab_clock;
	struct fab_clock_ops clock = *real;
	struct fab_sock_ops sock = fab_sock_libc;
	struct fid_av *av = open_av(0);
	struct sockaddr_in addr = ip(10);
	int fd = open(file_path(), O_RDWR);

	(void) state;
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	clock.now_ns = waiting_now_ns;
	sock.poll = waiting_poll;
	fab_clock = &clock;
	fab_sock = &sock;
	assert_int_equal(fi_av_insert(av, &addr, 1, NULL, 0, NULL), -FI_EBUSY);
	assert_true(waited_ns >= 1000000000);
	fab_clock = real;
	fab_sock = &fab_sock_libc;
	close(fd);
	assert_int_equal(insert(av, 10), 0);
	fi_close(&av->fid);
}

static void names_are_checked(void **state)
{
	struct fi_av_attr attr = { .type = FI_AV_MAP, .name = name };
	struct fid_av *av;
	char longest[300];

	(void) state;
	assert_int_equal(fi_av_open(&world.domain.domain_fid, &attr, &av, NULL), 0);
	assert_non_null(attr.map_addr);
	fi_close(&av->fid);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	attr.name = longest;
	assert_int_equal(fi_av_open(&world.domain.domain_fid, &attr, &av, NULL), -FI_EINVAL);
	attr.name = "";
	assert_int_equal(fi_av_open(&world.domain.domain_fid, &attr, &av, NULL), -FI_EINVAL);
	attr.name = NULL;
	attr.flags = FI_READ;
	assert_int_equal(fi_av_open(&world.domain.domain_fid, &attr, &av, NULL), -FI_EBADFLAGS);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(others_find_the_same_addresses),
		TEST(changes_come_over_with_the_next_look),
		TEST(references_are_counted_together),
		TEST(many_addresses_come_over),
		TEST(a_killed_owner_leaves_the_name_to_the_others),
		TEST(what_the_dead_leave_is_swept_away),
		TEST(a_file_that_is_none_of_ours_is_refused),
		TEST(rubbish_in_the_records_is_nothing),
		TEST(who_never_lets_go_is_not_waited_for),
		TEST(names_are_checked),
	};

	return cmocka_run_group_tests_name("common/av_shared", tests, NULL, NULL);
}
