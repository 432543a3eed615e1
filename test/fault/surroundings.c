/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes of one host, of which one has other surroundings: a namespace of its own, another user, a filter of
 * system calls. Each connects to the other; data goes by shared memory, a Unix socket or TCP, as it should, and where
 * it is not shared memory, a line at level info says why. What this machine does not let us make is skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "tcp/node.h"
#include "tcp/stream/ep.h"

#define LEN		100000
#define PATIENCE_MS	20000
#define OTHER_USER	4711

enum carrier { DIRECT, RINGS, UNIX, TCP };	/* DIRECT: rings, and the other reads long payloads in our memory */

/* ---- surroundings: 0, or -1 where this machine does not let us ---- */

static int nothing_else(void)
{
	return 0;
}

/* The caller is a child afterwards: the first process of the namespace. */
static int pid_namespace(void)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		return -1;
	pid = fork();
	if (pid) {
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getpid() == 1 ? 0 : -1;
}

/* From now on this system call fails with EPERM. */
static int refuse(uint32_t nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) ? -1 : 0;
}

static int no_memfd(void)
{
	return refuse(SYS_memfd_create);
}

static int no_reading(void)
{
	return refuse(SYS_process_vm_readv);
}

static int no_dev_shm(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev/shm", "tmpfs", MS_RDONLY, NULL))
		return -1;
	return open("/dev/shm/weft", O_CREAT | O_RDWR, 0600) < 0 ? 0 : -1;
}

static int another_user(void)
{
	return getuid() ? -1 : setuid(OTHER_USER);
}

static int user_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

/* ---- the process in them ---- */

struct task {
	int (*enter)(void);
	bool dials;
	int from, to;			/* pipes: from the test, to the test */
};

static uint8_t out[LEN], in[LEN];

