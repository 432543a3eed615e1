/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peers of a node (node.h), which the test plays on plain sockets (raw.h). They run upstream's tcp unless a test
 * says otherwise. Everything is asserted.
 */
#ifndef TEST_TCP_REMOTE_H
#define TEST_TCP_REMOTE_H

#include <stdbool.h>
#include "node.h"
#include "raw.h"
#include "tcp/stream/ep.h"

#define MS	1000000ULL		/* ns */

/* A peer that listens: its socket, address, and fi_addr in the node's AV. */
struct peer {
	int listener;
	struct sockaddr_in addr;
	fi_addr_t fi_addr;
};

/* cmocka's: *state is a node with messages, tagged ones, and remote access. */
int node_setup(void **state);
int node_teardown(void **state);

/* Progress without taking a completion. arg is the node (raw_drive). */
void drive(void *arg);
/* The next completion: its context. Fails if it is an error. */
void *completion(struct node *node, fi_addr_t *src);
/* The next completion is this error of the operation with this context; its text goes to text[256] if that is there. */
void expect_error(struct node *node, void *context, int err, char *text);
/* The connection in use for fi_addr, or NULL. */
struct tcp_conn *node_conn(struct node *node, fi_addr_t fi_addr);

/* A new peer, in the node's address vector. above: its port is the larger one, or the smaller. */
struct peer peer_open(struct node *node);
struct peer peer_open_ordered(struct node *node, bool above);
/* Close the connection fd and the peer. */
void peer_close(const struct peer *peer, int fd);

/* Accept the node's connection and read its request. */
int peer_accept(struct node *node, const struct peer *peer);
/* Answer it. */
void peer_reply(int fd, const struct peer *peer, uint8_t type);
/* Let the node's connection come about: both. _ext: with a peer that says these TCP_EXT_* of itself (0: as peer_up). */
int peer_up(struct node *node, const struct peer *peer);
int peer_up_ext(struct node *node, const struct peer *peer, uint32_t ext);

/* Connect to the node as the peer, in process pid. */
int peer_connect(struct node *node, const struct peer *peer, uint32_t pid);
/* The type of the node's answer to that. */
uint8_t answer(struct node *node, int fd);
/* Connect, and be accepted. With hello: as a peer of ours that says this of itself (features besides TCP_EXT_BASE),
 * else as upstream does. */
int connected(struct node *node, const struct peer *peer, uint32_t pid);
int connected_ext(struct node *node, const struct peer *peer, const struct tcp_hello *hello);
/* The same, without the answer. */
int peer_connect_ext(struct node *node, const struct peer *peer, const struct tcp_hello *hello);

void send_hello(struct node *node, fi_addr_t to, void *context);
/* The message "hello" comes out of fd. */
void expect_hello(struct node *node, int fd);
/* It does, and the next completion is that of the operation with this context (NULL: of any). */
void hello_arrives(struct node *node, int fd, void *context);
/* The peer sends 5 bytes as a message, which must arrive in buf. Returns where from. */
fi_addr_t recv_from(struct node *node, int fd, char *buf);
/* The peer could do without this connection: the TCP_WIRE_PARK_* that the node answers. */
uint8_t ask_to_park(struct node *node, int fd);

#endif
