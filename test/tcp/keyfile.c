/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_TCP_AUTH_KEY_FILE: a file with the key of programs that know nothing of keys; which files are refused, and what a
 * program with such a file opens: nothing, rather than an endpoint that lets everybody in.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "remote.h"
#include "tcp/params/params.h"

#define KEY		"seventeen bytes.."
#define OTHER_KEY	"another seventeen"

struct fixture {
	char dir[64], path[2][80];
};

static void write_file(const char *path, const void *bytes, size_t len, mode_t mode)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/keyfile.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	for (int i = 0; i < 2; i++)
		snprintf(f->path[i], sizeof(f->path[i]), "%s/key%d", f->dir, i);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 2; i++)
		unlink(f->path[i]);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	tcp_params.auth_key_file = NULL;
	return 0;
}

static int read_key(const char *path, struct fab_auth_key **key)
{
	return fab_auth_read(&tcp_prov, "test", path, key);
}

/* The bytes of the file, without the end of its line, are the key. */
static void key_is_that_of_the_file(void **state)
{
	static const char *const text[] = { KEY, KEY "\n" };
	struct fixture *f = *state;
	struct fab_auth_key *of_program, *of_file;

	assert_int_equal(fab_auth_get(&tcp_prov, "test", KEY, strlen(KEY), &of_program), 0);
	for (int i = 0; i < 2; i++) {
		write_file(f->path[0], text[i], strlen(text[i]), 0400);
		assert_int_equal(read_key(f->path[0], &of_file), 0);
		assert_ptr_equal(of_file, of_program);
		fab_auth_put(of_file);
	}
	fab_auth_put(of_program);
}

static void access_of_others_is_refused(void **state)
{
	static const mode_t mode[] = { 0640, 0604, 0620, 0602, 0666 };
	struct fixture *f = *state;
	struct fab_auth_key *key;

	for (size_t i = 0; i < fab_countof(mode); i++) {
		write_file(f->path[0], KEY, strlen(KEY), mode[i]);
		assert_int_equal(read_key(f->path[0], &key), -FI_EACCES);
	}
}

static void file_of_another_user_is_refused(void **state)
{
	struct fixture *f = *state;
	struct fab_auth_key *key;

	if (geteuid())
		unit_skip("only root can give a file away");
	write_file(f->path[0], KEY, strlen(KEY), 0600);
	assert_int_equal(chown(f->path[0], 65534, -1), 0);
	assert_int_equal(read_key(f->path[0], &key), -FI_EACCES);
}

static void length_is_checked(void **state)
{
	char bytes[FAB_AUTH_KEY_MAX + 2];
	struct fixture *f = *state;
	struct fab_auth_key *key;

	memset(bytes, 'k', sizeof(bytes));
	for (int len = 0; len <= FAB_AUTH_KEY_MAX + 2; len++) {
		bool good = len >= FAB_AUTH_FILE_MIN && len <= FAB_AUTH_KEY_MAX;

		write_file(f->path[0], bytes, len, 0600);
		assert_int_equal(read_key(f->path[0], &key), good ? 0 : -FI_EINVAL);
		if (good)
			assert_int_equal(key->len, len);
		if (good)
			fab_auth_put(key);
	}
}

/* A FIFO, for one, would keep open() waiting. */
static void only_a_regular_file_is_read(void **state)
{
	struct fixture *f = *state;
	struct fab_auth_key *key;

	assert_int_equal(mkfifo(f->path[0], 0600), 0);
	assert_int_equal(read_key(f->path[0], &key), -FI_EINVAL);
	assert_int_equal(read_key(f->dir, &key), -FI_EINVAL);
	assert_int_equal(read_key(f->path[1], &key), -FI_ENOENT);
}

/* ---- endpoints ---- */

static void node_with_file(struct node *node, char *path)
{
	tcp_params.auth_key_file = path;
	node_open(node, FI_MSG, FI_THREAD_UNSPEC);
	tcp_params.auth_key_file = NULL;
}

static void drive_both(struct node *a, struct node *b)
{
	drive(a);
	drive(b);
}

/* A message of a to b: 0, or the error with which it ends. */
static int send_between(struct node *a, struct node *b)
{
	fi_addr_t to = node_insert(a, &b->addr);
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };
	char out[5] = "hello", in[5] = "";
	ssize_t ret;

	assert_int_equal(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	assert_int_equal(fi_send(a->ep, out, sizeof(out), NULL, to, out), 0);
	while ((ret = fi_cq_read(a->cq, &entry, 1)) == -FI_EAGAIN)
		drive_both(a, b);
	if (ret == -FI_EAVAIL) {
		assert_int_equal(fi_cq_readerr(a->cq, &err, 0), 1);
		return err.err;
	}
	assert_ptr_equal(completion(b, NULL), in);
	assert_memory_equal(in, out, sizeof(out));
	return 0;
}