/* Send to this address, and wait until it has gone and something has come. */
static void exchange(struct node *node, fi_addr_t to, bool begins)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct fi_cq_data_entry entry;
	int done = 0;

	memset(in, 0, sizeof(in));
	assert_int_equal(fi_recv(node->ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
	if (begins)
		assert_int_equal(fi_send(node->ep, out, LEN, NULL, to, out), 0);
	while (done < 2) {
		ssize_t ret = fi_cq_read(node->cq, &entry, 1);

		assert_true(ret == -FI_EAGAIN || ret == 1);
		if (ret == 1 && entry.op_context == in && !begins)
			assert_int_equal(fi_send(node->ep, out, LEN, NULL, to, out), 0);
		done += ret == 1;
		assert_true(fab_now_ms() < end_ms);
	}
	assert_memory_equal(in, out, LEN);
}

static _Noreturn void other_main(const struct task *task)
{
	struct sockaddr_in addr;
	struct node node;
	fi_addr_t to;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(&addr, 0, sizeof(addr));
	if (task->enter()) {
		assert_int_equal(write(task->to, &addr, sizeof(addr)), sizeof(addr));
		_exit(0);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	node_open_at(&node, FI_MSG, 0);
	assert_int_equal(write(task->to, &node.addr, sizeof(addr)), sizeof(addr));
	if (read(task->from, &addr, sizeof(addr)) != sizeof(addr))
		_exit(1);
	to = node_insert(&node, &addr);
	exchange(&node, to, task->dials);
	for (;;)
		fi_cq_sread(node.cq, NULL, 0, NULL, -1);
}

/* ---- the test ---- */

static FILE *said;			/* what the library logs */

static void log_to_file(void)
{
	said = tmpfile();
	assert_non_null(said);
	assert_true(dup2(fileno(said), STDERR_FILENO) >= 0);
}

/* True if the log has a line with this. */
static bool was_said(const char *text)
{
	char line[1024];
	bool found = false;

	rewind(said);
	while (fgets(line, sizeof(line), said))
		found |= strstr(line, text) != NULL;
	assert_int_equal(ftruncate(fileno(said), 0), 0);
	rewind(said);
	return found;
}

static enum carrier carrier_of(const struct node *node, fi_addr_t peer)
{
	const struct tcp_ep *ep = fab_container(node->ep, struct tcp_ep, base.ep_fid);
	const struct tcp_conn *conn = ep->rdm.by_addr[peer];

	assert_non_null(conn);
	if (conn->io == &tcp_io_ring)
		return conn->direct.lends == TCP_DIRECT_ON ? DIRECT : RINGS;
	return conn->local ? UNIX : TCP;
}

static bool meet(int (*enter)(void), bool other_dials, enum carrier carrier, const char *why)
{
	struct sockaddr_in addr;
	int there[2], back[2];
	struct task task;
	struct node node;
	fi_addr_t to;
	pid_t pid;

	assert_int_equal(pipe2(there, O_CLOEXEC) + pipe2(back, O_CLOEXEC), 0);
	task = (struct task) { enter, other_dials, there[0], back[1] };
	pid = fork();
	if (!pid)
		other_main(&task);
	assert_int_equal(read(back[0], &addr, sizeof(addr)), sizeof(addr));
	if (addr.sin_port) {
		node_open_at(&node, FI_MSG, 0);
		assert_int_equal(write(there[1], &node.addr, sizeof(addr)), sizeof(addr));
		to = node_insert(&node, &addr);
		exchange(&node, to, !other_dials);
		assert_int_equal(carrier_of(&node, to), carrier);
		node_close(&node);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
	if (addr.sin_port && !was_said(why) && *why)
		fail_msg("no line says '%s'", why);
	return addr.sin_port;
}

/* With each end as the one that connects. */
static void meet_both(int (*enter)(void), enum carrier carrier, const char *why, const char *why_other)
{
	if (!meet(enter, false, carrier, why) || !meet(enter, true, carrier, why_other))
		unit_skip("this machine does not allow it");
}

static void processes_that_share_everything_use_rings(void **state)
{
	(void) state;
	meet_both(nothing_else, DIRECT, "", "");
}

static void another_pid_namespace_uses_rings(void **state)
{
	(void) state;
	meet_both(pid_namespace, RINGS, "may not read", "may not read");
}

static void without_dev_shm_rings_are_used(void **state)
{
	(void) state;
	meet_both(no_dev_shm, DIRECT, "", "");
}

static void without_process_vm_readv_rings_carry_all(void **state)
{
	(void) state;
	meet_both(no_reading, RINGS, "the peer may not read this process's memory",
		  "the peer may not read this process's memory");
}

static void without_memfd_a_unix_socket_is_used(void **state)
{
	(void) state;
	meet_both(no_memfd, UNIX, "the peer has refused it", "does not offer it");
}

static void another_user_uses_tcp(void **state)
{
	(void) state;
	meet_both(another_user, TCP, "it is of another user", "it is of another user");
}

static void another_user_namespace_uses_tcp(void **state)
{
	(void) state;
	meet_both(user_namespace, TCP, "it sees another user here", "it is of another user");
}

/* ---- a filter that leaves nothing to work with ---- */

/* From now on epoll_wait() fails, by whichever system call the C library makes it. */
static int no_epoll_wait(void)
{
#ifdef SYS_epoll_wait
	if (refuse(SYS_epoll_wait))
		return -1;
#endif
	return refuse(SYS_epoll_pwait);
}

/* Open a domain behind the filter, or the filter behind an endpoint. Returns the exit status. */
static int without_epoll_wait(bool from_the_start)
{
	struct node node;

	if (!from_the_start)
		node_open(&node, FI_MSG, FI_THREAD_UNSPEC);
	if (no_epoll_wait())
		return 77;
	if (!from_the_start) {
		for (int i = 0; i < 100; i++)
			fi_cq_read(node.cq, NULL, 0);
		return 0;
	}
	node.info = NULL;
	if (fi_getinfo(FI_VERSION(2, 6), "127.0.0.1", NULL, FI_SOURCE, NULL, &node.info) ||
	    fi_fabric(node.info->fabric_attr, &node.fabric, NULL))
		return 1;
	return fi_domain(node.fabric, node.info, &node.domain, NULL) == -FI_EPERM ? 0 : 2;
}

/* A process that may not call epoll_wait() cannot notice what arrives. It is told: by an error if it can be told that
 * early, and by a line in the log. */
static void denied_epoll_wait_is_no_silence(void **state)
{
	int status;
	pid_t pid;

	(void) state;
	for (int i = 0; i < 2; i++) {
		pid = fork();
		if (!pid)
			_exit(without_epoll_wait(i));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			unit_skip("this machine does not allow a filter of system calls");
		assert_int_equal(status, 0);
		assert_true(was_said("(seccomp) deny it"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_that_share_everything_use_rings),
		cmocka_unit_test(another_pid_namespace_uses_rings),
		cmocka_unit_test(without_dev_shm_rings_are_used),
		cmocka_unit_test(without_process_vm_readv_rings_carry_all),
		cmocka_unit_test(without_memfd_a_unix_socket_is_used),
		cmocka_unit_test(another_user_uses_tcp),
		cmocka_unit_test(another_user_namespace_uses_tcp),
		cmocka_unit_test(denied_epoll_wait_is_no_silence),
	};
	char line[1024];
	int failed;

	memset(out, 'x', sizeof(out));
	setenv("FI_LOG_LEVEL", "info", 1);
	log_to_file();
	failed = cmocka_run_group_tests_name("fault/surroundings", tests, NULL, NULL);
	rewind(said);
	while (failed && fgets(line, sizeof(line), said))
		printf("# %s", line);
	return failed;
}
