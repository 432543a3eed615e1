/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that always have something for a node are served alike, however many they are: over TCP, and over rings.
 * Strangers have a part of the time together, beside one that is known. All run in this thread, so the counts are the
 * same each time.
 */
#include <rdma/fi_cm.h>
#include <string.h>
#include "base/clock.h"
#include "base/own_clock.h"
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

/* The hub, and so many peers, of whom it knows the first ones. Each has been heard. */
static void open_all(unsigned peers, unsigned known)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	node_open(&hub, FI_MSG, FI_THREAD_DOMAIN);
	post(RECEIVES);
	for (unsigned i = 0; i < peers; i++) {
		node_open(&spoke[i], FI_MSG, FI_THREAD_DOMAIN);
		if (i < known)
			node_insert(&hub, &spoke[i].addr);
		to_hub[i] = node_insert(&spoke[i], &hub.addr);
		for (cnt[i] = 0; !cnt[i]; look()) {
			keep_busy(i);
			assert_true(fab_now_ms() < end_ms);
		}
	}
}

static void close_all(unsigned peers)
{
	node_close(&hub);		/* first, or the others would wait for it to take what they have sent */
	for (unsigned i = 0; i < peers; i++)
		node_close(&spoke[i]);
}

static void served_alike(unsigned peers)
{
	unsigned least, most;

	open_all(peers, peers);
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
	close_all(peers);
}

/* ---- strangers ---- */

#define STEP_NS		15000		/* by which the clock goes on whenever it is read */

/* All have data all the time. Of what the hub takes, the one that it knows gets the most. */
static void have_a_part_together(void)
{
	unsigned strangers = 0, least = UINT32_MAX;

	open_all(PEERS, 1);
	own_clock_step(STEP_NS);
	keep_all_busy(PEERS);
	memset(cnt, 0, sizeof(cnt));
	for (int i = 0; i < 8; i++)
		keep_all_busy(PEERS);
	own_clock_off();
	for (unsigned i = 1; i < PEERS; i++) {
		strangers += cnt[i];
		least = cnt[i] < least ? cnt[i] : least;
	}
	print_message("# %u messages of the known one, %u of %u strangers, %u or more of each\n", cnt[0], strangers,
		      PEERS - 1, least);
	assert_true(cnt[0] > LOOKS);
	assert_true(strangers < cnt[0] / 2);
	assert_true(least > 0);
	close_all(PEERS);
}

static void strangers_have_a_part_together(void **state)
{
	(void) state;
	tcp_params.local = false;
	have_a_part_together();
	tcp_params.local = true;
}

static void strangers_over_rings_have_a_part_together(void **state)
{
	(void) state;
	have_a_part_together();
}

/* The one that the hub knows has nothing to say. */
static void served_alike_alone(void)
{
	open_all(PEERS, 0);
	keep_all_busy(PEERS);
	memset(cnt, 0, sizeof(cnt));
	keep_all_busy(PEERS);
	for (unsigned i = 0; i < PEERS; i++) {
		print_message("# %u: %u\n", i, cnt[i]);
		assert_true(cnt[i] > LOOKS / 4);
	}
	close_all(PEERS);
}

static void alone_strangers_are_served_alike(void **state)
{
	(void) state;
	tcp_params.local = false;
	served_alike_alone();
	tcp_params.local = true;
}

static void alone_strangers_over_rings_are_served_alike(void **state)
{
	(void) state;
	served_alike_alone();
}

/* Who is inserted while its messages wait for its turn, is served at once. */
static void inserted_stranger_over_rings_is_served(void **state)
{
	(void) state;
	open_all(3, 1);
	own_clock_step(STEP_NS);
	keep_all_busy(3);
	node_insert(&hub, &spoke[1].addr);
	keep_all_busy(3);
	memset(cnt, 0, sizeof(cnt));
	for (int i = 0; i < 4; i++)
		keep_all_busy(3);
	own_clock_off();
	print_message("# %u and %u of the known ones, %u of the stranger\n", cnt[0], cnt[1], cnt[2]);
	assert_true(2 * cnt[1] >= cnt[0]);
	assert_true(2 * cnt[2] < cnt[1]);
	close_all(3);
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
		cmocka_unit_test(strangers_have_a_part_together),
		cmocka_unit_test(strangers_over_rings_have_a_part_together),
		cmocka_unit_test(alone_strangers_are_served_alike),
		cmocka_unit_test(alone_strangers_over_rings_are_served_alike),
		cmocka_unit_test(inserted_stranger_over_rings_is_served),
	};

	return cmocka_run_group_tests_name("tcp/fair", tests, NULL, NULL);
}
