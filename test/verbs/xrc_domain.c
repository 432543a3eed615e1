/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_open_xrc_domain(3) and ibv_close_xrc_domain(3), sentence by sentence: what each promises, of our pair of
 * functions. The device is test/softverbs'. Two references are to one domain where a target queue pair made through
 * the one can be opened by its number through the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/unit.h"
#include "verbs/verbs.h"
#include "verbs/xrc_domain.h"

#define RACERS	6

static struct ibv_context *device[2];
static char path[] = "/tmp/xrc_domain.XXXXXX";
static int file;

static struct ibv_context *open_device(int i)
{
	int cnt;
	struct ibv_device **list = ibv_get_device_list(&cnt);
	struct ibv_context *context;

	assert_true(list && i < cnt);
	context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	assert_non_null(context);
	return context;
}

/* An inode of its own for each test. */
static int set_up(void **state)
{
	(void) state;
	strcpy(path + strlen(path) - 6, "XXXXXX");
	file = mkstemp(path);
	return file < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void) state;
	close(file);
	return unlink(path);
}

static struct ibv_xrcd *must_open(struct ibv_context *context, int fd, int oflag)
{
	struct ibv_xrcd *domain = vrb_open_xrc_domain(context, fd, oflag);

	assert_non_null(domain);
	return domain;
}

static void must_fail(struct ibv_context *context, int fd, int oflag, int err)
{
	errno = 0;
	assert_null(vrb_open_xrc_domain(context, fd, oflag));
	assert_int_equal(errno, err);
}

static void must_close(struct ibv_xrcd *domain)
{
	assert_int_equal(vrb_close_xrc_domain(domain), 0);
}

static struct ibv_qp *make_target(struct ibv_xrcd *domain)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(domain->context, &attr);
	struct ibv_qp_attr up = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &up, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS), 0);
	up.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &up, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	return qp;
}

static bool has_target(struct ibv_xrcd *domain, uint32_t num)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = num, .xrcd = domain, .qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *qp = ibv_open_qp(domain->context, &attr);

	if (qp)
		assert_int_equal(ibv_destroy_qp(qp), 0);
	return qp;
}

static bool same(struct ibv_xrcd *one, struct ibv_xrcd *other)
{
	struct ibv_qp *qp = make_target(one);
	bool yes = has_target(other, qp->qp_num);

	assert_int_equal(ibv_destroy_qp(qp), 0);
	return yes;
}

/* Another process, with a device of its own. It ends when a byte arrives. */
struct child {
	pid_t pid;
	int go, answer;
};

static struct child start(int (*run)(struct ibv_context *context, int oflag), int oflag)
{
	int go[2], answer[2];
	struct child child;
	char byte;

	assert_int_equal(pipe2(go, O_CLOEXEC) | pipe2(answer, O_CLOEXEC), 0);
	child = (struct child) { .pid = fork(), .go = go[1], .answer = answer[0] };
	assert_true(child.pid >= 0);
	if (child.pid) {
		close(go[0]);
		close(answer[1]);
		return child;
	}
	close(go[1]);
	byte = (char) run(open_device(0), oflag);
	if (write(answer[1], &byte, 1) == 1)
		(void) !read(go[0], &byte, 1);
	_exit(0);
}

/* What the process answered; it has not ended. */
static int answer_of(struct child *child)
{
	char byte;

	assert_int_equal(read(child->answer, &byte, 1), 1);
	return byte;
}

static void end(struct child *child)
{
	int status;

	assert_int_equal(write(child->go, "", 1), 1);	/* closing would not do: later children have it, too */
	close(child->go);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, 0);
	close(child->answer);
}

static int errno_of_open(struct ibv_context *context, int oflag)
{
	return vrb_open_xrc_domain(context, file, oflag) ? 0 : errno;
}

/* ---- open: a new domain, or a reference (the numbers X1 to X18 of doc/requirements.md) ---- */

static void opens_a_domain(void **state)
{
	(void) state;
	must_close(must_open(device[0], file, O_CREAT));
}

static void returns_a_reference_to_an_opened_one(void **state)
{
	struct ibv_xrcd *first = must_open(device[0], file, O_CREAT), *second = must_open(device[0], file, 0);

	(void) state;
	assert_true(same(first, second));
	must_close(second);
	must_close(first);
}

static int target_in_domain(struct ibv_context *context, int num_fd)
{
	uint32_t num;

	return read(num_fd, &num, sizeof(num)) == sizeof(num) && has_target(must_open(context, file, 0), num);
}

