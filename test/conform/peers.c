/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many endpoints: clients of one server, all with all, and the first messages that cross.
 * Source: fi_msg(3), fi_av(3).
 */
#include <stdio.h>
#include <string.h>

#include "ops.h"

/* One server and 64 clients in one domain: each message arrives once, at the right place, and the answer comes back. */
TEST_PROV(server_of_64, FI_MSG | FI_SOURCE, RDM_ONLY)
{
	enum { CLIENTS = 64, ROUNDS = 3 };
	struct side *server = side_open(t), *c[CLIENTS];
	uint32_t in[CLIENTS], back[CLIENTS], out[CLIENTS], i, round;
	fi_addr_t addr[CLIENTS];

	for (i = 0; i < CLIENTS; i++) {
		c[i] = i ? side_open(t, .domain_of = c[0]) : side_open(t);
		c[i]->peer = side_insert(c[i], server);
		addr[i] = side_insert(server, c[i]);
	}
	for (round = 0; round < ROUNDS; round++) {
		bool seen[CLIENTS] = { false };

		for (i = 0; i < CLIENTS; i++)
			post_recv(server, &in[i], sizeof(in[0]));
		for (i = 0; i < CLIENTS; i++) {
			out[i] = i + 1000 * round;
			post_recv(c[i], &back[i], sizeof(back[0]));
			send_bytes(c[i], &out[i], sizeof(out[0]));
		}
		for (i = 0; i < CLIENTS; i++) {
			struct comp comp = expect_rx(server);
			uint32_t who = *(uint32_t *) ctx_buf(server, comp.ctx) - 1000 * round;

			CHECK(who < CLIENTS && !seen[who]);
			CHECK_EQ(comp.src, addr[who]);
			seen[who] = true;
			post(server, SEND, .buf = &out[who], .len = sizeof(out[0]), .addr = &addr[who]);
		}
		for (i = 0; i < CLIENTS; i++) {
			expect_recv(c[i], &out[i], sizeof(out[0]));
			expect_tx(c[i]);
		}
		expect_tx_cnt(server, CLIENTS);
	}
}

/* 32 connections to one listener, with traffic on all of them at once. */
TEST_PROV(connections_to_one_listener, FI_MSG, CONNECTED)
{
	enum { N = 32, MSGS = 20 };
	struct side *l = listener_open(t), *a[N], *b[N];
	uint32_t in[N][MSGS], out[N][MSGS], i, j;

	for (i = 0; i < N; i++) {
		a[i] = connector_open(t, l, &(struct opts) { 0 });
		b[i] = side_connect(a[i], l);
		for (j = 0; j < MSGS; j++)
			post_recv(b[i], &in[i][j], sizeof(in[0][0]));
	}
	for (j = 0; j < MSGS; j++) {
		for (i = 0; i < N; i++) {
			out[i][j] = i << 16 | j;
			send_bytes(a[i], &out[i][j], sizeof(out[0][0]));
		}
	}
	for (i = 0; i < N; i++) {
		expect_rx_cnt(b[i], MSGS);
		for (j = 0; j < MSGS; j++)
			CHECK_EQ(in[i][j], out[i][j]);
		expect_tx_cnt(a[i], MSGS);
	}
}

/* Everybody writes to everybody, each to itself too. */
TEST_PROV(all_to_all, FI_MSG, RDM_ONLY)
{
	enum { N = 10 };
	struct side *s[N];
	uint32_t in[N][N], out[N][N], i, j;
	fi_addr_t addr[N][N];

	for (i = 0; i < N; i++)
		s[i] = side_open(t);
	for (i = 0; i < N; i++) {
		for (j = 0; j < N; j++) {
			addr[i][j] = side_insert(s[i], s[j]);
			post_recv(s[i], &in[i][j], sizeof(in[0][0]));
		}
	}
	for (i = 0; i < N; i++) {
		for (j = 0; j < N; j++) {
			out[i][j] = i << 8 | j;
			post(s[i], SEND, .buf = &out[i][j], .len = sizeof(out[0][0]), .addr = &addr[i][j]);
		}
	}
	for (i = 0; i < N; i++) {
		bool seen[N] = { false };

		for (j = 0; j < N; j++) {
			uint32_t got = *(uint32_t *) ctx_buf(s[i], expect_rx(s[i]).ctx);

			CHECK_EQ(got & 0xff, i);
			CHECK(got >> 8 < N && !seen[got >> 8]);
			seen[got >> 8] = true;
		}
		expect_tx_cnt(s[i], N);
	}
}

/* Both sides send their first message at the same moment: each arrives once, on whatever connection is left. */
TEST_PROV(first_messages_cross, FI_MSG, RDM_ONLY)
{
	unsigned int round, i;

	for (round = 0; round < 20; round++) {
		struct pair p = pair_open(t);
		struct side *s[2] = { p.a, p.b };
		uint32_t in[2][4], out[4] = { 1, 2, 3, 4 };
		struct wait w = wait_begin();
		unsigned int sent[2] = { 0 };

		note("round %u", round);
		for (i = 0; i < 8; i++)
			post_recv(s[i % 2], &in[i % 2][i / 2], sizeof(in[0][0]));
		/* Turn by turn, so that neither gets ahead. */
		while (sent[0] < 4 || sent[1] < 4) {
			for (i = 0; i < 2; i++) {
				if (sent[i] < 4 && !try_op(s[i], SEND, .buf = &out[sent[i]], .len = 4))
					sent[i]++;
			}
			wait_more(t, &w, "the connection");
		}
		for (i = 0; i < 2; i++) {
			expect_rx_cnt(s[i], 4);
			CHECK_MEM(in[i], out, sizeof(out));
		}
		expect_tx_cnt(p.a, 4);
		expect_tx_cnt(p.b, 4);
		expect_no_completion(p.a);
		expect_no_completion(p.b);
		side_close(p.a);
		side_close(p.b);
	}
}

/* Endpoints come and go at one server. */
TEST_PROV(clients_come_and_go, FI_MSG, RDM_ONLY)
{
	struct side *server = side_open(t);
	unsigned int i;
	char in[4];

	for (i = 0; i < 40; i++) {
		struct side *c = side_open(t);

		note("client %u", i);
		c->peer = side_insert(c, server);
		post_recv(server, in, 4);
		send_bytes(c, "abcd", 4);
		expect_recv(server, "abcd", 4);
		expect_tx(c);
		side_close(c);
	}
}