/* Programs that pass no key meet under that of the file, and nobody else gets in. */
static void endpoints_meet_under_the_key_of_the_file(void **state)
{
	struct fixture *f = *state;
	struct {
		char *a, *b;
		int err;
	} row[] = {
		{ f->path[0], f->path[0], 0 }, { f->path[0], f->path[1], FI_EACCES },
		{ NULL, f->path[0], FI_EACCES }, { f->path[0], NULL, FI_EACCES },
	};

	write_file(f->path[0], KEY, strlen(KEY), 0600);
	write_file(f->path[1], OTHER_KEY, strlen(OTHER_KEY), 0600);
	for (size_t i = 0; i < fab_countof(row); i++) {
		struct node a, b;

		node_with_file(&a, row[i].a);
		node_with_file(&b, row[i].b);
		assert_int_equal(send_between(&a, &b), row[i].err);
		node_close(&a);
		node_close(&b);
	}
}

/* The key that a program passes separates its jobs, and it goes first. */
static void key_of_the_program_goes_first(void **state)
{
	struct fixture *f = *state;
	struct node a, b;

	write_file(f->path[0], KEY, strlen(KEY), 0600);
	write_file(f->path[1], OTHER_KEY, strlen(OTHER_KEY), 0600);
	node_with_file(&a, f->path[0]);
	node_with_file(&b, f->path[0]);
	assert_int_equal(fi_close(&a.ep->fid), 0);
	a.info->ep_attr->auth_key = (uint8_t *) strdup(OTHER_KEY);
	a.info->ep_attr->auth_key_size = strlen(OTHER_KEY);
	node_open_ep(&a);
	assert_int_equal(send_between(&a, &b), FI_EACCES);
	node_close(&b);
	node_with_file(&b, f->path[1]);
	assert_int_equal(send_between(&a, &b), 0);
	node_close(&a);
	node_close(&b);
}

/* A file that cannot be used does not mean "no key". */
static void nothing_opens_without_the_file(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fixture *f = *state;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_pep *pep;

	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("tcp");
	assert_int_equal(fi_getinfo(FI_VERSION(2, 6), "127.0.0.1", NULL, FI_SOURCE, hints, &info), 0);
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	write_file(f->path[0], KEY, strlen(KEY), 0644);
	tcp_params.auth_key_file = f->path[0];
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), -FI_EACCES);
	assert_int_equal(fi_passive_ep(fabric, info, &pep, NULL), -FI_EACCES);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* FI_TCP_AUTH_KEY_FILE= is not "no key". The library reads it once, in this test, which is the first. */
static void empty_name_is_a_file_that_cannot_be_read(void **state)
{
	struct fi_info *info;

	(void) state;
	setenv("FI_TCP_AUTH_KEY_FILE", "", 1);
	assert_int_equal(fi_getinfo(FI_VERSION(2, 6), NULL, NULL, 0, NULL, &info), 0);
	fi_freeinfo(info);
	assert_non_null(tcp_params.auth_key_file);
	assert_string_equal(tcp_params.auth_key_file, "");
	free(tcp_params.auth_key_file);
}

/* An endpoint of another type than that of the domain's info has the key, too. */
static void domain_of_datagrams_has_the_key(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *dgram;
	struct fixture *f = *state;
	struct fid_domain *domain;
	struct node a;

	write_file(f->path[0], KEY, strlen(KEY), 0600);
	tcp_params.auth_key_file = f->path[0];
	node_provider = "sockets";
	node_open(&a, FI_MSG, FI_THREAD_UNSPEC);
	node_provider = "tcp";
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->fabric_attr->prov_name = strdup("sockets");
	if (fi_getinfo(FI_VERSION(2, 6), "127.0.0.1", NULL, FI_SOURCE, hints, &dgram))
		unit_skip("this build has no datagrams of sockets");
	assert_int_equal(fi_domain(a.fabric, dgram, &domain, NULL), 0);
	assert_non_null(fab_container(domain, struct fab_domain, domain_fid)->auth.spare);
	assert_int_equal(fi_close(&domain->fid), 0);
	node_close(&a);
	fi_freeinfo(dgram);
	fi_freeinfo(hints);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(empty_name_is_a_file_that_cannot_be_read),
		TEST(key_is_that_of_the_file),
		TEST(access_of_others_is_refused),
		TEST(file_of_another_user_is_refused),
		TEST(length_is_checked),
		TEST(only_a_regular_file_is_read),
		TEST(endpoints_meet_under_the_key_of_the_file),
		TEST(key_of_the_program_goes_first),
		TEST(nothing_opens_without_the_file),
		TEST(domain_of_datagrams_has_the_key),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/keyfile", tests, NULL, NULL);
}