static void returns_a_reference_to_one_of_another_process(void **state)
{
	struct ibv_xrcd *domain = must_open(device[0], file, O_CREAT);
	struct ibv_qp *qp = make_target(domain);
	struct child child;
	int num[2];

	(void) state;
	assert_int_equal(pipe2(num, O_CLOEXEC), 0);
	child = start(target_in_domain, num[0]);
	assert_int_equal(write(num[1], &qp->qp_num, sizeof(qp->qp_num)), sizeof(qp->qp_num));
	assert_int_equal(answer_of(&child), 1);
	end(&child);
	close(num[0]);
	close(num[1]);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	must_close(domain);
}

static void of_the_device_named_by_context(void **state)
{
	struct ibv_xrcd *domain = must_open(device[0], file, O_CREAT), *other;

	(void) state;
	must_fail(device[1], file, 0, ENOENT);
	other = must_open(device[1], file, O_CREAT | O_EXCL);
	must_close(other);
	must_close(domain);
}

static void fd_is_associated_with_the_domain(void **state)
{
	struct ibv_xrcd *domain = must_open(device[0], file, O_CREAT), *again;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void) state;
	again = must_open(device[0], fd, 0);	/* by its inode, not by its number */
	close(fd);				/* nor for as long as it is open */
	assert_true(same(domain, again));
	must_close(again);
	must_close(domain);
}

static void a_descriptor_that_is_not_open_fails(void **state)
{
	int fd = dup(file);

	(void) state;
	close(fd);
	must_fail(device[0], fd, O_CREAT, EBADF);
}

/* ---- O_CREAT ---- */

static void o_creat_has_no_effect_if_there_is_one(void **state)
{
	struct ibv_xrcd *first = must_open(device[0], file, O_CREAT), *second = must_open(device[0], file, O_CREAT);

	(void) state;
	assert_true(same(first, second));
	must_close(first);
	must_close(second);
}

static void o_creat_creates_one_otherwise(void **state)
{
	(void) state;
	must_fail(device[0], file, 0, ENOENT);
	must_close(must_open(device[0], file, O_CREAT));
}

static void o_creat_associates_it_with_the_inode(void **state)
{
	struct ibv_xrcd *domain = must_open(device[0], file, O_CREAT), *linked;
	char other_path[] = "/tmp/xrc_domain.XXXXXX", link_path[sizeof(path) + 5];
	int other = mkstemp(other_path), fd;

	(void) state;
	assert_true(other >= 0);
	must_fail(device[0], other, 0, ENOENT);		/* another inode */
	strcpy(stpcpy(link_path, path), ".link");
	assert_int_equal(link(path, link_path), 0);
	fd = open(link_path, O_RDONLY | O_CLOEXEC);
	linked = must_open(device[0], fd, 0);		/* another name of the same */
	assert_true(same(domain, linked));
	must_close(linked);
	must_close(domain);
	unlink(link_path);
	unlink(other_path);
	close(fd);
	close(other);
}

/* ---- O_EXCL ---- */

static void o_excl_and_o_creat_fail_if_one_exists(void **state)
{
	struct ibv_xrcd *domain = must_open(device[0], file, O_CREAT);
	struct child child;

	(void) state;
	must_fail(device[0], file, O_CREAT | O_EXCL, EEXIST);
	child = start(errno_of_open, O_CREAT | O_EXCL);
	assert_int_equal(answer_of(&child), EEXIST);
	end(&child);
	must_close(domain);
}

static void o_excl_and_o_creat_create_one_otherwise(void **state)
{
	(void) state;
	must_close(must_open(device[0], file, O_CREAT | O_EXCL));
	must_close(must_open(device[0], file, O_CREAT | O_EXCL));
}

/* The page says nothing of it. The kernel refuses it where there is a domain. */
static void o_excl_without_o_creat_is_invalid_if_one_exists(void **state)
{
	struct ibv_xrcd *domain;

	(void) state;
	must_fail(device[0], file, O_EXCL, ENOENT);
	domain = must_open(device[0], file, O_CREAT);
	must_fail(device[0], file, O_EXCL, EINVAL);
	must_close(domain);
}

static void check_and_creation_are_atomic(void **state)
{
	struct child racers[RACERS];
	int i, winners = 0;

	(void) state;
	for (i = 0; i < RACERS; i++)
		racers[i] = start(errno_of_open, O_CREAT | O_EXCL);
	for (i = 0; i < RACERS; i++) {		/* whoever has it keeps it until all have answered */
		int err = answer_of(&racers[i]);

		assert_true(!err || err == EEXIST);
		winners += !err;
	}
	for (i = 0; i < RACERS; i++)
		end(&racers[i]);
	assert_int_equal(winners, 1);
}

/* ---- fd -1 ---- */

