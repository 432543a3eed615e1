/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The other end of the wire, played by a test: plain blocking sockets on the loopback address, and CM messages byte
 * by byte as upstream sends them (extension fields zero) unless a test fills them.
 */
#ifndef TEST_TCP_RAW_H
#define TEST_TCP_RAW_H

#include <netinet/in.h>
#include <stdbool.h>
#include "base/unit.h"
#include "tcp/wire/wire.h"

/* The clock from here on: the real one, and what a test adds to it. */
void test_clock_start(void);
extern uint64_t test_added_ns;
extern uint64_t test_random;		/* the next random number; counts on by itself */

#define PATIENCE_MS	60000		/* longest wait for something that must come */

/* A CM message, ready to be sent: header and private data. */
struct cm_bytes {
	struct tcp_cm_hdr hdr;
	uint8_t data[TCP_CM_DATA_MAX];
};

/* A port on 127.0.0.1 that is free, and stays so: it is outside of the range from which others are given one by chance,
 * and no other process gets it from here. So a test may close its listener, and listen there again, or rely on nobody's
 * doing so. 0, any port, where there is none. */
uint16_t raw_port(void);
/* Listen on 127.0.0.1, at raw_port(), with this backlog; *addr is where. */
int raw_listen(struct sockaddr_in *addr, int backlog);
/* At this port; -1 if somebody has it. */
int raw_listen_at(struct sockaddr_in *addr, uint16_t port, int backlog);
/* Connect from 127.0.0.1 to addr. */
int raw_connect(const struct sockaddr_in *addr);

/* A well-formed message with len bytes of data. Its length on the wire is raw_len(). */
struct cm_bytes raw_cm(uint8_t type, const void *data, size_t len);
size_t raw_len(const struct cm_bytes *msg);
/* What an RDM endpoint of upstream sends: it listens at port, in process pid. */
struct cm_bytes raw_rdm_cm(uint8_t type, uint16_t port, uint32_t pid);

void raw_send(int fd, const void *buf, size_t len);

/* The rest wants something to be driven meanwhile: `drive` is called until the socket has what is wanted. */
typedef void (*raw_drive)(void *arg);
/* Accept; read exactly len bytes; read until the peer has closed, dropping what comes (false: it never did). */
int raw_accept(int fd, raw_drive drive, void *arg);
void raw_recv(int fd, void *buf, size_t len, raw_drive drive, void *arg);
bool raw_recv_end(int fd, raw_drive drive, void *arg);

#endif
