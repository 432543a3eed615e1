/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that always have something for a node are served alike, however many they are: over TCP, and over rings. All
 * run in this thread, so the counts are the same each time.
 */
#include <rdma/fi_cm.h>
#include <string.h>
#include "base/clock.h"
#include "node.h"
#include "tcp/params/params.h"

#define PEERS		12
#define LEN		64
#define RECEIVES	8192
#define LOOKS		128
#define ENTRIES		512
#define PATIENCE_MS	60000

static struct node hub, spoke[PEERS];
static fi_addr_t to_hub[PEERS];
static unsigned cnt[PEERS];		/* messages that have come from each */

static void post(unsigned n)
{
	static char in[LEN];

	while (n--)
		assert_int_equal(fi_recv(hub.ep, in, LEN, NULL, FI_ADDR_UNSPEC, NULL), 0);
}

/* A node sends what it can, and makes progress. */
static void keep_busy(unsigned i)
{
	static const char out[LEN];
	struct fi_cq_data_entry entry[64];

	while (fi_cq_read(spoke[i].cq, entry, 64) > 0)
		;
	while (!fi_injectdata(spoke[i].ep, out, LEN, i, to_hub[i]))
		;
}

/* The hub takes what a look finds. */
static void look(void)
{
	static struct fi_cq_data_entry entry[ENTRIES];
	ssize_t n = fi_cq_read(hub.cq, entry, ENTRIES);

	assert_true(n > 0 || n == -FI_EAGAIN);
	for (ssize_t i = 0; i < n; i++) {
		assert_true(entry[i].flags & FI_REMOTE_CQ_DATA);
		cnt[entry[i].data]++;
	}
	if (n > 0)
		post(n);
}

static void keep_all_busy(unsigned peers)
{
	for (unsigned n = 0; n < LOOKS; n++) {
		for (unsigned i = 0; i < peers; i++)
			keep_busy(i);
		look();
	}
}

static void served_alike(unsigned peers)
{
	unsigned least, most;
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	node_open(&hub, FI_MSG, FI_THREAD_DOMAIN);
	post(RECEIVES);
	for (unsigned i = 0; i < peers; i++) {
		node_open(&spoke[i], FI_MSG, FI_THREAD_DOMAIN);
		node_insert(&hub, &spoke[i].addr);
		to_hub[i] = node_insert(&spoke[i], &hub.addr);
		for (cnt[i] = 0; !cnt[i]; look()) {
			keep_busy(i);
			assert_true(fab_now_ms() < end_ms);
		}
	}
	keep_all_busy(peers);			/* the first ones have a lead so far */
	memset(cnt, 0, sizeof(cnt));
	keep_all_busy(peers);
	least = most = cnt[0];
	for (unsigned i = 0; i < peers; i++) {
		least = cnt[i] < least ? cnt[i] : least;
		most = cnt[i] > most ? cnt[i] : most;
	}
	print_message("# %u peers: %u to %u messages from each\n", peers, least, most);
	assert_true(most > LOOKS / 4);
	assert_true(2 * least >= most);
	node_close(&hub);		/* first, or the others would wait for it to take what they have sent */
	for (unsigned i = 0; i < peers; i++)
		node_close(&spoke[i]);
}

static void peers_are_served_alike(void **state)
{
	(void) state;
	served_alike(5);
	served_alike(8);
	served_alike(12);
}

static void over_tcp(void **state)
{
	tcp_params.local = false;
	peers_are_served_alike(state);
	tcp_params.local = true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_tcp),
		cmocka_unit_test(peers_are_served_alike),
	};

	return cmocka_run_group_tests_name("tcp/fair", tests, NULL, NULL);
}