static void fd_minus_one_is_associated_with_no_inode(void **state)
{
	struct ibv_xrcd *first = must_open(device[0], -1, O_CREAT), *second = must_open(device[0], -1, O_CREAT);

	(void) state;
	assert_false(same(first, second));
	must_close(first);
	must_close(second);
}

static void fd_minus_one_takes_only_o_creat(void **state)
{
	(void) state;
	must_fail(device[0], -1, 0, EINVAL);
	must_fail(device[0], -1, O_EXCL, EINVAL);
	must_fail(device[0], -1, O_CREAT | O_EXCL, EINVAL);
}

static void other_flags_fail(void **state)
{
	(void) state;
	must_fail(device[0], file, O_CREAT | O_TRUNC, EINVAL);
	must_fail(device[0], file, O_RDWR, EINVAL);
	must_fail(device[0], -1, O_CREAT | O_APPEND, EINVAL);
}

/* ---- close ---- */

static void the_last_reference_destroys_it(void **state)
{
	struct ibv_xrcd *first = must_open(device[0], file, O_CREAT), *second = must_open(device[0], file, 0);

	(void) state;
	must_close(first);
	must_close(must_open(device[0], file, 0));	/* the second keeps it */
	must_close(second);
	must_fail(device[0], file, 0, ENOENT);
}

static void references_of_other_processes_count(void **state)
{
	struct child child = start(errno_of_open, O_CREAT);

	(void) state;
	assert_int_equal(answer_of(&child), 0);
	must_close(must_open(device[0], file, 0));
	must_close(must_open(device[0], file, 0));	/* ours was not the last */
	end(&child);					/* without closing it */
	must_fail(device[0], file, 0, ENOENT);
}

/* ---- notes ---- */

static void a_device_without_xrc_fails(void **state)
{
	(void) state;
	setenv("SOFTVERBS_LIMITS", "xrc=0", 1);
	must_fail(device[0], file, O_CREAT, EOPNOTSUPP);
	unsetenv("SOFTVERBS_LIMITS");
}

static void close_fails_while_a_queue_pair_is_associated(void **state)
{
	struct ibv_xrcd *domain = must_open(device[0], file, O_CREAT);
	struct ibv_qp *qp = make_target(domain);

	(void) state;
	assert_int_equal(vrb_close_xrc_domain(domain), EBUSY);
	assert_true(has_target(domain, qp->qp_num));	/* it is open as before */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	must_close(domain);
}

static void close_fails_while_a_receive_queue_is_associated(void **state)
{
	struct ibv_xrcd *domain = must_open(device[0], file, O_CREAT);
	struct ibv_pd *pd = ibv_alloc_pd(device[0]);
	struct ibv_cq *cq = ibv_create_cq(device[0], 1, NULL, NULL, 0);
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = pd, .xrcd = domain, .cq = cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(device[0], &attr);

	(void) state;
	assert_non_null(srq);
	assert_int_equal(vrb_close_xrc_domain(domain), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	must_close(domain);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
}

static int open_devices(void **state)
{
	(void) state;
	if (!vrb_lib_ready())
		return -1;
	device[0] = open_device(0);
	device[1] = open_device(1);
	return 0;
}

static int close_devices(void **state)
{
	(void) state;
	return ibv_close_device(device[0]) | ibv_close_device(device[1]);
}

#define SENTENCE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SENTENCE(opens_a_domain),
		SENTENCE(returns_a_reference_to_an_opened_one),
		SENTENCE(returns_a_reference_to_one_of_another_process),
		SENTENCE(of_the_device_named_by_context),
		SENTENCE(fd_is_associated_with_the_domain),
		SENTENCE(a_descriptor_that_is_not_open_fails),
		SENTENCE(o_creat_has_no_effect_if_there_is_one),
		SENTENCE(o_creat_creates_one_otherwise),
		SENTENCE(o_creat_associates_it_with_the_inode),
		SENTENCE(o_excl_and_o_creat_fail_if_one_exists),
		SENTENCE(o_excl_and_o_creat_create_one_otherwise),
		SENTENCE(o_excl_without_o_creat_is_invalid_if_one_exists),
		SENTENCE(check_and_creation_are_atomic),
		SENTENCE(fd_minus_one_is_associated_with_no_inode),
		SENTENCE(fd_minus_one_takes_only_o_creat),
		SENTENCE(other_flags_fail),
		SENTENCE(the_last_reference_destroys_it),
		SENTENCE(references_of_other_processes_count),
		SENTENCE(a_device_without_xrc_fails),
		SENTENCE(close_fails_while_a_queue_pair_is_associated),
		SENTENCE(close_fails_while_a_receive_queue_is_associated),
	};

	return cmocka_run_group_tests(tests, open_devices, close_devices);
}
