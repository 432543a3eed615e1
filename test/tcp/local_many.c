/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many peers of one host at once, most of them idle: what that costs, and that nothing is left. And children of fork(2)
 * beside connected peers.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "node.h"

#define PEERS		64
#define PATIENCE_MS	60000
#define MAPPINGS	(1 + 5 * PEERS)	/* of all ends together: for each pair its rings twice, and three pages */

static struct node hub, spoke[PEERS];
static fi_addr_t to_spoke[PEERS], to_hub[PEERS];

static unsigned mappings(void)
{
	unsigned cnt = 0;
	char line[512];
	FILE *file = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), file))
		cnt += !!strstr(line, "memfd:libfabric");
	fclose(file);
	return cnt;
}

static unsigned descriptors(void)
{
	unsigned cnt = 0;
	DIR *dir = opendir("/proc/self/fd");

	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

/* One message from one to the other. */
static void send_one(struct node *from, fi_addr_t to, struct node *at)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct fi_cq_data_entry entry;
	char in = 0;
	int done = 0;

	assert_int_equal(fi_recv(at->ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_send(from->ep, "x", 1, NULL, to, NULL), 0);
	while (done < 2) {
		done += fi_cq_read(from->cq, &entry, 1) == 1;
		done += fi_cq_read(at->cq, &entry, 1) == 1;
		assert_true(fab_now_ms() < end_ms);
	}
	assert_int_equal(in, 'x');
}

static void sixty_four_peers(void **state)
{
	unsigned fds, connected;

	(void) state;
	node_open(&hub, FI_MSG, FI_THREAD_UNSPEC);
	for (int i = 0; i < PEERS; i++) {
		node_open(&spoke[i], FI_MSG, FI_THREAD_UNSPEC);
		to_spoke[i] = node_insert(&hub, &spoke[i].addr);
		to_hub[i] = node_insert(&spoke[i], &hub.addr);
	}
	fds = descriptors();
	for (int i = 0; i < PEERS; i++) {
		send_one(&spoke[i], to_hub[i], &hub);
		send_one(&hub, to_spoke[i], &spoke[i]);
	}
	connected = descriptors();
	assert_in_range(mappings(), 1, MAPPINGS);
	/* the sockets of both ends, and the pages of all */
	assert_true(connected <= fds + 3 * PEERS + 1);
	for (int i = 0; i < 1000; i++) {
		send_one(&hub, to_spoke[0], &spoke[0]);
		send_one(&spoke[PEERS - 1], to_hub[PEERS - 1], &hub);
	}
	/* those that were idle meanwhile */
	for (int i = 0; i < PEERS; i++)
		send_one(&spoke[i], to_hub[i], &hub);
	assert_int_equal(descriptors(), connected);
	node_close(&hub);
	for (int i = 0; i < PEERS; i++)
		node_close(&spoke[i]);
	assert_int_equal(mappings(), 0);
}

static void does_nothing(void)
{
}

/* Not allowed, and it does not have the memory. */
static void closes_the_endpoint(void)
{
	signal(SIGSEGV, SIG_DFL);
	fi_close(&spoke[0].ep->fid);
}

static void after_fork(void (*child)(void))
{
	pid_t pid;

	node_open(&hub, FI_MSG, FI_THREAD_UNSPEC);
	node_open(&spoke[0], FI_MSG, FI_THREAD_UNSPEC);
	to_spoke[0] = node_insert(&hub, &spoke[0].addr);
	to_hub[0] = node_insert(&spoke[0], &hub.addr);
	send_one(&hub, to_spoke[0], &spoke[0]);
	pid = fork();
	if (!pid) {
		child();
		_exit(0);
	}
	send_one(&spoke[0], to_hub[0], &hub);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	send_one(&spoke[0], to_hub[0], &hub);
	send_one(&hub, to_spoke[0], &spoke[0]);
	node_close(&hub);
	node_close(&spoke[0]);
	assert_int_equal(mappings(), 0);
}

static void a_child_that_does_nothing_harms_nobody(void **state)
{
	(void) state;
	after_fork(does_nothing);
}

static void a_child_that_closes_the_endpoint_harms_nobody(void **state)
{
	(void) state;
	after_fork(closes_the_endpoint);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sixty_four_peers),
		cmocka_unit_test(a_child_that_does_nothing_harms_nobody),
		cmocka_unit_test(a_child_that_closes_the_endpoint_harms_nobody),
	};

	return cmocka_run_group_tests_name("tcp/local_many", tests, NULL, NULL);
}
