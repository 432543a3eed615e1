/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests for connections that the peer's connection manager refuses or drops, over verbs;ofi_rxm and the device of
 * test/softverbs: other attempts follow, and every message arrives.
 */
#include "ends.h"
#include "../softverbs/stand_in.h"

#include <stdlib.h>
#include <rdma/rdma_cma.h>

#define CROWD	20
#define MSG	8

static unsigned (*drop_cnt)(void), (*event_cnt)(enum rdma_cm_event_type type);

static char to[CROWD][MSG], from[MSG] = "message";

/* Endpoints of b's domain that send to a. */
static struct fid_ep *ep[CROWD];

static void open_all(const char *limits, int cnt)
{
	setenv("SOFTVERBS_LIMITS", limits, 1);
	ends_open(FI_MSG, 0, 0);
	for (int i = 0; i < cnt; i++) {
		ep[i] = endpoint_open(&b);
		OK((int) fi_recv(a.ep, to[i], MSG, NULL, FI_ADDR_UNSPEC, NULL));
	}
}

static void close_all(int cnt)
{
	for (int i = 0; i < cnt; i++)
		OK(fi_close(&ep[i]->fid));
	ends_close(NULL);
	unsetenv("SOFTVERBS_LIMITS");
}

/* The queue pairs of both have the same number for the connection manager, as if the second were the first one after a
 * restart: each new connection ends the other. */
static void a_restarted_peer_is_connected(void **state)
{
	unsigned refused = event_cnt(RDMA_CM_EVENT_REJECTED);

	(void) state;
	open_all("cm_qpn=77", 2);
	for (unsigned i = 0; i < 4; i++) {
		OK((int) fi_send(ep[i % 2], from, MSG, NULL, b.peer, NULL));
		until(a.done == i + 1 && b.done == i + 1);
		assert_string_equal(to[i % 2], from);
		memset(to[i % 2], 0, MSG);
		OK((int) fi_recv(a.ep, to[i % 2], MSG, NULL, FI_ADDR_UNSPEC, NULL));
	}
	assert_true(event_cnt(RDMA_CM_EVENT_REJECTED) >= refused + 1);
	close_all(2);
}

static void a_crowd_larger_than_the_backlog_is_connected(void **state)
{
	unsigned before = drop_cnt();

	(void) state;
	open_all("max_backlog=2,cm_retry=5", CROWD);
	for (int i = 0; i < CROWD; i++)
		OK((int) fi_send(ep[i], from, MSG, NULL, b.peer, NULL));
	until_with(drop_cnt() >= before + CROWD - 2, false);
	until(a.done == CROWD && b.done == CROWD);
	close_all(CROWD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_restarted_peer_is_connected),
		cmocka_unit_test(a_crowd_larger_than_the_backlog_is_connected),
	};

	drop_cnt = stand_in_cm("sv_test_drop_cnt");
	event_cnt = stand_in_cm("sv_test_event_cnt");
	return cmocka_run_group_tests_name("rxm/cm", tests, NULL, NULL);
}
